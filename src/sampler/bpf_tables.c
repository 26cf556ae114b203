// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_tables.h"

#include <endian.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>

#define INNER_FLAGS (BPF_F_INNER_MAP | BPF_F_MMAPABLE) /* those of the template in bpf/unwind.h */
#define KERNEL_ENOTSUPP 524 /* linux, include/linux/errno.h: not for user space, yet seen there */
#define KEPT_MAX 256        /* descriptors of tables */
#define PREFIX_BITS 96      /* of struct abi_map_key: space and address */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t rows_bytes(uint32_t count)
{
	return align_up((size_t)count * sizeof(union abi_element), page_size());
}

/* A mappable array begins with a page of its own for the kernel's head: linux 6.1, kernel/bpf/arraymap.c. */
static size_t sink_cost(void *self, uint32_t count)
{
	(void)self;
	return page_size() + rows_bytes(count);
}

static int inner_create(uint32_t count)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = INNER_FLAGS);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hearth_rows", sizeof(uint32_t), sizeof(union abi_element), count,
				&opts);

	return fd < 0 ? -errno : fd;
}

static int write_mapped(int fd, const union abi_element *elements, uint32_t count, struct table *out)
{
	size_t size = rows_bytes(count);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	memcpy(at, elements, count * sizeof(*elements));
	ignore(mprotect(at, size, PROT_READ)); /* against our own slips only */
	out->elements = at;
	return 0;
}

/* put - the rows are read by walks on the host through the same mapping. */
static int sink_put(void *self, const union abi_element *elements, uint32_t count, struct table *out)
{
	struct bpf_tables *tables = self;
	struct table t = { .count = count, .bytes = sink_cost(self, count) };
	int r;

	if (!count)
		return -EINVAL;
	t.fd = inner_create(count);
	if (t.fd < 0)
		return t.fd;
	r = write_mapped(t.fd, elements, count, &t);
	if (r < 0) {
		close(t.fd);
		return r;
	}
	t.keeps_fd = tables->fds_kept < tables->fds_max;
	tables->fds_kept += t.keeps_fd;
	*out = t;
	return 0;
}

static void unmap(struct table *table)
{
	if (table->elements)
		munmap((void *)(uintptr_t)table->elements, rows_bytes(table->count));
	table->elements = NULL;
}

/* What is mapped counts as resident, whether it is read or not. Only a descriptor brings it back. */
static void sink_hide(void *self, struct table *table)
{
	(void)self;
	if (table->keeps_fd)
		unmap(table);
}

static int sink_view(void *self, struct table *table)
{
	void *at;

	(void)self;
	if (table->elements)
		return 0;
	at = mmap(NULL, rows_bytes(table->count), PROT_READ, MAP_SHARED, table->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	table->elements = at;
	return 0;
}

static void sink_drop(void *self, struct table *table)
{
	struct bpf_tables *tables = self;

	if (!table->count)
		return;
	unmap(table);
	tables->fds_kept -= table->keeps_fd;
	closep(&table->fd);
	*table = (struct table){ .fd = -1 };
}

/* What walks have looked up of these spaces is to be looked up anew. After the change: a walk reads the epoch first. */
static void raise_epoch(const struct bpf_tables *t, uint32_t space)
{
	ignore(__atomic_add_fetch(&t->epochs[space & (ABI_RECENT_SLOTS - 1)], 1, __ATOMIC_RELEASE));
}

static int change_one_by_one(const struct bpf_tables *t, const uint32_t *numbers, const int *fds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (bpf_map_update_elem(t->tables_fd, &numbers[i], &fds[i], BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

/* One grace period for all of them: a single update of an outer map waits for one, some 10 ms. */
static int change_batch(struct bpf_tables *t, const uint32_t *numbers, const int *fds, uint32_t count)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t done = count;

	if (!t->single) {
		if (!bpf_map_update_batch(t->tables_fd, numbers, fds, &done, &opts))
			return 0;
		if (errno != KERNEL_ENOTSUPP)
			return -errno;
		t->single = true;
	}
	return change_one_by_one(t, numbers, fds, count);
}

/* Of tables in their place: the outer map and our mapping keep them. */
static void give_up_fds(const struct table_change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (changes[i].table && !changes[i].table->keeps_fd)
			closep(&changes[i].table->fd);
	}
}

static int sink_change_tables(void *self, const struct table_change *changes, size_t count)
{
	struct bpf_tables *t = self;
	scoped(freep) uint32_t *numbers = NULL;
	scoped(freep) int *fds = NULL;
	int r;

	if (!count)
		return 0;
	if (count > TABLES_MAX)
		return -E2BIG;
	numbers = calloc(count, sizeof(*numbers));
	fds = calloc(count, sizeof(*fds));
	if (!numbers || !fds)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!changes[i].number || changes[i].number >= TABLES_MAX ||
		    (changes[i].table && changes[i].table->fd < 0))
			return -EINVAL;
		numbers[i] = changes[i].number;
		fds[i] = changes[i].table ? changes[i].table->fd : t->empty_fd;
	}
	r = change_batch(t, numbers, fds, (uint32_t)count);
	for (uint32_t i = 0; i < ABI_RECENT_SLOTS; i++)
		raise_epoch(t, i);
	if (r == 0)
		give_up_fds(changes, count);
	return r;
}

uint64_t bpf_tables_prefix(uint64_t start, uint64_t end)
{
	uint64_t left = end - start, block = start & -start; /* as aligned as start is */

	if (!block || block > left) /* the largest power of two that fits */
		block = UINT64_C(1) << (63 - __builtin_clzll(left));
	return block;
}

static int change_prefix(const struct bpf_tables *t, const struct map_change *change, uint64_t at, uint64_t block)
{
	struct abi_map_key key = {
		.prefix = PREFIX_BITS - (uint32_t)__builtin_ctzll(block),
		.space = htobe32(change->space),
		.address = htobe64(at),
	};
	int r;

	if (change->map.kind == ABI_MAP_NONE)
		r = bpf_map_delete_elem(t->mappings_fd, &key) < 0 && errno != ENOENT ? -errno : 0;
	else
		r = bpf_map_update_elem(t->mappings_fd, &key, &change->map, BPF_ANY) < 0 ? -errno : 0;
	return r;
}

/* A range is as many prefixes as it has aligned blocks: at most two of each size. */
static int change_map(const struct bpf_tables *t, const struct map_change *change)
{
	uint64_t at = change->map.start, block;

	if (!change->space || at >= change->map.end)
		return -EINVAL;
	for (; at < change->map.end; at += block) {
		int r;

		block = bpf_tables_prefix(at, change->map.end);
		r = change_prefix(t, change, at, block);
		if (r < 0)
			return r;
	}
	return 0;
}

static int sink_change_maps(void *self, const struct map_change *changes, size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++) { /* the others are worth having without one that failed */
		int r = change_map(self, &changes[i]);

		failed = failed ? failed : r;
		raise_epoch(self, changes[i].space);
	}
	return failed;
}

static int sink_set_space(void *self, uint32_t pid, const struct abi_space *space)
{
	struct bpf_tables *t = self;

	if (space)
		return bpf_map_update_elem(t->spaces_fd, &pid, space, BPF_ANY) < 0 ? -errno : 0;
	return bpf_map_delete_elem(t->spaces_fd, &pid) < 0 && errno != ENOENT ? -errno : 0; /* it may have exited */
}

/* An eighth of what the process may have open, where that is plenty. */
static size_t fds_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < KEPT_MAX)
		return 0;
	return (size_t)MIN(limit.rlim_cur / 8, (rlim_t)KEPT_MAX);
}

int bpf_tables_open(int tables_fd, int mappings_fd, int spaces_fd, uint32_t *epochs, struct bpf_tables *out)
{
	int empty = inner_create(1);

	if (empty < 0)
		return empty;
	*out = (struct bpf_tables){ .tables_fd = tables_fd,
				    .mappings_fd = mappings_fd,
				    .spaces_fd = spaces_fd,
				    .epochs = epochs,
				    .empty_fd = empty,
				    .fds_max = fds_max() };
	return 0;
}

void bpf_tables_close(struct bpf_tables *t)
{
	closep(&t->empty_fd);
}

void bpf_tables_sink(struct bpf_tables *t, struct table_sink *out)
{
	*out = (struct table_sink){
		.cost = sink_cost,
		.put = sink_put,
		.view = sink_view,
		.hide = sink_hide,
		.drop = sink_drop,
		.change_tables = sink_change_tables,
		.change_maps = sink_change_maps,
		.set_space = sink_set_space,
		.self = t,
	};
}
