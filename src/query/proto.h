/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages as tables, and what follows from a table alone: the JSON form of protobuf in both directions, and a
 * copy that has nothing else in it. Tables do not contain themselves, so depth is theirs, never the input's.
 * Source: protobuf.dev/programming-guides/json. */
#pragma once

#include "base/wire.h"
#include "codec/json.h"

enum proto_kind { PROTO_TEXT, PROTO_INT, PROTO_UINT, PROTO_BOOL, PROTO_DOUBLE, PROTO_ENUM, PROTO_MESSAGE };

struct proto_message;

struct proto_field {
	uint32_t number;
	enum proto_kind kind; /* PROTO_INT, PROTO_UINT: of 64 bits */
	bool repeated;
	uint8_t slot;     /* for the table's owner */
	const char *name; /* as in the .proto file */
	const char *json; /* NULL: the same */
	const struct proto_message *message;
	const char *const *values; /* names of an enum's values from 0 on, NULL at the end */
};

struct proto_message {
	const struct proto_field *fields;
	size_t count;
};

/** PROTO_TABLE - a message of the fields of a static array. */
#define PROTO_TABLE(array)                   \
	{                                    \
		(array), ARRAY_SIZE((array)) \
	}

#define PROTO_DEPTH_MAX 8

void proto_add_text(struct buf *b, uint32_t number, struct str text); /* malformed UTF-8 as U+FFFD: readers refuse it */
void proto_add_double(struct buf *b, uint32_t number, double value);  /* nothing for 0 */

/** proto_field_of - Return: the field, or NULL. */
const struct proto_field *proto_field_of(const struct proto_message *m, uint64_t number);

/**
 * proto_from_json - append the protobuf form of a JSON object
 * Unknown members are skipped, null is a value that is not there. Return: 0, -EBADMSG, or the buffer's error.
 */
int proto_from_json(const struct proto_message *m, struct str json, struct buf *out) warn_unused;

/**
 * proto_clean - append @bytes without fields that @m does not have, without zeros that say nothing, and with text that
 * is UTF-8 Return: 0, -EBADMSG, or the buffer's error.
 */
int proto_clean(const struct proto_message *m, struct str bytes, struct buf *out) warn_unused;

/* A message on its way to JSON, piece by piece. */
struct proto_json {
	struct proto_level {
		const struct proto_message *m;
		struct cur rest;
		const struct proto_field *open; /* the array that is being written; NULL: none */
	} levels[PROTO_DEPTH_MAX];
	size_t depth;
	struct cur packed; /* the rest of packed numbers of levels[depth - 1].open */
	struct json_out json;
	bool begun;
};

/** proto_json_begin - @bytes are borrowed until the end. */
void proto_json_begin(struct proto_json *j, const struct proto_message *m, struct str bytes);
/**
 * proto_json_next - append about @size bytes; repeated fields have to stand together
 * Return: 1: there is more; 0: that was the end; -EBADMSG, or the buffer's error.
 */
int proto_json_next(struct proto_json *j, size_t size, struct buf *out) warn_unused;
