/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say how user stacks are walked: rows of an option table, for every command that samples. */
#pragma once

#include "cli/command.h"
#include "sampler/sampler.h"

struct unwind_options { /* a member of the command's configuration */
	size_t unwind;  /* index of unwind_option_names */
	size_t perf_mode;
	uint64_t memory_bytes, copy_bytes;
	bool fp_is_chain; /* --perf-mode fp is frame pointers where the sampler perf is taken, as in gProfiler */
};

extern const char *const unwind_option_names[], *const perf_mode_option_names[];

/* Rows of a table over @config (a type) whose @member is a struct unwind_options. */
#define UNWIND_OPTIONS(config, member)                                                                                 \
	{ "unwind",                                                                                                    \
	  0,                                                                                                           \
	  OPT_CHOICE,                                                                                                  \
	  .at = offsetof(config, member.unwind),                                                                       \
	  .choices = unwind_option_names,                                                                              \
	  .fallback = "auto",                                                                                          \
	  .arg = "NAME",                                                                                               \
	  .help = "how user stacks are walked: by unwind tables, and where a file has none by frame pointers, marked " \
		  "as guessed (auto); by tables only (table, dwarf); by frame pointers only (fp); as auto, "           \
		  "but outside of the kernel, from copies of the stacks (copy: to compare)" },                         \
		{ "unwind-memory",                                                                                     \
		  0,                                                                                                   \
		  OPT_SIZE,                                                                                            \
		  .at = offsetof(config, member.memory_bytes),                                                         \
		  .min = KIB(64),                                                                                      \
		  .fallback = "64M",                                                                                   \
		  .arg = "SIZE",                                                                                       \
		  .help = "for the unwind tables of all files; those used least go when there is no room" },           \
		{ "perf-dwarf-stack-size",                                                                             \
		  0,                                                                                                   \
		  OPT_UINT,                                                                                            \
		  .at = offsetof(config, member.copy_bytes),                                                           \
		  .min = 8,                                                                                            \
		  .max = SAMPLER_COPY_BYTES_MAX,                                                                       \
		  .fallback = "8192",                                                                                  \
		  .arg = "BYTES",                                                                                      \
		  .help = "sampler perf: how much of each stack is copied" },                                          \
	{                                                                                                              \
		"perf-mode", 0, OPT_CHOICE,                                                                            \
			.at = offsetof(config, member.perf_mode), .choices = perf_mode_option_names, .fallback = "fp", \
			.arg = "NAME",                                                                                 \
			.help = "gProfiler's name for it: fp, dwarf and smart all mean --unwind auto with the "        \
				"sampler "                                                                             \
				"bpf; with perf, dwarf copies stacks, and smart takes of each process what shows "     \
				"more, frame pointers or copies; disabled or "                                         \
				"none: only stacks of language runtimes, without native and kernel frames"             \
	}

/** unwind_options_only_runtime - are only frames of language runtimes wanted? */
bool unwind_options_only_runtime(const struct unwind_options *o);
/** unwind_options_is_dwarf - --perf-mode dwarf; unwind_options_copies - that or smart: what copies stacks elsewhere. */
bool unwind_options_is_dwarf(const struct unwind_options *o);
bool unwind_options_copies(const struct unwind_options *o);
void unwind_options_frame_pointers(struct unwind_options *o); /* as --perf-mode fp */
void unwind_options_only_runtimes(struct unwind_options *o);  /* as --perf-mode disabled */
/** unwind_options_apply - how the sampler has to walk. */
void unwind_options_apply(const struct unwind_options *o, struct sampler_config *sampling);
