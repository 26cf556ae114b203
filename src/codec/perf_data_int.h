/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read perf.data. Sources: linux 6.1, include/uapi/linux/perf_event.h (records, samples),
 * tools/perf/util/header.h (features), tools/lib/perf/include/perf/event.h (records of perf itself),
 * tools/perf/Documentation/perf.data-file-format.txt. */
#pragma once

#include "base/u64map.h"
#include "codec/code_names.h"
#include "codec/codec.h"
#include "codec/perf_events.h"

enum perf_record_type { /* PERF_RECORD_* */
			PERF_MMAP = 1,
			PERF_LOST = 2,
			PERF_COMM = 3,
			PERF_FORK = 7,
			PERF_SAMPLE = 9,
			PERF_MMAP2 = 10,
			PERF_LOST_SAMPLES = 13,
			PERF_KSYMBOL = 17,
			PERF_KERNEL_TYPES_END =
				64, /* those from here on are perf's own and have no sample id behind them */
			PERF_HEADER_ATTR = 64,
			PERF_HEADER_TRACING_DATA = 66,
			PERF_HEADER_BUILD_ID = 67,
			PERF_AUXTRACE = 71,
			PERF_EVENT_UPDATE = 78,
			PERF_HEADER_FEATURE = 80,
			PERF_COMPRESSED = 81,
			PERF_COMPRESSED2 = 83,
};

enum perf_sample_bit { /* PERF_SAMPLE_* */
		       SAMPLE_IP = 1 << 0,
		       SAMPLE_TID = 1 << 1,
		       SAMPLE_TIME = 1 << 2,
		       SAMPLE_ADDR = 1 << 3,
		       SAMPLE_READ = 1 << 4,
		       SAMPLE_CALLCHAIN = 1 << 5,
		       SAMPLE_ID = 1 << 6,
		       SAMPLE_CPU = 1 << 7,
		       SAMPLE_PERIOD = 1 << 8,
		       SAMPLE_STREAM_ID = 1 << 9,
		       SAMPLE_STACK_USER = 1 << 13,
		       SAMPLE_IDENTIFIER = 1 << 16,
};

enum perf_feature { /* HEADER_* */
		    FEATURE_BUILD_ID = 2,
		    FEATURE_HOSTNAME = 3,
		    FEATURE_OSRELEASE = 4,
		    FEATURE_NRCPUS = 7,
		    FEATURE_CMDLINE = 11,
		    FEATURE_EVENT_DESC = 12,
		    FEATURE_DIR_FORMAT = 24,
		    FEATURE_CLOCK_DATA = 29,
		    FEATURE_BITS = 256,
};

#define PERF_MISC_CPUMODE 7
enum { MODE_UNKNOWN, MODE_KERNEL, MODE_USER, MODE_HYPERVISOR, MODE_GUEST_KERNEL, MODE_GUEST_USER };
#define PERF_MISC_COMM_EXEC (1 << 13)
#define PERF_MISC_FORK_EXEC (1 << 13)
#define PERF_MISC_MMAP_BUILD_ID (1 << 14)
#define PERF_MISC_BUILD_ID_SIZE (1 << 15)
#define ATTR_FREQ (UINT64_C(1) << 10)
#define ATTR_SAMPLE_ID_ALL (UINT64_C(1) << 18)
#define ATTR_USE_CLOCKID (UINT64_C(1) << 25)
#define PERF_CLOCK_MONOTONIC 1

#define PERF_BUILD_ID_MAX 20
#define PERF_ATTRS_MAX 4096
#define PERF_NO_TIME UINT64_MAX

struct perf_attr {
	uint32_t type;
	uint64_t config, sample_period, sample_type, read_format, flags;
	int32_t clockid;
	struct str name; /* borrowed from the file, or from own_name */
	char own_name[40];
	uint64_t samples;
	size_t column; /* of struct perf_events */
};

struct perf_record { /* one whose turn is by time */
	uint64_t time_ns;
	const uint8_t *bytes; /* its header, then the rest: whole */
	uint32_t order, attr; /* attr: of samples */
};

struct perf_build_id {
	uint8_t size, bytes[PERF_BUILD_ID_MAX];
};

/* An address range of a process or of the kernel. */
struct perf_area {
	uint64_t start, end, offset;
	uint32_t file; /* in perf_data.files */
};

struct perf_space {              /* shared by forked processes until one of them changes it */
	struct perf_area *areas; /* by start; none overlaps another */
	size_t count, cap;
	uint32_t refs;
	uint32_t jitdump; /* file + 1; 0: none */
};

struct perf_file {
	uint32_t name; /* in perf_data.names */
	struct perf_build_id build_id;
	enum code_place_kind kind;
	bool is_symbol; /* of PERF_RECORD_KSYMBOL: the name is the function's */
	bool has_mapping;
	uint32_t mapping;     /* of the model, once made */
	struct u64map *found; /* address or offset to location of the model */
};

struct perf_file_key {
	struct str name;
	struct perf_build_id build_id;
	bool is_kernel, is_symbol;
};

struct perf_process {
	struct perf_space *space; /* owned: one reference */
};

struct perf_data {
	struct str bytes;
	struct model *m;
	struct window *w;
	const struct codec_limits *limits;
	struct codec_error *error;
	/* scan */
	bool is_pipe, is_cut_off;
	struct perf_attr *attrs;
	size_t attr_count, attr_cap;
	struct u64map attr_of; /* id of an event to attr */
	size_t id_count;       /* ids read so far */
	struct buf expanded;   /* what was in compressed records, one behind the other */
	struct perf_record *records;
	size_t record_count, record_cap;
	struct intern build_id_names;    /* file names with a build id */
	struct perf_build_id *build_ids; /* by id of build_id_names - 1 */
	size_t build_id_count, build_id_cap;
	struct perf_build_id kernel_build_id;
	uint64_t sample_count, lost, lost_samples, not_unwound, deferred;
	uint64_t wall_ns, wall_clock_ns; /* of FEATURE_CLOCK_DATA: both at one moment; 0: not there */
	bool has_directory;
	/* apply */
	struct perf_events events;
	struct intern names; /* of files */
	struct intern file_keys;
	struct perf_file *files; /* by id of file_keys - 1 */
	size_t file_count, file_cap;
	struct u64map processes; /* pid to row */
	struct perf_process *rows;
	size_t row_count, row_cap;
	struct perf_space *kernel;
	uint64_t kernel_text;
	struct u64map comms; /* tid to string of the model */
	uint64_t memory;     /* bytes of areas */
	uint64_t work;       /* areas moved so far: hostile files could make that quadratic */
	uint32_t *stack;     /* locations of a sample, leaf first */
	size_t stack_count, stack_cap;
	uint64_t first_ns, last_ns;
};

/* perf_data_scan.c */
/** perf_data_scan - headers, features and records in their order; what perf wrote itself is taken in at once. */
int perf_data_scan(struct perf_data *d) warn_unused;
/** perf_data_feature - one section of the header, or a record that stands for it. */
int perf_data_feature(struct perf_data *d, uint64_t feature, struct cur c) warn_unused;
/** perf_data_build_ids - a run of build id records. */
int perf_data_build_ids(struct perf_data *d, struct cur c) warn_unused;
struct perf_sample_fields {
	uint64_t ip, time_ns, id, cpu, period;
	uint32_t pid, tid;
	struct cur chain; /* words of the call chain */
	bool has_chain;
};
/** perf_sample_parse - @c: behind the record's header. Return: 0 or -EBADMSG. */
int perf_sample_parse(const struct perf_attr *a, struct cur c, struct perf_sample_fields *out) warn_unused;
int perf_data_fail(struct perf_data *d, const uint8_t *at, int r, const char *reason);

/* perf_data_expand.c; a page has another one (src/readers/wasi.c). */
/* Compressed records are pieces of one zstd stream, and what is in them is cut anywhere. */
struct perf_expander {
	void *stream; /* NULL: none yet */
};
void perf_expander_release(struct perf_expander *e);
/** perf_data_expand - append what a compressed record holds to d->expanded. Return: 0, -EBADMSG, -ENOTSUP, -ENOMEM,
 * -E2BIG. */
int perf_data_expand(struct perf_data *d, struct perf_expander *e, struct cur c) warn_unused;

/* perf_data_space.c */
void perf_space_unref(struct perf_data *d, struct perf_space *s); /* NULL is fine */
struct perf_space *perf_space_new(void);
/** perf_space_add - what was mapped there before is cut. @space may be replaced by a copy of its own. */
int perf_space_add(struct perf_data *d, struct perf_space **space, const struct perf_area *area) warn_unused;
/** perf_space_find - NULL: nothing is mapped at @address. */
const struct perf_area *perf_space_find(const struct perf_space *s, uint64_t address);

/* perf_data_apply.c */
int perf_data_apply(struct perf_data *d) warn_unused;
void perf_data_release(struct perf_data *d);

/* perf_data_frames.c */
/** perf_data_file - the row of a file, module or BPF program. Return: 0, -ENOMEM or -E2BIG. */
int perf_data_file(struct perf_data *d, const struct perf_file_key *key, uint32_t *out) warn_unused;

struct perf_frame_at {
	uint64_t address, time_ns;
	unsigned int mode; /* MODE_* */
	bool is_return;
};

/** perf_data_frame - add the location of a frame to d->stack. @space: of its process */
int perf_data_frame(struct perf_data *d, const struct perf_space *space, const struct perf_frame_at *at) warn_unused;
