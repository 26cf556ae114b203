/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of any bytes: what is accepted must hold what sampler.h promises to its readers. */
#include "fuzz.h"

#include "sampler/recording.h"
#include "sampler/sampler.h"

static void judge_sample(const uint8_t *bytes, size_t size)
{
	struct abi_sample head;
	size_t whole;

	memcpy(&head, bytes, sizeof(head));
	must(head.frame_count <= ABI_FRAMES_MAX && head.kernel_count <= head.frame_count);
	whole = sizeof(head) + head.frame_count * sizeof(struct abi_frame);
	if (head.flags & ABI_SAMPLE_RAW) {
		struct abi_raw raw;

		must(size >= whole + sizeof(raw));
		memcpy(&raw, bytes + whole, sizeof(raw));
		must(raw.stack_size <= ABI_STACK_LONG_MAX);
		whole += sizeof(raw) + raw.stack_size;
	}
	must(size == whole);
	must(memchr(head.comm, 0, sizeof(head.comm)) && memchr(head.thread_name, 0, sizeof(head.thread_name)));
	must(head.user_end < ABI_END_COUNT && head.pid && head.tid);
	for (size_t i = 0; i < head.frame_count; i++) {
		struct abi_frame frame;

		memcpy(&frame, bytes + sizeof(head) + i * sizeof(frame), sizeof(frame));
		must((frame.kind == ABI_FRAME_KERNEL) == (i < head.kernel_count));
		must(frame.kind <= ABI_FRAME_JIT);
	}
}

static void judge_mapping(const uint8_t *bytes, size_t size)
{
	struct abi_mapping map;

	memcpy(&map, bytes, sizeof(map));
	must(map.start < map.end && map.path_size <= size - sizeof(map));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	const uint8_t *bytes = NULL;
	int r;

	if (recording_header(&in) < 0)
		in = cur_of(data, size); /* so that records are found without the header, too */
	while ((r = recording_next(&in, &bytes)) > 0) {
		struct abi_header header;

		memcpy(&header, bytes, sizeof(header));
		must(header.size == (uint32_t)r && r % 8 == 0);
		must(bytes >= data && (size_t)(bytes - data) + (size_t)r <= size);
		if (header.type == ABI_RECORD_SAMPLE)
			judge_sample(bytes, (size_t)r);
		else if (header.type == ABI_RECORD_MAPPING)
			judge_mapping(bytes, (size_t)r);
		else
			must(r == sizeof(struct abi_process));
	}
	must(r == 0 || r == -EBADMSG);
	return 0;
}
