/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/perf.h"

#include "base/cur.h"

#define PERF_MAX MIB(1) /* 32 KiB unless -XX:PerfDataMemorySize says otherwise */
#define ENTRIES_MAX 8192
#define MAGIC 0xc0c0feca /* bytes ca fe c0 c0 */
#define HEAD 32
#define ENTRY_HEAD 20
#define TYPE_LONG 'J'

static int parse(struct java_perf *p)
{
	struct cur c = cur_of(p->bytes.ptr, p->bytes.len);
	uint32_t magic = cur_le32(&c);
	uint8_t order = cur_u8(&c), major = cur_u8(&c);

	ignore(cur_bytes(&c, 18)); /* it sticks */
	p->entries = cur_le32(&c);
	p->count = cur_le32(&c);
	p->count = MIN(p->count, (uint32_t)ENTRIES_MAX);
	/* 1: the least significant byte first; 2: the major version. */
	return c.bad || magic != MAGIC || order != 1 || major != 2 ? -EBADMSG : 0;
}

int java_perf_parse(struct buf *bytes, uint64_t at, struct java_perf *out)
{
	struct java_perf p = { .bytes = *bytes, .at = at };
	int r = parse(&p);

	if (r < 0)
		return r;
	*bytes = (struct buf)BUF_INIT(0);
	*out = p;
	return 0;
}

int java_perf_read(const struct java_memory *m, const struct java_layout *l, uint64_t bias, struct java_perf *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(PERF_MAX);
	uint64_t start = 0, top = 0;
	void *room;
	int r = java_read_word(m, l->perf_start + bias, &start);

	if (r == 0)
		r = java_read_word(m, l->perf_top + bias, &top);
	if (r < 0)
		return r;
	if (!start || top <= start)
		return -ENOENT;
	if (top - start > PERF_MAX || top - start < HEAD)
		return -EBADMSG;
	room = buf_reserve(&bytes, top - start);
	if (!room)
		return bytes.error;
	r = java_read(m, room, (uint32_t)(top - start), start);
	if (r < 0)
		return r;
	buf_commit(&bytes, top - start);
	return java_perf_parse(&bytes, start, out);
}

void java_perf_release(struct java_perf *p)
{
	buf_release(&p->bytes);
}

/* An entry's data. Return: false: it is of another name, or not within the entry. */
static bool is_entry(struct str entry, const char *name, struct str *data)
{
	size_t name_at = java_u32(entry.ptr, 4), data_at = java_u32(entry.ptr, 16);
	struct str rest = str_skip(entry, name_at);

	if (name_at < ENTRY_HEAD || data_at < ENTRY_HEAD || data_at > entry.len || entry.ptr[12] != TYPE_LONG)
		return false;
	rest.len = rest.len ? strnlen(rest.ptr, rest.len) : 0;
	if (!str_eq(rest, str_of(name)))
		return false;
	*data = str_skip(entry, data_at);
	return true;
}

static int find(const struct java_perf *p, const char *name, struct str *data)
{
	struct str rest = str_skip(buf_str(&p->bytes), p->entries);

	for (uint32_t i = 0; i < p->count && rest.len >= ENTRY_HEAD; i++) {
		uint32_t length = java_u32(rest.ptr, 0);

		if (length < ENTRY_HEAD || length > rest.len)
			return -ENOENT;
		if (is_entry(str_first(rest, length), name, data))
			return 0;
		rest = str_skip(rest, length);
	}
	return -ENOENT;
}

int java_perf_number(const struct java_perf *p, const char *name, int64_t *value, uint64_t *at)
{
	struct str data;
	int r = find(p, name, &data);

	if (r < 0 || data.len < sizeof(*value))
		return -ENOENT;
	if (value)
		*value = (int64_t)java_u64(data.ptr, 0);
	if (at)
		*at = p->at + (uint64_t)(data.ptr - p->bytes.ptr);
	return 0;
}

int java_epoch_find(const struct java_memory *m, const struct java_layout *l, uint64_t bias, uint64_t *out)
{
	scoped(java_perf_release) struct java_perf p = { 0 };
	int r = java_perf_read(m, l, bias, &p);

	return r < 0 ? r : java_perf_number(&p, "java.cls.unloadedClasses", NULL, out);
}
