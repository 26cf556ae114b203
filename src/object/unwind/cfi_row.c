/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules at one address become: a row of eight bytes where they are the usual ones, a row that names a rule
 * where they are not, and UNSUPPORTED, counted, where a rule cannot hold them either. */
#include <elf.h>

#include "base/array.h"
#include "object/unwind/cfi_int.h"

#define X86_FP 6
#define X86_SP 7
#define AARCH64_FP 29
#define AARCH64_SP 31

void cfi_init(struct cfi *c, size_t row_max)
{
	*c = (struct cfi){ .row_max = row_max };
	u64map_init(&c->rules_by_content, CFI_RULES_MAX);
}

void cfi_release(struct cfi *c)
{
	free(c->rows);
	free(c->spans);
	free(c->rules);
	u64map_release(&c->rules_by_content);
	*c = (struct cfi){ 0 };
}

int cfi_put_row(struct cfi *c, uint32_t at, struct abi_row row)
{
	int r = array_grow(&c->rows, &c->row_cap, c->row_count, c->row_max);

	if (r == 0)
		c->rows[c->row_count++] = (struct cfi_row){ at, row };
	return r;
}

int cfi_put_span(struct cfi *c, uint64_t start, uint32_t size, size_t first, bool is_signal)
{
	int r = array_grow(&c->spans, &c->span_cap, c->span_count, CFI_FDES_MAX);

	if (r == 0)
		c->spans[c->span_count++] = (struct cfi_span){
			.start = start,
			.size = size,
			.first = (uint32_t)first, /* row_max is below 2^32 */
			.count = (uint32_t)(c->row_count - first),
			.is_signal = is_signal,
		};
	return r;
}

static uint64_t rule_key(const struct abi_rule *rule)
{
	uint64_t words[sizeof(*rule) / 8], key = 0;

	memcpy(words, rule, sizeof(*rule));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		key = (key << 23 | key >> 41) * UINT64_C(0x9e3779b97f4a7c15) ^ words[i];
	return key;
}

/* Return: number of a rule equal to @rule, added if need be; -E2BIG or -ENOMEM. */
static int put_rule(struct cfi *c, const struct abi_rule *rule)
{
	uint64_t key = rule_key(rule);
	uint32_t index;
	int r;

	if (u64map_get(&c->rules_by_content, key, &index) == 0 && !memcmp(&c->rules[index], rule, sizeof(*rule)))
		return (int)index;
	r = array_grow(&c->rules, &c->rule_cap, c->rule_count, CFI_RULES_MAX);
	if (r == 0)
		r = u64map_put(&c->rules_by_content, key, (uint32_t)c->rule_count);
	if (r < 0)
		return r;
	c->rules[c->rule_count] = *rule;
	return (int)c->rule_count++;
}

static bool unsigned_words(int64_t off, uint16_t *out)
{
	if (off < 0 || off & 7 || off / 8 > UINT16_MAX)
		return false;
	*out = (uint16_t)(off / 8);
	return true;
}

static bool signed_words(int64_t off, int16_t *out)
{
	if (off & 7 || off / 8 < INT16_MIN || off / 8 > INT16_MAX)
		return false;
	*out = (int16_t)(off / 8);
	return true;
}

static bool is_at(const struct cfi_value *v)
{
	return v->how == CFI_MEMORY && v->base == ABI_BASE_CFA && !v->add;
}

/* The caller's frame register and return address in the short form. */
static bool short_saved(uint16_t machine, const struct cfi_state *s, struct abi_row *row)
{
	if (machine == EM_X86_64 && (!is_at(&s->ra) || s->ra.off != -8))
		return false;
	if (machine == EM_AARCH64 && s->ra.how != CFI_SAME) {
		if (!is_at(&s->ra))
			return false;
		if (s->fp.how == CFI_SAME) {
			row->saved = ABI_SAVED_RETURN;
			return signed_words(s->ra.off, &row->fp_off);
		}
		row->saved = ABI_SAVED_PAIR;
		return is_at(&s->fp) && s->ra.off == saturating_add(s->fp.off, 8) &&
		       signed_words(s->fp.off, &row->fp_off);
	}
	if (s->fp.how == CFI_SAME || s->fp.how == CFI_UNDEFINED) {
		row->saved = s->fp.how == CFI_SAME ? ABI_SAVED_SAME : ABI_SAVED_UNDEFINED;
		return true;
	}
	row->saved = ABI_SAVED_AT;
	return is_at(&s->fp) && signed_words(s->fp.off, &row->fp_off);
}

static bool short_cfa(uint16_t machine, const struct cfi_value *cfa, struct abi_row *row)
{
	uint8_t sp = machine == EM_X86_64 ? X86_SP : AARCH64_SP, fp = machine == EM_X86_64 ? X86_FP : AARCH64_FP;

	if (cfa->how == CFI_PLT) {
		row->cfa = ABI_CFA_PLT;
		row->cfa_off = (uint16_t)cfa->off; /* below 16 */
		return machine == EM_X86_64;
	}
	if (cfa->how != CFI_VALUE || (cfa->base != sp && cfa->base != fp))
		return false;
	row->cfa = cfa->base == sp ? ABI_CFA_SP : ABI_CFA_FP;
	return unsigned_words(cfa->off, &row->cfa_off);
}

static bool where_of(const struct cfi_value *v, struct abi_where *out)
{
	switch (v->how) {
	case CFI_SAME:
		out->place = ABI_PLACE_SAME;
		return true;
	case CFI_UNDEFINED:
		out->place = ABI_PLACE_UNDEFINED;
		return true;
	case CFI_VALUE:
	case CFI_MEMORY:
		out->place = v->how == CFI_VALUE ? ABI_PLACE_VALUE : ABI_PLACE_MEMORY;
		out->base = v->base;
		out->off = (int32_t)v->off;
		return v->off >= INT32_MIN && v->off <= INT32_MAX;
	default:
		return false;
	}
}

static bool is_leaf_base(uint16_t machine, const struct abi_where *w)
{
	if (w->place != ABI_PLACE_VALUE && w->place != ABI_PLACE_MEMORY)
		return false;
	if (w->base == ABI_BASE_CFA)
		return false;
	return machine == EM_X86_64 ? w->base != X86_SP && w->base != X86_FP
				    : w->base != AARCH64_SP && w->base != AARCH64_FP;
}

static int put_unsupported(struct cfi *c, struct abi_row *out)
{
	c->stats.unsupported++;
	*out = (struct abi_row){ .cfa = ABI_CFA_UNSUPPORTED };
	return 0;
}

static int long_row(struct cfi *c, uint16_t machine, const struct cfi_state *s, struct abi_row *out)
{
	struct abi_rule rule = { 0 };
	int index;

	if ((s->cfa.how != CFI_VALUE && s->cfa.how != CFI_MEMORY) || !where_of(&s->cfa, &rule.cfa) ||
	    s->cfa.add < INT32_MIN || s->cfa.add > INT32_MAX || !where_of(&s->ra, &rule.ra) || s->ra.add)
		return put_unsupported(c, out);
	/* x86-64 has no register that holds the return address: "the same" is no rule at all. */
	if (machine == EM_X86_64 && s->ra.how == CFI_SAME)
		return put_unsupported(c, out);
	if (s->cfa.how == CFI_MEMORY)
		rule.cfa_add = (int32_t)s->cfa.add;
	if (!where_of(&s->fp, &rule.fp) || s->fp.add) { /* the frame can be found all the same */
		c->stats.unsupported++;
		rule.fp = (struct abi_where){ .place = ABI_PLACE_UNDEFINED };
	}
	if (is_leaf_base(machine, &rule.cfa) || is_leaf_base(machine, &rule.fp) || is_leaf_base(machine, &rule.ra))
		c->stats.leaf_only++;
	index = put_rule(c, &rule);
	if (index == -E2BIG)
		return put_unsupported(c, out);
	if (index < 0)
		return index;
	*out = (struct abi_row){ .cfa = ABI_CFA_RULE, .cfa_off = (uint16_t)index };
	return 0;
}

/* The stack pointer is already above the place of the return address. */
static bool is_popped(uint16_t machine, const struct cfi_state *s)
{
	return machine == EM_X86_64 && s->cfa.how == CFI_VALUE && s->cfa.base == X86_SP && is_at(&s->ra) &&
	       saturating_add(s->cfa.off, s->ra.off) < 0;
}

int cfi_row_of(struct cfi *c, uint16_t machine, const struct cfi_state *s, struct abi_row *out)
{
	struct abi_row row = { 0 };

	if (s->ra.how == CFI_UNDEFINED) {
		*out = (struct abi_row){ .cfa = ABI_CFA_STOP };
		return 0;
	}
	if (is_popped(machine, s)) {
		*out = (struct abi_row){ .cfa = CFI_CFA_POPPED };
		return 0;
	}
	if (!short_cfa(machine, &s->cfa, &row) || !short_saved(machine, s, &row))
		return long_row(c, machine, s, out);
	*out = row;
	return 0;
}
