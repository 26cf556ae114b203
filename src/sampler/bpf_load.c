// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_load.h"

#include <stdarg.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/settings.h"
#include "sampler.skel.h"
#include "sampler/bpf_filters.h"
#include "sampler/bpf_probe.h"
#include "sampler/cpus.h"
#include "walk/walk.h"

/* The reader comes every poll interval and is woken when half is used: a quarter of a second's worst case is plenty. */
#define RING_SHARE 4
#define RING_MIN KIB(256)
#define RING_MAX MIB(8)
#define RING_LIMIT MIB(256) /* of what a user may ask for */
#define PIDS_MAX 4096U
#define LONG_CPUS_MAX 64U        /* that have a buffer for long copies of stacks, 76 KiB each; the others go without */
#define SPARSE_SPACES_MAX 16384U /* 16 bytes each until they are used */
#define WAITING_MAX 32768U       /* threads that wait at the same moment */
#define SENT_MAX 16384U          /* stacks of waits the host is taken to know */
#define CHATTER_MAX KIB(64)

/* libbpf has one print function per process and hands it no context: what it says while this thread loads goes here. */
static _Thread_local struct buf *chatter;

printf_like(2, 0) static int chatter_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];
	int len;

	if (!chatter || level > LIBBPF_WARN)
		return 0;
	len = vsnprintf(line, sizeof(line), format, args);
	if (len > 0)
		buf_add(chatter, line, MIN((size_t)len, sizeof(line) - 1));
	return 0;
}

/* The last lines that say something, on one line. */
static void add_chatter(struct buf *why, struct str text)
{
	struct str tail = text.len > 400 ? str_skip(text, text.len - 400) : text, line;
	const char *between = " (";
	bool any = false;

	if (tail.len < text.len)
		ignore(str_next(&tail, '\n', &line)); /* cut in the middle */
	while (str_next(&tail, '\n', &line)) {
		line = str_trim(line);
		if (!line.len)
			continue;
		buf_addf(why, "%s" STR_FMT, between, STR_ARG(line));
		between = "; ";
		any = true;
	}
	if (any)
		buf_addc(why, ')');
}

void bpf_explain(struct buf *why, const char *what, int error)
{
	char self[1024];
	ssize_t len;

	buf_addf(why, "%s: %s", what, strerror(-error));
	if (error != -EPERM && error != -EACCES)
		return;
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[MAX(len, 0)] = 0;
	if (geteuid() == 0) {
		buf_addf(why, "; root lacks CAP_BPF or CAP_PERFMON here (container?): grant both, for example "
			      "docker run --privileged --pid=host");
		return;
	}
	buf_addf(why, "; run it with sudo, or once: " SAMPLER_SETCAP " %s", len > 0 ? self : "hearth");
}

size_t bpf_ring_bytes(const struct sampler_config *cfg, unsigned int cpu_count)
{
	size_t worst = sizeof(struct abi_sample) + ABI_FRAMES_MAX * sizeof(struct abi_frame);
	size_t want = cfg->ring_bytes, bytes = RING_MIN;

	if (want) {
		want = MIN(want, RING_LIMIT);
		bytes = 4096;
	} else if (__builtin_mul_overflow(worst * cpu_count, cfg->frequency_hz, &want)) {
		want = RING_MAX;
	} else {
		want = MIN(want / RING_SHARE, RING_MAX);
	}
	while (bytes < want)
		bytes *= 2;
	return bytes;
}

/* What only waits use costs nothing where they are not asked for. */
static int configure_waits(struct sampler_bpf *skel, const struct sampler_config *cfg)
{
	int r = bpf_program__set_autoload(skel->progs.task_switch, cfg->off_cpu);

	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.walks, cfg->off_cpu ? 2 : 1);
	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.waiting, cfg->off_cpu ? WAITING_MAX : 1);
	return r < 0 ? r : bpf_map__set_max_entries(skel->maps.sent, cfg->off_cpu ? SENT_MAX : 1);
}

/* What only walks by rows use costs nothing where frame pointers are asked for. */
static int configure_maps(struct sampler_bpf *skel, const struct sampler_config *cfg)
{
	int r;

	if (cfg->mode == WALK_FP) {
		r = bpf_map__set_max_entries(skel->maps.tables, 1);
		r = r < 0 ? r : bpf_map__set_max_entries(skel->maps.recents, 1);
		return r < 0 ? r : bpf_map__set_max_entries(skel->maps.spaces, 1);
	}
	if (bpf_probe_sparse_hash() != 1)
		return 0;
	r = bpf_map__set_map_flags(skel->maps.spaces, BPF_F_NO_PREALLOC);
	return r < 0 ? r : bpf_map__set_max_entries(skel->maps.spaces, SPARSE_SPACES_MAX);
}

static int configure(struct sampler_bpf *skel, const struct sampler_config *cfg)
{
	struct cpus online;
	int cpus = cpus_online(cfg->host_root, &online), find_vma = bpf_probe_find_vma(), r;
	size_t ring;

	if (cpus < 0)
		return cpus;
	r = bpf_program__set_autoload(skel->progs.sample_miss, find_vma == 1);
	if (r < 0)
		return r;
	ring = bpf_ring_bytes(cfg, (unsigned int)cpus);
	skel->rodata->settings = (struct abi_settings){
		.young_ns = cfg->poll_interval_ms * NSEC_PER_MSEC,
		.ring_half = ring / 2,
		.skip_pid = cfg->include_self ? 0 : (uint32_t)getpid(),
		.filter_pids = cfg->pid_count > 0,
		.follow_children = cfg->follow_children,
		.filter_cgroup = cfg->cgroup_path != NULL,
		.mode = cfg->mode,
		.copy_all = cfg->copy_all,
		.find_vma = find_vma == 1,
		.wait_share = cfg->wait_share ? cfg->wait_share : UINT32_MAX,
		.wait_min_ns = cfg->wait_min_ns,
		.filter_threads = cfg->tid_count > 0,
		.filter_cgroup_ids = cfg->cgroup_map != NULL,
		.filter_mounts = cfg->mount_map != NULL,
		.idle = cfg->idle_tasks,
		.no_kernel = cfg->no_kernel,
		.no_user = cfg->no_user,
		.php_request = cfg->php_request,
		.page_shift = (uint8_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE)),
	};
	r = configure_maps(skel, cfg);
	if (r == 0)
		r = configure_waits(skel, cfg);
	if (r < 0)
		return r;
	r = bpf_map__set_max_entries(skel->maps.ring, (uint32_t)ring);
	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.longs,
					     cfg->mode == WALK_FP ? 1 : MIN((uint32_t)cpus, LONG_CPUS_MAX));
	if (r < 0)
		return r;
	return bpf_map__set_max_entries(
		skel->maps.listed, cfg->pid_count ? (uint32_t)MAX(PIDS_MAX, (cfg->pid_count + cfg->tid_count) * 2) : 1);
}

static int fill_misses(struct sampler_bpf *skel)
{
	uint32_t zero = 0;
	int program;

	if (!skel->rodata->settings.find_vma)
		return 0;
	program = bpf_program__fd(skel->progs.sample_miss);
	return bpf_map_update_elem(bpf_map__fd(skel->maps.misses), &zero, &program, BPF_ANY) < 0 ? -errno : 0;
}

static int load(struct sampler_bpf *skel, const struct sampler_config *cfg, struct buf *why)
{
	int r = configure(skel, cfg);

	if (r < 0) {
		bpf_explain(why, "cannot prepare the sampling program", r);
		return r;
	}
	r = bpf_filters_use(skel, cfg, why);
	if (r < 0)
		return r;
	r = sampler_bpf__load(skel);
	if (r == -EACCES) /* what the verifier says of a program; rights that are missing are EPERM */
		r = -EINVAL;
	if (r < 0) {
		bpf_explain(why, "the kernel refuses the sampling program", r);
		return r;
	}
	r = bpf_filters_fill(skel, cfg, why);
	if (r < 0)
		return r;
	r = fill_misses(skel);
	if (r < 0) {
		bpf_explain(why, "cannot chain the sampling programs", r);
		return r;
	}
	r = sampler_bpf__attach(skel);
	if (r < 0)
		bpf_explain(why, "cannot follow processes", r);
	return r;
}

int bpf_load(const struct sampler_config *cfg, struct buf *why, struct sampler_bpf **out)
{
	scoped(buf_release) struct buf said = BUF_INIT(CHATTER_MAX);
	scoped(bpf_unload) struct sampler_bpf *skel = NULL;
	int r = bpf_probe_kernel(cfg, why);

	if (r < 0)
		return r;
	chatter = &said;
	libbpf_set_print(chatter_print);
	skel = sampler_bpf__open();
	r = skel ? load(skel, cfg, why) : -errno;
	chatter = NULL;
	if (r < 0) {
		if (r != -EPERM && r != -EACCES) /* then the remedy says it all */
			add_chatter(why, buf_str(&said));
		return r == -EACCES ? -EPERM : r;
	}
	*out = skel;
	skel = NULL;
	return 0;
}

void bpf_unload(struct sampler_bpf **skeleton)
{
	sampler_bpf__destroy(*skeleton); /* NULL is fine */
}
