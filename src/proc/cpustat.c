/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/cpustat.h"

#include "base/io.h"

#define TICK_NS (NSEC_PER_SEC / 100) /* USER_HZ */
#define TEXT_MAX MIB(8)              /* /proc/stat has a line of all interrupts */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

/* "cpu  1 2 3 ...": the guest fields behind steal are counted in user and nice already. */
static int parse_total(struct str values, struct cpustat *out)
{
	uint64_t ticks[FIELDS] = { 0 }, busy = 0, total = 0;
	struct str word;
	int field = 0;

	while (field < FIELDS && str_next(&values, ' ', &word)) {
		if (!word.len) /* the first number stands behind two blanks */
			continue;
		if (str_to_u64(word, 0, UINT64_MAX / TICK_NS / FIELDS, &ticks[field++]) < 0)
			return -EBADMSG;
	}
	if (field <= IDLE) /* later fields came with later kernels */
		return -EBADMSG;
	busy = ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ];
	total = busy + ticks[IDLE] + ticks[IOWAIT] + ticks[STEAL];
	out->busy_ns = busy * TICK_NS;
	out->total_ns = total * TICK_NS;
	out->steal_ns = ticks[STEAL] * TICK_NS;
	return 0;
}

int cpustat_parse(struct str text, struct cpustat *out)
{
	struct cpustat stat = { 0 };
	bool found = false;
	struct str line;

	while (str_next(&text, '\n', &line) && str_starts(line, STR("cpu"))) { /* these lines come first */
		if (!str_starts(line, STR("cpu "))) {
			stat.cpu_count++;
			continue;
		}
		if (found || parse_total(str_skip(line, 4), &stat) < 0)
			return -EBADMSG;
		found = true;
	}
	if (!found)
		return -EBADMSG;
	*out = stat;
	return 0;
}

static int read_text(const char *host_root, const char *name, struct buf *text)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));

	buf_addf(&path, "%s/proc/%s", host_root ? host_root : "", name);
	(void)buf_cstr(&path);
	return path.error ? path.error : io_read_file(path.ptr, text);
}

int cpustat_read(const char *host_root, struct cpustat *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	int r = read_text(host_root, "stat", &text);

	return r < 0 ? r : cpustat_parse(buf_str(&text), out);
}

uint64_t cpustat_busy_ns(const struct cpustat *from, const struct cpustat *to)
{
	if (!from->total_ns || to->busy_ns <= from->busy_ns) /* CPUs that went offline take their time with them */
		return 0;
	return to->busy_ns - from->busy_ns;
}

double cpustat_busy_percent(const struct cpustat *from, const struct cpustat *to)
{
	if (!from->total_ns || to->total_ns <= from->total_ns)
		return -1;
	return MIN(100.0, 100.0 * (double)cpustat_busy_ns(from, to) / (double)(to->total_ns - from->total_ns));
}

/* "MemTotal:       16384 kB" */
static bool take_kib(struct str line, struct str key, uint64_t *out_bytes)
{
	struct str value;
	uint64_t kib;

	if (!str_starts(line, key))
		return false;
	value = str_trim(str_skip(line, key.len));
	if (str_ends(value, STR(" kB")))
		value.len -= 3;
	if (str_to_u64(value, 0, UINT64_MAX >> 10, &kib) < 0)
		return false;
	*out_bytes = kib << 10;
	return true;
}

int meminfo_parse(struct str text, uint64_t *total_bytes, uint64_t *used_bytes)
{
	uint64_t total = 0, available = 0;
	bool has_available = false;
	struct str line;

	while (str_next(&text, '\n', &line)) {
		ignore(take_kib(line, STR("MemTotal:"), &total)); /* another line */
		has_available = take_kib(line, STR("MemAvailable:"), &available) || has_available;
	}
	if (!total || !has_available || available > total)
		return -EBADMSG;
	*total_bytes = total;
	*used_bytes = total - available;
	return 0;
}

int meminfo_read(const char *host_root, uint64_t *total_bytes, uint64_t *used_bytes)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	int r = read_text(host_root, "meminfo", &text);

	return r < 0 ? r : meminfo_parse(buf_str(&text), total_bytes, used_bytes);
}

double cpustat_memory_percent(const char *host_root)
{
	uint64_t total, used;

	return meminfo_read(host_root, &total, &used) < 0 ? -1 : 100.0 * (double)used / (double)total;
}
