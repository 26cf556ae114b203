/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's json.dumps writes it: ASCII only, separators ", " and ": ". And a bounded scanner that hands out the
 * text of values without building a tree: numbers of any size and lone surrogates (Python writes those for undecodable
 * bytes) pass through unchanged. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct json_out {
	struct buf *out;
	bool needs_comma;
};

void json_out_begin(struct json_out *j, char bracket); /* '{' or '[' */
void json_out_end(struct json_out *j, char bracket);
void json_out_key(struct json_out *j, struct str name);
void json_out_string(struct json_out *j, struct str text); /* invalid UTF-8 as U+FFFD */
void json_out_u64(struct json_out *j, uint64_t value);
void json_out_number(struct json_out *j, double value); /* shortest that reads back the same; null when not finite */
void json_out_raw(struct json_out *j,
		  struct str value); /* a value that is JSON already: "null", or json_reformat()'s */

/** json_decimal - append @value divided by 10 to the power of @decimals, exactly: 10.10101. Below zero: zeros behind
 * it. */
void json_decimal(struct buf *out, int64_t value, int decimals);

#define JSON_DEPTH_MAX 512

/**
 * json_value - cut one value off the front
 * @rest: advanced past blanks and the value
 * @out: the value's text, borrowed
 *
 * Return: 0 or -EBADMSG (no JSON, or nested deeper than JSON_DEPTH_MAX). Not recursive.
 */
int json_value(struct str *rest, struct str *out) warn_unused;

/** json_fault - how many bytes of @text json_value() could read before it failed. */
size_t json_fault(struct str text);

/**
 * json_member - the next member of an object, or element of an array
 * @rest: a value from json_value(), then what this function left; the brackets are skipped by it
 * @key: the member's name as written, with its quotes; empty in an array
 *
 * Return: 1, or 0 at the end (or when @rest is neither object nor array).
 */
int json_member(struct str *rest, struct str *key, struct str *value);

/** json_text - append what a string value means, as UTF-8. Return: 0 or -EBADMSG when it is no string. */
int json_text(struct str value, struct buf *out) warn_unused;

/** json_reformat - append @json in our form, one line. Return: 0, -EBADMSG, or the buffer's error. */
int json_reformat(struct str json, struct buf *out) warn_unused;
