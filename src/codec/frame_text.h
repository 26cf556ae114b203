/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as text: what one line of a location is called in .col, folded stacks, pages and tables, and back.
 *
 * Frames of Python say where their function is, in the forms that gProfiler's profilers write
 *(gprofiler/utils/__init__.py, gprofiler/profilers/python.py):
 *
 *	package   json.decoder.JSONDecoder.decode (/usr/lib/python3.11/json/decoder.py:332 [standard-library==3.11.2])
 *	py-spy    decode (/usr/lib/python3.11/json/decoder.py:332 [standard-library==3.11.2])
 *
 * Java's have their signature where a style asks for it, as async-profiler writes it with the option `ann`
 * (profilers/java.py), in .col alone:
 *
 *	com/acme/Db.get(Ljava/lang/String|)V
 *	com/acme/Db.get:20(Ljava/lang/String|)V   with the function's first line
 *
 * Those of Ruby are as rbspy writes them: "decode - /srv/json.rb:332".
 * Those of PHP are as phpspy has them (gprofiler/profilers/php.py):
 *
 *	App\Job::run /srv/www/job.php:24
 *	array_map <internal>:-1
 *
 * Those of JavaScript are as V8's perf maps have them: "handle /srv/app.js:12".
 *
 * All others are their name (model_frame_name()). Suffixes such as _[p] are the formats' own business. */
#pragma once

#include "base/buf.h"
#include "model/model.h"

enum frame_names {
	FRAME_NAMES_PACKAGE, /* import path and qualified name, as PyPerf */
	FRAME_NAMES_PYSPY,   /* the name in the "def" alone, as py-spy */
};

enum frame_lines {
	FRAME_LINES_FIRST,     /* of the function: all its samples are one frame */
	FRAME_LINES_EXECUTING, /* where it was */
};

/* How text says frames; zeroed: as gProfiler does by default. */
struct frame_style {
	enum frame_names names;
	enum frame_lines lines;
	enum frame_lines ruby_lines; /* the same of Ruby: rbspy has the executing ones */
	bool no_versions;            /* leave out the distribution a file belongs to */
	bool signatures; /* Java: the VM's name and signature, where they are known, instead of the readable name */
	bool java_lines; /* with signatures: the first line, too */
	bool libraries;  /* native functions say which file they are in: "malloc (/usr/lib/libc.so.6)" */
};

/**
 * frame_text - append what line @line of a location is called, unescaped and without a suffix
 * If the style's line is not known, the other one is written; without either, or without a file, that part is left
 * out. Only *.py files with a line get their distribution, as in gProfiler.
 */
void frame_text(const struct model *m, const struct frame_style *style, uint32_t location, uint32_t line,
		struct buf *out);

/** frame_text_name - append the function's name alone, for formats that have places of their own for file and line. */
void frame_text_name(const struct model *m, const struct frame_style *style, const struct model_function *function,
		     struct buf *out);

struct frame_parts { /* borrowed from the text */
	struct str name, file, distribution;
	int64_t line;
};

/**
 * frame_text_parse - split the text of a Python frame if its form is certain Return: false, and @out untouched, when
 * it is not: then the whole text is the name. What was split is written again letter
 * by letter by frame_text(), when @line is taken for the first line. Pure.
 */
bool frame_text_parse(struct str text, struct frame_parts *out);

/** frame_text_last_name - "run" of "Worker.run", "<lambda>" of "main.<locals>.<lambda>": co_name of a qualified name.
 */
struct str frame_text_last_name(struct str qualified);
