// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_runtimes.h"

#include <sys/sysmacros.h>

#include <bpf/bpf.h>

#include "abi/python.h"
#include "abi/settings.h"

#define KERNEL_MINOR_BITS 20 /* of a device number inside of the kernel: linux, include/linux/kdev_t.h */

/* The descriptor of a runtime's map, and the size of its values. */
static int map_of(const struct bpf_runtimes *r, enum abi_runtime runtime, size_t *size)
{
	if (runtime != ABI_RUNTIME_PYTHON)
		return -ENOTSUP;
	*size = sizeof(struct abi_python);
	return r->pythons_fd;
}

static int sink_set(void *self, enum abi_runtime runtime, uint32_t pid, const void *info, size_t size)
{
	size_t want = 0;
	int fd = map_of(self, runtime, &want);

	if (fd < 0)
		return fd;
	if (size != want)
		return -EINVAL;
	if (bpf_map_update_elem(fd, &pid, info, BPF_ANY) == 0)
		return 0;
	return errno == E2BIG ? -ENOSPC : -errno;
}

static void sink_forget(void *self, enum abi_runtime runtime, uint32_t pid)
{
	size_t size = 0;
	int fd = map_of(self, runtime, &size);

	if (fd >= 0)
		ignore(bpf_map_delete_elem(fd, &pid)); /* it may have exited */
}

/* Return: 0 or -errno. */
static int clear_programs(int fd)
{
	struct abi_program key;

	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		if (bpf_map_delete_elem(fd, &key) < 0)
			return -errno;
	return 0;
}

/* Programs come and go, as files of containers do: nothing says that one is gone, so a full map begins anew. */
static int sink_set_program(void *self, uint64_t device, uint64_t inode)
{
	const struct bpf_runtimes *r = self;
	struct abi_program key = { .device = (uint64_t)major(device) << KERNEL_MINOR_BITS | minor(device),
				   .inode = inode };
	uint8_t yes = 1;
	int result;

	if (bpf_map_update_elem(r->programs_fd, &key, &yes, BPF_ANY) == 0)
		return 0;
	if (errno != E2BIG)
		return -errno;
	result = clear_programs(r->programs_fd);
	if (result < 0)
		return result;
	return bpf_map_update_elem(r->programs_fd, &key, &yes, BPF_ANY) == 0 ? 1 : -errno;
}

static void sink_recall(void *self)
{
	const struct bpf_runtimes *r = self;

	__atomic_fetch_add(r->names_epoch, 1, __ATOMIC_RELAXED);
}

void bpf_runtimes_sink(struct bpf_runtimes *r, struct runtime_sink *out)
{
	*out = (struct runtime_sink){
		.set = sink_set,
		.forget = sink_forget,
		.set_program = sink_set_program,
		.recall = sink_recall,
		.self = r,
	};
}
