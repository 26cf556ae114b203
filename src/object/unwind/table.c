/* SPDX-License-Identifier: Apache-2.0 */
/* Several sources can speak of the same code. They are laid one over the other: what an earlier one covers is not
 * asked of a later one. Within a source the function that begins first wins, of two that begin together the one the
 * section has first. */
#include "object/unwind/table.h"

#include <elf.h>

#include "base/array.h"
#include "base/cur.h"
#include "object/unpack.h"
#include "object/unwind/bare.h"
#include "object/unwind/cfi.h"
#include "object/unwind/code.h"
#include "object/unwind/crt.h"
#include "object/unwind/go.h"
#include "object/unwind/greenlet.h"
#include "object/unwind/layout.h"
#include "object/unwind/roots.h"
#include "object/unwind/vdso.h"

#define PADDING_MAX 15 /* bytes between functions that hold no code of their own */
#define PIECES_MAX (2 * CFI_FDES_MAX)
#define UNPACKED_MAX MIB(64) /* of a compressed section */
#define BARE_MIN 48          /* smaller gaps hold nothing that is recognised by its bytes */
#define BARE_EDGE 64         /* code in a gap is recognised by what stands around it, too */
#define CRT_MIN 23           /* bytes of _init; _fini is shorter, at the end of a segment */
#define SMALL_GAPS_MAX 4096  /* of one file looked at for these two */
#define SIGRETURN_SIZE 32    /* bytes of a signal trampoline looked at */
#define LOOKS_MAX 65536      /* at the code of signal trampolines and roots; a library has a handful of them */

struct piece {               /* file offsets */
	uint64_t start, end; /* what it has rows for */
	uint64_t origin;     /* what rows[].at counts from */
	uint32_t first, count;
	bool is_signal;
};

struct pieces {
	struct piece *items;
	size_t count, cap;
};

struct builder {
	const struct elf *elf;
	struct cfi cfi;
	struct pieces all;                 /* sorted, without overlap */
	const struct elf_segment *segment; /* the one found last */
	bool has_go;
	uint32_t looks, small_gaps;
};

static void pieces_release(struct pieces *p)
{
	free(p->items);
	*p = (struct pieces){ 0 };
}

static void builder_release(struct builder *b)
{
	cfi_release(&b->cfi);
	pieces_release(&b->all);
}

static int put_piece(struct pieces *to, struct piece piece)
{
	int r;

	if (piece.start >= piece.end)
		return 0;
	r = array_grow(&to->items, &to->cap, to->count, PIECES_MAX);
	if (r == 0)
		to->items[to->count++] = piece;
	return r;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first); /* rows are in the order of the section */
}

/* Sorts and cuts the overlaps. */
static void settle(struct pieces *p)
{
	uint64_t end = 0;
	size_t kept = 0;
	bool is_sorted = true;

	for (size_t i = 1; i < p->count && is_sorted; i++)
		is_sorted = p->items[i - 1].start <= p->items[i].start;
	if (!is_sorted)
		qsort(p->items, p->count, sizeof(*p->items), compare_pieces);
	for (size_t i = 0; i < p->count; i++) {
		struct piece piece = p->items[i];

		/* The byte before a signal trampoline is the last one of the function before it: of no use there. */
		if (piece.is_signal && kept && end == piece.start + 1 && p->items[kept - 1].start < piece.start)
			p->items[kept - 1].end = --end;
		piece.start = MAX(piece.start, end);
		if (piece.start >= piece.end)
			continue;
		end = piece.end;
		p->items[kept++] = piece;
	}
	p->count = kept;
}

/* @more, settled, is added where @have has nothing. */
static int lay_under(struct pieces *have, struct pieces *more)
{
	scoped(pieces_release) struct pieces out = { 0 };
	size_t i = 0;
	int r = 0;

	if (!have->count) { /* nearly always: no second copy of millions */
		pieces_release(have);
		*have = *more;
		*more = (struct pieces){ 0 }; /* moved out */
		return 0;
	}
	for (size_t k = 0; r == 0 && k < more->count; k++) {
		struct piece piece = more->items[k];

		while (r == 0 && i < have->count && have->items[i].start < piece.end) {
			struct piece before = piece;

			before.end = MIN(before.end, have->items[i].start);
			r = put_piece(&out, before);
			piece.start = MAX(piece.start, have->items[i].end);
			if (have->items[i].end > piece.end) /* the next one may begin below it, too */
				break;
			if (r == 0)
				r = put_piece(&out, have->items[i++]);
		}
		if (r == 0)
			r = put_piece(&out, piece);
	}
	for (; r == 0 && i < have->count; i++)
		r = put_piece(&out, have->items[i]);
	if (r < 0)
		return r;
	pieces_release(have);
	*have = out;
	out = (struct pieces){ 0 }; /* moved out */
	return 0;
}

static bool is_code_segment(const struct elf_segment *s)
{
	return s->type == PT_LOAD && s->flags & PF_X && s->file_size;
}

/* The bytes of a segment that the file really has. */
static uint64_t segment_end(const struct elf *elf, const struct elf_segment *s)
{
	return s->offset >= elf->in.size ? s->offset : s->offset + MIN(s->file_size, elf->in.size - s->offset);
}

static const struct elf_segment *find_segment(struct builder *b, uint64_t address)
{
	const struct elf_segment *s = b->segment;

	if (s && address - s->address < s->file_size)
		return s;
	for (size_t i = 0; i < b->elf->segment_count; i++) {
		s = &b->elf->segments[i];
		if (is_code_segment(s) && address - s->address < s->file_size) {
			b->segment = s;
			return s;
		}
	}
	return NULL;
}

static int read_code(const struct elf *elf, uint64_t offset, uint8_t *dst, size_t size)
{
	memset(dst, 0, size);
	if (offset >= elf->in.size)
		return 0;
	return reader_read(&elf->in, dst, (size_t)MIN((uint64_t)size, elf->in.size - offset), offset);
}

/* The rows of the call of rt_sigreturn begin one byte before it: that is where the return address of a handler is
 * looked up. glibc and the kernel say so themselves. */
static int mark_signal(struct builder *b, const struct elf_segment *segment, struct piece *piece)
{
	uint8_t code[SIGRETURN_SIZE];
	ptrdiff_t at;
	int r = 0;

	if (b->looks++ >= LOOKS_MAX)
		return 0;
	r = read_code(b->elf, piece->start, code, sizeof(code));
	if (r < 0)
		return r;
	at = code_find_sigreturn(b->elf->machine, code, sizeof(code));
	if (at < 0 || piece->start + (uint64_t)at >= piece->end)
		return 0; /* something else that looks like a signal frame to debuggers: its rules are used like all
			     others */
	if (at == 0 && piece->start > segment->offset) /* before it there may be no page for a row */
		piece->start = --piece->origin;
	b->cfi.rows[piece->first].row = (struct abi_row){ .cfa = ABI_CFA_SIGNAL };
	piece->count = 1;
	piece->is_signal = true;
	return 0;
}

/* The spans from @first_span on become pieces in the order of the file, under those that are there. */
static int add_spans(struct builder *b, size_t first_span)
{
	scoped(pieces_release) struct pieces more = { 0 };
	int r = 0;

	for (size_t i = first_span; r == 0 && i < b->cfi.span_count; i++) {
		const struct cfi_span *span = &b->cfi.spans[i];
		const struct elf_segment *s = find_segment(b, span->start);
		struct piece piece = { .first = span->first, .count = span->count };

		if (!s) /* of a function that the linker dropped, or of code that is not in this file */
			continue;
		piece.start = piece.origin = s->offset + (span->start - s->address);
		piece.end = MIN(segment_end(b->elf, s), piece.start + span->size);
		if (piece.start >= piece.end)
			continue;
		if (span->is_signal)
			r = mark_signal(b, s, &piece);
		if (r == 0)
			r = put_piece(&more, piece);
	}
	if (r < 0)
		return r;
	free(b->cfi.spans); /* the pieces say it all; a crafted file has 128 MiB of them */
	b->cfi.spans = NULL;
	b->cfi.span_count = b->cfi.span_cap = 0;
	settle(&more);
	return lay_under(&b->all, &more);
}

static int add_section(struct builder *b, const struct cfi_section *section)
{
	size_t first_span = b->cfi.span_count;
	int r;

	if (section->in.size > UNWIND_SECTION_MAX)
		return -E2BIG;
	r = cfi_read(section, &b->cfi);
	return r < 0 ? r : add_spans(b, first_span);
}

/* From @address to the end of the segment that holds it. */
static int find_bytes(const struct elf *elf, uint64_t address, struct reader *out)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || address - s->address >= s->file_size)
			continue;
		*out = reader_slice(&elf->in, s->offset, s->file_size);
		*out = reader_slice(out, address - s->address, s->file_size);
		return 0;
	}
	return -EBADMSG;
}

/* Layout of .eh_frame_hdr: u8 version, u8 encoding of the pointer, of the count, of the table; pointer to .eh_frame
 * (LSB core 5.0, section 10.6.2). Linkers write it as 32 bits relative to where it stands. */
static int find_eh_frame(const struct elf *elf, struct cfi_section *out)
{
	const uint8_t pcrel_sdata4 = 0x1b;
	const struct elf_segment *s = NULL;
	uint8_t bytes[8];
	struct cur c = cur_of(bytes, sizeof(bytes));

	for (size_t i = 0; i < elf->segment_count && !s; i++)
		if (elf->segments[i].type == PT_GNU_EH_FRAME)
			s = &elf->segments[i];
	if (!s)
		return -ENOENT;
	if (reader_read(&elf->in, bytes, sizeof(bytes), s->offset) < 0)
		return -EBADMSG;
	if (cur_u8(&c) != 1 || cur_u8(&c) != pcrel_sdata4)
		return -ENOTSUP;
	cur_le16(&c);
	out->address = s->address + 4 + (uint64_t)(int64_t)(int32_t)cur_le32(&c);
	out->has_end = true;
	return find_bytes(elf, out->address, &out->in);
}

static int add_eh_frame(struct builder *b)
{
	struct cfi_section section = { .machine = b->elf->machine, .is_eh = true };
	const struct elf_section *s = elf_section_find(b->elf, STR(".eh_frame"));
	int r = 0;

	if (s) {
		section.in = elf_section_reader(b->elf, s);
		section.address = s->address;
		if (s->type != SHT_NOBITS && section.in.size < s->size && s->size > UNWIND_SECTION_MAX)
			return -E2BIG;
	} else if (!b->elf->section_count) {
		r = find_eh_frame(b->elf, &section);
	}
	return r < 0 ? (r == -ENOENT ? 0 : r) : add_section(b, &section);
}

static int add_debug_frame(struct builder *b, const struct elf *elf)
{
	scoped(buf_release) struct buf unpacked = BUF_INIT(UNPACKED_MAX);
	struct cfi_section section = { .machine = b->elf->machine };
	const struct elf_section *s = elf_section_find(elf, STR(".debug_frame"));
	int r;

	if (!s)
		return 0;
	section.in = elf_section_reader(elf, s);
	section.address = s->address;
	if (s->flags & SHF_COMPRESSED) {
		r = unpack_section(elf, s, &unpacked);
		if (r < 0)
			return r;
		section.in = reader_of(unpacked.ptr, unpacked.len);
	}
	return add_section(b, &section);
}

/* The return address lies below the stack pointer. Code that has left its caller behind for good is a root; of anything
 * else that has such a rule nothing can be said. */
static int judge_popped(struct builder *b, uint64_t from, uint64_t to, struct abi_row *row)
{
	uint8_t code[CODE_BEFORE + 128 + CODE_AFTER];
	int r;

	*row = (struct abi_row){ .cfa = ABI_CFA_UNSUPPORTED };
	if (from < CODE_BEFORE || b->looks++ >= LOOKS_MAX)
		return 0;
	r = read_code(b->elf, from - CODE_BEFORE, code, sizeof(code));
	for (size_t i = 0; r == 0 && i < 128 && from + i <= to; i++)
		if (code_is_clone_child(b->elf->machine, code + CODE_BEFORE + i))
			row->cfa = ABI_CFA_STOP;
	return r;
}

/* The row in force @at bytes behind the start. By halves: one function can be cut into a million pieces by others that
 * lie in it. */
static uint32_t row_at(const struct cfi_row *rows, uint32_t count, uint64_t at)
{
	uint32_t low = 0, high = count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int put_rows(struct builder *b, struct layout *l, const struct piece *piece, struct unwind_stats *stats)
{
	const struct cfi_row *rows = b->cfi.rows + piece->first;
	uint32_t i = row_at(rows, piece->count, piece->start - piece->origin);
	int r = 0;

	for (; r == 0 && i < piece->count && piece->origin + rows[i].at < piece->end; i++) {
		uint64_t at = MAX(piece->start, piece->origin + rows[i].at);
		struct abi_row row = rows[i].row;

		if (row.cfa == CFI_CFA_POPPED) {
			r = judge_popped(b, at, piece->end, &row);
			stats->unsupported += row.cfa == ABI_CFA_UNSUPPORTED;
		}
		stats->rules += row.cfa == ABI_CFA_RULE;
		if (r == 0)
			r = layout_put(l, at, row);
	}
	return r;
}

static int lay_out(struct builder *b, struct unwind_span span, struct unwind_table *t)
{
	const struct abi_row invalid = { .cfa = ABI_CFA_INVALID };
	scoped(layout_release) struct layout l = { 0 };
	int r = layout_init(&l, span);

	for (size_t i = 0; r == 0 && i < b->all.count; i++) {
		const struct piece *piece = b->all.items + i, *next = i + 1 < b->all.count ? piece + 1 : NULL;

		r = put_rows(b, &l, piece, &t->stats);
		if (r == 0 && (!next || next->start - piece->end > PADDING_MAX) &&
		    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): items has count rows */
		    (piece->end >> ABI_PAGE_SHIFT) - span.first_page < span.pages)
			r = layout_put(&l, piece->end, invalid);
	}
	t->stats.rows = l.row_count;
	return r < 0 ? r : layout_finish(&l, b->cfi.rules, b->cfi.rule_count, &t->elements);
}

void unwind_span_of(const struct elf *elf, struct unwind_span *out)
{
	uint64_t low = UINT64_MAX, high = 0;

	*out = (struct unwind_span){ 0 };
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t end = segment_end(elf, s);

		if (!is_code_segment(s) || end <= s->offset)
			continue;
		low = MIN(low, s->offset >> ABI_PAGE_SHIFT);
		high = MAX(high, (end - 1) >> ABI_PAGE_SHIFT);
	}
	if (low > high || high - low >= UNWIND_PAGES_MAX)
		return;
	out->first_page = low;
	out->pages = (uint32_t)(high - low + 1);
}

static int add_go(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	int r = unwind_go_read(b->elf, &b->cfi);

	b->has_go = b->cfi.span_count > first_span;
	return r < 0 ? r : add_spans(b, first_span);
}

/* [start, end) of the file, without rows, in segment @s. *left: bytes that may be looked at. */
static int scan_gap(struct builder *b, const struct elf_segment *s, uint64_t start, uint64_t end, uint64_t *left)
{
	size_t least = end == segment_end(b->elf, s) ? UNWIND_CRT_MIN : CRT_MIN;
	int r;

	if (start >= end || end - start < least || end - start > *left ||
	    (end - start < BARE_MIN && b->small_gaps++ >= SMALL_GAPS_MAX))
		return 0;
	*left -= end - start;
	r = unwind_crt_scan(b->elf, start, s->address + (start - s->offset), end - start, &b->cfi);
	if (r < 0 || end - start < BARE_MIN)
		return r;
	start -= MIN(start - s->offset, (uint64_t)BARE_EDGE);
	end += MIN(segment_end(b->elf, s) - end, (uint64_t)BARE_EDGE);
	return unwind_bare_scan(b->elf, start, s->address + (start - s->offset), end - start, &b->cfi);
}

static int add_bare(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	uint64_t left = UNWIND_BARE_MAX;
	int r = unwind_bare_entry(b->elf, &b->cfi);

	for (size_t i = 0; r == 0 && i < b->elf->segment_count; i++) {
		const struct elf_segment *s = &b->elf->segments[i];
		uint64_t at = s->offset, end = segment_end(b->elf, s);

		for (size_t k = 0; r == 0 && is_code_segment(s) && k < b->all.count; k++) {
			const struct piece *piece = &b->all.items[k];

			if (piece->end <= at)
				continue;
			if (piece->start >= end)
				break;
			r = scan_gap(b, s, at, piece->start, &left);
			at = piece->end;
		}
		if (r == 0 && is_code_segment(s))
			r = scan_gap(b, s, at, end, &left);
	}
	return r < 0 ? r : add_spans(b, first_span);
}

static int add_greenlet(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	int r = unwind_greenlet_read(b->elf, &b->cfi);

	return r < 0 ? r : add_spans(b, first_span);
}

/* Between the tables of clone's caller and those of the child, which is a root, lies the system call: there are both.
 */
static int add_forks(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	int r = 0;

	for (size_t i = 1; r == 0 && i < b->all.count; i++) {
		const struct piece *child = &b->all.items[i], *parent = child - 1;
		const struct abi_row *row = &b->cfi.rows[parent->first + parent->count - 1].row;
		uint8_t code[CODE_BEFORE + 2];
		struct abi_row fork = *row;
		uint64_t address;
		size_t size;

		if (b->cfi.rows[child->first].row.cfa != ABI_CFA_STOP || child->start - parent->end > CODE_BEFORE ||
		    row->cfa != ABI_CFA_SP || row->saved != ABI_SAVED_SAME || child->start < CODE_BEFORE ||
		    b->looks++ >= LOOKS_MAX || elf_address_of(b->elf, child->start, &address) < 0)
			continue;
		r = read_code(b->elf, child->start - CODE_BEFORE, code, sizeof(code));
		size = r < 0 ? 0 : code_fork_size(b->elf->machine, code + CODE_BEFORE);
		if (!size || size > child->start - parent->end)
			continue;
		fork.cfa = ABI_CFA_FORKED;
		r = cfi_put_row(&b->cfi, 0, fork);
		if (r == 0)
			r = cfi_put_span(&b->cfi, address - size, (uint32_t)size, b->cfi.row_count - 1, false);
	}
	return r < 0 ? r : add_spans(b, first_span);
}

static int add_vdso(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	int r = b->all.count ? 0 : unwind_vdso_read(b->elf, &b->cfi);

	return r < 0 ? r : add_spans(b, first_span);
}

static int add_roots(struct builder *b)
{
	size_t first_span = b->cfi.span_count;
	int r = unwind_roots_read(b->elf, &b->cfi);

	return r < 0 ? r : add_spans(b, first_span);
}

/* First to last: what is known of greenlet's code says more than its tables. Go's own .debug_frame says nothing of the
 * frame register, so its other table comes before it. */
enum source { GREENLET, ROOTS, EH_FRAME, GO, DEBUG_FRAME, DEBUG_FILE, VDSO, FORKS, BARE, SOURCES };

static int add_source(struct builder *b, enum source source, const struct elf *debug)
{
	switch (source) {
	case GREENLET:
		return add_greenlet(b);
	case ROOTS:
		return add_roots(b);
	case EH_FRAME:
		return add_eh_frame(b);
	case GO:
		return add_go(b);
	case DEBUG_FRAME:
		return add_debug_frame(b, b->elf);
	case DEBUG_FILE:
		return debug ? add_debug_frame(b, debug) : 0;
	case VDSO:
		return add_vdso(b);
	case FORKS:
		return add_forks(b);
	default:
		return add_bare(b);
	}
}

/* A section that cannot be used leaves the others; what it was wrong with is said when none could. */
static int add_all(struct builder *b, const struct elf *debug)
{
	int result = 0;

	for (enum source source = 0; source < SOURCES; source++) {
		int r = add_source(b, source, debug);

		if (r == -EBADMSG || r == -ENOTSUP)
			result = -EBADMSG;
		else if (r < 0)
			return r;
	}
	return b->all.count ? 0 : result;
}

int unwind_table_build(const struct elf *elf, const struct elf *debug, struct unwind_table *out)
{
	scoped(builder_release) struct builder b = { .elf = elf };
	struct unwind_table t = { .source = UNWIND_SOURCE_NONE };
	struct unwind_span span;
	int r = 0;

	cfi_init(&b.cfi, UNWIND_ROWS_MAX);
	unwind_span_of(elf, &span);
	if (span.pages && elf->is_64 && (elf->machine == EM_X86_64 || elf->machine == EM_AARCH64))
		r = add_all(&b, debug);
	if (r < 0)
		return r;
	t.stats.fdes = b.cfi.stats.fdes;
	t.stats.unsupported = b.cfi.stats.unsupported;
	t.stats.leaf_only = b.cfi.stats.leaf_only;
	t.stats.bad = b.cfi.stats.bad;
	if (b.all.count) {
		t.source = b.has_go ? UNWIND_SOURCE_GO : UNWIND_SOURCE_CFI;
		r = lay_out(&b, span, &t);
	}
	if (r == 0)
		*out = t;
	return r;
}

void unwind_table_release(struct unwind_table *t)
{
	free(t->elements);
	*t = (struct unwind_table){ 0 };
}

const struct abi_row *unwind_table_find(const union abi_element *elements, uint64_t offset)
{
	const struct abi_table_head *head = &elements[0].head;
	uint64_t index = (offset >> ABI_PAGE_SHIFT) - head->first_page;
	uint16_t low = offset & ((1u << ABI_PAGE_SHIFT) - 1);
	const struct abi_row *found = NULL;
	const struct abi_page *page;

	if (index >= head->pages)
		return NULL;
	page = &elements[1 + index / 8].pages[index % 8];
	for (uint32_t i = 0; i < page->count; i++)
		for (size_t k = 0; k < 8; k++)
			if (elements[page->first + i].rows[k].low <= low)
				found = &elements[page->first + i].rows[k];
	return found;
}
