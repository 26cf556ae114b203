/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "object/x86.h"

#define AT UINT64_C(0x1000)

static void lengths(void **state)
{
	static const struct {
		const char *name, *hex;
		uint8_t length;
	} cases[] = {
		{ "nop", "90", 1 },
		{ "endbr64", "f30f1efa", 4 },
		{ "long nop", "66662e0f1f840000000000", 11 },
		{ "push r15", "4157", 2 },
		{ "mov imm64", "48b88877665544332211", 10 },
		{ "mov imm16", "66b83412", 4 },
		{ "movabs", "48a18877665544332211", 10 },
		{ "test with immediate", "f7c001000000", 6 },
		{ "test, 16 bits", "66f7c00100", 5 },
		{ "neg, without", "f7d8", 2 },
		{ "sib, no base", "8b04c500000000", 7 },
		{ "sib, disp8", "8b44cb08", 4 },
		{ "imul imm8", "6bc005", 3 },
		{ "pblendw", "660f3a0ec10f", 6 },
		{ "pshufb", "660f3800c1", 5 },
		{ "vzeroupper", "c5f877", 3 },
		{ "vpermq", "c4e3fd00c0d8", 6 },
		{ "vaddps zmm", "62f17c48584001", 7 },
		{ "enter", "c8100001", 4 },
		{ "call with prefixes", "666648e8c0000000", 8 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page_hex(cases[i].hex);
		struct x86 got = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
		assert_int_equal(got.length, cases[i].length);
		assert_int_equal(got.flow == X86_FLOW_NEXT || got.flow == X86_FLOW_CALL, 1);
		for (size_t cut = 0; cut < cur_left(&in); cut++)
			assert_int_equal(x86_decode(in.pos, cut, AT, &got), -ENODATA);
	}
}

static void flows(void **state)
{
	static const struct {
		const char *name, *hex;
		enum x86_flow flow;
		uint64_t target;
	} cases[] = {
		{ "je rel8", "7402", X86_FLOW_JUMP_IF, AT + 4 },
		{ "je back", "74fe", X86_FLOW_JUMP_IF, AT },
		{ "je rel32", "0f8401000000", X86_FLOW_JUMP_IF, AT + 7 },
		{ "jmp rel8", "eb05", X86_FLOW_JUMP, AT + 7 },
		{ "jmp rel32", "e900010000", X86_FLOW_JUMP, AT + 0x105 },
		{ "bnd jmp rel32", "f2e900010000", X86_FLOW_JUMP, AT + 0x106 },
		{ "jmp *%rax", "ffe0", X86_FLOW_JUMP, 0 },
		{ "notrack jmp *%rax", "3effe0", X86_FLOW_JUMP, 0 },
		{ "jmp *table(,%rax,8)", "ff24c500000000", X86_FLOW_JUMP, 0 },
		{ "call rel32", "e800000000", X86_FLOW_CALL, AT + 5 },
		{ "call *%rax", "ffd0", X86_FLOW_CALL, 0 },
		{ "inc", "ffc0", X86_FLOW_NEXT, 0 },
		{ "ret", "c3", X86_FLOW_END, 0 },
		{ "ud2", "0f0b", X86_FLOW_END, 0 },
		{ "hlt", "f4", X86_FLOW_END, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page_hex(cases[i].hex);
		struct x86 got = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
		assert_int_equal(got.flow, cases[i].flow);
		assert_int_equal(got.target, cases[i].target);
	}
}

static void operands(void **state)
{
	struct cur in;
	struct x86 got;

	(void)state;
	in = guard_page_hex("488b3dd4db2600"); /* mov x(%rip), %rdi */
	assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
	assert_int_equal(got.memory, X86_MEMORY_RELATIVE);
	assert_int_equal(got.address, AT + 7 + 0x26dbd4);
	assert_int_equal(got.reg, 7);
	assert_true(got.is_wide && !got.is_fs);
	in = guard_page_hex("64488b0425e8ffffff"); /* mov %fs:-24, %rax */
	assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
	assert_int_equal(got.memory, X86_MEMORY_ABSOLUTE);
	assert_int_equal(got.address, (uint64_t)-24);
	assert_true(got.is_fs);
	in = guard_page_hex("4c8db870050000"); /* lea 0x570(%rax), %r15 */
	assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
	assert_int_equal(got.memory, X86_MEMORY_BASE);
	assert_int_equal(got.displacement, 0x570);
	assert_int_equal(got.base, 0);
	assert_int_equal(got.reg, 15);
	in = guard_page_hex("bfe010ba00"); /* mov $0xba10e0, %edi */
	assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), 0);
	assert_int_equal(got.immediate, 0xba10e0);
	in = guard_page_hex("0607"); /* push %es: not in 64-bit mode */
	assert_int_equal(x86_decode(in.pos, cur_left(&in), AT, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(flows),
		cmocka_unit_test(operands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
