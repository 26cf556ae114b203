/* SPDX-License-Identifier: Apache-2.0 */
/* What OTLP calls things: attributes of samples, flags of mappings, types of frames. */
#include "base/utf8.h"
#include "codec/otlp_int.h"

#define X(id, name) STR(name),
static const struct str slots[] = { OTLP_SLOTS(X) };
#undef X

struct str otlp_slot_name(enum otlp_slot slot)
{
	return slots[slot];
}

int64_t otlp_slot_max(enum otlp_slot slot)
{
	return slot == OTLP_START ? INT64_MAX : UINT32_MAX;
}

struct str otlp_flag_name(unsigned int bit)
{
	static const struct str names[] = { { "pprof.mapping.has_functions", 27 },
					    { "pprof.mapping.has_filenames", 27 },
					    { "pprof.mapping.has_line_numbers", 30 },
					    { "pprof.mapping.has_inline_frames", 31 } };

	must(bit < ARRAY_SIZE(names));
	return names[bit];
}

#define X(id, name, suffix) STR(name),
static const struct str kinds[] = { MODEL_KINDS(X) };
#undef X

struct str otlp_kind_name(enum model_kind kind)
{
	return kinds[kind];
}

bool otlp_kind_find(struct str name, enum model_kind *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_eq(kinds[i], name)) {
			*out = (enum model_kind)i;
			return true;
		}
	return false;
}

/* The values that semantic conventions list, and the kind that each is read as. A kind that is not in here is written
 * by its own name. */
static const struct {
	const char *type;
	enum model_kind kind;
} types[] = {
	{ "native", MODEL_KIND_NATIVE }, { "kernel", MODEL_KIND_KERNEL },   { "cpython", MODEL_KIND_PYTHON },
	{ "jvm", MODEL_KIND_JAVA },      { "ruby", MODEL_KIND_RUBY },       { "php", MODEL_KIND_PHP },
	{ "dotnet", MODEL_KIND_DOTNET }, { "go", MODEL_KIND_NATIVE },       { "rust", MODEL_KIND_NATIVE },
	{ "perl", MODEL_KIND_PERL },     { "v8js", MODEL_KIND_JAVASCRIPT }, { "beam", MODEL_KIND_JIT },
};

/* The kind whose type a variant of it is written as. */
static enum model_kind main_kind(enum model_kind kind)
{
	switch (kind) {
	case MODEL_KIND_PYTHON_NATIVE:
		return MODEL_KIND_NATIVE;
	case MODEL_KIND_PYTHON_ERROR:
		return MODEL_KIND_PYTHON;
	case MODEL_KIND_JAVA_INLINED:
	case MODEL_KIND_JAVA_C1:
	case MODEL_KIND_JAVA_INTERPRETED:
		return MODEL_KIND_JAVA;
	default:
		return kind;
	}
}

struct str otlp_frame_type(enum model_kind kind)
{
	kind = main_kind(kind);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].kind == kind && kind != MODEL_KIND_JIT)
			return str_of(types[i].type);
	return kinds[kind];
}

bool otlp_frame_kind(struct str type, enum model_kind *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (str_eq(str_of(types[i].type), type)) {
			*out = types[i].kind;
			return true;
		}
	return otlp_kind_find(type, out);
}

struct str otlp_clean(struct str text, struct buf *room)
{
	if (utf8_valid(text))
		return text;
	buf_clear(room);
	while (text.len) {
		int32_t code = utf8_next(&text);

		utf8_add(room, code < 0 ? 0xfffd : (uint32_t)code);
	}
	return buf_str(room);
}
