/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples. A sampler passes on checked records in order; it knows nothing of files and names. */
#pragma once

#include <linux/types.h>
#include <sys/types.h>

#include "abi/abi.h"
#include "base/buf.h"

/* How a sampler that leaves user stacks to the host (struct sampler, copies_stacks) gets them. */
enum sampler_stacks {
	SAMPLER_STACKS_BY_MODE, /* CHAIN with WALK_FP, otherwise COPY */
	SAMPLER_STACKS_CHAIN,   /* the kernel follows frame pointers */
	SAMPLER_STACKS_COPY,    /* registers and a piece of the stack are copied, the host walks them */
	SAMPLER_STACKS_BOTH,    /* and both are handed over: sampler_events.chain */
};

#define SAMPLER_COPY_BYTES_MAX 65528 /* a perf record has less than 64 KiB */
#define SAMPLER_EVENT_NAME_SIZE 64

/* What is counted, and after how many counts a sample is taken (sampler/event.h makes one of a name). */
struct sampler_event {
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config, config1, config2;
	uint64_t period; /* counts per sample; 0: frequency_hz samples a second, and the kernel chooses the period */
	uint8_t precise; /* perf's :p, as in precise_ip */
	bool without_user, without_kernel;  /* perf's :k and :u */
	bool is_clock;                      /* its counts are nanoseconds of CPU time */
	char name[SAMPLER_EVENT_NAME_SIZE]; /* as it was asked for; terminated */
};

struct cpus; /* sampler/cpus.h */

struct sampler_config {
	uint32_t frequency_hz;
	const struct sampler_event *event; /* NULL: the CPU's clock, by frequency_hz */
	const pid_t *pids;                 /* empty: every process */
	size_t pid_count;
	const pid_t
		*tids; /* empty: every thread of them; bpf, perf: only these, and pids are the processes they are of */
	size_t tid_count;
	bool follow_children;    /* with pids: processes they start from now on belong to the filter too */
	const char *cgroup_path; /* NULL, or a cgroup v2 directory: only its tasks and those below it; with pids: both
				    hold */
	/* bpf: NULL, or a pinned map of hashes (bpffs) whose keys are 8 bytes: only tasks in a cgroup whose id is a
	 * key, in a mount namespace whose inode is one. Others may change it meanwhile. */
	const char *cgroup_map, *mount_map;
	const struct cpus *cpus;   /* bpf: NULL, or only these that are online */
	bool idle_tasks;           /* bpf: what a CPU does when it has nothing to do, as process 0 */
	bool no_kernel, no_user;   /* bpf: without this part of the stacks */
	uint32_t poll_interval_ms; /* 100 to 250; how long records may wait in the ring */
	size_t ring_bytes;   /* 0: frequency x CPUs x worst record for a quarter of a second, within [256 KiB, 8 MiB] */
	uint8_t mode;        /* enum walk_mode; not WALK_FP: somebody has to fill what tables() gives */
	uint8_t stacks;      /* perf: enum sampler_stacks */
	uint32_t copy_bytes; /* perf: of each copied stack, a multiple of 8 up to SAMPLER_COPY_BYTES_MAX; 0: 8192 */
	bool copy_all;       /* every user stack travels raw: the host walks all of them */
	bool off_cpu;        /* also the stacks of threads that leave their CPU to wait, and how long they do */
	uint64_t wait_min_ns; /* shorter waits are not told */
	uint32_t wait_share;  /* of all waits, in 2^32; 0: all of them */
	bool php_request;     /* bpf: what workers of PHP are busy with, too */
	bool include_self;    /* sample this process too (default in record: yes, truth over beauty) */
	bool allow_dangerous_kernel;
	bool idle;   /* remote: threads that do not run, too */
	bool beside; /* remote: another sampler meets processes: look at nothing but those that runtimes() is told of */
	const char *recording; /* recorded: the file to replay */
	const char *host_root; /* prefix of every /proc and /sys path; "" on the host */
};

/* Called in the order of time of one CPU; records are valid during the call only and are already checked: sizes,
 * counts, kinds and ids are within bounds. */
struct sampler_events {
	void (*sample)(void *ctx, const struct abi_sample *sample);
	void (*process)(void *ctx, const struct abi_process *event);   /* header.type says which */
	void (*mapping)(void *ctx, const struct abi_mapping *mapping); /* recordings and perf only; may be NULL */
	void *ctx;
	/* What runtime frames of later samples are called. May be NULL. */
	void (*name)(void *ctx, const struct abi_name *name);
	/* May be NULL. Refers to a sample of trigger SWITCH that came before; a raw one may still be being walked. */
	void (*wait)(void *ctx, const struct abi_wait *wait);
	/* What later samples with its key are busy with. May be NULL. */
	void (*request)(void *ctx, const struct abi_request *request);
	/* With SAMPLER_STACKS_BOTH: the sample of the same moment by frame pointers, before the other one. */
	void (*chain)(void *ctx, const struct abi_sample *sample);
};

struct sampler_state;
struct table_sink;   /* unwind/table_sink.h */
struct runtime_sink; /* runtime/runtime_sink.h */

struct sampler {
	const char *name;
	const char *help;
	bool only_runtimes; /* it sees no native frames: it is chosen by itself only when no other sampler works */
	bool copies_stacks; /* it walks nothing itself: sampler_config.stacks says what it hands over */
	bool is_replay; /* of what was recorded before: nothing of this machine's processes says anything about it */
	/**
	 * Can it do what @cfg asks, here and now? Return: 0; -EPERM (rights missing), -ENOTSUP (kernel lacks it, or it
	 * is one that freezes). @why says the reason and the exact command or option that mends it, in one line.
	 */
	int (*probe)(const struct sampler_config *cfg, struct buf *why);
	/** Load and attach, but take nothing yet. @why as above on failure. */
	int (*open)(const struct sampler_config *cfg, struct buf *why, struct sampler_state **out);
	int (*start)(struct sampler_state *s);
	/**
	 * Wait up to @timeout_ms for records, hand over all there are. Follows CPU hot-plug.
	 * Return: number of records; 0 at time-out; -ENODATA when the source is used up (recordings); -errno.
	 */
	int (*poll)(struct sampler_state *s, int timeout_ms, const struct sampler_events *events);
	/** A descriptor that is readable when records want reading at once, or -1. */
	int (*fd)(const struct sampler_state *s);
	int (*stop)(struct sampler_state *s); /* no more ticks; what is in the ring can still be polled */
	/**
	 * Where unwind rows go; @out may be used by one other thread, at any time until close(). NULL: samples come
	 * with all the frames they will ever have.
	 */
	int (*tables)(struct sampler_state *s, struct table_sink *out);
	/**
	 * Where what the runtimes' walkers have to know of a process goes; as tables(). NULL: it walks no runtimes.
	 */
	int (*runtimes)(struct sampler_state *s, struct runtime_sink *out);
	void (*counters)(const struct sampler_state *s, uint64_t out[ABI_COUNTER_COUNT]);
	void (*close)(struct sampler_state *s); /* NULL is fine */
};

/** sampler_find - by name, or NULL. */
const struct sampler *sampler_find(struct str name);
/** sampler_at - the registry in order of preference; NULL behind the last. */
const struct sampler *sampler_at(size_t index);
/**
 * sampler_choose - "auto": the first whose probe succeeds
 * @why: what was taken and why the ones before it were not; or why none can be used
 * Return: 0 and *out, -EPERM or -ENOTSUP.
 */
int sampler_choose(const struct sampler_config *cfg, struct buf *why, const struct sampler **out) warn_unused;

extern const char sampler_source[]; /* the BPF programs in C, as the compiler read them */

/** abi_record_check - is this a whole, well-formed record? Return: its size, or -EBADMSG. Pure; fuzzed. */
int abi_record_check(const void *bytes, size_t size);
