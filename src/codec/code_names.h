/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that tell where code lay, but not what it is called, ask for names. Decoders are pure: who calls one says who
 * may look at files of this machine (struct codec_limits.names); without that addresses stay addresses. */
#pragma once

#include "base/str.h"

enum code_place_kind {
	CODE_FILE,   /* mapped from a file */
	CODE_KERNEL, /* the kernel, its modules, its BPF programs */
	CODE_JIT,    /* memory without a file */
};

/* A position of code in a recording. Text is borrowed. */
struct code_place {
	enum code_place_kind kind;
	struct str path;      /* CODE_FILE: of the file; CODE_KERNEL: of the module or "[kernel.kallsyms]"; CODE_JIT: of
				 the jitdump that the process had mapped, or empty */
	struct str build_id;  /* its bytes; empty: the recording has none. CODE_KERNEL: the kernel's own */
	uint64_t address;     /* CODE_FILE: offset in the file, else address */
	uint64_t kernel_text; /* CODE_KERNEL: where _text was; 0: not known */
	uint64_t time_ns;     /* CODE_JIT: CLOCK_MONOTONIC; UINT64_MAX: not known, or by another clock */
	bool is_return;       /* the address is behind a call */
};

struct code_name {              /* borrowed until the next question */
	struct str name;        /* demangled */
	struct str system_name; /* as the file has it; may be empty */
	struct str file;        /* source; may be empty */
	int64_t line;           /* 0: not known */
};

struct code_names {
	void *ctx;
	/** Return: 0 and *out, -ENOENT (nobody knows; out untouched) or -ENOMEM. */
	int (*find)(void *ctx, const struct code_place *place, struct code_name *out);
};
