/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/event.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/bpf_load.h"
#include "sampler/event_int.h"

#define PRECISE_MAX 3

/* perf's names. Source: perf-list(1); linux 6.1, include/uapi/linux/perf_event.h. */
static const struct {
	const char *name, *other;
	uint32_t type;
	uint64_t config;
} names[] = {
	{ "cpu-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "task-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ "page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "minor-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "alignment-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ "emulation-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS },
	{ "cgroup-switches", NULL, PERF_TYPE_SOFTWARE, 11 /* since linux 5.13 */ },
	{ "cpu-cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branch-instructions", "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "bus-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
	{ "stalled-cycles-frontend", "idle-cycles-frontend", PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
	{ "stalled-cycles-backend", "idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
	{ "ref-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
};

static const char *const caches[] = {
	[PERF_COUNT_HW_CACHE_L1D] = "L1-dcache", [PERF_COUNT_HW_CACHE_L1I] = "L1-icache",
	[PERF_COUNT_HW_CACHE_LL] = "LLC",        [PERF_COUNT_HW_CACHE_DTLB] = "dTLB",
	[PERF_COUNT_HW_CACHE_ITLB] = "iTLB",     [PERF_COUNT_HW_CACHE_BPU] = "branch",
	[PERF_COUNT_HW_CACHE_NODE] = "node",
};

static const struct {
	const char *name;
	uint8_t operation, result;
} cache_results[] = {
	{ "-loads", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-load-misses", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "-stores", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-store-misses", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "-prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS },
};

/* ---- names ---- */

static bool find_named(struct str name, struct sampler_event *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!str_eq(name, str_of(names[i].name)) && !(names[i].other && str_eq(name, str_of(names[i].other))))
			continue;
		out->type = names[i].type;
		out->config = names[i].config;
		out->is_clock = out->type == PERF_TYPE_SOFTWARE &&
				(out->config == PERF_COUNT_SW_CPU_CLOCK || out->config == PERF_COUNT_SW_TASK_CLOCK);
		return true;
	}
	return false;
}

static bool find_cache(struct str name, struct sampler_event *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		struct str rest = str_skip(name, strlen(caches[i]));

		if (!str_starts(name, str_of(caches[i])))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(cache_results); k++) {
			if (!str_eq(rest, str_of(cache_results[k].name)))
				continue;
			out->type = PERF_TYPE_HW_CACHE;
			out->config =
				i | (uint64_t)cache_results[k].operation << 8 | (uint64_t)cache_results[k].result << 16;
			return true;
		}
	}
	return false;
}

/* rHEX, as perf has it. */
static bool find_raw(struct str name, struct sampler_event *out)
{
	if (name.len < 2 || name.ptr[0] != 'r' || str_to_hex64(str_skip(name, 1), &out->config) < 0)
		return false;
	out->type = PERF_TYPE_RAW;
	return true;
}

static int find_event(const char *host_root, struct str name, struct sampler_event *out, struct buf *why)
{
	ptrdiff_t slash = str_find(name, '/'), colon = str_find(name, ':');
	struct str terms;
	int r;

	if (slash > 0) {
		terms = str_skip(name, (size_t)slash + 1);
		if (!str_ends(terms, STR("/"))) {
			buf_addf(why, "'" STR_FMT "': the event of a unit ends with a slash: cpu/cycles/",
				 STR_ARG(name));
			return -EBADMSG;
		}
		return event_of_pmu(host_root, str_first(name, (size_t)slash), str_first(terms, terms.len - 1), out,
				    why);
	}
	if (colon > 0)
		return event_tracepoint(host_root, str_first(name, (size_t)colon), str_skip(name, (size_t)colon + 1),
					out, why);
	if (find_named(name, out) || find_cache(name, out) || find_raw(name, out))
		return 0;
	r = event_of_any_pmu(host_root, name, out);
	if (r == -ENOENT)
		buf_addf(why,
			 "'" STR_FMT "' is no event: context-switches, page-faults, cycles, a tracepoint GROUP:NAME or "
			 "rHEX would be (perf list shows more)",
			 STR_ARG(name));
	else if (r < 0)
		buf_addf(why, "'" STR_FMT "' cannot be looked up: %s", STR_ARG(name), strerror(-r));
	return r;
}

/* ---- modifiers ---- */

/* Reads "u", "kpp" ... Return: whether that is what @text is. */
static bool take_modifiers(struct str text, struct sampler_event *out)
{
	bool user = false, kernel = false;
	uint8_t precise = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == 'u')
			user = true;
		else if (text.ptr[i] == 'k')
			kernel = true;
		else if (text.ptr[i] == 'p' && precise < PRECISE_MAX)
			precise++;
		else
			return false;
	}
	out->precise = precise;
	out->without_kernel = user && !kernel;
	out->without_user = kernel && !user;
	return text.len > 0;
}

/* What lies behind the last colon may be modifiers, or the name of a tracepoint. Return: the length without them. */
static size_t split_modifiers(struct str name, struct sampler_event *out)
{
	struct sampler_event trial = *out;
	ptrdiff_t colon = str_rfind(name, ':');
	struct str front;

	if (colon <= 0 || !take_modifiers(str_skip(name, (size_t)colon + 1), &trial))
		return name.len;
	front = str_first(name, (size_t)colon);
	if (str_find(front, '/') < 0 && str_find(front, ':') < 0 && !find_named(front, &trial) &&
	    !find_cache(front, &trial) && !find_raw(front, &trial))
		return name.len; /* a group of tracepoints */
	out->precise = trial.precise;
	out->without_kernel = trial.without_kernel;
	out->without_user = trial.without_user;
	return (size_t)colon;
}

int event_parse(const char *host_root, struct str name, struct sampler_event *out, struct buf *why)
{
	struct sampler_event event = { 0 };
	struct str bare;
	int r;

	name = str_trim(name);
	if (!name.len || name.len >= sizeof(event.name)) {
		buf_addf(why, "'" STR_FMT "' is no name of an event", STR_ARG(str_first(name, 100)));
		return -EBADMSG;
	}
	if (str_starts(name, STR("uncore_"))) {
		buf_addf(why,
			 "'" STR_FMT "': events outside of the CPU's cores belong to no process and have no stacks",
			 STR_ARG(name));
		return -ENOENT;
	}
	memcpy(event.name, name.ptr, name.len);
	bare = str_first(name, split_modifiers(name, &event));
	r = find_event(host_root, bare, &event, why);
	if (r == 0)
		*out = event;
	return r;
}

/* ---- opening ---- */

bool event_is_tracepoint(const struct sampler_event *event)
{
	return event && event->type == PERF_TYPE_TRACEPOINT;
}

void event_attr(const struct sampler_event *event, uint32_t frequency_hz, struct perf_event_attr *out)
{
	*out = (struct perf_event_attr){
		.type = event ? event->type : PERF_TYPE_SOFTWARE,
		.size = sizeof(*out),
		.config = event ? event->config : PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	if (event) {
		out->config1 = event->config1;
		out->config2 = event->config2;
		out->precise_ip = event->precise & 3U;
		out->exclude_user = event->without_user;
		out->exclude_kernel = event->without_kernel;
	}
	if (event && event->period) {
		out->sample_period = event->period;
	} else {
		out->sample_freq = frequency_hz;
		out->freq = 1;
	}
}

static bool is_counted_by_hardware(const struct sampler_event *event)
{
	return event && event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT;
}

/* The kernel lowers it by itself when sampling takes too much of a CPU. */
static void add_rate_limit(struct buf *why)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);

	if (io_read_file("/proc/sys/kernel/perf_event_max_sample_rate", &text) == 0)
		buf_addf(why, ", or not so often: kernel.perf_event_max_sample_rate is " STR_FMT,
			 STR_ARG(str_trim(buf_str(&text))));
}

int event_explain(const struct sampler_event *event, int error, struct buf *why)
{
	const char *name = event ? event->name : "cpu-clock";

	if (error == -EPERM || error == -EACCES) {
		char what[SAMPLER_EVENT_NAME_SIZE + 32];

		(void)snprintf(what, sizeof(what), "'%s' may not be sampled", name);
		bpf_explain(why, what, error);
		return -EPERM;
	}
	if (is_counted_by_hardware(event) &&
	    (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV || error == -ENXIO))
		buf_addf(why,
			 "'%s' has no counter on this machine (virtual machines often have none): cpu-clock, "
			 "context-switches, page-faults and tracepoints need none",
			 name);
	else if (is_counted_by_hardware(event) && event->precise && error == -EINVAL)
		buf_addf(why, "'%s' cannot be sampled so precisely here: leave out :%.*s", name, (int)event->precise,
			 "ppp");
	else if (error == -EINVAL || error == -EOPNOTSUPP)
		buf_addf(why, "'%s' can be counted but not sampled by this kernel", name);
	else
		buf_addf(why, "'%s' cannot be opened: %s", name, strerror(-error));
	if (error == -EINVAL && !(event && event->period))
		add_rate_limit(why);
	return -ENOTSUP;
}

int event_probe(const struct sampler_event *event, uint32_t frequency_hz, struct buf *why)
{
	struct perf_event_attr attr;
	scoped(closep) int fd = -1;

	event_attr(event, frequency_hz, &attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EPERM || errno == EACCES)) /* of one's own processes less is needed */
		fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? event_explain(event, -errno, why) : 0;
}
