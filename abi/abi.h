/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What crosses from the kernel side to the host side, and what a recording holds: fixed widths, explicit padding, no
 * pointers. The host re-checks every record as if it were hostile. Includes nothing: the includer brings __u8 .. __u64
 * (<linux/types.h> on the host, kernel.h in BPF). */
#pragma once

#define ABI_VERSION 3
#define ABI_COMM_SIZE 16
#define ABI_KERNEL_FRAMES_MAX 127 /* kernel.perf_event_max_stack */
#define ABI_FRAMES_MAX 1024       /* kernel and user frames of one sample */
#define ABI_REGS 33               /* by DWARF number; the more of x86-64 (17) and aarch64 (33) */
#define ABI_STACK_MAX 16384       /* bytes of stack that travel with a raw sample */
#define ABI_STACK_LONG_MAX 65536  /* the same where the stack goes on and there is room: bpf/long.h */

enum abi_record_type {
	ABI_RECORD_SAMPLE = 1,
	ABI_RECORD_EXEC = 2,    /* struct abi_process: the program of pid was replaced */
	ABI_RECORD_FORK = 3,    /* struct abi_process: pid is new, parent_pid made it (new thread groups only) */
	ABI_RECORD_EXIT = 4,    /* struct abi_process: the whole thread group is gone */
	ABI_RECORD_MAPPING = 5, /* struct abi_mapping: recordings only; never comes from the kernel side */
	ABI_RECORD_WAIT = 6,    /* struct abi_wait: a thread runs again after it was off its CPU */
	ABI_RECORD_NAME = 7,    /* struct abi_name: what a function of a language runtime is called */
	ABI_RECORD_REQUEST = 8, /* struct abi_request: what a worker of a web server was busy with */
};

/* Every record starts with this; size covers the whole record, header included, and is a multiple of 8. */
struct abi_header {
	__u16 type;
	__u16 version; /* ABI_VERSION */
	__u32 size;
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

enum abi_frame_kind {
	ABI_FRAME_KERNEL = 1, /* a: address */
	ABI_FRAME_USER = 2,   /* a: address in the process; becomes NATIVE or JIT on the host while the process lives */
	ABI_FRAME_NATIVE = 3, /* a: file id, b: offset in the file */
	ABI_FRAME_JIT = 4,    /* a: address in executable memory without a file */
	/* A function of a language runtime. a: its key (CPython: the code object), b: the cookie that tells it from
	 * another one at the same address, extra: where it is (CPython: byte of its bytecode). struct abi_name has its
	 * name. Stands behind the native frames, or among them where the frame is one of the native stack. */
	ABI_FRAME_RUNTIME = 5,
	/* Among runtime frames: the one activation of the interpreter's native loop that ran the frames before it (up
	 * to the last such mark; none: it has just begun or is about to end) ends here. a: an address in the part of
	 * the native stack that belongs to that activation. Behind a frame with ABI_FRAME_ENTRY it only says where: it
	 * is that frame's activation. */
	ABI_FRAME_ACTIVATION = 6,
};

enum abi_frame_flags {
	ABI_FRAME_RETURN = 1, /* a (or b) is a return address: look up one byte before it */
	/* Found by a rule that can be wrong: by the frame pointer of code without unwind rows, or at an address whose
	 * code was not in memory, so that it could not be checked. When no executable mapping covers it, it and the
	 * frames behind it are not to be believed. */
	ABI_FRAME_GUESSED = 2,
	ABI_FRAME_ENTRY =
		4,         /* RUNTIME: the outermost frame of its activation; the native loop's frame lies behind it */
	ABI_FRAME_GAP = 8, /* RUNTIME: frames are missing, or may be, between this one and its caller */
	/* RUNTIME: code that the runtime's compiler made. a: its key; extra: pc - its first byte. One such frame may
	 * stand for several functions, which were inlined into it. */
	ABI_FRAME_COMPILED = 16,
	ABI_FRAME_INTERNAL = 32, /* RUNTIME among native frames: a stub of the runtime, no function of a program */
	/* RUNTIME behind native frames: it and those behind it ran on another native stack, which waits: they called a
	 * coroutine (PHP: a fiber), whose stack the native frames are of. */
	ABI_FRAME_OTHER_STACK = 64,
};

struct abi_frame {
	__u8 kind;
	__u8 flags;
	__u16 runtime; /* RUNTIME, ACTIVATION: enum abi_runtime; otherwise 0 */
	__u32 extra;   /* user frames: (their stack pointer - abi_sample.stack_pointer) / 8, saturated; see RUNTIME */
	__u64 a, b;
};

/* Why the walk of the user stack ended. COMPLETE is only said of a proven root. A walk by frame pointers never proves
 * one: it knows no functions. Where the chain ends as a root's does (frame pointer or return address 0) it says
 * UNPROVEN_ROOT, and the host turns that into COMPLETE when the last frame lies in entry code and none was guessed. The
 * name is what the sample label stack_end shows behind "cut:". */
#define ABI_ENDS(X)                                                                                                    \
	X(COMPLETE, "complete", "the walk reached the entry code of the program or thread, or there is no user stack") \
	X(NO_FRAME_POINTER, "no-frame-pointer", "the frame pointer did not lead to a caller")                          \
	X(READ_FAILED, "read-failed", "stack memory could not be read")                                                \
	X(FRAME_LIMIT, "frame-limit", "more frames than one record holds")                                             \
	X(NO_PROGRESS, "no-progress", "a frame did not lie above the one it called")                                   \
	X(NO_REGISTERS, "no-registers", "the user registers could not be read")                                        \
	X(COMPAT, "32-bit", "a 32-bit process: user frames are not walked")                                            \
	X(UNPROVEN_ROOT, "unproven-root", "the chain ended in code that is not known as a root")                       \
	X(NO_PROCESS, "no-process", "the mappings of the process were not known yet")                                  \
	X(NO_MAPPING, "no-mapping", "no executable mapping is known at the address")                                   \
	X(NO_TABLE, "no-table", "the unwind rows of the file were not loaded")                                         \
	X(NO_RULE, "no-rule", "no unwind row covers the code")                                                         \
	X(UNSUPPORTED, "unsupported-rule", "the unwind rule cannot be followed here")                                  \
	X(COPY_END, "copied-stack-end", "the stack reaches beyond the bytes that travelled with the sample")           \
	X(STACK_SWITCH, "stack-switch", "the thread was between two stacks, one being replaced by the other")          \
	X(STACK_ENTRY, "stack-entry", "several stacks take turns here, and where this one begins is not known")

#define X(id, name, help) ABI_END_##id,
enum abi_end { ABI_ENDS(X) ABI_END_COUNT };
#undef X

enum abi_runtime {
	ABI_RUNTIME_NONE = 0,
	ABI_RUNTIME_PYTHON,
	ABI_RUNTIME_JAVA,
	ABI_RUNTIME_NODEJS,
	ABI_RUNTIME_RUBY,
	ABI_RUNTIME_PHP,
	ABI_RUNTIME_PERL,
	ABI_RUNTIME_COUNT = 16, /* as many as there may ever be: tests use the last ones */
};

/* How the walk of a runtime's frames ended. What is not NONE, WHOLE or NO_STATE makes the stack "cut:NAME". */
#define ABI_RUNTIME_ENDS(X)                                                                             \
	X(NONE, "none", "no runtime is known in this process")                                          \
	X(WHOLE, "whole", "every frame up to the thread's first one")                                   \
	X(NO_STATE, "no-runtime-thread", "the thread does not run the runtime's code")                  \
	X(READ_FAILED, "runtime-read-failed", "memory of the runtime could not be read")                \
	X(FRAME_LIMIT, "runtime-frame-limit", "more frames than one record holds")                      \
	X(BAD_CHAIN, "runtime-bad-chain", "the runtime's frames do not hang together")                  \
	X(GAP, "runtime-gap", "the thread was between two frames: some may be missing")                 \
	X(NOT_READY, "runtime-not-ready", "the runtime's frames could not be read, or not yet")         \
	X(CHANGED, "runtime-changed", "the runtime's frames changed while they were read from outside") \
	X(UNPAIRED, "runtime-unpaired", "native and runtime frames could not be put in order with certainty")

#define X(id, name, help) ABI_RUNTIME_END_##id,
enum abi_runtime_end { ABI_RUNTIME_ENDS(X) ABI_RUNTIME_END_COUNT };
#undef X

enum abi_sample_flags {
	ABI_SAMPLE_KERNEL_THREAD = 1,
	ABI_SAMPLE_IN_KERNEL = 2, /* the tick hit kernel code */
	ABI_SAMPLE_IN_SYSCALL = 4,
	ABI_SAMPLE_KERNEL_CUT = 8, /* the kernel stack could not be read or was cut */
	ABI_SAMPLE_YOUNG = 16,     /* first sample of this process, or process younger than one poll interval */
	ABI_SAMPLE_RAW = 32,      /* the walk could not be finished: struct abi_raw and stack bytes follow the frames */
	ABI_SAMPLE_ASK = 64,      /* the mappings of the process are unknown or have changed: they want reading */
	ABI_SAMPLE_REQUEST = 128, /* request_key says what the process was busy with */
};

/* What bpf_find_vma says of the address where a walk stopped. */
enum abi_vma_kind {
	ABI_VMA_UNKNOWN = 0, /* not asked, or no answer came */
	ABI_VMA_NONE,        /* nothing is mapped there: a wild address */
	ABI_VMA_DATA,        /* mapped, not executable */
	ABI_VMA_ANONYMOUS,   /* executable, no file: JIT code, or the vDSO */
	ABI_VMA_FILE,        /* executable, of a file: a mapping that the host does not know yet */
};

struct abi_vma {
	__u64 start, end, offset; /* offset in bytes; 0 without a file */
	__u64 inode;
	__u32 device_major, device_minor; /* as /proc/PID/maps shows them */
	__u32 kind;                       /* enum abi_vma_kind */
	__u32 reserved;
};

/* Where the walk of a raw sample goes on: the state of walk/walk.h in front of the next frame. stack_size bytes of the
 * stack from sp on follow, a multiple of 8, at most ABI_STACK_LONG_MAX. */
struct abi_raw {
	__u64 regs[ABI_REGS]; /* all registers at the tick: valid while is_leaf is set */
	__u64 pc, sp, fp, lr;
	struct abi_vma vma; /* at pc */
	__u32 stack_size;
	__u8 is_return, is_leaf, guessed, at_signal; /* as in struct walk */
};

enum abi_trigger {
	ABI_TRIGGER_TICK = 0, /* the thread was running */
	/* The thread left its CPU to wait: no sample by itself, but the stack that struct abi_wait refers to. Sent when
	 * the stack is new and again now and then. */
	ABI_TRIGGER_SWITCH = 1,
	ABI_TRIGGER_COUNT
};

/* frames: leaf first; the first kernel_count of them are kernel frames, the others up to frame_count user frames.
 * Frames of runtimes whose code is on the native stack are user frames. Behind them runtime_count frames of a language
 * runtime, leaf first, with activations marked: a list of its own, which the host puts between the user frames
 * (src/agent/mix.h). Then struct abi_raw. */
struct abi_sample {
	struct abi_header header;
	__u64 process_start_ns; /* CLOCK_BOOTTIME start of the thread group's leader: with pid the key of a process */
	__u64 cgroup_id;        /* v2; 0 when unknown */
	union {
		__u64 stack_id;    /* with SWITCH: what waits call this stack, thread included; otherwise 0 */
		__u64 request_key; /* with TICK and ABI_SAMPLE_REQUEST: that of a struct abi_request; otherwise 0 */
	};
	__u32 pid, tid; /* as seen from the initial pid namespace; both 0: the idle task of @cpu */
	__u32 cpu;
	__u16 frame_count;               /* <= ABI_FRAMES_MAX */
	__u16 kernel_count;              /* <= frame_count */
	__u16 flags;                     /* enum abi_sample_flags */
	__u8 user_end;                   /* enum abi_end; with RAW: why the walk could not go on */
	__u8 trigger;                    /* enum abi_trigger */
	__u32 exec_id;                   /* low half of the leader's self_exec_id: with pid and start one program */
	__u64 stack_pointer;             /* of the user stack at the tick; 0 without one */
	__u16 runtime_count;             /* frame_count + runtime_count <= ABI_FRAMES_MAX */
	__u8 runtime_end;                /* enum abi_runtime_end */
	__u8 reserved;                   /* zero */
	__u32 reserved32;                /* zero */
	char comm[ABI_COMM_SIZE];        /* of the process: its leader's */
	char thread_name[ABI_COMM_SIZE]; /* of the thread; both zero terminated */
	struct abi_frame frames[];
};

/* The largest sample that is well formed; the kernel side sends less, see bpf/raw.h. */
#define ABI_SAMPLE_SIZE_MAX                                                                               \
	(sizeof(struct abi_sample) + ABI_FRAMES_MAX * sizeof(struct abi_frame) + sizeof(struct abi_raw) + \
	 ABI_STACK_LONG_MAX)

struct abi_process {
	struct abi_header header;
	__u64 process_start_ns;
	__u32 pid, parent_pid;
	__u32 exec_id;
	__u32 reserved;
	char comm[ABI_COMM_SIZE];
};

/* What a function of a runtime is called, read at first sight: later its memory may be another function's. Comes before
 * the first sample that needs it, more than once, and again when a cache forgot it; or never, when the ring was full.
 * bytes: in the runtime's own form (CPython: abi/python.h, struct abi_python_name), bytes_size of them, then zeros up
 * to a multiple of 8. */
struct abi_name {
	struct abi_header header;
	__u64 process_start_ns;
	__u64 key, cookie; /* those of the frames it names */
	__u32 pid, exec_id;
	__u32 bytes_size;
	__u16 reserved; /* zero */
	__u8 runtime;   /* enum abi_runtime */
	__u8 flags;     /* zero */
	__u8 bytes[];
};

#define ABI_NAME_BYTES_MAX 4096

#define ABI_REQUEST_TEXT_SIZE 104

/* What a process was busy with at a tick: sent before the first sample that has its key, and again when a cache forgot
 * it. The key is made of the texts: equal ones of one program have one key. Both are terminated, zeros fill them up,
 * and one that leaves no second zero may have been longer. */
struct abi_request {
	struct abi_header header;
	__u64 process_start_ns;
	__u64 key; /* not 0 */
	__u32 pid, exec_id;
	char script[ABI_REQUEST_TEXT_SIZE]; /* the file that answers it */
	char path[ABI_REQUEST_TEXT_SIZE];   /* of its URI, never with the query string; empty: it has none */
};

/* How long a thread was off its CPU: header.time_ns is when it came back. */
struct abi_wait {
	struct abi_header header;
	__u64 process_start_ns;
	__u64 stack_id;
	__u64 wait_ns;
	__u32 pid, tid;
};

/* path is not terminated; it fills the record up to padding zeros. */
struct abi_mapping {
	struct abi_header header;
	__u64 process_start_ns;
	__u64 start, end, file_offset;
	__u64 inode;
	__u32 device_major, device_minor;
	__u32 pid;
	__u32 path_size;
	char path[];
};

/* One line per counter: the enum, the metric and the documentation come from it. What starts with lost_ counts samples:
 * shares are over those too. */
#define ABI_COUNTERS(X)                                                                                            \
	X(TICKS, "ticks", "perf ticks that reached the sampler")                                                   \
	X(IDLE, "idle", "ticks of the idle task, not recorded")                                                    \
	X(FILTERED, "filtered", "ticks of processes outside the filter")                                           \
	X(SAMPLES, "samples", "samples sent to the host")                                                          \
	X(LOST_RING_FULL, "lost_ring_full", "samples lost because the ring buffer was full")                       \
	X(EVENTS_LOST, "events_lost", "exec, fork or exit records lost because the ring buffer was full")          \
	X(LOST_NO_STATE, "lost_no_state", "samples lost because the per-CPU state was missing")                    \
	X(KERNEL_STACK_FAILED, "kernel_stack_failed", "samples whose kernel stack could not be taken")             \
	X(USER_READ_FAILED, "user_read_failed", "user stack reads that failed")                                    \
	X(FILTER_FULL, "filter_full", "children of a filtered process left out because the filter was full")       \
	X(LOST_REJECTED, "lost_rejected", "records the host refused as malformed")                                 \
	X(RAW, "raw", "samples whose walk was left to the host")                                                   \
	X(LONG_COPIES, "long_copies", "of them: with a longer piece of stack than usual")                          \
	X(ROWS_MISSED, "rows_missed", "walks that met a file whose unwind rows were not loaded")                   \
	X(MAPPINGS_ASKED, "mappings_asked", "times the mappings of a process were asked for")                      \
	X(NAMES, "names", "names of runtime functions sent to the host")                                           \
	X(NAMES_LOST, "names_lost", "names of runtime functions lost because the ring buffer was full")            \
	X(RUNTIME_WALKS, "runtime_walks", "samples with a walk of runtime frames")                                 \
	X(RUNTIME_NO_STATE, "runtime_no_state", "of them: the thread did not run the runtime's code")              \
	X(RUNTIME_FAILED, "runtime_failed", "of them: memory of the runtime could not be read or made no sense")   \
	X(RUNTIME_GAPS, "runtime_gaps", "of them: caught between two frames, marked")                              \
	X(RUNTIME_CHANGED, "runtime_changed", "of them: changed while they were read from outside, marked")        \
	X(LOST_LATE, "lost_late", "samples lost because a look at the threads came too late")                      \
	X(WAITS, "waits", "waits off the CPU sent to the host")                                                    \
	X(WAITS_SKIPPED, "waits_skipped", "waits left out because one CPU had too many of them")                   \
	X(WAITS_LOST, "waits_lost", "waits lost because the ring buffer or the table of waiting threads was full") \
	X(RUNTIME_NO_INFO, "runtime_no_info",                                                                      \
	  "walks that met code of a runtime whose data of this process are missing")                               \
	X(RUNTIME_STUCK, "runtime_stuck", "walks that ended where a frame of a runtime led nowhere")

#define X(id, name, help) ABI_COUNTER_##id,
enum abi_counter { ABI_COUNTERS(X) ABI_COUNTER_COUNT };
#undef X

_Static_assert(sizeof(struct abi_header) == 16, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_frame) == 24, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_sample) == 16 + 24 + 12 + 4 + 8 + 16 + 32, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_vma) == 48, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_raw) == ABI_REGS * 8 + 32 + 48 + 8, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_process) == 16 + 8 + 8 + 8 + 16, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_name) == 16 + 24 + 16, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_request) == 16 + 24 + 2 * ABI_REQUEST_TEXT_SIZE && sizeof(struct abi_request) <= 256,
	       "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_wait) == 16 + 24 + 8, "layout changed: bump ABI_VERSION");
_Static_assert(sizeof(struct abi_mapping) == 16 + 8 + 24 + 8 + 16, "layout changed: bump ABI_VERSION");
