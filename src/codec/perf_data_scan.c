/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass over perf.data: header, features, and where the records are. */
#include "base/array.h"
#include "codec/perf_data_int.h"

#define RECORD_HEADER 8
#define ATTR_MIN 64  /* PERF_ATTR_SIZE_VER0 */
#define ATTR_USED 96 /* bytes of it that are looked at: clockid is the last */
#define RECORDS_STEP 4096
#define EXPANDED_USUAL GIB(1)
#define EVENTS_MAX PERF_ATTRS_MAX

int perf_data_fail(struct perf_data *d, const uint8_t *at, int r, const char *reason)
{
	const uint8_t *start = (const uint8_t *)d->bytes.ptr;
	bool is_inside = at >= start && at <= start + d->bytes.len;

	/* What was compressed has no position of its own in the file. */
	codec_fail(d->error, is_inside ? (uint64_t)(at - start) : 0, false, "%s%s", reason,
		   is_inside || !at ? "" : " (in compressed records)");
	return r;
}

/* struct perf_event_attr, of any version: what is not there is 0. */
static bool parse_attr(struct cur c, struct perf_attr *out)
{
	struct perf_attr a = { 0 };
	uint8_t room[ATTR_USED] = { 0 };
	size_t size = cur_left(&c);

	if (size < ATTR_MIN)
		return false;
	memcpy(room, c.pos, MIN(size, sizeof(room)));
	c = cur_of(room, sizeof(room));
	a.type = cur_le32(&c);
	ignore(cur_le32(&c)); /* its size: the caller knows */
	a.config = cur_le64(&c);
	a.sample_period = cur_le64(&c);
	a.sample_type = cur_le64(&c);
	a.read_format = cur_le64(&c);
	a.flags = cur_le64(&c);
	c.pos = room + 92;
	a.clockid = (int32_t)cur_le32(&c);
	*out = a;
	return true;
}

/* Names of events that nobody named; linux 6.1, tools/perf/util/evsel.c, evsel__hw_names, evsel__sw_names. */
static void name_attr(struct perf_attr *a)
{
	static const char *const hardware[] = { "cycles",
						"instructions",
						"cache-references",
						"cache-misses",
						"branches",
						"branch-misses",
						"bus-cycles",
						"stalled-cycles-frontend",
						"stalled-cycles-backend",
						"ref-cycles" },
				 *const software[] = {
					 "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
					 "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
					 "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"
				 };
	const char *known = NULL;
	int len;

	if (a->type == 0 && a->config < ARRAY_SIZE(hardware))
		known = hardware[a->config];
	if (a->type == 1 && a->config < ARRAY_SIZE(software))
		known = software[a->config];
	len = known ? snprintf(a->own_name, sizeof(a->own_name), "%s", known)
		    : snprintf(a->own_name, sizeof(a->own_name), "type%u:0x%llx", a->type,
			       (unsigned long long)a->config);
	a->name = STR("");
	ignore(len); /* fits */
}

static int add_attr(struct perf_data *d, struct cur attr, struct cur ids)
{
	struct perf_attr a;
	int r;

	if (!parse_attr(attr, &a))
		return perf_data_fail(d, attr.pos, -EBADMSG, "an event's description is too short");
	r = array_grow(&d->attrs, &d->attr_cap, d->attr_count, PERF_ATTRS_MAX);
	if (r < 0)
		return perf_data_fail(d, attr.pos, r, r == -E2BIG ? "too many events" : "out of memory");
	name_attr(&a);
	d->attrs[d->attr_count] = a;
	/* Those of many events may be said to lie in the same bytes. */
	d->id_count += cur_left(&ids) / 8;
	if (d->id_count > MAX(d->bytes.len, d->expanded.len) / 8)
		return perf_data_fail(d, attr.pos, -EBADMSG, "more ids of events than the file has room for");
	while (r == 0 && cur_left(&ids) >= 8)
		r = u64map_put(&d->attr_of, cur_le64(&ids), (uint32_t)d->attr_count);
	d->attr_count++;
	return r < 0 ? perf_data_fail(d, attr.pos, r, "too many events") : 0;
}

struct section {
	uint64_t offset, size;
};

static struct section read_section(struct cur *c)
{
	struct section s = { cur_le64(c), 0 };

	s.size = cur_le64(c);
	return s;
}

/* Cut to what the file has; *cut: that was less. */
static struct cur section_of(const struct perf_data *d, struct section s, bool *cut)
{
	uint64_t size = d->bytes.len;

	*cut = s.offset > size || s.size > size - s.offset;
	if (s.offset > size)
		return cur_of(NULL, 0);
	return cur_of(d->bytes.ptr + s.offset, (size_t)MIN(s.size, size - s.offset));
}

/* Features */

static struct str read_text(struct cur *c)
{
	uint32_t size = cur_le32(c);
	struct cur text = cur_sub(c, size);
	struct str s = cur_rest(&text);
	ptrdiff_t end = s.len ? str_find(s, '\0') : -1;

	return end < 0 ? s : str_first(s, (size_t)end);
}

/* HEADER_EVENT_DESC: names, by the ids of the events. */
static int read_events(struct perf_data *d, struct cur c)
{
	uint32_t count = cur_le32(&c), size = cur_le32(&c);

	for (uint32_t i = 0; i < count && i < EVENTS_MAX && !c.bad; i++) {
		uint32_t at = i, id_count;
		struct str name;

		ignore(cur_bytes(&c, size) != NULL);
		id_count = cur_le32(&c);
		name = read_text(&c);
		for (uint32_t k = 0; k < id_count && !c.bad; k++) {
			uint64_t id = cur_le64(&c);

			if (k == 0 && !c.bad)
				ignore(u64map_get(&d->attr_of, id, &at)); /* without ids: in their order */
		}
		if (!c.bad && at < d->attr_count && name.len)
			d->attrs[at].name = name;
	}
	return 0;
}

static int add_build_id(struct perf_data *d, struct str name, unsigned int mode, const struct perf_build_id *id)
{
	uint32_t row = 0;
	int r;

	if (mode == MODE_KERNEL && str_starts(name, STR("[kernel.kallsyms]")))
		d->kernel_build_id = *id;
	r = intern_add(&d->build_id_names, name, &row);
	if (r == 0 && row > d->build_id_count) {
		r = array_grow(&d->build_ids, &d->build_id_cap, d->build_id_count, UINT32_MAX);
		d->build_id_count += r == 0;
	}
	if (r == 0 && row)
		d->build_ids[row - 1] = *id;
	return r;
}

int perf_data_build_ids(struct perf_data *d, struct cur c)
{
	int r = 0;

	while (r == 0 && cur_left(&c) >= RECORD_HEADER) {
		struct perf_build_id id = { .size = PERF_BUILD_ID_MAX };
		const uint8_t *start = c.pos;
		struct cur record;
		uint16_t misc, size;
		struct str name;

		ignore(cur_le32(&c) != 0);
		misc = cur_le16(&c);
		size = cur_le16(&c);
		if (size < RECORD_HEADER + 28 || (size_t)size - RECORD_HEADER > cur_left(&c))
			return perf_data_fail(d, start, -EBADMSG, "a damaged record of a build id");
		record = cur_sub(&c, (size_t)size - RECORD_HEADER);
		ignore(cur_le32(&record) != 0); /* the machine's pid: of guests */
		memcpy(id.bytes, record.pos, PERF_BUILD_ID_MAX);
		if (misc & PERF_MISC_BUILD_ID_SIZE)
			id.size = (uint8_t)MIN(record.pos[PERF_BUILD_ID_MAX], PERF_BUILD_ID_MAX);
		ignore(cur_bytes(&record, 24) != NULL);
		name = cur_rest(&record);
		if (name.len && str_find(name, '\0') >= 0)
			name = str_first(name, (size_t)str_find(name, '\0'));
		r = add_build_id(d, name, misc & PERF_MISC_CPUMODE, &id);
	}
	return r;
}

int perf_data_feature(struct perf_data *d, uint64_t feature, struct cur c)
{
	uint32_t cpus;

	switch (feature) {
	case FEATURE_BUILD_ID:
		return perf_data_build_ids(d, c);
	case FEATURE_HOSTNAME:
		return window_set_text(&d->w->host, codec_text(d->limits, read_text(&c)));
	case FEATURE_OSRELEASE:
		return window_set_text(&d->w->kernel_release, codec_text(d->limits, read_text(&c)));
	case FEATURE_NRCPUS:
		cpus = cur_le32(&c);
		d->w->cpu_count = cpus <= UINT16_MAX ? cpus : 0;
		return 0;
	case FEATURE_EVENT_DESC:
		return read_events(d, c);
	case FEATURE_DIR_FORMAT:
		d->has_directory = true;
		return 0;
	case FEATURE_CLOCK_DATA: /* version, clock id, time of day and of that clock */
		ignore(cur_le64(&c) != 0);
		d->wall_ns = cur_le64(&c);
		d->wall_clock_ns = cur_le64(&c);
		return 0;
	default:
		return 0;
	}
}

/* "perf" "record" "-g": a list of texts. */
static int read_command(struct perf_data *d, struct cur c)
{
	scoped(buf_release) struct buf line = BUF_INIT(MIB(1));
	uint32_t count = cur_le32(&c);

	for (uint32_t i = 0; i < count && !c.bad; i++) {
		struct str word = read_text(&c);

		if (c.bad)
			break;
		if (i)
			buf_addc(&line, ' ');
		buf_adds(&line, word);
	}
	return line.error ? line.error : window_set_text(&d->w->command, codec_text(d->limits, buf_str(&line)));
}

static int take_feature(struct perf_data *d, uint64_t feature, struct cur c)
{
	return feature == FEATURE_CMDLINE ? read_command(d, c) : perf_data_feature(d, feature, c);
}

/* Records */

/* Bytes of a sample id at the end of a record (PERF_SAMPLE_* that it has), and where the time is in it. */
static uint64_t record_time(const struct perf_attr *a, struct cur c)
{
	size_t size = 0, time_at = SIZE_MAX;
	static const uint64_t parts[] = { SAMPLE_TID,       SAMPLE_TIME, SAMPLE_ID,
					  SAMPLE_STREAM_ID, SAMPLE_CPU,  SAMPLE_IDENTIFIER };

	if (!(a->flags & ATTR_SAMPLE_ID_ALL))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!(a->sample_type & parts[i]))
			continue;
		if (parts[i] == SAMPLE_TIME)
			time_at = size;
		size += 8;
	}
	if (time_at == SIZE_MAX || size > cur_left(&c))
		return 0;
	c.pos = c.end - size + time_at;
	return cur_le64(&c);
}

/* What a read_format makes of SAMPLE_READ: skipped. */
static void skip_read(uint64_t format, struct cur *c)
{
	size_t times = 8 * ((format & 1 ? 1u : 0u) + (format & 2 ? 1u : 0u));
	size_t each = 8 * (1u + (format & 4 ? 1u : 0u) + (format & 16 ? 1u : 0u));
	uint64_t count = 1;

	if (format & 8) {
		count = cur_le64(c);
		if (count > cur_left(c) / each)
			c->bad = true;
	}
	ignore(cur_bytes(c, times) != NULL || !times);
	ignore(!c->bad && cur_bytes(c, (size_t)count * each) != NULL);
}

int perf_sample_parse(const struct perf_attr *a, struct cur c, struct perf_sample_fields *out)
{
	struct perf_sample_fields f = { .time_ns = PERF_NO_TIME, .cpu = UINT64_MAX, .period = a->sample_period };
	uint64_t type = a->sample_type, count;

	if (a->flags & ATTR_FREQ)
		f.period = 1;
	f.id = type & SAMPLE_IDENTIFIER ? cur_le64(&c) : 0;
	f.ip = type & SAMPLE_IP ? cur_le64(&c) : 0;
	f.pid = type & SAMPLE_TID ? cur_le32(&c) : 0;
	f.tid = type & SAMPLE_TID ? cur_le32(&c) : 0;
	f.time_ns = type & SAMPLE_TIME ? cur_le64(&c) : f.time_ns;
	ignore(type & SAMPLE_ADDR ? cur_le64(&c) != 0 : 0);
	f.id = type & SAMPLE_ID ? cur_le64(&c) : f.id;
	ignore(type & SAMPLE_STREAM_ID ? cur_le64(&c) != 0 : 0);
	f.cpu = type & SAMPLE_CPU ? cur_le64(&c) & UINT32_MAX : f.cpu;
	f.period = type & SAMPLE_PERIOD ? cur_le64(&c) : f.period;
	if (type & SAMPLE_READ)
		skip_read(a->read_format, &c);
	if (type & SAMPLE_CALLCHAIN) {
		count = cur_le64(&c);
		if (count > cur_left(&c) / 8)
			c.bad = true;
		else
			f.chain = cur_sub(&c, (size_t)count * 8);
		f.has_chain = true;
	}
	if (c.bad)
		return -EBADMSG;
	*out = f;
	return 0;
}

/* Which event a sample is of: its id has the same place in all of them (perf sees to that). */
static int find_attr(struct perf_data *d, struct cur c, uint32_t *out)
{
	struct perf_sample_fields f;
	uint32_t at = 0;

	if (!d->attr_count)
		return -EBADMSG;
	if (perf_sample_parse(&d->attrs[0], c, &f) < 0 && !(d->attrs[0].sample_type & SAMPLE_IDENTIFIER))
		return -EBADMSG;
	if (d->attrs[0].sample_type & SAMPLE_IDENTIFIER)
		f.id = cur_le64(&c);
	if (d->attr_count > 1)
		ignore(u64map_get(&d->attr_of, f.id, &at)); /* of nobody: perf takes it for the first, too */
	*out = at;
	return 0;
}

static int keep_record(struct perf_data *d, const uint8_t *bytes, uint64_t time_ns, uint32_t attr)
{
	size_t max = d->limits->memory_max ? d->limits->memory_max / 4 / sizeof(*d->records) : UINT32_MAX;
	int r = array_grow(&d->records, &d->record_cap, d->record_count, MIN(max, (size_t)UINT32_MAX));

	if (r < 0)
		return perf_data_fail(d, bytes, r, r == -E2BIG ? "too many records" : "out of memory");
	d->records[d->record_count] = (struct perf_record){
		.time_ns = time_ns, .bytes = bytes, .order = (uint32_t)d->record_count, .attr = attr
	};
	d->record_count++;
	return 0;
}

static int take_sample(struct perf_data *d, const uint8_t *bytes, struct cur c)
{
	struct perf_sample_fields f;
	uint32_t attr;

	if (find_attr(d, c, &attr) < 0)
		return perf_data_fail(d, bytes, -EBADMSG,
				      d->attr_count ? "a sample is too short"
						    : "a sample before its event's description");
	if (perf_sample_parse(&d->attrs[attr], c, &f) < 0)
		return perf_data_fail(d, bytes, -EBADMSG, "a sample is too short");
	if (d->limits->samples_max && d->sample_count >= d->limits->samples_max)
		return perf_data_fail(d, bytes, -E2BIG, "too many samples");
	d->sample_count++;
	d->attrs[attr].samples++;
	return keep_record(d, bytes, f.time_ns == PERF_NO_TIME ? 0 : f.time_ns, attr);
}

static int take_update(struct perf_data *d, struct cur c)
{
	uint64_t type = cur_le64(&c), id = cur_le64(&c);
	struct str name = cur_rest(&c);
	uint32_t at;

	if (type == 2 && name.len && u64map_get(&d->attr_of, id, &at) == 0) /* PERF_EVENT_UPDATE__NAME */
		d->attrs[at].name = str_find(name, '\0') >= 0 ? str_first(name, (size_t)str_find(name, '\0')) : name;
	return 0;
}

/* A record of perf itself. *more: bytes behind it that belong to it. */
static int take_own_record(struct perf_data *d, struct perf_expander *e, uint32_t type, const uint8_t *bytes,
			   struct cur c, uint64_t *more)
{
	struct cur part;
	uint64_t size;

	switch (type) {
	case PERF_HEADER_ATTR:
		part = c;
		ignore(cur_le32(&part) != 0);
		size = cur_le32(&part);
		if (size < ATTR_MIN || size > cur_left(&c))
			return perf_data_fail(d, bytes, -EBADMSG, "an event's description is too short");
		part = cur_sub(&c, (size_t)size);
		return add_attr(d, part, c);
	case PERF_HEADER_BUILD_ID:
		return perf_data_build_ids(d, cur_of(bytes, (size_t)(c.end - bytes)));
	case PERF_HEADER_FEATURE:
		size = cur_le64(&c);
		return take_feature(d, size, c);
	case PERF_EVENT_UPDATE:
		return take_update(d, c);
	case PERF_HEADER_TRACING_DATA:
		*more = (cur_le32(&c) + UINT64_C(7)) & ~UINT64_C(7);
		return 0;
	case PERF_AUXTRACE:
		*more = cur_le64(&c);
		return 0;
	case PERF_COMPRESSED:
		return e ? perf_data_expand(d, e, c)
			 : perf_data_fail(d, bytes, -EBADMSG, "a compressed record within another");
	case PERF_COMPRESSED2:
		size = cur_le64(&c);
		if (c.bad || size > cur_left(&c) || !e)
			return perf_data_fail(d, bytes, -EBADMSG, "a damaged compressed record");
		return perf_data_expand(d, e, cur_sub(&c, (size_t)size));
	default:
		return 0;
	}
}

static void add_lost(uint64_t *sum, uint64_t count)
{
	*sum += MIN(count, INT64_MAX - *sum);
}

static int take_record(struct perf_data *d, uint32_t type, const uint8_t *bytes, struct cur c)
{
	struct cur time = c;

	switch (type) {
	case PERF_SAMPLE:
		return take_sample(d, bytes, c);
	case PERF_LOST:
		ignore(cur_le64(&c) != 0);
		add_lost(&d->lost, cur_le64(&c));
		return 0;
	case PERF_LOST_SAMPLES:
		add_lost(&d->lost_samples, cur_le64(&c));
		return 0;
	case PERF_MMAP:
	case PERF_MMAP2:
	case PERF_COMM:
	case PERF_FORK:
	case PERF_KSYMBOL:
		return keep_record(d, bytes, d->attr_count ? record_time(&d->attrs[0], time) : 0, 0);
	default:
		return 0;
	}
}

/* @e: NULL within what was compressed. A record that the file's end cuts off is left out, as perf does. */
static int scan_records(struct perf_data *d, struct perf_expander *e, struct cur c)
{
	const uint8_t *first = c.pos;
	size_t count = 0;
	int r = 0;

	while (r == 0 && cur_left(&c) >= RECORD_HEADER) {
		const uint8_t *bytes = c.pos;
		uint32_t type = cur_le32(&c);
		uint64_t more = 0;
		uint16_t size;

		ignore(cur_le16(&c) != 0);
		size = cur_le16(&c);
		if (size < RECORD_HEADER)
			return perf_data_fail(d, bytes, -EBADMSG, "a record's size is smaller than its header");
		if ((size_t)size - RECORD_HEADER > cur_left(&c)) {
			c.pos = bytes;
			break;
		}
		r = type < PERF_KERNEL_TYPES_END
			    ? take_record(d, type, bytes, cur_sub(&c, (size_t)size - RECORD_HEADER))
			    : take_own_record(d, e, type, bytes, cur_sub(&c, (size_t)size - RECORD_HEADER), &more);
		if (r == 0 && more > cur_left(&c)) {
			d->is_cut_off = true;
			return 0;
		}
		ignore(r == 0 && more && cur_bytes(&c, (size_t)more) != NULL);
		if (r == 0 && ++count % RECORDS_STEP == 0 && codec_stopped(d->limits, (uint64_t)(c.pos - first) / 2))
			r = -ECANCELED;
	}
	d->is_cut_off |= r == 0 && cur_left(&c) > 0;
	return r;
}

static int scan_data(struct perf_data *d, struct cur data)
{
	scoped(perf_expander_release) struct perf_expander e = { 0 };
	int r;

	d->expanded = (struct buf)BUF_INIT(d->limits->expanded_max ? d->limits->expanded_max : EXPANDED_USUAL);
	if (d->limits->memory_max)
		d->expanded.max = MIN(d->expanded.max, d->limits->memory_max / 2);
	r = scan_records(d, &e, data);
	return r ? r : scan_records(d, NULL, cur_of(d->expanded.ptr, d->expanded.len));
}

static int scan_attrs(struct perf_data *d, struct cur attrs, uint64_t attr_size)
{
	int r = 0;

	if (attr_size < ATTR_MIN + 16 || attr_size > KIB(64))
		return perf_data_fail(d, attrs.pos, -EBADMSG, "an event's description has an odd size");
	while (r == 0 && cur_left(&attrs) >= attr_size) {
		struct cur attr = cur_sub(&attrs, (size_t)attr_size - 16), at = cur_sub(&attrs, 16);
		bool cut;
		struct cur ids = section_of(d, read_section(&at), &cut);

		r = add_attr(d, attr, ids);
	}
	return r;
}

/* Behind the data stand sections for the bits of the header. */
static int scan_features(struct perf_data *d, const uint8_t bits[FEATURE_BITS / 8], struct section data)
{
	struct cur c;
	bool cut;
	int r = 0;

	if (data.offset > d->bytes.len || data.size > d->bytes.len - data.offset)
		return 0;
	c = cur_of(d->bytes.ptr + data.offset + data.size, d->bytes.len - (size_t)(data.offset + data.size));
	for (unsigned int i = 1; r == 0 && i < FEATURE_BITS; i++) {
		struct section s;

		if (!(bits[i / 8] >> i % 8 & 1))
			continue;
		s = read_section(&c);
		if (c.bad) {
			d->is_cut_off = true;
			return 0;
		}
		r = take_feature(d, i, section_of(d, s, &cut));
		d->is_cut_off |= cut;
	}
	return r;
}

static int scan_file(struct perf_data *d, struct cur c)
{
	uint64_t attr_size = cur_le64(&c);
	struct section attrs = read_section(&c), data = read_section(&c);
	const uint8_t *bits;
	struct cur records;
	bool cut;
	int r;

	ignore(read_section(&c).size != 0); /* names of events, before Linux 2.6.39 */
	bits = cur_bytes(&c, FEATURE_BITS / 8);
	if (!bits)
		return perf_data_fail(d, c.end, -EBADMSG, "the header is cut off");
	r = scan_attrs(d, section_of(d, attrs, &cut), attr_size);
	if (r == 0 && data.size)
		r = scan_features(d, bits, data);
	if (r == 0 && d->has_directory)
		return perf_data_fail(d, (const uint8_t *)d->bytes.ptr, -ENOTSUP,
				      "a part of a recording in a directory (perf record --threads)");
	if (!data.size) { /* perf record was killed: it fills this in when it ends */
		data.size = UINT64_MAX - data.offset;
		d->is_cut_off = true;
	}
	records = section_of(d, data, &cut);
	d->is_cut_off |= cut;
	return r ? r : scan_data(d, records);
}

static int order_of(const void *a, const void *b)
{
	const struct perf_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int perf_data_scan(struct perf_data *d)
{
	struct cur c = cur_of(d->bytes.ptr, d->bytes.len);
	const uint8_t *magic = cur_bytes(&c, 8);
	uint64_t size = cur_le64(&c);
	int r;

	if (!magic || c.bad)
		return perf_data_fail(d, c.end, -EBADMSG, "the header is cut off");
	if (!memcmp(magic, "2ELIFREP", 8))
		return perf_data_fail(d, magic, -ENOTSUP, "recorded on a machine of the other byte order (big-endian)");
	if (!memcmp(magic, "PERFFILE", 8))
		return perf_data_fail(d, magic, -ENOTSUP, "the first version of perf.data (before Linux 2.6.32)");
	if (memcmp(magic, "PERFILE2", 8))
		return perf_data_fail(d, magic, -EBADMSG, "no recording of perf");
	d->is_pipe = size == 16;
	r = d->is_pipe ? scan_data(d, c) : scan_file(d, c);
	if (r == -ENOMEM || (r == -E2BIG && d->error && !d->error->reason[0]))
		return perf_data_fail(d, magic, r, r == -ENOMEM ? "out of memory" : "too large");
	if (r == 0 && d->record_count)
		qsort(d->records, d->record_count, sizeof(*d->records), order_of);
	return r;
}
