// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_probe.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "sampler/bpf_load.h"
#include "sampler/event.h"
#include "sampler/probe.h"

/* return 0 */
static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* libbpf's calls answer -1 with errno, or -errno; both are told apart here. */
static int fd_result(int fd)
{
	int r = fd == -1 ? -errno : fd;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	return r;
}

int bpf_probe_program(void)
{
	return fd_result(
		bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "hearth_probe", "GPL", nothing, ARRAY_SIZE(nothing), NULL));
}

int bpf_probe_ring(void)
{
	return fd_result(
		bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hearth_probe", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), NULL));
}

int bpf_probe_process_event(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP);
	scoped(closep) int program = -1;
	int id, r;

	if (!btf)
		return -errno;
	id = btf__find_by_name_kind(btf, "btf_trace_sched_process_exec", BTF_KIND_TYPEDEF);
	btf__free(btf);
	if (id < 0)
		return id;
	opts.attach_btf_id = (uint32_t)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "hearth_probe", "GPL", nothing, ARRAY_SIZE(nothing), &opts);
	if (program < 0) {
		r = -errno;
		program = -1;
		return r;
	}
	return fd_result(bpf_raw_tracepoint_open(NULL, program));
}

int bpf_probe_entry_registers(void)
{
	/* r0 = bpf_get_current_task_btf(); r1 = r0; r0 = bpf_task_pt_regs(r1); return 0 */
	static const struct bpf_insn ask[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task_btf },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_task_pt_regs },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int r = bpf_probe_program();

	if (r < 0)
		return r;
	r = fd_result(bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "hearth_probe", "GPL", ask, ARRAY_SIZE(ask), NULL));
	return r == 0;
}

int bpf_probe_find_vma(void)
{
	int r = bpf_probe_program();

	if (r < 0)
		return r;
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_find_vma, NULL);
}

int bpf_probe_sparse_hash(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	scoped(closep) int map = bpf_map_create(BPF_MAP_TYPE_HASH, "hearth_probe", 4, 4, 1, &opts);
	/* r1 = map; return 0: that it is named is enough */
	struct bpf_insn name[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{ 0 },
		nothing[0],
		nothing[1],
	};

	if (map < 0)
		return -errno;
	return fd_result(bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "hearth_probe", "GPL", name, ARRAY_SIZE(name),
				       NULL)) == 0;
}

int bpf_probe_perf_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 1,
		.freq = 1,
		.disabled = 1,
	};

	return fd_result((int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
}

int bpf_probe_kernel(const struct sampler_config *cfg, struct buf *why)
{
	struct probe_kernel k;
	int r;

	if (!probe_pid_namespace(cfg->host_root)) {
		buf_adds(why, STR("this pid namespace has its own numbers for processes, and BPF programs see the "
				  "machine's: run it with --pid=host"));
		return -ENOTSUP;
	}
	r = probe_kernel_running(cfg->host_root, &k);
	if (r < 0)
		return 0; /* unknown names: the trials decide */
	r = probe_kernel_verdict(&k);
	if (r == -ENOTSUP) {
		buf_addf(why, "kernel %u.%u is too old: BPF sampling needs 5.10", k.major, k.minor);
		return r;
	}
	if (r == -EDEADLK && !cfg->allow_dangerous_kernel) {
		buf_addf(why,
			 "kernel %u.%u.%u can freeze when BPF reads user memory: update it (6.1.36, 6.3.10, 6.4 are "
			 "mended) "
			 "or take the risk with --allow-dangerous-kernel",
			 k.major, k.minor, k.patch);
		return -ENOTSUP;
	}
	return 0;
}

/* What an unprivileged caller gets: EPERM from bpf(), EACCES from perf_event_open(). */
static int verdict(struct buf *why, const char *what, int error)
{
	bpf_explain(why, what, error);
	return error == -EPERM || error == -EACCES ? -EPERM : -ENOTSUP;
}

int bpf_probe_all(const struct sampler_config *cfg, struct buf *why)
{
	int r = bpf_probe_kernel(cfg, why);

	if (r < 0)
		return r;
	r = bpf_probe_program();
	if (r < 0)
		return verdict(why, "BPF programs cannot be loaded", r);
	r = bpf_probe_perf_event();
	if (r < 0)
		return verdict(why, "cpu-clock events cannot be opened", r);
	if (event_is_tracepoint(cfg->event)) {
		buf_addf(why, "'%s' is a tracepoint, which the sampler perf takes", cfg->event->name);
		return -ENOTSUP;
	}
	r = cfg->event ? event_probe(cfg->event, cfg->frequency_hz, why) : 0;
	if (r < 0)
		return r;
	r = bpf_probe_ring();
	if (r < 0)
		return verdict(why, "a BPF ring buffer cannot be made", r);
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return verdict(why, "/sys/kernel/btf/vmlinux, the kernel's type information (CONFIG_DEBUG_INFO_BTF)",
			       -errno);
	return 0;
}
