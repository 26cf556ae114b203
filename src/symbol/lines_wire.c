/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/lines_wire.h"

#define REQUEST_MAGIC 0x31514c48u /* HLQ1 */
#define REPLY_MAGIC 0x31524c48u   /* HLR1 */
#define HEADER_SIZE 16
#define COUNT_AT 12

static void put(struct buf *out, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	buf_add(out, bytes, size);
}

void lines_request_add(struct buf *out, uint32_t flags, const uint64_t *addresses, size_t count)
{
	must(count && count <= LINES_ADDRESSES_MAX);
	put(out, REQUEST_MAGIC, 4);
	put(out, flags, 4);
	put(out, count, 4);
	put(out, 0, 4);
	for (size_t i = 0; i < count; i++)
		put(out, addresses[i], 8);
}

int lines_request_parse(struct cur in, uint32_t *flags, uint64_t *addresses)
{
	uint32_t magic = cur_le32(&in), bits = cur_le32(&in), count = cur_le32(&in), zero = cur_le32(&in);

	if (in.bad || magic != REQUEST_MAGIC || zero || !count || count > LINES_ADDRESSES_MAX ||
	    cur_left(&in) != (size_t)count * 8)
		return -EBADMSG;
	if (bits > (LINES_NEW_FILE | LINES_SOURCE_MAP) || (bits && !(bits & LINES_NEW_FILE)))
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		addresses[i] = cur_le64(&in);
		if (i && addresses[i] <= addresses[i - 1])
			return -EBADMSG;
	}
	*flags = bits;
	return (int)count;
}

void lines_reply_begin(struct buf *out, enum lines_status status, uint32_t first)
{
	buf_clear(out);
	put(out, REPLY_MAGIC, 4);
	put(out, status, 4);
	put(out, first, 4);
	put(out, 0, 4);
}

static void count_one(struct buf *out)
{
	struct cur at = cur_of(out->ptr + COUNT_AT, 4);
	uint32_t count = cur_le32(&at) + 1;

	for (size_t i = 0; i < 4; i++)
		out->ptr[COUNT_AT + i] = (char)(count >> 8 * i);
}

int lines_reply_add(struct buf *out, const struct lines_answer *answer)
{
	size_t size = 1;

	must(answer->depth <= LINES_DEPTH_MAX);
	for (size_t i = 0; i < answer->depth; i++)
		size += 8 + answer->frames[i].function.len + answer->frames[i].file.len;
	if (out->len + size > LINES_MESSAGE_MAX)
		return -E2BIG;
	put(out, answer->depth, 1);
	for (size_t i = 0; i < answer->depth; i++) {
		const struct lines_wire_frame *f = &answer->frames[i];

		must(f->function.len <= LINES_FUNCTION_MAX && f->file.len <= LINES_FILE_MAX);
		put(out, f->line, 4);
		put(out, f->function.len, 2);
		put(out, f->file.len, 2);
		buf_adds(out, f->function);
		buf_adds(out, f->file);
	}
	if (out->error)
		return out->error;
	count_one(out);
	return 0;
}

static struct str take_text(struct cur *in, size_t size, size_t max)
{
	const uint8_t *bytes = cur_bytes(in, size);

	if (size > max || (bytes && memchr(bytes, 0, size)))
		in->bad = true;
	return str_n((const char *)bytes, in->bad ? 0 : size);
}

static void take_answer(struct cur *in, struct lines_answer *out)
{
	out->depth = cur_u8(in);
	if (out->depth > LINES_DEPTH_MAX) {
		in->bad = true;
		out->depth = 0;
	}
	for (size_t i = 0; i < out->depth && !in->bad; i++) {
		struct lines_wire_frame *f = &out->frames[i];
		size_t function_size, file_size;

		f->line = cur_le32(in);
		function_size = cur_le16(in);
		file_size = cur_le16(in);
		f->function = take_text(in, function_size, LINES_FUNCTION_MAX);
		f->file = take_text(in, file_size, LINES_FILE_MAX);
	}
}

int lines_reply_parse(struct cur in, struct lines_reply *out)
{
	uint32_t magic = cur_le32(&in), status = cur_le32(&in), first = cur_le32(&in), count = cur_le32(&in);
	struct lines_reply reply = { .status = (enum lines_status)status, .first = first, .count = count };
	struct lines_answer answer;

	if (in.bad || magic != REPLY_MAGIC || status >= LINES_STATUS_COUNT || first >= LINES_ADDRESSES_MAX ||
	    count > LINES_ADDRESSES_MAX - first || (status == LINES_ANSWERS) != (count > 0))
		return -EBADMSG;
	reply.answers = in;
	for (uint32_t i = 0; i < count && !in.bad; i++)
		take_answer(&in, &answer);
	if (in.bad || cur_left(&in))
		return -EBADMSG;
	*out = reply;
	return 0;
}

void lines_reply_next(struct lines_reply *reply, struct lines_answer *out)
{
	take_answer(&reply->answers, out);
	must(!reply->answers.bad); /* lines_reply_parse() has seen it */
}
