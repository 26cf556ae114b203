/* SPDX-License-Identifier: Apache-2.0 */
/* One line of what `perf script` prints (docs/formats/perf-script.md). Pure: no memory, no model. Sources: linux 6.1,
 * tools/perf/builtin-script.c (perf_sample__fprintf_start(), process_event()) and util/evsel_fprintf.c. */
#pragma once

#include "base/str.h"

/* The line that begins a sample. Everything is borrowed from it. What is not there is empty, or says so. */
struct perf_head {
	struct str comm, event;
	struct str
		rest; /* what follows the event: a tracepoint's fields, or the one frame of a sample without a chain */
	uint64_t pid, tid, cpu, time_ns, period;
	bool has_pid, has_tid, has_cpu, has_time, has_period;
};

struct perf_frame {
	uint64_t address;
	struct str name, dso; /* without offset and parentheses; empty: not printed */
	bool is_inlined;      /* into the next frame that is not */
};

enum perf_line {
	PERF_LINE_BLANK,
	PERF_LINE_HEAD,
	PERF_LINE_NAME_ALONE, /* could be a head that has a comm only: a frame has to follow */
	PERF_LINE_FRAME,
	PERF_LINE_SOURCE,  /* file and line of the frame above */
	PERF_LINE_COMMENT, /* "# ..." of --header, "; ..." */
	PERF_LINE_RECORD,  /* of --show-mmap-events and its like */
	PERF_LINE_OTHER,
};

struct perf_text {
	struct perf_head head;
	struct perf_frame frame;
	struct str source; /* path of a source line */
	uint64_t source_line;
};

/** perf_line_parse - what @line (without its end) is. Only the part of @out that belongs to it is filled. */
enum perf_line perf_line_parse(struct str line, struct perf_text *out);

/** perf_frame_parse - "7f12 name+0x1 (file)". Return: false when it is none; then @out is untouched. */
bool perf_frame_parse(struct str text, struct perf_frame *out);

/** perf_head_parse - Return: false when nothing in @line tells that it is the head of a sample; @out untouched. */
bool perf_head_parse(struct str line, struct perf_head *out);
