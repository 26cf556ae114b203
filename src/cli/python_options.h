/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say how frames of Python are written: rows of option tables, for every command that writes profiles.
 * What is sampled of it: runtime_options.h. */
#pragma once

#include "cli/command.h"
#include "codec/codec.h"

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
		  .help = "which line stands behind the file of a function of Python, PHP or Node.js: its first "     \
			  "one, or the one it executed" },                                                            \
	{                                                                                                             \
		"python-versions", 0, OPT_FLAG, .at = offsetof(config, member.versions), .fallback = "true",          \
						.help = "say which package and version a Python file belongs to"      \
	}

/**
 * frame_options_get - what codecs and pages are told
 * @from_outside: stacks were read from outside: the usual style is that of who does so
 */
struct codec_options frame_options_get(const struct frame_options *o, bool from_outside);
