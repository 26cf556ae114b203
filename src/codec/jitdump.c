/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jitdump.h"

#include "base/array.h"
#include "base/cur.h"
#include "base/u64map.h"

#define MAGIC 0x4a695444u
#define HEADER_SIZE 40
#define PREFIX_SIZE 16
#define FLAG_CPU_TIME 1
#define BACK_MAX 512   /* loads in front of an address that are looked at */
#define LINES_MAX 4096 /* lines of a function that are looked at */

enum { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG, RECORD_CLOSE };

struct parsing {
	struct jitdump d;
	struct u64map code_of; /* the writer's number to codes */
	/* Of the debug record in front of its function. */
	uint64_t lines_of;
	uint32_t first_line, line_count;
};

static void parsing_release(struct parsing *p)
{
	jitdump_release(&p->d);
	u64map_release(&p->code_of);
}

void jitdump_release(struct jitdump *d)
{
	free(d->loads);
	free(d->codes);
	free(d->lines);
	free(d->names);
	*d = (struct jitdump){ 0 };
}

/* Return: 0; -E2BIG when a row more does not fit memory_max. */
static int fits(const struct jitdump *d, size_t more)
{
	size_t used = d->load_count * sizeof(*d->loads) + d->code_count * sizeof(*d->codes) +
		      d->line_count * sizeof(*d->lines) + d->names_size;

	return used + more > d->memory_max ? -E2BIG : 0;
}

static int add_name(struct jitdump *d, struct str name, uint32_t *out)
{
	size_t want;
	int r;

	name = str_first(name, JITDUMP_NAME_MAX);
	want = d->names_size + name.len + 1;
	r = want > UINT32_MAX ? -E2BIG : fits(d, name.len + 1);
	if (r == 0 && want > d->names_cap)
		r = array_reserve(&d->names, &d->names_cap, MAX(want, d->names_cap + d->names_cap / 2));
	if (r < 0)
		return r;
	if (name.len)
		memcpy(d->names + d->names_size, name.ptr, name.len);
	d->names[want - 1] = '\0';
	*out = (uint32_t)d->names_size;
	d->names_size = want;
	return 0;
}

static int add_load(struct jitdump *d, uint64_t start, uint64_t time_ns, uint32_t code)
{
	int r = fits(d, sizeof(*d->loads));

	r = r ? r : array_grow(&d->loads, &d->load_cap, d->load_count, UINT32_MAX);
	if (r == 0)
		d->loads[d->load_count++] = (struct jitdump_load){ start, time_ns, code };
	return r;
}

static int read_load(struct parsing *p, uint64_t time_ns, struct cur c)
{
	struct jitdump_code code = { 0 };
	uint64_t address;
	struct str name;
	int r;

	ignore(cur_le64(&c) != 0); /* pid and tid */
	address = cur_le64(&c);
	code.made_at = cur_le64(&c);
	code.size = cur_le64(&c);
	code.index = cur_le64(&c);
	name = cur_cstr(&c);
	if (c.bad)
		return -EBADMSG;
	if (!code.size || address + code.size < address)
		return 0;
	if (p->line_count && p->lines_of == code.made_at) {
		code.first_line = p->first_line;
		code.line_count = p->line_count;
	}
	p->line_count = 0;
	r = fits(&p->d, sizeof(code));
	r = r ? r : add_name(&p->d, name, &code.name);
	r = r ? r : array_grow(&p->d.codes, &p->d.code_cap, p->d.code_count, UINT32_MAX);
	if (r < 0)
		return r;
	p->d.codes[p->d.code_count] = code;
	r = u64map_put(&p->code_of, code.index, (uint32_t)p->d.code_count);
	r = r ? r : add_load(&p->d, address, time_ns, (uint32_t)p->d.code_count);
	p->d.code_count++;
	p->d.longest = MAX(p->d.longest, code.size);
	return r;
}

static int read_move(struct parsing *p, uint64_t time_ns, struct cur c)
{
	uint64_t address, index;
	uint32_t code;

	ignore(cur_le64(&c) != 0); /* pid and tid */
	address = cur_le64(&c);
	ignore(cur_bytes(&c, 24) != NULL); /* where the code was, where it is, its size: as it was loaded */
	index = cur_le64(&c);
	if (c.bad)
		return -EBADMSG;
	if (u64map_get(&p->code_of, index, &code) < 0 || address + p->d.codes[code].size < address)
		return 0;
	return add_load(&p->d, address, time_ns, code);
}

/* A name of "\xff" is the one before it. */
static int read_lines(struct parsing *p, struct cur c)
{
	uint32_t file = 0;
	uint64_t count;
	bool any_file = false;

	p->lines_of = cur_le64(&c);
	count = cur_le64(&c);
	p->first_line = (uint32_t)p->d.line_count;
	p->line_count = 0;
	for (uint64_t i = 0; i < count; i++) { /* each turn takes 17 bytes and more, or ends */
		uint64_t address = cur_le64(&c);
		uint32_t line = cur_le32(&c);
		struct str name;
		int r;

		ignore(cur_le32(&c) != 0); /* column */
		name = cur_cstr(&c);
		if (c.bad)
			return -EBADMSG;
		r = fits(&p->d, sizeof(*p->d.lines));
		if (r == 0 && !(any_file && str_eq(name, STR("\xff"))))
			r = add_name(&p->d, name, &file);
		any_file = true;
		r = r ? r : array_grow(&p->d.lines, &p->d.line_cap, p->d.line_count, UINT32_MAX);
		if (r < 0)
			return r;
		p->d.lines[p->d.line_count++] = (struct jitdump_line){ address, file, line };
		p->line_count++;
	}
	return c.bad ? -EBADMSG : 0;
}

static int read_record(struct parsing *p, uint32_t type, uint64_t time_ns, struct cur c)
{
	switch (type) {
	case RECORD_LOAD:
		return read_load(p, time_ns, c);
	case RECORD_MOVE:
		return read_move(p, time_ns, c);
	case RECORD_DEBUG:
		return read_lines(p, c);
	default:
		return 0;
	}
}

static int read_header(struct parsing *p, struct cur *c)
{
	struct cur all = *c;
	uint32_t magic = cur_le32(c), size;

	if (!c->bad && magic == __builtin_bswap32(MAGIC))
		return -ENOTSUP;
	ignore(cur_le32(c) != 0); /* version: 1 in all there are */
	size = cur_le32(c);
	ignore(cur_le64(c) != 0); /* machine, padding */
	p->d.pid = cur_le32(c);
	p->d.time_ns = cur_le64(c);
	p->d.is_mono = !(cur_le64(c) & FLAG_CPU_TIME);
	if (c->bad || magic != MAGIC || size < HEADER_SIZE || size > cur_left(&all))
		return -EBADMSG;
	*c = all;
	ignore(cur_bytes(c, size) != NULL);
	return 0;
}

static int order_of(const void *a, const void *b)
{
	const struct jitdump_load *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

int jitdump_parse(struct str bytes, size_t memory_max, struct jitdump *out)
{
	scoped(parsing_release) struct parsing p = { .d.memory_max = memory_max };
	struct cur c = cur_of(bytes.ptr, bytes.len);
	int r;

	u64map_init(&p.code_of, UINT32_MAX);
	r = read_header(&p, &c);
	while (r == 0 && cur_left(&c) >= PREFIX_SIZE) {
		uint32_t type = cur_le32(&c), size = cur_le32(&c);
		uint64_t time_ns = cur_le64(&c);

		if (size < PREFIX_SIZE)
			return -EBADMSG;
		if (size - PREFIX_SIZE > cur_left(&c)) {
			p.d.is_cut = true;
			break;
		}
		if (type == RECORD_CLOSE)
			break;
		r = read_record(&p, type, time_ns, cur_sub(&c, size - PREFIX_SIZE));
	}
	p.d.is_cut |= r == -E2BIG;
	if (r < 0 && r != -E2BIG)
		return r;
	if (p.d.load_count)
		qsort(p.d.loads, p.d.load_count, sizeof(*p.d.loads), order_of);
	*out = p.d;
	p.d = (struct jitdump){ 0 };
	return 0;
}

static void fill(const struct jitdump *d, const struct jitdump_load *load, uint64_t address, struct jitdump_hit *out)
{
	const struct jitdump_code *code = &d->codes[load->code];
	const struct jitdump_line *best = NULL;
	uint64_t at = address - load->start + code->made_at; /* where it was when its lines were written */

	for (uint32_t i = 0; i < MIN(code->line_count, (uint32_t)LINES_MAX); i++) {
		const struct jitdump_line *line = &d->lines[code->first_line + i];

		if (line->address <= at && (!best || line->address >= best->address))
			best = line;
	}
	*out = (struct jitdump_hit){ .name = str_of(d->names + code->name), .start = load->start };
	if (best) {
		out->file = str_of(d->names + best->file);
		out->line = best->line;
	}
}

int jitdump_find(const struct jitdump *d, uint64_t address, uint64_t time_ns, struct jitdump_hit *out)
{
	const struct jitdump_load *best = NULL;
	size_t low = 0, high = d->load_count;

	while (low < high) { /* the first that begins behind the address */
		size_t middle = low + (high - low) / 2;

		if (d->loads[middle].start > address)
			high = middle;
		else
			low = middle + 1;
	}
	/* Functions may have lain over each other at different times: all that could reach so far. */
	for (size_t i = low; i-- > 0 && low - i <= BACK_MAX && address - d->loads[i].start < d->longest;) {
		const struct jitdump_load *load = &d->loads[i];
		bool is_there = address - load->start < d->codes[load->code].size;

		if (is_there && (time_ns == UINT64_MAX || !d->is_mono || load->time_ns <= time_ns) &&
		    (!best || load->time_ns > best->time_ns))
			best = load;
	}
	if (!best)
		return -ENOENT;
	fill(d, best, address, out);
	return 0;
}
