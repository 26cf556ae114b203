/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/kallsyms, read on the first kernel frame, and again when an address misses: 10 s after the last reading when
 * the modules changed, 60 s after it otherwise (BPF programs come and go without a module). */
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/io.h"
#include "symbol/symbol_int.h"

#define READ_SIZE KIB(64)
#define LIST_MAX MIB(256) /* of /proc/kallsyms; 10 MB here */
#define RECHECK_NS (10 * NSEC_PER_SEC)
#define REREAD_NS (60 * NSEC_PER_SEC)
#define KERNEL_MODULE STR("[kernel.kallsyms]")

void symbol_kernel_release(struct symbol_kernel *k)
{
	kallsyms_release(&k->list);
}

static int open_below(const struct symbols *s, const char *name)
{
	scoped(buf_release) struct buf path = BUF_INIT(4096);
	int fd;

	buf_addf(&path, "%s%s", s->host_root, name);
	if (path.error)
		return path.error;
	fd = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int read_list(struct symbols *s, struct kallsyms *list)
{
	scoped(freep) char *bytes = malloc(READ_SIZE);
	scoped(closep) int fd = -1;
	size_t total = 0;

	if (!bytes)
		return -ENOMEM;
	fd = open_below(s, "/proc/kallsyms");
	if (fd < 0)
		return fd;
	while (total < LIST_MAX) {
		ssize_t got = read(fd, bytes, READ_SIZE);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return kallsyms_finish(list);
		kallsyms_feed(list, bytes, (size_t)got);
		total += (size_t)got;
	}
	return -E2BIG;
}

/* Use counts change all the time: only each line's first word, the name, is hashed. */
static uint64_t hash_modules(struct symbols *s)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	scoped(closep) int fd = open_below(s, "/proc/modules");
	struct str rest, line, word;
	uint64_t hash = 0;

	if (fd < 0 || io_read_fd(fd, &text) < 0)
		return 0;
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line))
		if (str_next(&line, ' ', &word))
			hash = XXH3_64bits_withSeed(word.ptr, word.len, hash);
	return hash;
}

static int load(struct symbols *s, uint64_t now_ns, uint64_t modules_hash)
{
	struct symbol_kernel *k = &s->kernel;
	struct kallsyms list;
	int r;

	kallsyms_init(&list);
	r = read_list(s, &list);
	s->stats.kernel_reads++;
	k->read_ns = k->checked_ns = now_ns;
	k->modules_hash = modules_hash;
	s->stats.kernel_restricted = r == -EACCES;
	if (r < 0) {
		kallsyms_release(&list);
		if (k->state != 1) /* an older list stays good for what it has */
			k->state = r;
		return r == -ENOMEM ? r : 0;
	}
	kallsyms_release(&k->list);
	k->list = list;
	k->state = 1;
	return 0;
}

/* Return: 0 with a hit or with hit->name empty, or -ENOMEM. */
static int find(struct symbols *s, uint64_t address, struct kallsyms_hit *hit)
{
	struct symbol_kernel *k = &s->kernel;
	uint64_t now_ns, modules_hash;
	int r;

	if (k->state == 0) {
		r = load(s, clock_monotonic_ns(s->time), hash_modules(s));
		if (r < 0)
			return r;
	}
	if (k->state == 1 && kallsyms_find(&k->list, address, hit) == 0)
		return 0;
	now_ns = clock_monotonic_ns(s->time);
	if (now_ns - k->checked_ns < RECHECK_NS)
		return 0;
	k->checked_ns = now_ns;
	modules_hash = hash_modules(s);
	if (modules_hash == k->modules_hash && now_ns - k->read_ns < REREAD_NS)
		return 0;
	r = load(s, now_ns, modules_hash);
	if (r == 0 && k->state == 1)
		ignore(kallsyms_find(&k->list, address, hit)); /* a miss leaves the name empty */
	return r;
}

int symbols_kernel(struct symbols *s, uint64_t address, bool is_return, struct symbol *out)
{
	struct kallsyms_hit hit = { 0 };
	struct symbol symbol = { .address = address, .module = KERNEL_MODULE };
	int r = find(s, address - (is_return && address ? 1 : 0), &hit);

	if (r < 0)
		return r;
	symbol.start = hit.name.len ? hit.start : address;
	if (hit.module.len)
		symbol.module = hit.module;
	r = symbol_answer(s, hit.name, STR("kernel"), address, &symbol);
	if (r == 0)
		*out = symbol;
	return r;
}
