/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/symbol_int.h"

#include <libiberty/demangle.h> /* last: it defines ARRAY_SIZE again, which a system header may */

/* DMGL_NO_RECURSE_LIMIT is never given: libiberty stops at 2048 levels. */
#define FLAGS (DMGL_PARAMS | DMGL_ANSI)

struct sink {
	struct buf text;
};

static void sink_add(const char *text, size_t size, void *opaque)
{
	struct sink *sink = opaque;

	buf_add(&sink->text, text, size); /* the first failure sticks: a name that explodes is given up below */
}

static bool try_cxx_or_rust(const char *name, struct buf *out)
{
	struct sink sink = { .text = BUF_INIT(SYMBOL_TEXT_MAX) };
	bool done = false;

	/* Rust's legacy scheme looks like C++: asked first, it drops the hash. */
	done = rust_demangle_callback(name, FLAGS, sink_add, &sink) && sink.text.len;
	if (!done || sink.text.error) {
		buf_clear(&sink.text);
		done = cplus_demangle_v3_callback(name, FLAGS, sink_add, &sink) && sink.text.len;
	}
	done = done && !sink.text.error;
	if (done)
		buf_adds(out, buf_str(&sink.text));
	buf_release(&sink.text);
	return done;
}

static bool try_d(const char *name, struct buf *out)
{
	scoped(freep) char *text = dlang_demangle(name, FLAGS);

	if (!text || strlen(text) > SYMBOL_TEXT_MAX)
		return false;
	buf_adds(out, str_of(text));
	return true;
}

void symbol_demangle(struct str mangled, struct buf *out)
{
	scoped(freep) char *name = NULL;
	bool is_d = str_starts(mangled, STR("_D"));
	bool done = false;

	if (mangled.len <= SYMBOL_NAME_MAX && (is_d || str_starts(mangled, STR("_Z")) || str_starts(mangled, STR("_R")) ||
					       str_starts(mangled, STR("__Z")))) {
		name = str_dup(mangled);
		if (name)
			done = is_d ? try_d(name, out) : try_cxx_or_rust(name, out);
	}
	if (!done)
		buf_adds(out, mangled);
}
