/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/record.h"

#include <linux/perf_event.h>

#define SAMPLE_ID_SIZE 24 /* behind every record but samples: pid, tid; time; CPU */
#define PATH_MAX_BYTES 4096

static void take_sample_id(const uint8_t *bytes, size_t size, struct perf_record *out)
{
	struct cur c = cur_of(bytes + size - SAMPLE_ID_SIZE, SAMPLE_ID_SIZE);

	out->pid = cur_le32(&c);
	out->tid = cur_le32(&c);
	out->time_ns = cur_le64(&c);
	out->cpu = cur_le32(&c);
}

uint64_t perf_record_time(const void *bytes, size_t size)
{
	struct perf_event_header header;
	struct cur c;

	if (size < sizeof(header) + SAMPLE_ID_SIZE)
		return 0;
	memcpy(&header, bytes, sizeof(header));
	if (header.type == PERF_RECORD_SAMPLE)
		c = cur_of((const uint8_t *)bytes + sizeof(header) + 8, 8);
	else
		c = cur_of((const uint8_t *)bytes + size - SAMPLE_ID_SIZE + 8, 8);
	return cur_le64(&c);
}

/* ---- samples ---- */

static void take_stack(struct cur *c, struct perf_record *out)
{
	uint64_t size, used;

	out->regs_abi = cur_le64(c);
	for (size_t i = 0; i < PERF_REGS && out->regs_abi != PERF_SAMPLE_REGS_ABI_NONE; i++)
		out->regs[i] = cur_le64(c);
	size = cur_le64(c);
	if (!size)
		return;
	out->stack = cur_bytes(c, size > PERF_RECORD_SIZE_MAX ? SIZE_MAX : size);
	used = cur_le64(c);
	out->stack_size = MIN(used, size);
}

static int parse_sample(struct cur *c, const struct perf_format *format, uint16_t misc, struct perf_record *out)
{
	uint64_t count;

	out->kind = PERF_KIND_SAMPLE;
	out->in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	out->pid = cur_le32(c);
	out->tid = cur_le32(c);
	out->time_ns = cur_le64(c);
	out->cpu = cur_le32(c);
	cur_le32(c);
	count = cur_le64(c);
	if (count > PERF_RECORD_SIZE_MAX / 8)
		return -EBADMSG;
	out->ip_count = count;
	out->ips = cur_bytes(c, out->ip_count * 8);
	if (format->with_stack)
		take_stack(c, out);
	return c->bad ? -EBADMSG : 0;
}

/* ---- the others: what follows the header, without the sample id ---- */

static int parse_task(struct cur *c, bool is_fork, struct perf_record *out)
{
	out->kind = is_fork ? PERF_KIND_FORK : PERF_KIND_EXIT;
	out->pid = cur_le32(c);
	out->parent_pid = cur_le32(c);
	out->tid = cur_le32(c);
	out->parent_tid = cur_le32(c);
	out->time_ns = cur_le64(c);
	return c->bad ? -EBADMSG : 0;
}

static int parse_comm(struct cur *c, uint16_t misc, struct perf_record *out)
{
	out->kind = PERF_KIND_COMM;
	out->is_exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	out->pid = cur_le32(c);
	out->tid = cur_le32(c);
	out->comm = cur_cstr(c);
	return c->bad ? -EBADMSG : 0;
}

static int parse_map(struct cur *c, struct perf_record *out)
{
	uint64_t size;

	out->kind = PERF_KIND_MAP;
	out->pid = cur_le32(c);
	out->tid = cur_le32(c);
	out->start = cur_le64(c);
	size = cur_le64(c);
	out->file_offset = cur_le64(c);
	out->device_major = cur_le32(c);
	out->device_minor = cur_le32(c);
	out->inode = cur_le64(c);
	cur_le64(c); /* generation of the inode */
	cur_le64(c); /* protection and flags: only executable memory was asked for */
	out->path = cur_cstr(c);
	if (c->bad || !size || __builtin_add_overflow(out->start, size, &out->end) || out->path.len > PATH_MAX_BYTES)
		return -EBADMSG;
	return 0;
}

static int parse_lost(struct cur *c, uint32_t type, struct perf_record *out)
{
	out->kind = PERF_KIND_LOST;
	if (type == PERF_RECORD_LOST)
		cur_le64(c); /* id of the event */
	out->lost = cur_le64(c);
	return c->bad ? -EBADMSG : 0;
}

int perf_record_parse(const void *bytes, size_t size, const struct perf_format *format, struct perf_record *out)
{
	struct perf_event_header header;
	struct cur c = cur_of(bytes, size);

	if (size < sizeof(header) || size > PERF_RECORD_SIZE_MAX)
		return -EBADMSG;
	memcpy(&header, cur_bytes(&c, sizeof(header)), sizeof(header));
	*out = (struct perf_record){ .kind = PERF_KIND_OTHER };
	if (header.size != size)
		return -EBADMSG;
	if (header.type == PERF_RECORD_SAMPLE)
		return parse_sample(&c, format, header.misc, out);
	if (size < sizeof(header) + SAMPLE_ID_SIZE)
		return -EBADMSG;
	take_sample_id(bytes, size, out);
	c.end -= SAMPLE_ID_SIZE;
	switch (header.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(&c, header.type == PERF_RECORD_FORK, out);
	case PERF_RECORD_COMM:
		return parse_comm(&c, header.misc, out);
	case PERF_RECORD_MMAP2:
		return parse_map(&c, out);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return parse_lost(&c, header.type, out);
	default:
		return 0;
	}
}
