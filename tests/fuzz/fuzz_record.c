/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of any bytes: what is accepted must hold what sampler.h promises to its readers. */
#include "fuzz.h"

#include "sampler/recording.h"
#include "sampler/sampler.h"

static void judge_sample(const uint8_t *bytes, size_t size)
{
	struct abi_sample head;
	size_t whole, frames;

	memcpy(&head, bytes, sizeof(head));
	frames = (size_t)head.frame_count + head.runtime_count;
	must(frames <= ABI_FRAMES_MAX && head.kernel_count <= head.frame_count);
	whole = sizeof(head) + frames * sizeof(struct abi_frame);
	if (head.flags & ABI_SAMPLE_RAW) {
		struct abi_raw raw;

		must(size >= whole + sizeof(raw));
		memcpy(&raw, bytes + whole, sizeof(raw));
		must(raw.stack_size <= ABI_STACK_LONG_MAX);
		whole += sizeof(raw) + raw.stack_size;
	}
	must(size == whole);
	must(memchr(head.comm, 0, sizeof(head.comm)) && memchr(head.thread_name, 0, sizeof(head.thread_name)));
	must(head.user_end < ABI_END_COUNT && !head.pid == !head.tid);
	must(head.trigger == ABI_TRIGGER_SWITCH || !(head.flags & ABI_SAMPLE_REQUEST) == !head.request_key);
	for (size_t i = 0; i < frames; i++) {
		struct abi_frame frame;

		memcpy(&frame, bytes + sizeof(head) + i * sizeof(frame), sizeof(frame));
		must((frame.kind == ABI_FRAME_KERNEL) == (i < head.kernel_count));
		must(frame.kind <= (i < head.frame_count ? ABI_FRAME_RUNTIME : ABI_FRAME_ACTIVATION));
		must(i < head.frame_count || frame.kind >= ABI_FRAME_RUNTIME);
	}
}

static void judge_mapping(const uint8_t *bytes, size_t size)
{
	struct abi_mapping map;

	memcpy(&map, bytes, sizeof(map));
	must(map.start < map.end && map.path_size <= size - sizeof(map));
}

static void judge_request(const uint8_t *bytes, size_t size)
{
	struct abi_request request;

	must(size == sizeof(request));
	memcpy(&request, bytes, sizeof(request));
	must(request.key && request.pid);
	must(memchr(request.script, 0, sizeof(request.script)) && memchr(request.path, 0, sizeof(request.path)));
	must(!strpbrk(request.path, "?#"));
}

static void judge_name(const uint8_t *bytes, size_t size)
{
	struct abi_name name;

	memcpy(&name, bytes, sizeof(name));
	must(name.bytes_size <= ABI_NAME_BYTES_MAX && size == align_up(sizeof(name) + name.bytes_size, 8));
	must(name.pid && name.runtime < ABI_RUNTIME_COUNT);
}

static void judge(unsigned type, const uint8_t *bytes, size_t size)
{
	switch (type) {
	case ABI_RECORD_SAMPLE:
		judge_sample(bytes, size);
		break;
	case ABI_RECORD_MAPPING:
		judge_mapping(bytes, size);
		break;
	case ABI_RECORD_NAME:
		judge_name(bytes, size);
		break;
	case ABI_RECORD_REQUEST:
		judge_request(bytes, size);
		break;
	case ABI_RECORD_WAIT:
		must(size == sizeof(struct abi_wait));
		break;
	default:
		must(size == sizeof(struct abi_process));
	}
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
		judge(header.type, bytes, (size_t)r);
	}
	must(r == 0 || r == -EBADMSG);
	return 0;
}
