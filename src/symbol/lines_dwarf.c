/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over each compilation unit that holds an address, however many addresses it holds: functions and inlined
 * calls whose ranges cover one become nodes. When several cover an address, the one with the smallest range is the
 * innermost, the later one when they are equal, as binutils' addr2line decides (bfd/dwarf2.c,
 * lookup_address_in_function_info_table). Source: DWARF 5, sections 2.17, 3.3 and 6.2. */
#include "symbol/lines_dwarf.h"

#include <dwarf.h>

#include "base/array.h"
#include "base/clock.h"

#define UNITS_MAX ((size_t)1 << 20)
#define RANGES_MAX ((size_t)8 << 20)
#define NODES_MAX ((size_t)8 << 20)
#define NESTING_MAX 256
#define CHECK_EVERY 1024 /* entries between two looks at the clock */
#define NONE UINT32_MAX

struct range {
	uint64_t start, end;
	uint64_t reach; /* the highest end up to here, in the sorted array: where a search may stop */
	uint32_t unit;
};

struct node { /* a function or an inlined call */
	Dwarf_Die die;
	uint32_t caller; /* node, or NONE */
};

struct place {                  /* an address that is asked for */
	uint64_t address, size; /* of the smallest range so far */
	uint32_t unit, node;
	uint32_t index; /* in the request */
};

struct lines_dwarf {
	const struct libdw *dw;
	Elf *elf, *alt_elf;
	Dwarf *debug, *alt;
	Dwarf_Die *units;
	size_t unit_count, unit_cap;
	struct range *ranges;
	size_t range_count, range_cap;
	struct node *nodes;
	size_t node_count, node_cap;
	uint64_t deadline_ns;
	unsigned int steps;
	struct buf paths; /* of the answer being made */
};

static bool is_late(struct lines_dwarf *d)
{
	return ++d->steps % CHECK_EVERY == 0 && clock_monotonic_ns(&clock_system) > d->deadline_ns;
}

/* ---- which unit ---- */

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return (x->start > y->start) - (x->start < y->start);
	return (x->unit > y->unit) - (x->unit < y->unit);
}

static int add_unit(struct lines_dwarf *d, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	size_t before = d->range_count;
	int r;

	while ((at = d->dw->dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (is_late(d))
			return -ETIMEDOUT;
		if (start >= end)
			continue;
		r = array_grow(&d->ranges, &d->range_cap, d->range_count, RANGES_MAX);
		if (r < 0)
			return r;
		d->ranges[d->range_count++] =
			(struct range){ .start = start, .end = end, .unit = (uint32_t)d->unit_count };
	}
	if (d->range_count == before)
		return 0;
	r = array_grow(&d->units, &d->unit_cap, d->unit_count, UNITS_MAX);
	if (r < 0)
		return r;
	d->units[d->unit_count++] = *die;
	return 0;
}

static int add_units(struct lines_dwarf *d)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;
	uint64_t reach = 0;

	while (d->dw->dwarf_get_units(d->debug, unit, &unit, &version, &type, &die, NULL) == 0) {
		int r = is_late(d) ? -ETIMEDOUT : add_unit(d, &die);

		if (r < 0)
			return r;
	}
	if (d->range_count)
		qsort(d->ranges, d->range_count, sizeof(*d->ranges), by_start);
	for (size_t i = 0; i < d->range_count; i++)
		d->ranges[i].reach = reach = MAX(reach, d->ranges[i].end);
	return d->range_count ? 0 : -EBADMSG;
}

/* Units of linked-out code may claim low addresses that another owns: the smallest range is the one meant. */
static uint32_t unit_of(const struct lines_dwarf *d, uint64_t address)
{
	size_t low = 0, high = d->range_count;
	uint64_t smallest = UINT64_MAX;
	uint32_t unit = NONE;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- > 0 && d->ranges[i].reach > address;) {
		const struct range *range = &d->ranges[i];

		if (range->end > address && range->end - range->start < smallest) {
			smallest = range->end - range->start;
			unit = range->unit;
		}
	}
	return unit;
}

/* ---- which function ---- */

struct walk {
	struct lines_dwarf *d;
	struct place *places; /* of one unit, by address */
	size_t count;
	bool thorough; /* look into what cannot hold the addresses, too: functions nested in others lie elsewhere */
	Dwarf_Die dies[NESTING_MAX];
	uint32_t callers[NESTING_MAX]; /* node of the function around dies[i], or NONE */
};

static size_t first_place(const struct walk *w, uint64_t address)
{
	size_t low = 0, high = w->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->places[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_node(struct walk *w, Dwarf_Die *die, uint32_t caller, uint32_t *node)
{
	struct lines_dwarf *d = w->d;
	int r = array_grow(&d->nodes, &d->node_cap, d->node_count, NODES_MAX);

	if (r < 0)
		return r;
	d->nodes[d->node_count] = (struct node){ .die = *die, .caller = caller };
	*node = (uint32_t)d->node_count++;
	return 0;
}

/* Return: 0 and *node (NONE: it covers nothing that is asked for), or negative. */
static int match(struct walk *w, Dwarf_Die *die, uint32_t caller, uint32_t *node)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int r = 0;

	*node = NONE;
	if (w->thorough)
		r = add_node(w, die, caller, node);
	while (r == 0 && (at = w->d->dw->dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (is_late(w->d))
			return -ETIMEDOUT;
		for (size_t i = first_place(w, start); i < w->count && w->places[i].address < end && r == 0; i++) {
			struct place *p = &w->places[i];

			if (*node == NONE)
				r = add_node(w, die, caller, node);
			if (p->node != NONE && end - start > p->size)
				continue;
			p->size = end - start;
			p->node = *node;
		}
	}
	return r;
}

/* Return: 1 when what is inside may matter, 0 when not, or negative. */
static int enter(struct walk *w, size_t depth)
{
	Dwarf_Die *die = &w->dies[depth];
	uint32_t node;
	int r;

	switch (w->d->dw->dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		r = match(w, die, w->d->dw->dwarf_tag(die) == DW_TAG_subprogram ? NONE : w->callers[depth], &node);
		if (r < 0)
			return r;
		if (node == NONE)
			return 0;
		w->callers[depth + 1] = node;
		return 1;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		w->callers[depth + 1] = w->callers[depth];
		return 1;
	default:
		w->callers[depth + 1] = w->callers[depth];
		return w->thorough;
	}
}

/* The next entry that is no child of this one, on any level. Return: false behind the last. */
static bool leave(struct walk *w, size_t *depth)
{
	while (w->d->dw->dwarf_siblingof(&w->dies[*depth], &w->dies[*depth]) != 0) {
		if (*depth == 0)
			return false;
		--*depth;
	}
	return true;
}

static int walk_unit(struct walk *w, Dwarf_Die *unit)
{
	const struct libdw *dw = w->d->dw;
	size_t depth = 0;

	if (dw->dwarf_child(unit, &w->dies[0]) != 0)
		return 0;
	w->callers[0] = NONE;
	do {
		int inside;

		while ((inside = depth + 1 < NESTING_MAX ? enter(w, depth) : 0) > 0 &&
		       dw->dwarf_child(&w->dies[depth], &w->dies[depth + 1]) == 0)
			depth++;
		if (inside < 0 || is_late(w->d))
			return inside < 0 ? inside : -ETIMEDOUT;
	} while (leave(w, &depth));
	return 0;
}

static int find_functions(struct lines_dwarf *d, struct place *places, size_t count)
{
	scoped(freep) struct walk *w = malloc(sizeof(*w));
	bool missing = false;
	int r;

	if (!w)
		return -ENOMEM;
	w->d = d;
	w->places = places;
	w->count = count;
	w->thorough = false;
	r = walk_unit(w, &d->units[places[0].unit]);
	for (size_t i = 0; i < count; i++)
		missing |= places[i].node == NONE;
	if (r == 0 && missing) {
		w->thorough = true;
		r = walk_unit(w, &d->units[places[0].unit]);
	}
	return r;
}

/* ---- answers ---- */

/* An address that two units claim is looked up in one of them. Sorted by unit, the addresses of each are together. */
static int by_unit(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->unit != y->unit)
		return (x->unit > y->unit) - (x->unit < y->unit);
	return (x->address > y->address) - (x->address < y->address);
}

static int by_index(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static struct str text_of(const struct libdw *dw, Dwarf_Attribute *attribute, size_t max)
{
	const char *text = attribute ? dw->dwarf_formstring(attribute) : NULL;
	struct str out = str_of(text);

	return out.len > max ? STR("") : out;
}

/* The linkage name is what symbol tables have, in C too: pread64 (the header renames it to pread). */
static struct str function_of(const struct libdw *dw, Dwarf_Die *die)
{
	static const unsigned int kinds[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		Dwarf_Attribute attribute;
		struct str name = text_of(dw, dw->dwarf_attr_integrate(die, kinds[i], &attribute), LINES_FUNCTION_MAX);

		if (name.len)
			return name;
	}
	return STR("");
}

/* libdw leaves paths of relative directories relative to where the compiler ran. The text is kept in d->paths, whose
 * room is reserved: nothing moves. */
static struct str path_of(struct lines_dwarf *d, Dwarf_Die *unit, const char *path)
{
	struct str given = str_of(path), folder;
	Dwarf_Attribute attribute;
	size_t start = d->paths.len;

	if (!given.len || given.ptr[0] == '/' || given.len > LINES_FILE_MAX)
		return given.len > LINES_FILE_MAX ? STR("") : given;
	folder = text_of(d->dw, d->dw->dwarf_attr(unit, DW_AT_comp_dir, &attribute), LINES_FILE_MAX);
	if (!folder.len || folder.len + 1 + given.len > LINES_FILE_MAX)
		return given;
	buf_adds(&d->paths, folder);
	buf_addc(&d->paths, '/');
	buf_adds(&d->paths, given);
	return d->paths.error ? given : str_n(d->paths.ptr + start, d->paths.len - start);
}

static uint64_t number_of(const struct libdw *dw, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dw->dwarf_attr(die, name, &attribute) || dw->dwarf_formudata(&attribute, &value) != 0)
		return 0;
	return value;
}

static void find_line(struct lines_dwarf *d, Dwarf_Die *unit, uint64_t address, struct lines_wire_frame *out)
{
	Dwarf_Line *line = d->dw->dwarf_getsrc_die(unit, address);
	int number = 0;

	if (!line)
		return;
	out->file = path_of(d, unit, d->dw->dwarf_linesrc(line, NULL, NULL));
	if (d->dw->dwarf_lineno(line, &number) == 0 && number > 0)
		out->line = (uint32_t)number;
}

/* Where the inlined call of @die stands in its caller. */
static void find_call(struct lines_dwarf *d, Dwarf_Die *unit, Dwarf_Die *die, struct lines_wire_frame *out)
{
	uint64_t line = number_of(d->dw, die, DW_AT_call_line), file = number_of(d->dw, die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	out->line = line <= UINT32_MAX ? (uint32_t)line : 0;
	if (d->dw->dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
		out->file = path_of(d, unit, d->dw->dwarf_filesrc(files, (size_t)file, NULL, NULL));
}

static void answer_place(struct lines_dwarf *d, const struct place *p, struct lines_answer *out)
{
	struct lines_wire_frame where = { 0 };
	Dwarf_Die *unit;

	out->depth = 0;
	d->paths.len = 0;
	if (p->unit == NONE)
		return;
	unit = &d->units[p->unit];
	find_line(d, unit, p->address, &where);
	for (uint32_t at = p->node; at != NONE; at = d->nodes[at].caller) {
		struct lines_wire_frame *f = &out->frames[out->depth];

		*f = where;
		f->function = function_of(d->dw, &d->nodes[at].die);
		where = (struct lines_wire_frame){ 0 };
		if (d->nodes[at].caller != NONE)
			find_call(d, unit, &d->nodes[at].die, &where);
		/* At the limit the last place is for the real function. */
		if (out->depth + 1 < LINES_DEPTH_MAX || d->nodes[at].caller == NONE)
			out->depth++;
	}
	if (p->node == NONE && where.file.len) /* assembly */
		out->frames[out->depth++] = where;
}

static int look_up(struct lines_dwarf *d, struct place *places, size_t count)
{
	qsort(places, count, sizeof(*places), by_unit);
	for (size_t i = 0, next; i < count; i = next) {
		int r;

		for (next = i; next < count && places[next].unit == places[i].unit; next++)
			;
		if (places[i].unit == NONE)
			continue;
		r = find_functions(d, places + i, next - i);
		if (r < 0)
			return r;
	}
	qsort(places, count, sizeof(*places), by_index);
	return 0;
}

int lines_dwarf_find(struct lines_dwarf *d, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
		     lines_visit_fn *visit, void *ctx)
{
	scoped(freep) struct place *places = calloc(count, sizeof(*places));
	scoped(freep) struct lines_answer *answer = malloc(sizeof(*answer));
	int r;

	if (!places || !answer || !buf_reserve(&d->paths, (LINES_DEPTH_MAX + 1) * LINES_FILE_MAX))
		return -ENOMEM;
	d->deadline_ns = deadline_ns;
	d->node_count = 0;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){
			.address = addresses[i], .unit = unit_of(d, addresses[i]), .node = NONE, .index = (uint32_t)i
		};
	r = look_up(d, places, count);
	for (size_t i = 0; i < count && r == 0; i++) {
		answer_place(d, &places[i], answer);
		r = is_late(d) ? -ETIMEDOUT : visit(ctx, answer);
	}
	return r;
}

void lines_dwarf_close(struct lines_dwarf *d)
{
	if (!d)
		return;
	if (d->debug)
		d->dw->dwarf_end(d->debug);
	if (d->alt)
		d->dw->dwarf_end(d->alt);
	if (d->elf)
		d->dw->elf_end(d->elf);
	if (d->alt_elf)
		d->dw->elf_end(d->alt_elf);
	free(d->units);
	free(d->ranges);
	free(d->nodes);
	buf_release(&d->paths);
	free(d);
}

static void closep_dwarf(struct lines_dwarf **d)
{
	lines_dwarf_close(*d);
}

/* Without its shared part a file still has lines, and some of the names. */
static void set_alt(struct lines_dwarf *d, int alt_fd)
{
	if (alt_fd >= 0)
		d->alt_elf = d->dw->elf_begin(alt_fd, ELF_C_READ_MMAP, NULL);
	if (d->alt_elf)
		d->alt = d->dw->dwarf_begin_elf(d->alt_elf, DWARF_C_READ, NULL);
	if (d->alt)
		d->dw->dwarf_setalt(d->debug, d->alt);
}

int lines_dwarf_open(const struct libdw *dw, int fd, int alt_fd, uint64_t deadline_ns, struct lines_dwarf **out)
{
	scoped(closep_dwarf) struct lines_dwarf *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->dw = dw;
	d->deadline_ns = deadline_ns;
	d->paths = (struct buf)BUF_INIT((LINES_DEPTH_MAX + 2) * LINES_FILE_MAX);
	d->elf = dw->elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (d->elf)
		d->debug = dw->dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	if (!d->debug)
		return -EBADMSG;
	set_alt(d, alt_fd);
	r = add_units(d);
	if (r < 0)
		return r;
	*out = d;
	d = NULL;
	return 0;
}
