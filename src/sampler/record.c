// SPDX-License-Identifier: Apache-2.0
/* Judges records before anybody believes them: they come from shared memory or from a file. */
#include "sampler/sampler.h"

#define PID_LIMIT (1U << 22) /* PID_MAX_LIMIT of linux, include/linux/threads.h */
#define CPU_LIMIT 65536U
#define PATH_LIMIT 4096U
#define SAMPLE_FLAGS                                                                                       \
	(ABI_SAMPLE_KERNEL_THREAD | ABI_SAMPLE_IN_KERNEL | ABI_SAMPLE_IN_SYSCALL | ABI_SAMPLE_KERNEL_CUT | \
	 ABI_SAMPLE_YOUNG | ABI_SAMPLE_RAW | ABI_SAMPLE_ASK | ABI_SAMPLE_REQUEST)
#define FRAME_FLAGS (ABI_FRAME_RETURN | ABI_FRAME_GUESSED)
#define IN_LINE_FLAGS (FRAME_FLAGS | ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL)
#define RUNTIME_FRAME_FLAGS (ABI_FRAME_GUESSED | ABI_FRAME_ENTRY | ABI_FRAME_GAP | ABI_FRAME_OTHER_STACK)

static bool text_ends(const char text[ABI_COMM_SIZE])
{
	return memchr(text, 0, ABI_COMM_SIZE) != NULL;
}

/* One number stands for the stack of a wait, or for what a process is busy with at a tick. */
static bool key_fits(const struct abi_sample *head)
{
	bool has_request = head->flags & ABI_SAMPLE_REQUEST;

	if (head->trigger == ABI_TRIGGER_SWITCH)
		return head->stack_id && !has_request;
	return has_request == (head->request_key != 0);
}

static bool frame_fits(const uint8_t *bytes, bool kernel)
{
	struct abi_frame frame;

	memcpy(&frame, bytes, sizeof(frame));
	if (!kernel && frame.kind == ABI_FRAME_RUNTIME)
		return frame.runtime && frame.runtime < ABI_RUNTIME_COUNT && !(frame.flags & ~IN_LINE_FLAGS);
	if (frame.runtime || (frame.flags & ~FRAME_FLAGS))
		return false;
	if (kernel)
		return frame.kind == ABI_FRAME_KERNEL && !frame.b && !frame.extra;
	switch (frame.kind) {
	case ABI_FRAME_USER:
	case ABI_FRAME_JIT:
		return !frame.b;
	case ABI_FRAME_NATIVE:
		return true;
	default:
		return false;
	}
}

static bool runtime_frame_fits(const uint8_t *bytes)
{
	struct abi_frame frame;

	memcpy(&frame, bytes, sizeof(frame));
	if (!frame.runtime || frame.runtime >= ABI_RUNTIME_COUNT)
		return false;
	switch (frame.kind) {
	case ABI_FRAME_RUNTIME:
		return !(frame.flags & ~RUNTIME_FRAME_FLAGS);
	case ABI_FRAME_ACTIVATION:
		return !frame.flags && !frame.b && !frame.extra;
	default:
		return false;
	}
}

/* @bytes: behind the frames. */
static bool raw_fits(const uint8_t *bytes, size_t size)
{
	struct abi_raw raw;

	if (size < sizeof(raw))
		return false;
	memcpy(&raw, bytes, sizeof(raw));
	return raw.stack_size <= ABI_STACK_LONG_MAX && !(raw.stack_size % 8) && size == sizeof(raw) + raw.stack_size &&
	       raw.vma.kind <= ABI_VMA_FILE && !raw.vma.reserved && raw.is_return <= 1 && raw.is_leaf <= 1 &&
	       raw.guessed <= 1 && raw.at_signal <= 1;
}

static bool frames_fit(const uint8_t *bytes, const struct abi_sample *head)
{
	const size_t count = head->frame_count, all = count + head->runtime_count;

	for (size_t i = 0; i < all; i++, bytes += sizeof(struct abi_frame))
		if (i < count ? !frame_fits(bytes, i < head->kernel_count) : !runtime_frame_fits(bytes))
			return false;
	return true;
}

static bool sample_fits(const uint8_t *bytes, size_t size)
{
	struct abi_sample head;
	size_t whole, frames;

	if (size < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	frames = (size_t)head.frame_count + head.runtime_count;
	whole = sizeof(head) + frames * sizeof(struct abi_frame);
	if (frames > ABI_FRAMES_MAX || head.kernel_count > head.frame_count || size < whole)
		return false;
	if (head.flags & ABI_SAMPLE_RAW ? !raw_fits(bytes + whole, size - whole) : size != whole)
		return false;
	if (!head.pid != !head.tid || head.pid > PID_LIMIT || head.tid > PID_LIMIT || head.cpu >= CPU_LIMIT)
		return false;
	if ((head.flags & ~SAMPLE_FLAGS) || head.user_end >= ABI_END_COUNT || head.trigger >= ABI_TRIGGER_COUNT ||
	    !key_fits(&head))
		return false;
	if (head.runtime_end >= ABI_RUNTIME_END_COUNT || head.reserved || head.reserved32)
		return false;
	if (!text_ends(head.comm) || !text_ends(head.thread_name))
		return false;
	return frames_fit(bytes + sizeof(head), &head);
}

static bool process_fits(const uint8_t *bytes, size_t size)
{
	struct abi_process event;

	if (size != sizeof(event))
		return false;
	memcpy(&event, bytes, sizeof(event));
	return !event.reserved && event.pid && event.pid <= PID_LIMIT && event.parent_pid <= PID_LIMIT &&
	       text_ends(event.comm);
}

static bool wait_fits(const uint8_t *bytes, size_t size)
{
	struct abi_wait wait;

	if (size != sizeof(wait))
		return false;
	memcpy(&wait, bytes, sizeof(wait));
	return wait.stack_id && wait.pid && wait.pid <= PID_LIMIT && wait.tid && wait.tid <= PID_LIMIT &&
	       wait.wait_ns <= wait.header.time_ns;
}

static bool zeros(const uint8_t *bytes, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool name_fits(const uint8_t *bytes, size_t size)
{
	struct abi_name name;

	if (size < sizeof(name))
		return false;
	memcpy(&name, bytes, sizeof(name));
	return name.pid && name.pid <= PID_LIMIT && name.runtime && name.runtime < ABI_RUNTIME_COUNT && !name.flags &&
	       !name.reserved && name.bytes_size <= ABI_NAME_BYTES_MAX &&
	       size == align_up(sizeof(name) + name.bytes_size, 8) &&
	       zeros(bytes, sizeof(name) + name.bytes_size, size);
}

static bool request_text_fits(const char text[ABI_REQUEST_TEXT_SIZE])
{
	size_t size = strnlen(text, ABI_REQUEST_TEXT_SIZE);

	return size < ABI_REQUEST_TEXT_SIZE && zeros((const uint8_t *)text, size, ABI_REQUEST_TEXT_SIZE);
}

static bool request_fits(const uint8_t *bytes, size_t size)
{
	struct abi_request request;

	if (size != sizeof(request))
		return false;
	memcpy(&request, bytes, sizeof(request));
	return request.key && request.pid && request.pid <= PID_LIMIT && request_text_fits(request.script) &&
	       request_text_fits(request.path) && !strpbrk(request.path, "?#");
}

static bool mapping_fits(const uint8_t *bytes, size_t size)
{
	struct abi_mapping map;

	if (size < sizeof(map))
		return false;
	memcpy(&map, bytes, sizeof(map));
	if (!map.pid || map.pid > PID_LIMIT || map.start >= map.end || map.path_size > PATH_LIMIT ||
	    size != align_up(sizeof(map) + map.path_size, 8))
		return false;
	return !memchr(bytes + sizeof(map), 0, map.path_size) && zeros(bytes, sizeof(map) + map.path_size, size);
}

int abi_record_check(const void *bytes, size_t size)
{
	struct abi_header header;
	bool fits = false;

	if (size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (header.version != ABI_VERSION || header.size % 8 || header.size < sizeof(header) || header.size > size)
		return -EBADMSG;
	switch (header.type) {
	case ABI_RECORD_SAMPLE:
		fits = sample_fits(bytes, header.size);
		break;
	case ABI_RECORD_EXEC:
	case ABI_RECORD_FORK:
	case ABI_RECORD_EXIT:
		fits = process_fits(bytes, header.size);
		break;
	case ABI_RECORD_WAIT:
		fits = wait_fits(bytes, header.size);
		break;
	case ABI_RECORD_NAME:
		fits = name_fits(bytes, header.size);
		break;
	case ABI_RECORD_REQUEST:
		fits = request_fits(bytes, header.size);
		break;
	case ABI_RECORD_MAPPING:
		fits = mapping_fits(bytes, header.size);
		break;
	}
	return fits ? (int)header.size : -EBADMSG;
}
