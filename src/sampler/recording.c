// SPDX-License-Identifier: Apache-2.0
#include "sampler/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/sampler.h"

#define BUFFER_MAX KIB(256)

_Static_assert(BUFFER_MAX >= ABI_SAMPLE_SIZE_MAX, "every record fits");

struct recording {
	int fd;
	struct buf pending;
	size_t written;
};

int recording_close(struct recording *r)
{
	int result = 0;

	if (!r)
		return 0;
	if (r->fd >= 0 && r->pending.len)
		result = io_write_all(r->fd, r->pending.ptr, r->pending.len);
	if (r->fd >= 0 && close(r->fd) < 0 && !result)
		result = -errno;
	buf_release(&r->pending);
	free(r);
	return result;
}

static void recording_closep(struct recording **r)
{
	ignore(recording_close(*r)); /* only on a path that fails already */
}

int recording_create(const char *path, struct recording **out)
{
	static const uint8_t header[RECORDING_HEADER_SIZE] = {
		'h', 'e', 'a', 'r', 't', 'h', 'r', 'c', RECORDING_VERSION
	};
	scoped(recording_closep) struct recording *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->pending = (struct buf)BUF_INIT(BUFFER_MAX);
	r->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->fd < 0)
		return -errno;
	buf_add(&r->pending, header, sizeof(header));
	if (r->pending.error)
		return r->pending.error;
	*out = r;
	r = NULL;
	return 0;
}

/* Room for @size bytes in the buffer, which is written when full. */
static int make_room(struct recording *r, size_t size)
{
	int result;

	if (size > BUFFER_MAX || r->written + r->pending.len + size > RECORDING_SIZE_MAX)
		return -EFBIG;
	if (r->pending.len + size <= BUFFER_MAX)
		return 0;
	result = io_write_all(r->fd, r->pending.ptr, r->pending.len);
	if (result < 0)
		return result;
	r->written += r->pending.len;
	buf_clear(&r->pending);
	return 0;
}

int recording_add(struct recording *r, const struct abi_header *record)
{
	int result = make_room(r, record->size);

	if (result < 0)
		return result;
	buf_add(&r->pending, record, record->size);
	return r->pending.error;
}

int recording_add_mapping(struct recording *r, const struct abi_mapping *map, struct str path)
{
	static const uint8_t zeros[8];
	size_t size = align_up(sizeof(*map) + path.len, 8);
	struct abi_mapping head = *map;
	int result = path.len > 4096 ? -E2BIG : make_room(r, size);

	if (result < 0)
		return result;
	head.header.type = ABI_RECORD_MAPPING;
	head.header.version = ABI_VERSION;
	head.header.size = (uint32_t)size;
	head.path_size = (uint32_t)path.len;
	buf_add(&r->pending, &head, sizeof(head));
	buf_adds(&r->pending, path);
	buf_add(&r->pending, zeros, size - sizeof(head) - path.len);
	return r->pending.error;
}

int recording_header(struct cur *in)
{
	const uint8_t *magic = cur_bytes(in, 8);
	uint32_t version = cur_le32(in), zero = cur_le32(in);

	if (in->bad || memcmp(magic, "hearthrc", 8) || zero)
		return -EBADMSG;
	return version == RECORDING_VERSION ? 0 : -ENOTSUP;
}

int recording_next(struct cur *in, const uint8_t **out)
{
	size_t left = cur_left(in);
	struct abi_header header;
	int size;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, in->pos, sizeof(header));
	if (header.size > left && header.size <= ABI_SAMPLE_SIZE_MAX)
		return 0;
	size = abi_record_check(in->pos, left);
	if (size > 0)
		*out = cur_bytes(in, (size_t)size);
	return size;
}
