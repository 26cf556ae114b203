/* SPDX-License-Identifier: Apache-2.0 */
#include "object/demangle.h"

#include <setjmp.h>

#include <libiberty/demangle.h> /* last: it defines ARRAY_SIZE again, which a system header may */

/* DMGL_NO_RECURSE_LIMIT is never given: libiberty stops at 2048 levels. */
#define FLAGS (DMGL_PARAMS | DMGL_ANSI)

/* Back references let a name of 200 bytes stand for 2^40: libiberty would print for hours, even when nobody keeps the
 * text. So its callback leaves with longjmp when the text is full. The two callback forms hold no memory while they
 * print (libiberty 20230104: cp-demangle.c has its parts on the stack), but for Rust's punycode and all of D, whose
 * names are refused beforehand when they could explode: with this many references they grow a hundredfold at most. */
#define REFERENCES_MAX 12

struct sink {
	struct buf text;
	jmp_buf full;
};

static void sink_add(const char *text, size_t size, void *opaque)
{
	struct sink *sink = opaque;

	buf_add(&sink->text, text, size);
	if (sink->text.error)
		longjmp(sink->full, 1);
}

typedef int demangle_fn(const char *name, int flags, demangle_callbackref add, void *opaque);

static bool try_callback(demangle_fn *demangle, const char *name, struct sink *sink)
{
	buf_clear(&sink->text);
	if (setjmp(sink->full)) /* nothing here changes between: no volatile needed */
		return false;
	return demangle(name, FLAGS, sink_add, sink) && sink->text.len;
}

static size_t count_of(const char *name, char c)
{
	size_t count = 0;

	for (; *name; name++)
		count += *name == c;
	return count;
}

static bool may_leak(const char *name) /* punycode: u, then the length */
{
	if (name[0] != '_' || name[1] != 'R' || count_of(name, 'B') <= REFERENCES_MAX)
		return false;
	for (; *name; name++)
		if (name[0] == 'u' && name[1] >= '0' && name[1] <= '9')
			return true;
	return false;
}

static bool try_cxx_or_rust(const char *name, struct buf *out)
{
	struct sink sink = { .text = BUF_INIT(DEMANGLE_TEXT_MAX) };
	/* Rust's legacy scheme looks like C++: asked first, it drops the hash. */
	bool done = !may_leak(name) && try_callback(rust_demangle_callback, name, &sink);

	done = done || try_callback(cplus_demangle_v3_callback, name, &sink);
	if (done)
		buf_adds(out, buf_str(&sink.text));
	buf_release(&sink.text);
	return done;
}

static bool try_d(const char *name, struct buf *out)
{
	scoped(freep) char *text = count_of(name, 'Q') <= REFERENCES_MAX ? dlang_demangle(name, FLAGS) : NULL;

	if (!text || strlen(text) > DEMANGLE_TEXT_MAX)
		return false;
	buf_adds(out, str_of(text));
	return true;
}

void demangle_add(struct str mangled, struct buf *out)
{
	scoped(freep) char *name = NULL;
	bool is_d = str_starts(mangled, STR("_D"));
	bool done = false;

	if (mangled.len <= DEMANGLE_NAME_MAX && (is_d || str_starts(mangled, STR("_Z")) ||
						 str_starts(mangled, STR("_R")) || str_starts(mangled, STR("__Z")))) {
		name = str_dup(mangled);
		if (name)
			done = is_d ? try_d(name, out) : try_cxx_or_rust(name, out);
	}
	if (!done)
		buf_adds(out, mangled);
}
