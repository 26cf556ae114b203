/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr_samples.h"

struct type_row {
	int id;
	const char *name;
	const char *fields[7]; /* "name:type", with "*" behind for a constant, "[]" for a list */
};

#define SAMPLE "startTime:11", "sampledThread:22*", "stackTrace:27*"
#define ALLOCATION "startTime:11", "eventThread:22*", "stackTrace:27*", "objectClass:21*"

static const struct type_row types[] = {
	{ JFR_ID_BOOLEAN, "boolean", { NULL } },
	{ JFR_ID_INT, "int", { NULL } },
	{ JFR_ID_LONG, "long", { NULL } },
	{ JFR_ID_STRING, "java.lang.String", { NULL } },
	{ JFR_ID_CLASS, "java.lang.Class", { "modifiers:10", "name:23*" } },
	{ JFR_ID_THREAD, "java.lang.Thread", { "osName:20", "osThreadId:11", "javaName:20" } },
	{ JFR_ID_SYMBOL, "jdk.types.Symbol", { "string:20" } },
	{ JFR_ID_METHOD, "jdk.types.Method", { "type:21*", "name:23*", "descriptor:23*" } },
	{ JFR_ID_FRAME_TYPE, "jdk.types.FrameType", { "description:20" } },
	{ JFR_ID_FRAME, "jdk.types.StackFrame", { "method:24*", "lineNumber:10", "type:25*" } },
	{ JFR_ID_STACK, "jdk.types.StackTrace", { "truncated:4", "frames:26[]" } },
	{ JFR_ID_PAIR, "test.Pair", { "a:10", "b:11", "texts:20[]" } },
	{ JFR_ID_EXECUTION, "jdk.ExecutionSample", { SAMPLE } },
	{ JFR_ID_NATIVE, "jdk.NativeMethodSample", { SAMPLE } },
	{ JFR_ID_WALL, "profiler.WallClockSample", { SAMPLE, "samples:10" } },
	{ JFR_ID_IN_TLAB, "jdk.ObjectAllocationInNewTLAB", { ALLOCATION, "allocationSize:11", "tlabSize:11" } },
	{ JFR_ID_OUTSIDE_TLAB, "jdk.ObjectAllocationOutsideTLAB", { ALLOCATION, "allocationSize:11" } },
	{ JFR_ID_ALLOCATION, "jdk.ObjectAllocationSample", { ALLOCATION, "weight:11" } },
	{ JFR_ID_JVM, "jdk.JVMInformation", { "startTime:11", "pid:11", "javaArguments:20" } },
	{ JFR_ID_OTHER, "test.Other", { "startTime:11", "pairs:28[]", "pair:28", "classes:21*[]" } },
};

static void put_big(struct buf *out, uint64_t value, unsigned int size)
{
	for (unsigned int i = size; i--;)
		buf_addc(out, (char)(value >> 8 * i));
}

static void patch(struct jfr_writer *w, size_t at, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size && !w->out->error; i++)
		w->out->ptr[at + i] = (char)(value >> 8 * (size - 1 - i));
}

static void put_number(struct jfr_writer *w, uint64_t value, unsigned int size)
{
	if (w->is_plain) {
		put_big(w->out, value, size);
		return;
	}
	for (unsigned int i = 0; i < 8 && value >= 0x80; i++, value >>= 7)
		buf_addc(w->out, (char)(value | 0x80));
	buf_addc(w->out, (char)value);
}

void jfr_put_int(struct jfr_writer *w, int32_t value)
{
	put_number(w, (uint64_t)(int64_t)value, 4);
}

void jfr_put_long(struct jfr_writer *w, uint64_t value)
{
	put_number(w, value, 8);
}

void jfr_put_byte(struct jfr_writer *w, uint8_t value)
{
	buf_addc(w->out, (char)value);
}

void jfr_put_text(struct jfr_writer *w, const char *text)
{
	jfr_put_byte(w, !text ? 0 : *text ? 3 : 1);
	if (!text || !*text)
		return;
	jfr_put_int(w, (int32_t)strlen(text));
	buf_adds(w->out, str_of(text));
}

/* The size is written in four bytes in either form. */
void jfr_begin_event(struct jfr_writer *w, uint64_t type)
{
	w->event = w->out->len;
	put_big(w->out, 0, 4);
	jfr_put_long(w, type);
}

void jfr_end_event(struct jfr_writer *w)
{
	uint64_t size = w->out->len - w->event;

	if (w->is_plain) {
		patch(w, w->event, size, 4);
		return;
	}
	for (unsigned int i = 0; i < 4 && !w->out->error; i++)
		w->out->ptr[w->event + i] = (char)((size >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
}

/* The tree of the metadata: its strings are collected first, each once more than needed. */

struct strings {
	struct buf text;
	int32_t count;
};

static void put_element(struct jfr_writer *w, const char *name, int32_t attributes, int32_t *next)
{
	ignore(name);
	jfr_put_int(w, (*next)++);
	jfr_put_int(w, attributes);
}

static void put_attribute(struct jfr_writer *w, int32_t *next)
{
	jfr_put_int(w, (*next)++);
	jfr_put_int(w, (*next)++);
}

static int32_t count_fields(const struct type_row *type)
{
	int32_t count = 0;

	while (count < 7 && type->fields[count])
		count++;
	return count;
}

struct field_text {
	char name[32], type[8];
	bool is_constant, is_array;
};

static void split_field(const char *text, struct field_text *out)
{
	const char *colon = strchr(text, ':');

	*out = (struct field_text){ .is_constant = strchr(text, '*'), .is_array = strchr(text, '[') };
	memcpy(out->name, text, (size_t)(colon - text));
	for (size_t i = 0; colon[i + 1] >= '0' && colon[i + 1] <= '9'; i++)
		out->type[i] = colon[i + 1];
}

/* Strings and tree in the same order: string i is the i-th that the tree uses. */
static void tree(struct jfr_writer *w, bool strings, int32_t *next)
{
	char id[16];

#define TEXT(text) (strings ? (jfr_put_text(w, (text)), (void)(*next)++) : (void)0)
	if (strings)
		TEXT("root");
	else
		put_element(w, "root", 0, next), jfr_put_int(w, 1);
	if (strings)
		TEXT("metadata");
	else
		put_element(w, "metadata", 0, next), jfr_put_int(w, ARRAY_SIZE(types));
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		(void)snprintf(id, sizeof(id), "%d", types[t].id);
		TEXT("class"), TEXT("name"), TEXT(types[t].name), TEXT("id"), TEXT(id);
		if (!strings) {
			put_element(w, "class", 2, next);
			put_attribute(w, next), put_attribute(w, next);
			jfr_put_int(w, count_fields(&types[t]));
		}
		for (int32_t f = 0; f < count_fields(&types[t]); f++) {
			struct field_text field;

			split_field(types[t].fields[f], &field);
			TEXT("field"), TEXT("name"), TEXT(field.name), TEXT("class"), TEXT(field.type);
			TEXT("constantPool"), TEXT(field.is_constant ? "true" : "false");
			TEXT("dimension"), TEXT(field.is_array ? "1" : "0");
			if (strings)
				continue;
			put_element(w, "field", 4, next);
			for (int i = 0; i < 4; i++)
				put_attribute(w, next);
			jfr_put_int(w, 0);
		}
	}
#undef TEXT
}

static int32_t count_strings(void)
{
	int32_t count = 2;

	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		count += 5 + 9 * count_fields(&types[t]);
	return count;
}

static void put_metadata(struct jfr_writer *w)
{
	int32_t next = 0;

	w->metadata = w->out->len - w->chunk;
	jfr_begin_event(w, 0);
	for (uint64_t i = 0; i < 3; i++)
		jfr_put_long(w, i);
	jfr_put_int(w, count_strings());
	tree(w, true, &next);
	next = 0;
	tree(w, false, &next);
	jfr_end_event(w);
}

void jfr_begin_chunk(struct jfr_writer *w, uint64_t start_ns, uint64_t duration_ns)
{
	w->chunk = w->out->len;
	buf_add(w->out, "FLR", 4);
	put_big(w->out, 2, 2);
	put_big(w->out, w->minor, 2);
	put_big(w->out, 0, 8); /* size, patched */
	put_big(w->out, 0, 8); /* checkpoint */
	put_big(w->out, 0, 8); /* metadata, patched */
	put_big(w->out, start_ns, 8);
	put_big(w->out, duration_ns, 8);
	put_big(w->out, 1000, 8);
	put_big(w->out, NSEC_PER_SEC, 8);
	put_big(w->out, w->is_plain ? 0 : 1, 4);
	put_metadata(w);
}

void jfr_end_chunk(struct jfr_writer *w)
{
	patch(w, w->chunk + 8, w->out->len - w->chunk, 8);
	patch(w, w->chunk + 24, w->metadata, 8);
}

void jfr_begin_checkpoint(struct jfr_writer *w, int32_t pools)
{
	jfr_begin_event(w, 1);
	for (uint64_t i = 0; i < 3; i++)
		jfr_put_long(w, i ? UINT64_MAX - 99 : 1000);
	jfr_put_byte(w, 1);
	jfr_put_int(w, pools);
}

void jfr_begin_pool(struct jfr_writer *w, uint64_t type, int32_t count)
{
	jfr_put_long(w, type);
	jfr_put_int(w, count);
}

static void put_symbols(struct jfr_writer *w)
{
	static const char *const texts[] = { "shop/Cart", "add", "(I)V", "shop/Cart$1", "run", "()V", "", "read", "f" };

	jfr_begin_pool(w, JFR_ID_SYMBOL, ARRAY_SIZE(texts) + 2);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		jfr_put_long(w, i + 1);
		jfr_put_text(w, texts[i]);
	}
	jfr_put_long(w, 10);
	jfr_put_byte(w, 4); /* UTF-16 */
	jfr_put_int(w, 1);
	put_number(w, 0xe4, 2);
	jfr_put_long(w, 11);
	jfr_put_byte(w, 2); /* a constant */
	jfr_put_long(w, 5);
}

void jfr_put_constants(struct jfr_writer *w)
{
	static const struct {
		uint64_t class, name, descriptor;
	} methods[] = { { 1, 2, 3 }, { 2, 5, 6 }, { 3, 8, 7 }, { 4, 9, 11 } };
	static const char *const kinds[] = {
		"Interpreted", "JIT compiled", "Inlined", "Native", "Kernel", "C1 compiled"
	};
	static const uint64_t class_names[] = { 1, 4, 7, 10 };

	jfr_begin_checkpoint(w, 6);
	put_symbols(w);
	jfr_begin_pool(w, JFR_ID_STRING, 1);
	jfr_put_long(w, 5);
	jfr_put_byte(w, 5); /* Latin-1 */
	jfr_put_int(w, 2);
	buf_adds(w->out, STR("\xe4!"));
	jfr_begin_pool(w, JFR_ID_CLASS, ARRAY_SIZE(class_names));
	for (size_t i = 0; i < ARRAY_SIZE(class_names); i++) {
		jfr_put_long(w, i + 1);
		jfr_put_int(w, -1);
		jfr_put_long(w, class_names[i]);
	}
	jfr_begin_pool(w, JFR_ID_METHOD, ARRAY_SIZE(methods));
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		jfr_put_long(w, i + 1);
		jfr_put_long(w, methods[i].class);
		jfr_put_long(w, methods[i].name);
		jfr_put_long(w, methods[i].descriptor);
	}
	jfr_begin_pool(w, JFR_ID_FRAME_TYPE, ARRAY_SIZE(kinds));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		jfr_put_long(w, i + 1);
		jfr_put_text(w, kinds[i]);
	}
	jfr_begin_pool(w, JFR_ID_THREAD, 2);
	for (uint64_t i = 1; i <= 2; i++) {
		jfr_put_long(w, i);
		jfr_put_text(w, i == 1 ? "java" : "GC Thread");
		jfr_put_long(w, 70 + i);
		jfr_put_text(w, i == 1 ? "main" : NULL);
	}
	jfr_end_event(w);
}

void jfr_put_stack(struct jfr_writer *w, uint64_t key, bool truncated, const struct jfr_frame *frames, size_t count)
{
	jfr_begin_checkpoint(w, 1);
	jfr_begin_pool(w, JFR_ID_STACK, 1);
	jfr_put_long(w, key);
	jfr_put_byte(w, truncated);
	jfr_put_int(w, (int32_t)count);
	for (size_t i = 0; i < count; i++) {
		jfr_put_long(w, frames[i].method);
		jfr_put_int(w, frames[i].line);
		jfr_put_long(w, frames[i].type);
	}
	jfr_end_event(w);
}

void jfr_put_sample(struct jfr_writer *w, uint64_t type, uint64_t ticks, uint64_t thread, uint64_t stack,
		    uint64_t weight)
{
	jfr_begin_event(w, type);
	jfr_put_long(w, ticks);
	jfr_put_long(w, thread);
	jfr_put_long(w, stack);
	if (type == JFR_ID_WALL)
		jfr_put_int(w, (int32_t)weight);
	if (type >= JFR_ID_IN_TLAB)
		jfr_put_long(w, 1); /* the class */
	if (type == JFR_ID_IN_TLAB)
		jfr_put_long(w, 24);
	if (type >= JFR_ID_IN_TLAB)
		jfr_put_long(w, weight);
	jfr_end_event(w);
}

static void put_other(struct jfr_writer *w)
{
	jfr_begin_event(w, JFR_ID_OTHER);
	jfr_put_long(w, 1000);
	jfr_put_int(w, 2);
	for (int i = 0; i < 3; i++) { /* two of the list, and one by itself */
		jfr_put_int(w, -5);
		jfr_put_long(w, UINT64_MAX);
		jfr_put_int(w, 1);
		jfr_put_text(w, "text");
	}
	jfr_put_int(w, 2);
	jfr_put_long(w, 1);
	jfr_put_long(w, 99);
	jfr_end_event(w);
}

void jfr_put_all(struct jfr_writer *w, uint64_t start_ns)
{
	static const struct jfr_frame one[] = { { 1, 12, 3 }, { 2, -1, 2 }, { 4, 7, 1 } },
				      two[] = { { 3, 0, 4 }, { 3, 0, 5 }, { 1, 13, 6 } };

	jfr_begin_chunk(w, start_ns, 5 * NSEC_PER_SEC);
	jfr_begin_event(w, JFR_ID_JVM);
	jfr_put_long(w, 1000);
	jfr_put_long(w, 4711);
	jfr_put_text(w, "-Xmx1g shop.Main");
	jfr_end_event(w);
	put_other(w);
	jfr_put_sample(w, JFR_ID_EXECUTION, 1000 + NSEC_PER_SEC, 1, 1, 0); /* before its constants */
	jfr_put_constants(w);
	jfr_put_stack(w, 1, false, one, ARRAY_SIZE(one));
	jfr_put_stack(w, 2, true, two, ARRAY_SIZE(two));
	jfr_put_sample(w, JFR_ID_EXECUTION, 1000 + 2 * NSEC_PER_SEC, 2, 2, 0);
	jfr_put_sample(w, JFR_ID_EXECUTION, 1000 + 3 * NSEC_PER_SEC, 1, 0, 0);  /* without a stack */
	jfr_put_sample(w, JFR_ID_EXECUTION, 1000 + 3 * NSEC_PER_SEC, 1, 77, 0); /* whose stack is not there */
	jfr_put_sample(w, JFR_ID_NATIVE, 1000, 1, 2, 0);
	jfr_put_sample(w, JFR_ID_WALL, 1000, 1, 1, 30);
	jfr_put_sample(w, JFR_ID_IN_TLAB, 1000, 1, 1, 100000);
	jfr_put_sample(w, JFR_ID_OUTSIDE_TLAB, 1000, 1, 1, 5000000);
	jfr_put_sample(w, JFR_ID_ALLOCATION, 1000, 1, 2, 777);
	jfr_end_chunk(w);
}
