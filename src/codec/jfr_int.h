/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's parts: jfr_values.c (numbers, texts, fields), jfr_chunk.c (one chunk: header, types, constants),
 * jfr_samples.c (its events as samples), jfr.c (the file). Source of the format: openjdk/jdk jdk-17+35,
 * src/hotspot/share/jfr/recorder/ (jfrChunkWriter.cpp, checkpoint/) and
 * src/jdk.jfr/share/classes/jdk/jfr/internal/consumer/ (ChunkHeader, MetadataReader, ChunkParser, StringParser). */
#pragma once

#include "base/array.h"
#include "base/cur.h"
#include "base/u64map.h"
#include "codec/jfr.h"

#define JFR_STEPS 4096 /* between two looks at the limits */
#define JFR_HEADER_SIZE 68
#define JFR_PLAN_FIELDS 64 /* of a type whose fields are read; further ones are passed over */
#define JFR_NO_CLASS UINT32_MAX

enum jfr_primitive {
	JFR_COMPOSITE,
	JFR_BOOLEAN,
	JFR_BYTE,
	JFR_SHORT,
	JFR_CHAR,
	JFR_INT,
	JFR_LONG,
	JFR_FLOAT,
	JFR_DOUBLE,
	JFR_STRING,
};

enum jfr_string_encoding {
	JFR_STRING_NULL = 0,
	JFR_STRING_EMPTY = 1,
	JFR_STRING_CONSTANT = 2, /* a key of the constants of java.lang.String */
	JFR_STRING_UTF8 = 3,
	JFR_STRING_CHARS = 4, /* UTF-16, each as a number */
	JFR_STRING_LATIN1 = 5,
};

struct jfr_string {
	uint8_t encoding;
	uint64_t key, count; /* of a constant; characters of JFR_STRING_CHARS */
	struct cur bytes;
};

struct jfr_text {
	size_t at, len; /* in chunk.names */
};

struct jfr_field {
	struct jfr_text name;
	uint64_t class_id;
	uint32_t class; /* index, JFR_NO_CLASS: not in the metadata */
	bool is_constant, is_array;
};

struct jfr_class {
	uint64_t id;
	struct jfr_text name;
	uint32_t first_field, field_count;
	enum jfr_primitive primitive;
	int event; /* index of the kind of event it is, or -1 */
};

/* Types whose constants are read, and which of their fields. */
enum jfr_pool {
	JFR_POOL_STRING,
	JFR_POOL_SYMBOL,
	JFR_POOL_CLASS,
	JFR_POOL_METHOD,
	JFR_POOL_FRAME_TYPE,
	JFR_POOL_THREAD,
	JFR_POOL_STACK,
	JFR_POOL_COUNT,
};

/* For each field of a type, the slot that its value goes to, or -1. */
struct jfr_plan {
	uint32_t class;
	int8_t slots[JFR_PLAN_FIELDS];
};

struct jfr_slot {
	bool is_set;
	uint64_t number;
	struct jfr_string string;
	struct cur array; /* at its count */
};

#define JFR_SLOTS_MAX 6

struct jfr_constant {
	uint32_t at;     /* of its value, from the chunk's start */
	uint32_t row[2]; /* of the model, once it was asked for */
	bool is_read, flag;
};

struct jfr_constants {
	struct u64map by_key;
	struct jfr_constant *items;
	size_t count, cap;
	struct jfr_plan plan;
};

struct jfr_in {
	struct str bytes;
	struct window *window;
	struct model *m;
	struct codec_error *error;
	const struct codec_limits *limits;
	size_t steps;
	uint64_t work, work_max; /* values looked at: types may be made so that few bytes have many */
	uint64_t done;
	uint64_t start_ns, end_ns;
	uint32_t pid, process;
	uint64_t *event_counts; /* by kind of event */
	int *columns;           /* by kind of event, two each: of the count and of the weight; -1: none */
	uint64_t other_events, lost_stacks, lost_methods;
	uint32_t cut, truncated, class_key, unknown; /* strings */
	uint32_t *frames, *nodes;
	size_t frames_count, frames_cap, nodes_cap;
	struct buf text, parts;
};

struct jfr_chunk {
	struct jfr_in *in;
	struct str bytes; /* of the chunk */
	uint64_t at;      /* where it begins in the file */
	bool is_plain;    /* numbers have their full size */
	uint64_t metadata_at, start_ns, duration_ns, start_ticks, ticks_per_second;
	struct buf names;
	struct jfr_text *strings;
	size_t strings_count, strings_cap;
	struct jfr_class *classes;
	size_t classes_count, classes_cap;
	struct jfr_field *fields;
	size_t fields_count, fields_cap;
	struct u64map class_by_id;
	struct jfr_constants pools[JFR_POOL_COUNT];
	struct jfr_plan frame_plan;
	struct jfr_plan *event_plans; /* by kind of event */
};

/* Every function below that returns int returns 0 or -errno, with its reason in in->error. */

int jfr_bad(const struct jfr_in *in, uint64_t at, const char *reason);
/** jfr_failed - gives a failed model or array operation its reason. Return: @r. */
int jfr_failed(const struct jfr_in *in, uint64_t at, int r);
/** jfr_limits_look - Return: 0, -E2BIG over limits->memory_max, -ECANCELED. */
int jfr_limits_look(const struct jfr_in *in, const struct jfr_chunk *k) warn_unused;

static inline int jfr_step(struct jfr_in *in, const struct jfr_chunk *k)
{
	return ++in->steps % JFR_STEPS ? 0 : jfr_limits_look(in, k);
}

void jfr_chunk_release(struct jfr_chunk *k);
/** jfr_chunk_open - header and types of the chunk at @at. On failure, too, it has to be released. */
int jfr_chunk_open(struct jfr_in *in, uint64_t at, struct jfr_chunk *k) warn_unused;
/** jfr_chunk_constants - find the constants of all pools. */
int jfr_chunk_constants(struct jfr_chunk *k) warn_unused;

static inline uint64_t jfr_position(const struct jfr_chunk *k, const struct cur *c)
{
	return k->at + (uint64_t)((const char *)c->pos - k->bytes.ptr);
}

static inline struct str jfr_name(const struct jfr_chunk *k, struct jfr_text text)
{
	return str_n(k->names.ptr + text.at, text.len);
}

struct jfr_event {
	uint64_t type, at;
	struct cur content; /* behind size and type */
};

/** jfr_next_event - @c: what is left of the chunk's events. Return: 1, 0 at the end, -EBADMSG. */
int jfr_next_event(const struct jfr_chunk *k, struct cur *c, struct jfr_event *out) warn_unused;
struct cur jfr_events(const struct jfr_chunk *k);

/* Values. A cursor that went bad stays bad. */

/** jfr_number - a number of @primitive, extended to 64 bits. */
uint64_t jfr_number(const struct jfr_chunk *k, struct cur *c, enum jfr_primitive primitive);
uint64_t jfr_big_endian(struct cur *c, size_t size); /* its sign extended */
/** jfr_count - a count of things of at least one byte each; 0 when the cursor is bad. */
uint64_t jfr_count(const struct jfr_chunk *k, struct cur *c);
void jfr_skip_value(struct jfr_chunk *k, struct cur *c, uint32_t class);
void jfr_read_string(const struct jfr_chunk *k, struct cur *c, struct jfr_string *out);
/** jfr_plan_make - @wants: names of fields by slot. */
void jfr_plan_make(const struct jfr_chunk *k, uint32_t class, const char *const *wants, size_t count,
		   struct jfr_plan *out);
/** jfr_read - the fields of one value. @slots: JFR_SLOTS_MAX */
void jfr_read(struct jfr_chunk *k, struct cur *c, const struct jfr_plan *plan, struct jfr_slot *slots);
/** jfr_take_work - count the bytes of a constant: it is read for everything that refers to it. Return: false when that
 * is too much work. */
bool jfr_take_work(struct jfr_chunk *k, const struct cur *from, const struct cur *to);
/** jfr_find_class - Return: its index, or JFR_NO_CLASS. */
uint32_t jfr_find_class(const struct jfr_chunk *k, uint64_t id);

/** jfr_constant - NULL when the file does not have it. Valid until the pool changes. */
struct jfr_constant *jfr_constant(struct jfr_chunk *k, enum jfr_pool pool, uint64_t key);
/** jfr_constant_read - the fields of one. */
int jfr_constant_read(struct jfr_chunk *k, enum jfr_pool pool, const struct jfr_constant *constant,
		      struct jfr_slot *slots) warn_unused;
/** jfr_string_add - append what it says as UTF-8. Return: false when it is null or not in the file. */
bool jfr_string_add_plain(struct jfr_chunk *k, const struct jfr_string *s, struct buf *out); /* constants: none */
bool jfr_string_add(struct jfr_chunk *k, const struct jfr_string *s, struct buf *out);

/* Slots of what is read */
enum { JFR_SYMBOL_TEXT = 0 };
enum { JFR_CLASS_NAME = 0 };
enum { JFR_METHOD_CLASS = 0, JFR_METHOD_NAME = 1, JFR_METHOD_DESCRIPTOR = 2 };
enum { JFR_FRAME_TYPE_TEXT = 0 };
enum { JFR_THREAD_OS_NAME = 0, JFR_THREAD_OS_ID = 1, JFR_THREAD_JAVA_NAME = 2 };
enum { JFR_STACK_TRUNCATED = 0, JFR_STACK_FRAMES = 1 };
enum { JFR_FRAME_METHOD = 0, JFR_FRAME_LINE = 1, JFR_FRAME_TYPE = 2 };

/** jfr_events_prepare - room for the counts and columns of every kind of event. */
int jfr_events_prepare(struct jfr_in *in) warn_unused;
/** jfr_event_of - the kind of event a class of this name is, or -1. */
int jfr_event_of(struct str name);
/** jfr_plan_events - plans for the kinds of events the chunk's metadata has. */
int jfr_plan_events(struct jfr_chunk *k) warn_unused;
/** jfr_count_events - first pass: how many of each kind there are, and what the JVM says of itself. */
int jfr_count_events(struct jfr_chunk *k) warn_unused;
/** jfr_add_columns - value types for the kinds of events that were counted. */
int jfr_add_columns(struct jfr_in *in) warn_unused;
/** jfr_read_samples - second pass. */
int jfr_read_samples(struct jfr_chunk *k) warn_unused;
