/* SPDX-License-Identifier: Apache-2.0 */
#include "object/elf_symbols.h"

#include <elf.h>

#include "base/array.h"
#include "base/cur.h"
#include "object/elf_fde.h"
#include "object/elf_symbols_int.h"

#define WINDOW_SIZE KIB(48) /* a multiple of both entry sizes */
#define NAMES_WINDOW 4096
#define ALIASES_MAX 64        /* names compared at one address */
#define COMPARISONS_MAX 65536 /* names compared in one file */
#define CODE_SECTIONS_MAX 32  /* programs have 4 or 5 */
#define NESTING_MAX 16        /* symbols looked back over for one that reaches further */
#define LABELS_MAX 65536      /* labels of one file whose names are read; a library has a few hundred */

/* Ranks of aliases: the higher wins. */
#define RANK_SIZED 8u
#define RANK_STRONG 4u
#define RANK_GLOBAL 2u
#define RANK_TYPED 1u

void elf_symbols_init(struct elf_symbols *t, uint64_t base)
{
	*t = (struct elf_symbols){ .base = base };
}

void elf_symbols_release(struct elf_symbols *t)
{
	free(t->items);
	free(t->starts);
	*t = (struct elf_symbols){ 0 };
}

int elf_symbols_use_fdes(struct elf_symbols *t, const struct elf *elf)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct elf_fdes fdes;
	int r = 0;

	t->entry = elf->entry;
	if (t->starts || elf_fdes_open(elf, &fdes) < 0 || !fdes.count)
		return 0;
	t->starts = malloc(fdes.count * sizeof(*t->starts));
	r = t->starts ? reader_window_init(&w, &fdes.table, WINDOW_SIZE) : -ENOMEM;
	for (t->start_count = 0; r == 0 && t->start_count < fdes.count; t->start_count++) {
		const uint8_t *bytes = reader_window_get(&w, t->start_count * ELF_FDES_ENTRY, ELF_FDES_ENTRY);
		uint64_t start;

		if (!bytes)
			break;
		start = elf_fdes_start(&fdes, bytes) - t->base;
		t->starts[t->start_count] = (uint32_t)MIN(start, (uint64_t)UINT32_MAX);
	}
	return r;
}

/* How many of the starts lie at or below @at, which counts from the base. */
static size_t starts_until(const struct elf_symbols *t, uint64_t at)
{
	size_t low = 0, high = t->start_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->starts[middle] <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool starts_code(const struct elf_symbols *t, uint64_t address)
{
	uint64_t at = address - t->base;
	size_t count = starts_until(t, at);

	return (count && t->starts[count - 1] == at) || (t->entry && address == t->entry);
}

int elf_symbols_put(struct elf_symbols *t, uint64_t address, uint64_t size, uint32_t rank, uint32_t name)
{
	int r;

	if (address < t->base || address - t->base > UINT32_MAX)
		return 0;
	r = array_grow(&t->items, &t->cap, t->count, ELF_SYMBOLS_MAX);
	if (r < 0)
		return r;
	t->items[t->count++] = (struct elf_symbol){
		.start = (uint32_t)(address - t->base),
		.size = (uint32_t)MIN(size, (uint64_t)ELF_SYMBOL_SIZE_MASK) | rank << ELF_SYMBOL_RANK_SHIFT,
		.name = name,
	};
	return 0;
}

static bool is_function(const struct elf_symbols *t, const struct elf *elf, const struct elf_sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->info), binding = ELF64_ST_BIND(s->info);

	if (s->section == SHN_UNDEF || s->section == SHN_ABS || s->section == SHN_COMMON || !s->name ||
	    s->name > ELF_SYMBOL_NAME_MASK)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	if (type != STT_NOTYPE || !elf_is_code(elf, s->section))
		return false;
	/* etext and its like stand behind the last byte. */
	if (s->address - elf->sections[s->section].address >= elf->sections[s->section].size)
		return false;
	/* Inside of functions, local labels are targets of jumps, and $x and $d tell code from data. */
	return binding != STB_LOCAL || starts_code(t, s->address);
}

struct elf_sym elf_sym_parse(const uint8_t *bytes, bool is_64)
{
	struct cur c = cur_of(bytes, is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
	struct elf_sym s = { .name = cur_le32(&c) };

	if (!is_64) {
		s.address = cur_le32(&c);
		s.size = cur_le32(&c);
	}
	s.info = cur_u8(&c);
	cur_u8(&c); /* visibility */
	s.section = cur_le16(&c);
	if (is_64) {
		s.address = cur_le64(&c);
		s.size = cur_le64(&c);
	}
	return s;
}

static uint32_t rank_of(const struct elf_sym *s)
{
	unsigned int binding = ELF64_ST_BIND(s->info);

	return (s->size ? RANK_SIZED : 0) | (binding != STB_WEAK ? RANK_STRONG : 0) |
	       (binding != STB_LOCAL ? RANK_GLOBAL : 0) | (ELF64_ST_TYPE(s->info) != STT_NOTYPE ? RANK_TYPED : 0);
}

int elf_symbols_add(struct elf_symbols *t, const struct elf *elf, uint32_t type)
{
	const struct elf_section *section = elf_section_of_type(elf, type);
	size_t entry = elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in;
	int r;

	if (!section)
		return -ENOENT;
	if (section->entry_size != entry)
		return -EBADMSG;
	in = elf_section_reader(elf, section);
	if (in.size / entry > ELF_ENTRIES_MAX)
		return -E2BIG;
	r = reader_window_init(&w, &in, WINDOW_SIZE);
	for (uint64_t at = entry; r == 0 && at + entry <= in.size; at += entry) { /* the first one is empty */
		const uint8_t *bytes = reader_window_get(&w, at, entry);
		struct elf_sym s;

		if (!bytes)
			return w.error;
		s = elf_sym_parse(bytes, elf->is_64);
		if (is_function(t, elf, &s))
			r = elf_symbols_put(t, s.address, s.size, rank_of(&s),
					    s.name | (type == SHT_DYNSYM ? ELF_SYMBOL_DYNAMIC : 0));
	}
	return r;
}

int elf_symbols_strings(const struct elf *elf, uint32_t type, struct reader *out)
{
	const struct elf_section *section = elf_section_of_type(elf, type);

	if (!section || section->link >= elf->section_count || elf->sections[section->link].type != SHT_STRTAB)
		return -ENOENT;
	*out = elf_section_reader(elf, &elf->sections[section->link]);
	return 0;
}

/* Shell sort with the gaps of M. Ciura (2001), continued by 2.25: in place, no recursion, and close to quick sort at
 * these sizes. */
static void sort(struct elf_symbol *items, size_t count)
{
	size_t gaps[32] = { 1, 4, 10, 23, 57, 132, 301, 701, 1750 };
	size_t used = 9;

	while (used < ARRAY_SIZE(gaps) && gaps[used - 1] < count) {
		gaps[used] = gaps[used - 1] * 9 / 4;
		used++;
	}
	while (used--) {
		size_t gap = gaps[used];

		for (size_t i = gap; i < count; i++) {
			struct elf_symbol item = items[i];
			size_t at = i;

			for (; at >= gap && items[at - gap].start > item.start; at -= gap)
				items[at] = items[at - gap];
			items[at] = item;
		}
	}
}

struct chooser { /* between aliases of one address */
	struct reader_window names[ELF_STRINGS_COUNT];
	size_t comparisons, aliases;
};

static void chooser_release(struct chooser *c)
{
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++)
		reader_window_release(&c->names[i]);
}

/* The beginning of a name, valid until the next call; empty: it cannot be read. */
static struct str begin_of(struct chooser *c, uint32_t name)
{
	struct reader_window *w = &c->names[name & ELF_SYMBOL_DYNAMIC ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC];
	uint64_t at = name & ELF_SYMBOL_NAME_MASK, left = at < w->in.size ? w->in.size - at : 0;
	size_t size = (size_t)MIN(left, (uint64_t)w->cap / 2); /* no window: 0 */
	const char *text = size ? (const char *)reader_window_get(w, at, size) : NULL;

	return (struct str){ .ptr = text, .len = text ? strnlen(text, size) : 0 };
}

static void measure(struct chooser *c, uint32_t name, size_t *underscores, size_t *length)
{
	struct str text = begin_of(c, name);

	*underscores = 0;
	*length = text.len;
	while (*underscores < *length && text.ptr[*underscores] == '_')
		(*underscores)++;
}

static bool is_better(struct chooser *c, const struct elf_symbol *a, const struct elf_symbol *b)
{
	uint32_t rank_a = a->size >> ELF_SYMBOL_RANK_SHIFT, rank_b = b->size >> ELF_SYMBOL_RANK_SHIFT;
	size_t under_a, under_b, length_a, length_b;

	if (rank_a != rank_b)
		return rank_a > rank_b;
	if (c->aliases >= ALIASES_MAX || c->comparisons >= COMPARISONS_MAX)
		return false;
	c->comparisons++;
	c->aliases++;
	measure(c, a->name, &under_a, &length_a);
	measure(c, b->name, &under_b, &length_b);
	return under_a != under_b ? under_a < under_b : length_a > length_b;
}

/* An assembler's name for a place: no type and no size. A PLT entry has a size. */
static bool is_label(const struct elf_symbol *s)
{
	return !(s->size & ELF_SYMBOL_SIZE_MASK) && !(s->size >> ELF_SYMBOL_RANK_SHIFT & RANK_TYPED);
}

/* Names that say where something ends or what the assembler put there: never that of a function. */
static bool is_place_name(struct str name)
{
	static const struct str places[] = {
		STR("end"),      STR("etext"),         STR("_etext"),       STR("__etext"),
		STR("_edata"),   STR("__bss_start"),   STR("_stext"),       STR("__executable_start"),
		STR("_DYNAMIC"), STR("runtime.etext"), STR("runtime.text"), STR("_GLOBAL_OFFSET_TABLE_")
	};

	if (!name.len || name.ptr[0] == '.' || name.ptr[0] == '$' || str_ends(name, STR("_end")) ||
	    str_starts(name, STR("__start_")) || str_starts(name, STR("__stop_")))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (str_eq(name, places[i]))
			return true;
	return false;
}

/* Labels inside of a symbol with a size, and those with names of places, lose name and rank. They stay until sizes are
 * known: the label before them ends there. @strings: where there are none, as in images of the kernel, nobody reads
 * names. */
static void judge_labels(struct elf_symbols *t, struct chooser *c, const struct reader strings[ELF_STRINGS_COUNT])
{
	uint64_t covered = 0;
	size_t names = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct elf_symbol *s = &t->items[i];
		bool has_names = strings[s->name & ELF_SYMBOL_DYNAMIC ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC].size;

		if (!is_label(s)) {
			covered = MAX(covered, (uint64_t)s->start + (s->size & ELF_SYMBOL_SIZE_MASK));
			continue;
		}
		if (s->start < covered || (has_names && (names++ >= LABELS_MAX || is_place_name(begin_of(c, s->name)))))
			s->size = s->name = 0;
	}
}

static size_t drop_aliases(struct elf_symbol *items, size_t count, struct chooser *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!kept || items[kept - 1].start != items[i].start) {
			items[kept++] = items[i];
			c->aliases = 0;
		} else if (is_better(c, &items[i], &items[kept - 1])) {
			items[kept - 1] = items[i];
		}
	}
	return kept;
}

struct code_sections { /* where they end, so that the last symbol of one does not swallow what follows */
	struct {
		uint64_t start, end;
	} items[CODE_SECTIONS_MAX];
	size_t count;
};

static void find_code_sections(const struct elf *elf, struct code_sections *out)
{
	out->count = 0;
	for (size_t i = 0; i < elf->section_count && out->count < CODE_SECTIONS_MAX; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (!elf_is_code(elf, i) || s->size > UINT64_MAX - s->address)
			continue;
		out->items[out->count].start = s->address;
		out->items[out->count++].end = s->address + s->size;
	}
}

static uint64_t section_end(const struct code_sections *code, uint64_t address)
{
	for (size_t i = 0; i < code->count; i++)
		if (address >= code->items[i].start && address < code->items[i].end)
			return code->items[i].end;
	return address;
}

/* Where the unwind entry that a label at @address begins or stands before ends. */
static uint64_t entry_end(const struct elf_symbols *t, const struct elf *elf, const struct elf_fdes *fdes,
			  uint64_t address)
{
	uint64_t at = address - t->base, until = UINT64_MAX;
	size_t next = starts_until(t, at);
	struct elf_fde fde;

	if (next < t->start_count)
		until = t->base + t->starts[next];
	/* Behind the end of the entry is other code: of a label in a gap that is all that is known. */
	if (next && elf_fde_at(elf, fdes, (uint32_t)next - 1, &fde) == 0 && address - fde.start < fde.size)
		until = MIN(until, fde.start + fde.size);
	return until;
}

static void fill_sizes(struct elf_symbols *t, const struct elf *elf)
{
	struct code_sections code;
	struct elf_fdes fdes;
	bool has_fdes = t->start_count && elf_fdes_open(elf, &fdes) == 0;

	find_code_sections(elf, &code);
	for (size_t i = 0; i < t->count; i++) {
		struct elf_symbol *s = &t->items[i];
		uint64_t address = t->base + s->start, until;
		bool is_bounded = has_fdes && s->name && is_label(s);

		s->size &= ELF_SYMBOL_SIZE_MASK;
		if (s->size)
			continue;
		until = section_end(&code, address);
		if (is_bounded)
			until = MIN(until, entry_end(t, elf, &fdes, address));
		if (i + 1 < t->count)
			until = MIN(until, t->base + t->items[i + 1].start);
		if (until > address)
			s->size = (uint32_t)MIN(until - address, (uint64_t)ELF_SYMBOL_SIZE_MASK);
	}
}

static size_t drop_nameless(struct elf_symbol *items, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (items[i].name)
			items[kept++] = items[i];
	return kept;
}

void elf_symbols_finish(struct elf_symbols *t, const struct elf *elf, const struct reader strings[ELF_STRINGS_COUNT])
{
	scoped(chooser_release) struct chooser chooser = { 0 };
	struct elf_symbol *fitted;

	sort(t->items, t->count);
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++)
		ignore(strings[i].size && /* without memory for a window the first of equal aliases stays */
		       reader_window_init(&chooser.names[i], &strings[i], NAMES_WINDOW) < 0);
	judge_labels(t, &chooser, strings);
	t->count = drop_aliases(t->items, t->count, &chooser);
	fill_sizes(t, elf);
	t->count = drop_nameless(t->items, t->count);
	free(t->starts); /* of use while the table is made */
	t->starts = NULL;
	t->start_count = 0;
	fitted = t->count ? realloc(t->items, t->count * sizeof(*t->items)) : NULL;
	if (fitted) {
		t->items = fitted;
		t->cap = t->count;
	}
}

int elf_symbols_find(const struct elf_symbols *t, uint64_t address, struct elf_symbol_hit *out)
{
	size_t low = 0, high = t->count; /* items before low start at or below it, those from high on above */
	uint64_t at = address - t->base;

	if (address < t->base)
		return -ENOENT;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->items[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 0 && low - i < NESTING_MAX; i--) {
		const struct elf_symbol *s = &t->items[i - 1];

		if (at - s->start >= s->size)
			continue;
		*out = (struct elf_symbol_hit){
			.start = t->base + s->start,
			.size = s->size,
			.name = s->name & ELF_SYMBOL_NAME_MASK,
			.strings = (uint8_t)(s->name & ELF_SYMBOL_DYNAMIC ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC),
			.is_plt = (s->name & ELF_SYMBOL_PLT) != 0,
		};
		return 0;
	}
	return -ENOENT;
}
