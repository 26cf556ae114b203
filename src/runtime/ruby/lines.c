/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ruby/lines.h"

#include "abi/ruby.h"
#include "base/cur.h"

/* The succinct index (iseq.c, struct succ_index_table, from 2.6 on): how many entries begin at or before a position.
 * The first 54 positions have their counts outright, nine of 7 bits in a word, a shorter function has as many words as
 * it needs; the others are blocks of 512 bits. */
#define IMMEDIATE 54
#define IMMEDIATE_WORDS 6
#define WORD_POSITIONS 9
#define BLOCK_POSITIONS 512
#define BLOCK_BYTES 80 /* rank, ranks of its words, 8 words of bits */
#define CODE_MAX (1u << 20)

uint32_t ruby_index_size(uint32_t code_size)
{
	uint32_t blocks;

	if (code_size <= IMMEDIATE)
		return (code_size + WORD_POSITIONS - 1) / WORD_POSITIONS * 8;
	blocks = (code_size - IMMEDIATE + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
	return code_size > CODE_MAX ? 0 : IMMEDIATE_WORDS * 8 + blocks * BLOCK_BYTES;
}

static uint64_t word_at(const uint8_t *bytes, size_t size, size_t at)
{
	struct cur c = cur_of(bytes, size);

	ignore(cur_bytes(&c, at)); /* it sticks */
	return cur_le64(&c);
}

/* Return: entries up to the position; 0: the index does not say. */
static uint64_t rank_of(const uint8_t *index, size_t size, uint32_t position)
{
	uint32_t behind = position - IMMEDIATE, bit = behind % BLOCK_POSITIONS, word = bit / 64;
	size_t block = IMMEDIATE_WORDS * 8 + (size_t)(behind / BLOCK_POSITIONS) * BLOCK_BYTES;
	uint64_t ranks, bits, before;

	if (position < IMMEDIATE)
		return word_at(index, size, (size_t)(position / WORD_POSITIONS) * 8) >> position % WORD_POSITIONS * 7 &
		       0x7f;
	if (block + BLOCK_BYTES > size)
		return 0;
	ranks = word_at(index, size, block + 8);
	before = word ? ranks >> (word - 1) * 9 & 0x1ff : 0;
	bits = word_at(index, size, block + 16 + (size_t)word * 8) << (63 - bit % 64);
	return (uint32_t)word_at(index, size, block) + before + (uint64_t)__builtin_popcountll(bits);
}

static int32_t int_at(const uint8_t *p)
{
	struct cur c = cur_of(p, 4);

	return (int32_t)cur_le32(&c);
}

int32_t ruby_line(const struct runtime_function *function, uint32_t position)
{
	const struct runtime_lines *l = &function->lines;
	struct cur c = cur_of(l->bytes, l->size);
	const uint8_t *p = cur_bytes(&c, sizeof(struct ruby_lines));
	struct ruby_lines head;
	const uint8_t *index;
	uint64_t rank = 0;
	int32_t line;

	if (position == ABI_RUBY_NOWHERE || !p)
		return 0;
	memcpy(&head, p, sizeof(head));
	index = cur_bytes(&c, head.index_size);
	if (!index || head.line_bytes < head.line_at + 4)
		return 0;
	if (head.by_array) {
		for (uint64_t left = cur_left(&c) / head.line_bytes;
		     rank < left && (uint32_t)int_at(c.pos + rank * head.line_bytes) <= position;)
			rank++;
		if (rank == cur_left(&c) / head.line_bytes && rank < head.count)
			return 0; /* the entries go on */
	} else {
		rank = rank_of(index, head.index_size, position);
	}
	if (!rank || rank > head.count || rank > cur_left(&c) / head.line_bytes)
		return 0;
	line = int_at(c.pos + (rank - 1) * head.line_bytes + head.line_at);
	return line > 0 ? line : function->first_line; /* the start of a block has none up to 2.7 */
}
