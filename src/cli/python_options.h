/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say what is done about Python, and how its frames are written: rows of option tables, for every
 * command that samples or writes profiles. */
#pragma once

#include "agent/session.h"
#include "cli/command.h"
#include "codec/codec.h"

/* ---- how frames are written ---- */

struct frame_options { /* a member of the command's configuration */
	size_t style;  /* index of frame_style_names */
	size_t lines;  /* of frame_line_names */
	bool versions;
};

enum frame_style_option {
	FRAME_STYLE_PACKAGE = FRAME_NAMES_PACKAGE,
	FRAME_STYLE_PYSPY = FRAME_NAMES_PYSPY,
	FRAME_STYLE_AUTO, /* as --python-mode; otherwise package */
};

extern const char *const frame_style_names[], *const frame_line_names[];

/* Rows of a table over @config (a type) whose @member is a struct frame_options. */
#define FRAME_OPTIONS(config, member)                                                                                 \
	{ "python-style",                                                                                             \
	  0,                                                                                                          \
	  OPT_CHOICE,                                                                                                 \
	  .at = offsetof(config, member.style),                                                                       \
	  .choices = frame_style_names,                                                                               \
	  .fallback = "auto",                                                                                         \
	  .arg = "NAME",                                                                                              \
	  .help = "what Python functions are called in text: with import path and class, as PyPerf (package), or by " \
		  "their name alone, as py-spy (pyspy); auto: as --python-mode says, package where there is none" },  \
		{ "python-lines",                                                                                     \
		  0,                                                                                                  \
		  OPT_CHOICE,                                                                                         \
		  .at = offsetof(config, member.lines),                                                               \
		  .choices = frame_line_names,                                                                        \
		  .fallback = "first",                                                                                \
		  .arg = "NAME",                                                                                      \
		  .help = "which line stands behind the file of a Python function: its first one, or the one it "     \
			  "executed" },                                                                               \
	{                                                                                                             \
		"python-versions", 0, OPT_FLAG, .at = offsetof(config, member.versions), .fallback = "true",          \
						.help = "say which package and version a Python file belongs to"      \
	}

/** frame_options_get - what codecs and pages are told. */
struct codec_options frame_options_get(const struct frame_options *o);

/* ---- what is sampled ---- */

enum python_mode {
	PYTHON_MODE_AUTO,   /* with the BPF sampler where it works, from outside otherwise */
	PYTHON_MODE_PYPERF, /* by BPF only */
	PYTHON_MODE_PYSPY,  /* from outside, beside the sampler: agent/merge_runtime.h */
	PYTHON_MODE_DISABLED,
};

struct python_options { /* a member of the command's configuration */
	size_t name;    /* index of python_mode_names */
	bool on;        /* not --no-python */
	bool interpreter_frames;
	struct frame_options frames;
};

extern const char *const python_mode_names[];

/* Rows of a table over @config (a type) whose @member is a struct python_options. */
#define PYTHON_OPTIONS(config, member)                                                                                 \
	{ "python-mode",                                                                                               \
	  0,                                                                                                           \
	  OPT_CHOICE,                                                                                                  \
	  .at = offsetof(config, member.name),                                                                         \
	  .choices = python_mode_names,                                                                                \
	  .fallback = "auto",                                                                                          \
	  .arg = "NAME",                                                                                               \
	  .help = "Python's stacks: in the kernel, together with the native ones (pyperf); from outside, and then in " \
		  "place of the native ones (pyspy, py-spy); the first that works (auto); none (disabled, none)" },    \
		{ "python",           0,                                                                               \
		  OPT_FLAG,           .at = offsetof(config, member.on),                                               \
		  .fallback = "true", .help = "name the functions of Python programs" },                               \
		{ "native-interpreter-frames", 0, OPT_FLAG, .at = offsetof(config, member.interpreter_frames),         \
		  .help = "keep the interpreter's own native frames beside the Python functions they run" },           \
		FRAME_OPTIONS(config, member.frames)

enum python_mode python_options_mode(const struct python_options *o);
/** python_options_get - as frame_options_get(); auto becomes the style of the mode. */
struct codec_options python_options_get(const struct python_options *o);
/** python_options_apply - what the session is told: what mode and frames mean for it, and which sampler pyperf needs.
 */
void python_options_apply(const struct python_options *o, struct session_config *session);
