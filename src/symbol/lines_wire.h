/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the socket between hearth and its reader of debug information. Both sides check what they receive as
 * if the other side were hostile. The reader is hostile once a crafted file has taken it over. One packet a message
 * (SOCK_SEQPACKET), little-endian:
 *
 *	request                              reply
 *	0   4  "HLQ1"                        0   4  "HLR1"
 *	4   4  flags: enum lines_request     4   4  enum lines_status
 *	8   4  count of addresses            8   4  index of the first address answered
 *	12  4  zero                          12  4  count of answers, each:
 *	16  8  each address, ascending              1  depth: frames, innermost first; the last is the real function
 *	                                            per frame: 4 line, 2 function size, 2 file size, function, file
 *
 * With LINES_NEW_FILE the descriptor of the file with the debug information travels along, with LINES_HAS_ALT behind it
 * that of its .gnu_debugaltlink. With LINES_SOURCE_MAP the file is a source map, an address is source_map_place(), and
 * an answer is one frame or none, its function the name that the map has for just that place. A request is answered by
 * replies in order until every address has its answer, or by one reply with another status than LINES_ANSWERS. Names
 * are bytes without NUL, of any encoding. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"

#define LINES_MESSAGE_MAX KIB(64)
#define LINES_ADDRESSES_MAX 4096 /* of one request */
#define LINES_DEPTH_MAX 64
#define LINES_FUNCTION_MAX KIB(16)
#define LINES_FILE_MAX KIB(4)

enum lines_request { LINES_NEW_FILE = 1, LINES_HAS_ALT = 2, LINES_SOURCE_MAP = 4 }; /* the last two: of a new file */

enum lines_status {
	LINES_READY,    /* unasked, once: the reader is confined and waits */
	LINES_NO_LIBDW, /* likewise, but there is no libdw here: it reads source maps only */
	LINES_ANSWERS,
	LINES_BAD_FILE, /* no debug information, or no source map, that can be read */
	LINES_TOO_LONG, /* given up: the file would take too much time */
	LINES_STATUS_COUNT,
};

struct lines_wire_frame {
	struct str function, file; /* may be empty */
	uint32_t line;             /* 0: unknown */
};

struct lines_answer {
	size_t depth;
	struct lines_wire_frame frames[LINES_DEPTH_MAX];
};

/** Called for each address in order; the text is borrowed. Return: 0, or negative to stop. */
typedef int lines_visit_fn(void *ctx, const struct lines_answer *answer);

/** lines_request_add - append a whole request. @count at most LINES_ADDRESSES_MAX. */
void lines_request_add(struct buf *out, uint32_t flags, const uint64_t *addresses, size_t count);
/**
 * lines_request_parse - judge a whole request
 * @addresses: room for LINES_ADDRESSES_MAX
 * Return: number of addresses (at least 1), or -EBADMSG. Pure.
 */
int lines_request_parse(struct cur in, uint32_t *flags, uint64_t *addresses) warn_unused;

/** lines_reply_begin - clear @out and start a reply. */
void lines_reply_begin(struct buf *out, enum lines_status status, uint32_t first);
/** lines_reply_add - append one answer. Return: 0, or -E2BIG when it does not fit any more (@out unchanged). */
int lines_reply_add(struct buf *out, const struct lines_answer *answer) warn_unused;

struct lines_reply {
	enum lines_status status;
	uint32_t first, count;
	struct cur answers;
};

/** lines_reply_parse - judge a whole reply; @out borrows from @in. Return: 0 or -EBADMSG. Pure. */
int lines_reply_parse(struct cur in, struct lines_reply *out) warn_unused;
/** lines_reply_next - the next of reply->count answers; its text is borrowed. Call it that many times. */
void lines_reply_next(struct lines_reply *reply, struct lines_answer *out);
