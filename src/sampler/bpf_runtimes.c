// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_runtimes.h"

#include <sys/sysmacros.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/settings.h"

#define KERNEL_MINOR_BITS 20 /* of a device number inside of the kernel: linux, include/linux/kdev_t.h */

/* The maps of the runtimes' walkers. */
static const char *const map_names[ABI_RUNTIME_COUNT] = {
	[ABI_RUNTIME_PYTHON] = "pythons",  [ABI_RUNTIME_JAVA] = "javas", [ABI_RUNTIME_NODEJS] = "nodejses",
	[ABI_RUNTIME_RUBY] = "rubies",     [ABI_RUNTIME_PHP] = "phps",   [ABI_RUNTIME_PERL] = "perls",
	[ABI_RUNTIME_COUNT - 2] = "fakes", /* the object that the tests load */
};

static int fd_of(const struct bpf_object *object, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__fd(map) : -ENOENT;
}

void bpf_runtimes_open(struct bpf_runtimes *r, const struct bpf_object *object, uint32_t *names_epoch)
{
	*r = (struct bpf_runtimes){ .heads_fd = fd_of(object, "runtimes"),
				    .programs_fd = fd_of(object, "programs"),
				    .names_epoch = names_epoch };
	for (size_t i = 0; i < ARRAY_SIZE(map_names); i++) {
		const struct bpf_map *map = map_names[i] ? bpf_object__find_map_by_name(object, map_names[i]) : NULL;

		if (!map)
			continue;
		r->maps[i].fd = bpf_map__fd(map);
		r->maps[i].size = bpf_map__value_size(map);
	}
}

/* The descriptor of a runtime's map, and the size of its values. */
static int map_of(const struct bpf_runtimes *r, enum abi_runtime runtime, size_t *size)
{
	if (runtime >= ABI_RUNTIME_COUNT || !r->maps[runtime].size)
		return -ENOTSUP;
	*size = r->maps[runtime].size;
	return r->maps[runtime].fd;
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

static int sink_head(void *self, uint32_t pid, const struct abi_runtimes *head)
{
	const struct bpf_runtimes *r = self;

	if (!head) {
		ignore(bpf_map_delete_elem(r->heads_fd, &pid)); /* it may have exited */
		return 0;
	}
	if (bpf_map_update_elem(r->heads_fd, &pid, head, BPF_ANY) == 0)
		return 0;
	return errno == E2BIG ? -ENOSPC : -errno;
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
		.head = sink_head,
		.set_program = sink_set_program,
		.recall = sink_recall,
		.self = r,
	};
}
