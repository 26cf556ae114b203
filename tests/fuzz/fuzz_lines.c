/* SPDX-License-Identifier: Apache-2.0 */
/* Packets between hearth and its reader of debug information, as the other side may make them up: what is accepted
 * keeps the promises of lines_wire.h, and says the same again when it is written anew. */
#include "fuzz.h"

#include "symbol/lines_wire.h"

static void judge_request(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf again = BUF_INIT(LINES_MESSAGE_MAX);
	scoped(freep) uint64_t *addresses = malloc(LINES_ADDRESSES_MAX * sizeof(*addresses));
	uint32_t flags;
	int count;

	must(addresses);
	count = lines_request_parse(cur_of(data, size), &flags, addresses);
	must(count == -EBADMSG || (count > 0 && count <= LINES_ADDRESSES_MAX));
	if (count < 0)
		return;
	for (int i = 1; i < count; i++)
		must(addresses[i] > addresses[i - 1]);
	lines_request_add(&again, flags, addresses, (size_t)count);
	must(again.len == size && !memcmp(again.ptr, data, size));
}

static void judge_reply(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf again = BUF_INIT(LINES_MESSAGE_MAX);
	struct lines_reply reply;

	if (lines_reply_parse(cur_of(data, size), &reply) < 0)
		return;
	must(reply.status < LINES_STATUS_COUNT && reply.first + reply.count <= LINES_ADDRESSES_MAX);
	lines_reply_begin(&again, reply.status, reply.first);
	for (uint32_t i = 0; i < reply.count; i++) {
		struct lines_answer answer;

		lines_reply_next(&reply, &answer);
		must(answer.depth <= LINES_DEPTH_MAX);
		for (size_t n = 0; n < answer.depth; n++) {
			const struct lines_wire_frame *f = &answer.frames[n];

			must(f->function.len <= LINES_FUNCTION_MAX && f->file.len <= LINES_FILE_MAX);
			must(!f->function.len || !memchr(f->function.ptr, 0, f->function.len));
			must(!f->file.len || !memchr(f->file.ptr, 0, f->file.len));
		}
		must(lines_reply_add(&again, &answer) == 0);
	}
	must(again.len == size && !memcmp(again.ptr, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > LINES_MESSAGE_MAX)
		return 0;
	judge_request(data, size);
	judge_reply(data, size);
	return 0;
}
