/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are walked once, in the order of the section: a common entry (CIE) must stand before the functions (FDE) that
 * name it, as every linker writes them, so that no entry is read twice and the work stays linear. */
#include "object/unwind/cfi.h"

#include <elf.h>

#include "base/array.h"
#include "object/unwind/cfi_int.h"

#define ZEROS_MAX 64 /* zero lengths in a row; between the parts of a linked section there is one */
#define AUGMENTATION_MAX 16

enum { /* DWARF 5, section 7.24; GNU additions: binutils 2.40, include/dwarf2.def */
       CFA_NOP = 0,
       CFA_SET_LOC,
       CFA_ADVANCE_LOC1,
       CFA_ADVANCE_LOC2,
       CFA_ADVANCE_LOC4,
       CFA_OFFSET_EXTENDED,
       CFA_RESTORE_EXTENDED,
       CFA_UNDEFINED,
       CFA_SAME_VALUE,
       CFA_REGISTER,
       CFA_REMEMBER_STATE,
       CFA_RESTORE_STATE,
       CFA_DEF_CFA,
       CFA_DEF_CFA_REGISTER,
       CFA_DEF_CFA_OFFSET,
       CFA_DEF_CFA_EXPRESSION,
       CFA_EXPRESSION,
       CFA_OFFSET_EXTENDED_SF,
       CFA_DEF_CFA_SF,
       CFA_DEF_CFA_OFFSET_SF,
       CFA_VAL_OFFSET,
       CFA_VAL_OFFSET_SF,
       CFA_VAL_EXPRESSION,
       CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
       CFA_GNU_WINDOW_SAVE, /* on aarch64: negate_ra_state; walkers strip signatures from every address */
       CFA_GNU_ARGS_SIZE,
       CFA_GNU_NEGATIVE_OFFSET_EXTENDED,
       CFA_ADVANCE_LOC = 0x40, /* operand in the low six bits */
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
};

enum { /* LSB core 5.0, section 10.5.1: how pointers are encoded */
       PE_ABSPTR = 0,
       PE_ULEB128,
       PE_UDATA2,
       PE_UDATA4,
       PE_UDATA8,
       PE_SLEB128 = 9,
       PE_SDATA2,
       PE_SDATA4,
       PE_SDATA8,
       PE_FORMAT = 0x0f,
       PE_PCREL = 0x10,
       PE_APPLICATION = 0x70,
       PE_INDIRECT = 0x80,
       PE_OMIT = 0xff,
};

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra; /* register number */
	uint8_t encoding, address_size;
	bool has_size;  /* its FDEs say how long their augmentation is */
	bool is_signal; /* augmentation S */
	struct cfi_state state;
};

struct entry {
	uint64_t offset; /* in the section: what FDEs call it */
	uint64_t next;
	uint64_t id, id_at; /* and where it stands */
	struct cur body;    /* behind the id */
	uint64_t body_at;   /* address of its first byte */
	const uint8_t *body_start;
	bool is_cie, is_64; /* DWARF's 64-bit form */
};

struct parser {
	const struct cfi_section *section;
	struct cfi *out;
	struct reader_window window;
	struct cie *cies;
	size_t cie_count, cie_cap;
	struct u64map cie_by_offset;
	uint64_t last_offset;
	uint32_t last_cie; /* index + 1 of the one at last_offset; 0: none yet */
	uint64_t fp;       /* register number */
	/* of the program that runs */
	const struct cie *cie;
	struct cur code;
	uint64_t code_at; /* address of code_start: for encoded pointers */
	const uint8_t *code_start;
	struct cfi_state now, states[CFI_STATES_MAX];
	int depth;
	uint64_t start, at; /* first address of the function; how far behind it the next row is */
	uint64_t size;      /* 0 in a CIE */
	uint64_t until;     /* where the program may stop, at most size */
	size_t first_row;
	bool is_changed;
};

static void parser_release(struct parser *p)
{
	reader_window_release(&p->window);
	u64map_release(&p->cie_by_offset);
	free(p->cies);
}

/* @at: address of the pointer itself. Sets c->bad for what we cannot follow. */
static uint64_t encoded_pointer(struct cur *c, uint8_t encoding, uint8_t address_size, uint64_t at)
{
	uint64_t value;

	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
		value = address_size == 4 ? cur_le32(c) : cur_le64(c);
		break;
	case PE_ULEB128:
		value = cfi_uleb(c);
		break;
	case PE_UDATA2:
		value = cur_le16(c);
		break;
	case PE_UDATA4:
		value = cur_le32(c);
		break;
	case PE_UDATA8:
	case PE_SDATA8:
		value = cur_le64(c);
		break;
	case PE_SLEB128:
		value = (uint64_t)cfi_sleb(c);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int16_t)cur_le16(c);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int32_t)cur_le32(c);
		break;
	default:
		c->bad = true;
		return 0;
	}
	if ((encoding & PE_APPLICATION) == PE_PCREL)
		return value + at; /* modular on purpose */
	if (encoding &
	    (PE_APPLICATION | PE_INDIRECT)) /* relative to text, data or function: no linker writes them here */
		c->bad = true;
	return value;
}

static uint64_t address_in(const struct parser *p)
{
	return p->code_at + (uint64_t)(p->code.pos - p->code_start);
}

/* The row in force from p->at on is complete. */
static int end_row(struct parser *p)
{
	struct cfi *out = p->out;
	struct cfi_row *last = out->row_count > p->first_row ? &out->rows[out->row_count - 1] : NULL;
	struct abi_row row;
	int r;

	if (!p->is_changed || !p->size)
		return 0;
	p->is_changed = false;
	r = cfi_row_of(out, p->section->machine, &p->now, &row);
	if (r < 0 || (last && !memcmp(&last->row, &row, sizeof(row))))
		return r;
	return cfi_put_row(out, (uint32_t)p->at, row); /* size is at most UINT32_MAX */
}

static int advance(struct parser *p, uint64_t units)
{
	uint64_t bytes;
	int r;

	if (!p->size || __builtin_mul_overflow(units, p->cie->code_align, &bytes) || bytes > UINT32_MAX)
		return -EBADMSG;
	r = bytes ? end_row(p) : 0;
	p->at += bytes;
	return r;
}

static int set_location(struct parser *p)
{
	uint64_t to = encoded_pointer(&p->code, p->cie->encoding, p->cie->address_size, address_in(p)) - p->start;
	int r;

	if (!p->size || to < p->at || to > p->size)
		return -EBADMSG;
	r = to > p->at ? end_row(p) : 0;
	p->at = to;
	return r;
}

/* NULL: a register that no walk needs. */
static struct cfi_value *tracked(struct parser *p, struct cfi_state *state, uint64_t reg)
{
	return reg == p->fp ? &state->fp : reg == p->cie->ra ? &state->ra : NULL;
}

static int set_register(struct parser *p, uint64_t reg, struct cfi_value value)
{
	struct cfi_value *to = tracked(p, &p->now, reg);

	if (to) {
		*to = value;
		p->is_changed = true;
	}
	return 0;
}

static int set_at(struct parser *p, uint64_t reg, int64_t factored, uint8_t how)
{
	struct cfi_value value = { .how = how, .base = ABI_BASE_CFA };

	if (__builtin_mul_overflow(factored, p->cie->data_align, &value.off))
		return -EBADMSG;
	return set_register(p, reg, value);
}

static int set_from_register(struct parser *p, uint64_t reg, uint64_t from)
{
	struct cfi_value value = { .how = from < ABI_REGS ? CFI_VALUE : CFI_OTHER };

	value.base = value.how == CFI_VALUE ? (uint8_t)from : 0;
	return set_register(p, reg, value);
}

static int restore(struct parser *p, uint64_t reg)
{
	const struct cfi_value none = { .how = CFI_SAME };
	const struct cfi_value *initial = p->size ? tracked(p, (struct cfi_state *)&p->cie->state, reg) : &none;

	return set_register(p, reg, initial ? *initial : none);
}

/* The expression at hand; one that cannot be expressed is remembered by where it stands. */
static struct cfi_value read_expression(struct parser *p, const struct cfi_value *start)
{
	uint64_t size = cfi_uleb(&p->code), at = address_in(p) - p->section->address;
	struct cfi_value value = cfi_expression(cur_sub(&p->code, size), start);

	if (value.how == CFI_OTHER && size <= INT32_MAX)
		value = (struct cfi_value){ .how = CFI_OTHER, .off = (int64_t)at, .add = (int64_t)size };
	return value;
}

static int set_expression(struct parser *p, uint64_t reg, bool is_value)
{
	const struct cfi_value cfa = { .how = CFI_VALUE, .base = ABI_BASE_CFA };
	struct cfi_value value;

	if (!tracked(p, &p->now, reg)) {
		cur_sub(&p->code, cfi_uleb(&p->code));
		return 0;
	}
	value = read_expression(p, &cfa);
	if (is_value)
		return set_register(p, reg, value);
	if (value.how == CFI_VALUE) /* it computes where the register was saved */
		value.how = CFI_MEMORY;
	else if (value.how == CFI_OTHER)
		value.how = CFI_OTHER_PLACE;
	else
		value = (struct cfi_value){ .how = CFI_OTHER };
	return set_register(p, reg, value);
}

static int define_cfa(struct parser *p, uint64_t reg, int64_t off)
{
	struct cfi_value *cfa = &p->now.cfa;

	*cfa = (struct cfi_value){ .how = reg < ABI_REGS ? CFI_VALUE : CFI_OTHER, .off = off };
	cfa->base = reg < ABI_REGS ? (uint8_t)reg : 0;
	p->now.cfa_off = off;
	p->now.cfa_by_expression = false;
	p->is_changed = true;
	return 0;
}

static int define_cfa_offset(struct parser *p, int64_t off)
{
	p->now.cfa_off = off;
	if (!p->now.cfa_by_expression) {
		p->now.cfa.off = off;
		p->is_changed = true;
	}
	return 0;
}

static int define_cfa_expression(struct parser *p)
{
	const struct cfi_value nothing = { .how = CFI_SAME };

	p->now.cfa = read_expression(p, &nothing);
	p->now.cfa_by_expression = true;
	p->is_changed = true;
	return 0;
}

static int define_cfa_factored(struct parser *p, uint64_t reg, bool has_register)
{
	int64_t off;

	if (__builtin_mul_overflow(cfi_sleb(&p->code), p->cie->data_align, &off))
		return -EBADMSG;
	return has_register ? define_cfa(p, reg, off) : define_cfa_offset(p, off);
}

static int remember(struct parser *p)
{
	if (p->depth >= CFI_STATES_MAX)
		return -EBADMSG;
	p->states[p->depth++] = p->now;
	return 0;
}

static int recall(struct parser *p)
{
	if (!p->depth)
		return -EBADMSG;
	p->now = p->states[--p->depth];
	p->is_changed = true;
	return 0;
}

static int cfa_instruction(struct parser *p, uint8_t op)
{
	struct cur *c = &p->code;
	uint64_t reg;

	switch (op) {
	case CFA_REMEMBER_STATE:
		return remember(p);
	case CFA_RESTORE_STATE:
		return recall(p);
	case CFA_DEF_CFA:
		reg = cfi_uleb(c);
		return define_cfa(p, reg, (int64_t)cfi_uleb(c));
	case CFA_DEF_CFA_REGISTER:
		return define_cfa(p, cfi_uleb(c), p->now.cfa_off);
	case CFA_DEF_CFA_OFFSET:
		return define_cfa_offset(p, (int64_t)cfi_uleb(c));
	case CFA_DEF_CFA_EXPRESSION:
		return define_cfa_expression(p);
	case CFA_DEF_CFA_SF:
		return define_cfa_factored(p, cfi_uleb(c), true);
	case CFA_DEF_CFA_OFFSET_SF:
		return define_cfa_factored(p, 0, false);
	case CFA_SET_LOC:
		return set_location(p);
	case CFA_ADVANCE_LOC1:
		return advance(p, cur_u8(c));
	case CFA_ADVANCE_LOC2:
		return advance(p, cur_le16(c));
	case CFA_ADVANCE_LOC4:
		return advance(p, cur_le32(c));
	case CFA_GNU_ARGS_SIZE:
		cfi_uleb(c);
		return 0;
	case CFA_NOP:
	case CFA_GNU_WINDOW_SAVE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return 0;
	default:
		return -EBADMSG; /* its operands are not known */
	}
}

/* Those whose first operand is the register they are about; the others are passed on. */
static int instruction(struct parser *p, uint8_t op)
{
	struct cur *c = &p->code;
	uint64_t reg = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		return advance(p, reg);
	case CFA_OFFSET:
		return set_at(p, reg, (int64_t)cfi_uleb(c), CFI_MEMORY);
	case CFA_RESTORE:
		return restore(p, reg);
	}
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		reg = cfi_uleb(c);
		return set_at(p, reg, (int64_t)cfi_uleb(c), CFI_MEMORY);
	case CFA_OFFSET_EXTENDED_SF:
		reg = cfi_uleb(c);
		return set_at(p, reg, cfi_sleb(c), CFI_MEMORY);
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		reg = cfi_uleb(c);
		return set_at(p, reg, -(int64_t)(cfi_uleb(c) & INT64_MAX), CFI_MEMORY);
	case CFA_VAL_OFFSET:
		reg = cfi_uleb(c);
		return set_at(p, reg, (int64_t)cfi_uleb(c), CFI_VALUE);
	case CFA_VAL_OFFSET_SF:
		reg = cfi_uleb(c);
		return set_at(p, reg, cfi_sleb(c), CFI_VALUE);
	case CFA_RESTORE_EXTENDED:
		return restore(p, cfi_uleb(c));
	case CFA_UNDEFINED:
		return set_register(p, cfi_uleb(c), (struct cfi_value){ .how = CFI_UNDEFINED });
	case CFA_SAME_VALUE:
		return set_register(p, cfi_uleb(c), (struct cfi_value){ .how = CFI_SAME });
	case CFA_REGISTER:
		reg = cfi_uleb(c);
		return set_from_register(p, reg, cfi_uleb(c));
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		return set_expression(p, cfi_uleb(c), op == CFA_VAL_EXPRESSION);
	default:
		return cfa_instruction(p, op);
	}
}

/* Runs the program at p->code up to the end of it or of the function. */
static int run(struct parser *p)
{
	int r = 0;

	p->depth = 0;
	while (r == 0 && cur_left(&p->code) && (!p->size || p->at < p->until)) {
		r = instruction(p, cur_u8(&p->code));
		if (p->code.bad)
			return -EBADMSG;
	}
	if (r == 0 && p->at < p->size)
		r = end_row(p);
	return r;
}

/* What the letters of an augmentation say. Behind an unknown one nothing can be read, but z gives the size of it all.
 */
static void parse_augmentation(struct str letters, struct cur *c, struct cie *cie)
{
	for (size_t i = 0; i < letters.len; i++) {
		uint8_t encoding;

		switch (letters.ptr[i]) {
		case 'R':
			cie->encoding = cur_u8(c);
			break;
		case 'L':
			cur_u8(c);
			break;
		case 'P': /* the value is not used: any base will do */
			encoding = cur_u8(c);
			encoded_pointer(c, encoding & PE_FORMAT, 8, 0);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* return addresses are signed with key B */
		case 'G': /* the frame's memory is tagged */
			break;
		default:
			return;
		}
	}
}

static int parse_cie(struct entry *e, struct cie *out)
{
	struct cur *c = &e->body, data;
	uint8_t version = cur_u8(c);
	struct str letters = cur_cstr(c);
	struct cie cie = { .encoding = PE_ABSPTR, .address_size = 8 };

	if (version != 1 && version != 3 && version != 4)
		return -EBADMSG;
	if (version == 4) {
		cie.address_size = cur_u8(c);
		if (cur_u8(c)) /* segmented addresses */
			return -EBADMSG;
	}
	if (str_eq(letters, STR("eh"))) { /* gcc 2: a pointer that unwinding does not need */
		cur_le64(c);
		letters = STR("");
	}
	cie.code_align = cfi_uleb(c);
	cie.data_align = cfi_sleb(c);
	cie.ra = version == 1 ? cur_u8(c) : cfi_uleb(c);
	if (letters.len && letters.ptr[0] == 'z') {
		cie.has_size = true;
		data = cur_sub(c, cfi_uleb(c));
		parse_augmentation(str_skip(letters, 1), &data, &cie);
		c->bad |= data.bad;
	} else if (letters.len) {
		return -EBADMSG;
	}
	if (c->bad || letters.len > AUGMENTATION_MAX || (cie.address_size != 4 && cie.address_size != 8))
		return -EBADMSG;
	*out = cie;
	return 0;
}

static void start_program(struct parser *p, const struct entry *e, const struct cie *cie)
{
	p->cie = cie;
	p->code = e->body;
	p->code_at = e->body_at;
	p->code_start = e->body_start;
	p->at = p->size = 0;
	p->is_changed = true;
	p->first_row = p->out->row_count;
	p->now = cie->state;
}

static int add_cie(struct parser *p, struct entry *e)
{
	struct cie cie;
	int r = parse_cie(e, &cie);

	if (r < 0)
		return r;
	start_program(p, e, &cie);
	r = run(p);
	cie.state = p->now;
	if (r == 0)
		r = array_grow(&p->cies, &p->cie_cap, p->cie_count, CFI_CIES_MAX);
	if (r == 0)
		r = u64map_put(&p->cie_by_offset, e->offset, (uint32_t)p->cie_count);
	if (r < 0)
		return r;
	p->cies[p->cie_count++] = cie;
	return 0;
}

/* NULL: there was none at that place. */
static const struct cie *find_cie(struct parser *p, const struct entry *e)
{
	uint64_t offset = p->section->is_eh ? e->id_at - e->id : e->id;
	uint32_t index;

	if (p->last_cie && offset == p->last_offset)
		return &p->cies[p->last_cie - 1];
	if (u64map_get(&p->cie_by_offset, offset, &index) < 0)
		return NULL;
	p->last_cie = index + 1;
	p->last_offset = offset;
	return &p->cies[index];
}

/* What stands in front of the program of an FDE. */
static int parse_fde(const struct cie *cie, struct entry *e, uint64_t *start, uint64_t *size)
{
	struct cur *c = &e->body;

	*start = encoded_pointer(c, cie->encoding, cie->address_size, e->body_at);
	*size = encoded_pointer(c, cie->encoding & PE_FORMAT, cie->address_size, 0);
	if (cie->has_size)
		cur_bytes(c, cfi_uleb(c));
	return c->bad || *size > UINT32_MAX || *start + *size < *start ? -EBADMSG : 0;
}

static int add_fde(struct parser *p, struct entry *e)
{
	const struct cie *cie = find_cie(p, e);
	uint64_t start, size;
	int r;

	if (!cie)
		return -EBADMSG;
	r = parse_fde(cie, e, &start, &size);
	if (r < 0)
		return r;
	if (!size) /* of a function that the linker dropped */
		return 0;
	start_program(p, e, cie);
	p->start = start;
	p->size = p->until = size;
	r = run(p);
	if (r == 0)
		r = cfi_put_span(p->out, start, (uint32_t)size, p->first_row, cie->is_signal);
	if (r == 0)
		p->out->stats.fdes++;
	return r;
}

/* Layout: u32 length, or 0xffffffff and u64 length; id: u32, in .debug_frame of the 64-bit form u64.
 * Return: 1; 0 at the end; -EBADMSG when what follows cannot be found either; or the reader's error. */
static int next_entry(struct parser *p, uint64_t at, struct entry *e)
{
	uint64_t left = p->section->in.size - at, length, head = 4;
	const uint8_t *bytes;
	struct cur c;

	if (left < 4)
		return left ? -EBADMSG : 0;
	bytes = reader_window_get(&p->window, at, (size_t)MIN(left, (uint64_t)12));
	if (!bytes)
		return p->window.error;
	c = cur_of(bytes, (size_t)MIN(left, (uint64_t)12));
	length = cur_le32(&c);
	*e = (struct entry){ .offset = at, .is_64 = length == UINT32_MAX };
	if (e->is_64) {
		length = cur_le64(&c);
		head = 12;
	} else if (length >= 0xfffffff0) { /* reserved */
		return -EBADMSG;
	}
	if (c.bad || length > left - head)
		return -EBADMSG;
	e->next = at + head + length;
	if (!length || length > CFI_ENTRY_MAX)
		return 1;
	bytes = reader_window_get(&p->window, at + head, (size_t)length);
	if (!bytes)
		return p->window.error;
	e->body = cur_of(bytes, (size_t)length);
	e->id_at = at + head;
	if (p->section->is_eh) {
		e->id = cur_le32(&e->body);
		e->is_cie = e->id == 0;
	} else {
		e->id = e->is_64 ? cur_le64(&e->body) : cur_le32(&e->body);
		e->is_cie = e->id == (e->is_64 ? UINT64_MAX : UINT32_MAX);
	}
	e->body_start = e->body.pos;
	e->body_at = p->section->address + e->id_at + (uint64_t)(e->body.pos - bytes);
	return 1;
}

/* Return: 0; -EBADMSG when the entry is malformed and nothing of it is left; otherwise the end of it all. */
static int add_entry(struct parser *p, struct entry *e)
{
	struct cfi *out = p->out;
	size_t rows = out->row_count;
	int r;

	if (e->next - e->offset > CFI_ENTRY_MAX || e->body.bad)
		return -EBADMSG;
	r = e->is_cie ? add_cie(p, e) : add_fde(p, e);
	if (r == -EBADMSG)
		out->row_count = rows;
	return r;
}

static int read_entries(struct parser *p)
{
	uint64_t at = 0, zeros = 0;
	struct entry e = { 0 };
	int r;

	while ((r = next_entry(p, at, &e)) > 0) {
		bool is_zero = e.next - at == 4;

		at = e.next;
		zeros = is_zero ? zeros + 1 : 0;
		if (zeros > (p->section->has_end ? 0 : ZEROS_MAX))
			return 0;
		if (is_zero)
			continue;
		r = add_entry(p, &e);
		if (r == -EBADMSG)
			p->out->stats.bad++;
		else if (r < 0)
			return r;
	}
	if (r == -EBADMSG) {
		p->out->stats.bad++;
		return 0;
	}
	return r;
}

int cfi_read(const struct cfi_section *section, struct cfi *out)
{
	scoped(freep) struct parser *p = calloc(1, sizeof(*p));
	uint64_t fdes = out->stats.fdes, bad = out->stats.bad;
	int r;

	if (!p)
		return -ENOMEM;
	p->section = section;
	p->out = out;
	p->fp = section->machine == EM_X86_64 ? 6 : 29;
	u64map_init(&p->cie_by_offset, CFI_CIES_MAX);
	r = reader_window_init(&p->window, &section->in, CFI_ENTRY_MAX);
	if (r == 0)
		r = read_entries(p);
	parser_release(p);
	if (r == 0 && out->stats.fdes == fdes && out->stats.bad != bad)
		return -EBADMSG;
	return r;
}

/* ---- all registers at one address ---- */

#define X86_REGS 17
#define ENTRY_WINDOW KIB(64) /* of a function's entry and of its common one */

/* The entry at @at, read through a window of its own: both entries of a function are needed again for each register. */
static int get_entry(struct parser *p, struct reader_window *w, uint64_t at, struct entry *e)
{
	int r;

	if (at >= p->section->in.size)
		return -EBADMSG;
	p->window = *w;
	r = next_entry(p, at, e);
	*w = p->window;
	p->window = (struct reader_window){ 0 };
	if (r < 0)
		return r;
	return r == 0 || !e->body_start || e->body.bad ? -EBADMSG : 0;
}

struct at_one { /* what each run begins with */
	struct entry common, function;
	uint64_t address;
};

/* Runs both programs up to the address, with @reg in the place of the frame register. p->now is the result. */
static int run_for(struct parser *p, const struct at_one *at, uint64_t reg, struct cie *cie)
{
	struct entry common = at->common, function = at->function;
	uint64_t start, size;
	int r = parse_cie(&common, cie);

	if (r < 0)
		return r;
	p->fp = reg;
	p->out->row_count = 0;
	start_program(p, &common, cie);
	r = run(p);
	cie->state = p->now;
	if (r == 0)
		r = parse_fde(cie, &function, &start, &size);
	if (r < 0)
		return r;
	if (at->address - start >= size)
		return -ENOENT;
	start_program(p, &function, cie);
	p->start = start;
	p->size = size;
	p->until = at->address - start + 1;
	return run(p);
}

static int run_for_all(struct parser *p, const struct at_one *at, struct cfi_rules *out)
{
	uint8_t count = p->section->machine == EM_X86_64 ? X86_REGS : ABI_REGS;
	struct cfi_rules rules = { 0 };
	struct cie cie = { 0 };
	int r = 0;

	for (uint8_t reg = 0; r == 0 && reg < count; reg++) {
		if (reg && reg == cie.ra)
			continue;
		r = run_for(p, at, reg, &cie);
		rules.regs[reg] = p->now.fp;
	}
	if (r < 0)
		return r;
	if (cie.ra >= ABI_REGS)
		return -ENOTSUP;
	rules.cfa = p->now.cfa;
	rules.regs[cie.ra] = p->now.ra;
	rules.ra = (uint8_t)cie.ra;
	*out = rules;
	return 0;
}

static bool is_long(const struct entry *e)
{
	return (size_t)(e->body.end - e->body.pos) > CFI_RULES_BYTES;
}

int cfi_rules_at(const struct cfi_section *section, uint64_t fde, uint64_t address, struct cfi_rules *out)
{
	scoped(reader_window_release) struct reader_window common = { 0 }, function = { 0 };
	scoped(freep) struct parser *p = calloc(1, sizeof(*p));
	scoped(cfi_release) struct cfi scratch = { 0 };
	struct at_one at = { .address = address };
	int r;

	if (!p)
		return -ENOMEM;
	cfi_init(&scratch, CFI_ENTRY_MAX);
	p->section = section;
	p->out = &scratch;
	r = reader_window_init(&common, &section->in, ENTRY_WINDOW);
	if (r == 0)
		r = reader_window_init(&function, &section->in, ENTRY_WINDOW);
	if (r == 0)
		r = get_entry(p, &function, fde, &at.function);
	if (r == 0 && at.function.is_cie)
		r = -EBADMSG;
	if (r == 0)
		r = get_entry(p, &common, section->is_eh ? at.function.id_at - at.function.id : at.function.id,
			      &at.common);
	if (r == 0 && !at.common.is_cie)
		r = -EBADMSG;
	if (r == 0 && (is_long(&at.function) || is_long(&at.common)))
		r = -ENOTSUP;
	return r < 0 ? r : run_for_all(p, &at, out);
}
