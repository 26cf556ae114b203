// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_filters.h"

#include <fcntl.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/settings.h"
#include "sampler.skel.h"

/* A pinned program or link would be asked for what a map says of itself, and answer with what it says. */
static bool is_map(int fd)
{
	char path[64], target[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target));
	return len > 0 && str_eq(str_n(target, (size_t)len), STR("anon_inode:bpf-map"));
}

static bool is_set_of_words(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	return is_map(fd) && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.key_size == sizeof(uint64_t) &&
	       (info.type == BPF_MAP_TYPE_HASH || info.type == BPF_MAP_TYPE_LRU_HASH);
}

static int use_pinned(struct bpf_map *map, const char *path, struct buf *why)
{
	scoped(closep) int fd = -1;
	int r;

	if (!path)
		return 0;
	fd = bpf_obj_get(path);
	r = fd < 0 ? -errno : 0;
	if (r == -ENOENT || r == -EPERM) {
		buf_addf(why, "%s: %s", path, strerror(-r));
		return r;
	}
	if (r < 0 || !is_set_of_words(fd)) {
		buf_addf(why, "%s is no pinned BPF hash map with keys of 8 bytes", path);
		return -EINVAL;
	}
	r = bpf_map__reuse_fd(map, fd); /* which keeps a descriptor of its own */
	if (r < 0)
		buf_addf(why, "%s: %s", path, strerror(-r));
	return r;
}

int bpf_filters_use(struct sampler_bpf *skel, const struct sampler_config *cfg, struct buf *why)
{
	int r = use_pinned(skel->maps.cgroup_ids, cfg->cgroup_map, why);

	return r < 0 ? r : use_pinned(skel->maps.mounts, cfg->mount_map, why);
}

/* One number can be of both: a process's first thread has its number. */
static int list(int map_fd, const pid_t *ids, size_t count, uint8_t as)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t id = (uint32_t)ids[i];
		uint8_t bits = 0;

		ignore(bpf_map_lookup_elem(map_fd, &id, &bits)); /* not there yet: no bits */
		bits |= as;
		if (bpf_map_update_elem(map_fd, &id, &bits, BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

static int fill_cgroup(struct sampler_bpf *skel, const char *path, struct buf *why)
{
	scoped(closep) int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t zero = 0;

	if (cgroup < 0) {
		int error = -errno;

		buf_addf(why, "cgroup %s: %s", path, strerror(-error));
		return error;
	}
	if (bpf_map_update_elem(bpf_map__fd(skel->maps.cgroups), &zero, &cgroup, BPF_ANY) < 0) {
		buf_addf(why, "cgroup %s: not a cgroup v2 directory", path);
		return -EINVAL;
	}
	return 0;
}

int bpf_filters_fill(struct sampler_bpf *skel, const struct sampler_config *cfg, struct buf *why)
{
	int map_fd = bpf_map__fd(skel->maps.listed);
	int r = list(map_fd, cfg->pids, cfg->pid_count, ABI_LISTED_PROCESS);

	if (r == 0)
		r = list(map_fd, cfg->tids, cfg->tid_count, ABI_LISTED_THREAD);
	return r < 0 || !cfg->cgroup_path ? r : fill_cgroup(skel, cfg->cgroup_path, why);
}
