/* SPDX-License-Identifier: Apache-2.0 */
#include "object/elf_symbols.h"

#include <elf.h>

#include "base/array.h"
#include "base/cur.h"
#include "object/elf_symbols_int.h"

#define WINDOW_SIZE KIB(48) /* a multiple of both entry sizes */
#define NAMES_WINDOW 4096
#define ALIASES_MAX 64        /* names compared at one address */
#define COMPARISONS_MAX 65536 /* names compared in one file */
#define CODE_SECTIONS_MAX 32  /* programs have 4 or 5 */
#define NESTING_MAX 16        /* symbols looked back over for one that reaches further */

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
	*t = (struct elf_symbols){ 0 };
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

static bool is_function(const struct elf *elf, const struct elf_sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->info), binding = ELF64_ST_BIND(s->info);

	if (s->section == SHN_UNDEF || s->section == SHN_ABS || s->section == SHN_COMMON || !s->name ||
	    s->name > ELF_SYMBOL_NAME_MASK)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	if (type != STT_NOTYPE || binding == STB_LOCAL || !elf_is_code(elf, s->section))
		return false;
	/* etext and its like stand behind the last byte. */
	return s->address - elf->sections[s->section].address < elf->sections[s->section].size;
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
		if (is_function(elf, &s))
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

static void measure(struct chooser *c, uint32_t name, size_t *underscores, size_t *length)
{
	struct reader_window *w = &c->names[name & ELF_SYMBOL_DYNAMIC ? ELF_STRINGS_DYNAMIC : ELF_STRINGS_STATIC];
	uint64_t at = name & ELF_SYMBOL_NAME_MASK, left = at < w->in.size ? w->in.size - at : 0;
	size_t size = (size_t)MIN(left, (uint64_t)w->cap / 2); /* no window: 0 */
	const char *text = size ? (const char *)reader_window_get(w, at, size) : NULL;

	*underscores = *length = 0;
	if (!text)
		return;
	*length = strnlen(text, size);
	while (*underscores < *length && text[*underscores] == '_')
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

static void fill_sizes(struct elf_symbols *t, const struct elf *elf)
{
	struct code_sections code;

	find_code_sections(elf, &code);
	for (size_t i = 0; i < t->count; i++) {
		struct elf_symbol *s = &t->items[i];
		uint64_t address = t->base + s->start, until;

		s->size &= ELF_SYMBOL_SIZE_MASK;
		if (s->size)
			continue;
		until = section_end(&code, address);
		if (i + 1 < t->count)
			until = MIN(until, t->base + t->items[i + 1].start);
		if (until > address)
			s->size = (uint32_t)MIN(until - address, (uint64_t)ELF_SYMBOL_SIZE_MASK);
	}
}

void elf_symbols_finish(struct elf_symbols *t, const struct elf *elf, const struct reader strings[ELF_STRINGS_COUNT])
{
	scoped(chooser_release) struct chooser chooser = { 0 };
	struct elf_symbol *fitted;

	sort(t->items, t->count);
	for (size_t i = 0; i < ELF_STRINGS_COUNT; i++)
		ignore(strings[i].size && /* without memory for a window the first of equal aliases stays */
		       reader_window_init(&chooser.names[i], &strings[i], NAMES_WINDOW) < 0);
	t->count = drop_aliases(t->items, t->count, &chooser);
	fill_sizes(t, elf);
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
