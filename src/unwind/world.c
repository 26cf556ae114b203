// SPDX-License-Identifier: Apache-2.0
#include "unwind/world.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/io.h"

#define DEAD_REACH 1024    /* how far in front of a frame's sp walkers read, and more */
#define STACK_REACH MIB(8) /* how far a stack goes on behind the end of its copy: RLIMIT_STACK as it comes */

/* ---- mappings and rows ---- */

static int find_map(void *self, __u64 pc, struct abi_map *out)
{
	const struct world *w = self;
	const struct mapping *m = mappings_find(w->maps, pc);

	if (!m)
		return -ENOENT;
	*out = (struct abi_map){
		.start = m->start,
		.end = m->end,
		.file_base = m->start - m->offset,
		.file = m->file_id,
		.kind = ABI_MAP_BARE,
	};
	if (m->kind == PROC_PLACE_ANONYMOUS)
		out->kind = ABI_MAP_JIT;
	else if (m->kind != PROC_PLACE_FILE && m->kind != PROC_PLACE_VDSO)
		return -ENOENT;
	else if (m->file_id) /* a file that cannot be read is walked as one that has no rows */
		ignore(w->tables->file(w->tables->self, m->file_id, out));
	return 0;
}

static const void *find_table(void *self, __u32 number)
{
	const struct world *w = self;

	return w->tables->table(w->tables->self, number);
}

static const union abi_element *find_element(void *self, const void *table, __u32 index)
{
	const struct world *w = self;

	return w->tables->element(w->tables->self, table, index);
}

static int read_memory(void *self, void *dst, __u32 size, __u64 at)
{
	const struct world *w = self;

	return w->memory.read(w->memory.self, dst, size, at);
}

void world_init(struct world *w, const struct mappings *maps, const struct world_tables *tables,
		struct world_memory memory)
{
	*w = (struct world){
		.walk = { .read = read_memory,
			  .find_map = find_map,
			  .table = find_table,
			  .element = find_element,
			  .self = w },
		.maps = maps,
		.tables = tables,
		.memory = memory,
	};
}

/* ---- memory ---- */

int world_live_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct world_live *live = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t got = process_vm_readv((pid_t)live->pid, &to, 1, &from, 1, 0);

	if (got < 0)
		return -errno;
	return (uint32_t)got == size ? 0 : -EFAULT;
}

static int file_read(struct files *files, const struct mapping *m, void *dst, uint32_t size, uint64_t at)
{
	uint64_t offset = at - m->start + m->offset;
	struct file_view view;
	int r;

	if (!m->file_id || size > m->end - at)
		return -EFAULT;
	r = files_view(files, m->file_id, &view);
	if (r < 0)
		return r;
	if (!view.image)
		r = io_pread_all(view.fd, dst, size, offset);
	else if (size > view.image_size || offset > view.image_size - size)
		r = -EFAULT;
	else
		memcpy(dst, (const uint8_t *)view.image + offset, size);
	file_view_release(&view);
	return r;
}

int world_copy_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct world_copy *copy = self;
	uint64_t offset = at - copy->at;
	uint64_t before = copy->at - at;
	const struct mapping *m;

	copy->ran_out = copy->is_dead = false;
	if (at >= copy->at && offset <= copy->size && size <= copy->size - offset) {
		memcpy(dst, copy->stack + offset, size);
		return 0;
	}
	copy->is_dead = before - 1 < DEAD_REACH;
	if (copy->is_dead) {
		if (before >= size || size - before > copy->size)
			return -EFAULT;
		memset(dst, 0, before);
		memcpy((uint8_t *)dst + before, copy->stack, size - before);
		return 0;
	}
	m = mappings_find(copy->maps, at);
	if (m)
		return file_read(copy->files, m, dst, size, at);
	copy->ran_out = at >= copy->at && offset < copy->size + STACK_REACH;
	return -EFAULT;
}
