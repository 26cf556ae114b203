/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io.h"
#include "object/unwind/table.h"
#include "object/unwind/text.h"

#define IMAGE_SIZE 0x4000
#define NAMES_AT 0x140
#define SECTIONS_AT 0x180
#define FRAME_AT 0x300
#define BASE 0x400000 /* address of the file's first byte */
#define CODE 0x401000 /* where the functions of the cases are, all of it nops */

struct image {
	uint8_t bytes[IMAGE_SIZE];
	size_t frame_size;
};

static void put(struct image *m, size_t at, const void *bytes, size_t size)
{
	must(size <= IMAGE_SIZE - at);
	memcpy(m->bytes + at, bytes, size);
}

static void add(struct image *m, const void *bytes, size_t size)
{
	put(m, FRAME_AT + m->frame_size, bytes, size);
	m->frame_size += size;
}

static void add_hex(struct image *m, const char *hex)
{
	struct cur c = guard_page_hex(hex);

	add(m, c.pos, cur_left(&c));
}

static void add_u32(struct image *m, uint32_t value)
{
	add(m, &value, 4);
}

static void add_u64(struct image *m, uint64_t value)
{
	add(m, &value, 8);
}

/* Version 1, augmentation @letters without data but R's (8 bytes, absolute), return address @ra. */
static uint32_t add_cie(struct image *m, const char *letters, uint8_t ra, const char *hex)
{
	size_t start = m->frame_size;
	uint32_t length;

	add_u32(m, 0);
	add_u32(m, 0);
	add(m, "\1", 1);
	add(m, letters, strlen(letters) + 1);
	add(m, "\1\x78", 2); /* factors 1 and -8 */
	add(m, &ra, 1);
	add(m, "\1\4", 2);
	add_hex(m, hex);
	length = (uint32_t)(m->frame_size - start - 4);
	put(m, FRAME_AT + start, &length, 4);
	return (uint32_t)start;
}

static void add_fde(struct image *m, uint32_t cie, uint64_t start, uint64_t size, const char *hex)
{
	size_t at = m->frame_size;
	uint32_t length;

	add_u32(m, 0);
	add_u32(m, (uint32_t)(at + 4 - cie));
	add_u64(m, start);
	add_u64(m, size);
	add(m, "", 1);
	add_hex(m, hex);
	length = (uint32_t)(m->frame_size - at - 4);
	put(m, FRAME_AT + at, &length, 4);
}

static void start_image(struct image *m, uint16_t machine)
{
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = machine,
			    .e_version = 1,
			    .e_phoff = sizeof(head),
			    .e_shoff = SECTIONS_AT,
			    .e_ehsize = sizeof(head),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 2 };
	Elf64_Phdr load = { .p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_vaddr = BASE,
			    .p_filesz = IMAGE_SIZE,
			    .p_memsz = IMAGE_SIZE };

	memset(m, 0, sizeof(*m));
	memset(m->bytes + (CODE - BASE), 0x90, IMAGE_SIZE - (CODE - BASE));
	put(m, 0, &head, sizeof(head));
	put(m, sizeof(head), &load, sizeof(load));
}

/* The section is called @name: .eh_frame or .debug_frame. */
static void end_image_as(struct image *m, const char *name, uint64_t flags)
{
	static const char names[] = "\0.shstrtab\0.eh_frame\0.debug_frame";
	Elf64_Shdr sections[3] = {
		[1] = { .sh_name = strcmp(name, ".eh_frame") ? 21 : 11,
			.sh_type = SHT_PROGBITS,
			.sh_flags = flags,
			.sh_addr = BASE + FRAME_AT,
			.sh_offset = FRAME_AT,
			.sh_size = m->frame_size },
		[2] = { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof(names) },
	};

	put(m, NAMES_AT, names, sizeof(names));
	put(m, SECTIONS_AT, sections, sizeof(sections));
}

static void end_image(struct image *m, const char *name)
{
	end_image_as(m, name, 0);
}

/* An image of x86-64 code; @is_entry: whose entry point is CODE. */
static void start_code(struct image *m, bool is_entry)
{
	uint64_t start = CODE;

	start_image(m, EM_X86_64);
	if (is_entry)
		put(m, offsetof(Elf64_Ehdr, e_entry), &start, 8);
}

/* As GCC begins: the CFA is rsp + 8, and the return address is there. */
static uint32_t add_usual_cie(struct image *m)
{
	return add_cie(m, "zR", 16, "0c07089001");
}

/* The image has one function. */
static void add_function(struct image *m, uint64_t start, uint64_t size, const char *hex)
{
	add_fde(m, add_usual_cie(m), start, size, hex);
}

/* Every promise of abi/unwind.h */
static void check_table(const struct elf *elf, const struct unwind_table *t)
{
	const struct abi_table_head *head = &t->elements[0].head;
	struct unwind_span span;
	uint64_t rows = 0;

	unwind_span_of(elf, &span);
	assert_int_equal(head->magic, ABI_TABLE_MAGIC);
	assert_int_equal(head->first_page, span.first_page);
	assert_int_equal(head->pages, span.pages);
	for (uint32_t i = 0; i < head->pages; i++) {
		const struct abi_page *page = &t->elements[1 + i / 8].pages[i % 8];
		int low = -1;

		assert_true((uint64_t)page->first + page->count <= head->size);
		for (uint32_t k = 0; k < page->count * 8u; k++) {
			const struct abi_row *row = &t->elements[page->first + k / 8].rows[k % 8];

			if (row->low == ABI_ROW_FILLER)
				continue;
			assert_true(row->low > low && row->low < 4096 && (low >= 0 || row->low == 0));
			assert_true(row->cfa < ABI_CFA_COUNT && row->saved < ABI_SAVED_COUNT);
			low = row->low;
			rows++;
		}
	}
	assert_int_equal(rows, head->row_count);
	assert_int_equal(rows, t->stats.rows);
}

/* Checks what every table promises, then returns it as text. */
static int rows_of(const struct image *m, struct buf *text, struct unwind_stats *stats)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	struct reader in = reader_of(m->bytes, IMAGE_SIZE);
	scoped(elf_release) struct elf elf = { 0 };
	int r;

	assert_int_equal(elf_parse(&in, &elf), 0);
	r = unwind_table_build(&elf, NULL, &t);
	if (r < 0)
		return r;
	check_table(&elf, &t);
	if (stats)
		*stats = t.stats;
	unwind_text(&elf, &t, text);
	return 0;
}

static void assert_text(const struct buf *text, const char *want)
{
	assert_string_equal(buf_cstr((struct buf *)text), want);
}

/* Ends an image with .eh_frame, whose rows are these. */
static void assert_rows(struct image *m, const char *want)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	end_image(m, ".eh_frame");
	assert_int_equal(rows_of(m, &text, NULL), 0);
	assert_text(&text, want);
}

struct program {
	const char *name, *hex, *want;
};

static void run_programs(uint16_t machine, const char *initial, const struct program *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
		static struct image m;
		uint32_t cie;

		print_message("  %s\n", cases[i].name);
		start_image(&m, machine);
		cie = add_cie(&m, "zR", machine == EM_X86_64 ? 16 : 30, initial);
		add_fde(&m, cie, CODE, 0x100, cases[i].hex);
		end_image(&m, ".eh_frame");
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_text(&text, cases[i].want);
	}
}

#define FIRST "0000000000401000 rsp+8 s c-8\n"
#define END "0000000000401100 none\n"

static void follows_programs_of_x86(void **state)
{
	static const struct program cases[] = {
		{ "nothing", "", FIRST END },
		{ "push %rbp; mov %rsp,%rbp; leave",
		  "410e1086024"
		  "30d06"
		  "4c0c0708",
		  FIRST "0000000000401001 rsp+16 c-16 c-8\n0000000000401004 rbp+16 c-16 c-8\n"
			"0000000000401010 rsp+8 c-16 c-8\n" END },
		{ "advances of every size",
		  "02100e10"
		  "0310000e18"
		  "04100000000e20",
		  FIRST "0000000000401010 rsp+16 s c-8\n0000000000401020 rsp+24 s c-8\n"
			"0000000000401030 rsp+32 s c-8\n" END },
		{ "set_loc", "0120104000000000000e10", FIRST "0000000000401020 rsp+16 s c-8\n" END },
		{ "an advance of nothing", "400e10", "0000000000401000 rsp+16 s c-8\n" END },
		{ "equal rows are one", "410e08410e08410e10410e10", FIRST "0000000000401003 rsp+16 s c-8\n" END },
		{ "other registers are passed over", "4183034205058c02", FIRST END },
		{ "rows behind the end", "0300010e10", FIRST END },
		{ "remember, restore", "410e1086020a410e200b410e18",
		  FIRST "0000000000401001 rsp+16 c-16 c-8\n0000000000401003 rsp+24 c-16 c-8\n" END },
		{ "restore a register",
		  "4186024106064186024"
		  "1c6",
		  FIRST "0000000000401001 rsp+8 c-16 c-8\n0000000000401002 rsp+8 s c-8\n"
			"0000000000401003 rsp+8 c-16 c-8\n0000000000401004 rsp+8 s c-8\n" END },
		{ "undefined, the same", "410706410806",
		  FIRST "0000000000401001 rsp+8 u c-8\n"
			"0000000000401002 rsp+8 s c-8\n" END },
		{ "extended forms",
		  "41050602"
		  "41110603"
		  "412f0604"
		  "2e7f",
		  FIRST "0000000000401001 rsp+8 c-16 c-8\n0000000000401002 rsp+8 c-24 c-8\n"
			"0000000000401003 rsp+8 c+32 c-8\n" END },
		{ "signed CFA",
		  "41120778"
		  "411370",
		  FIRST "0000000000401001 rsp+64 s c-8\n0000000000401002 rsp+128 s c-8\n" END },
		{ "return address undefined", "410710", FIRST "0000000000401001 stop\n" END },
		{ "return address in a register", "41091005", FIRST "0000000000401001 rsp+8 s =rdi+0\n" END },
		{ "return address elsewhere", "410e20900341140602",
		  FIRST "0000000000401001 rsp+32 s c-24\n"
			"0000000000401002 rsp+32 =c-16 c-24\n" END },
		{ "return address popped, but not in entry code", "410e00",
		  FIRST "0000000000401001 unsupported\n" END },
		{ "CFA by another register", "410c0a10", FIRST "0000000000401001 r10+16 s c-8\n" END },
		{ "CFA not in words", "410e0c", FIRST "0000000000401001 rsp+12 s c-8\n" END },
		{ "CFA far",
		  "410e8080800441"
		  "0ef8ff1f",
		  FIRST "0000000000401001 rsp+8388608 s c-8\n0000000000401002 rsp+524280 s c-8\n" END },
		{ "PLT",
		  "410f0b77088000"
		  "3f1a3b2a332422",
		  FIRST "0000000000401001 plt:11 s c-8\n" END },
		{ "PLT with endbr64",
		  "410f0b77088000"
		  "3f1a3a2a332422",
		  FIRST "0000000000401001 plt:10 s c-8\n" END },
		{ "almost a PLT",
		  "410f0b77088000"
		  "3f1a3b2a332423",
		  FIRST "0000000000401001 unsupported\n" END },
		{ "realigned stack",
		  "410f0376780"
		  "6",
		  FIRST "0000000000401001 *(rbp-8)+0 s c-8\n" END },
		{ "CFA in memory plus",
		  "410f077708"
		  "0623082308",
		  FIRST "0000000000401001 *(rsp+8)+16 s c-8\n" END },
		{ "the same with a literal",
		  "410f0577080"
		  "63822",
		  FIRST "0000000000401001 *(rsp+8)+8 s c-8\n" END },
		{ "a register behind an expression", "410e20410f03770806410e38410d07",
		  FIRST "0000000000401001 rsp+32 s c-8\n0000000000401002 *(rsp+8)+0 s c-8\n"
			"0000000000401004 rsp+56 s c-8\n" END },
		{ "constants", "410f0c77080a1000220d0000000022", FIRST "0000000000401001 rsp+24 s c-8\n" END },
		{ "minus",
		  "410f05"
		  "7708"
		  "09f81c",
		  FIRST "0000000000401001 rsp+16 s c-8\n" END },
		{ "frame register at an expression",
		  "41100602"
		  "7668",
		  FIRST "0000000000401001 rsp+8 @rbp-24 c-8\n" END },
		{ "frame register by value",
		  "41160602"
		  "7668",
		  FIRST "0000000000401001 rsp+8 =rbp-24 c-8\n" END },
		{ "frame register too deep",
		  "411006037668"
		  "06",
		  FIRST "0000000000401001 rsp+8 u c-8\n" END },
		{ "offset from the CFA",
		  "41100602"
		  "2368",
		  FIRST "0000000000401001 rsp+8 c+104 c-8\n" END },
	};

	(void)state;
	run_programs(EM_X86_64,
		     "0c0708"
		     "9001",
		     cases, ARRAY_SIZE(cases));
}

#undef FIRST
#define FIRST "0000000000401000 sp+0 s s\n"

static void follows_programs_of_aarch64(void **state)
{
	static const struct program cases[] = {
		{ "nothing", "", FIRST END },
		{ "stp x29, x30, [sp, #-32]!; mov x29, sp; ret",
		  "440e209d049e03440c1d20"
		  "4cdedd0c1f00",
		  FIRST "0000000000401004 sp+32 c-32 c-24\n0000000000401008 x29+32 c-32 c-24\n"
			"0000000000401014 sp+0 s s\n" END },
		{ "x30 alone", "440e109e02", FIRST "0000000000401004 sp+16 s c-16\n" END },
		{ "x29 alone", "440e109d02", FIRST "0000000000401004 sp+16 c-16 s\n" END },
		{ "apart", "440e209d049e01", FIRST "0000000000401004 sp+32 c-32 c-8\n" END },
		{ "signed return address", "442d440e109d029e01", FIRST "0000000000401008 sp+16 c-16 c-8\n" END },
		{ "root", "44071e", FIRST "0000000000401004 stop\n" END },
	};

	(void)state;
	run_programs(EM_AARCH64, "0c1f00", cases, ARRAY_SIZE(cases));
}

/* What is malformed is left out; what stands beside it is not. */
static void leaves_out_what_is_malformed(void **state)
{
	static const struct {
		const char *name, *hex;
	} cases[] = {
		{ "unknown opcode", "410e103c" },
		{ "operand cut off", "410e" },
		{ "block longer than the entry", "410f7f77" },
		{ "restore_state of nothing", "410b" },
		{ "set_loc backwards", "440100104000000000000"
				       "e10" },
		{ "LEB128 of 70 bits", "410effffffffffffffffff7f" },
		{ "product too large", "41050680808080808080808001" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
		struct unwind_stats stats = { 0 };
		static struct image m;
		uint32_t cie;

		print_message("  %s\n", cases[i].name);
		start_code(&m, false);
		cie = add_usual_cie(&m);
		add_fde(&m, cie, CODE, 0x40, cases[i].hex);
		add_fde(&m, cie, CODE + 0x100, 0x40, "");
		end_image(&m, ".eh_frame");
		assert_int_equal(rows_of(&m, &text, &stats), 0);
		assert_text(&text, "0000000000401100 rsp+8 s c-8\n0000000000401140 none\n");
		assert_int_equal(stats.bad, 1);
		assert_int_equal(stats.fdes, 1);
	}
}

static void orders_functions(void **state)
{
	static struct image m;
	uint32_t cie;

	(void)state;
	start_code(&m, false);
	cie = add_usual_cie(&m);
	add_fde(&m, cie, CODE + 0x200, 0x20, "0e18");
	add_fde(&m, cie, CODE, 0x20, "0e10");          /* out of order */
	add_fde(&m, cie, CODE, 0x20, "0e38");          /* once more: the first counts */
	add_fde(&m, cie, CODE + 0x10, 0x20, "440e20"); /* its first half is taken */
	add_fde(&m, cie, CODE + 0x3f, 0x11, "0e28");   /* 15 bytes of padding before it */
	add_fde(&m, cie, CODE + 0x60, 0x10, "0e30");   /* 16: a gap */
	add_fde(&m, cie, CODE + 0x2fff, 0x100, "");    /* the file ends inside */
	add_fde(&m, cie, 0, 0x100, "0e40");            /* not in this file */
	assert_rows(&m, "0000000000401000 rsp+16 s c-8\n"
			"0000000000401020 rsp+32 s c-8\n"
			"000000000040103f rsp+40 s c-8\n"
			"0000000000401050 none\n"
			"0000000000401060 rsp+48 s c-8\n"
			"0000000000401070 none\n"
			"0000000000401200 rsp+24 s c-8\n"
			"0000000000401220 none\n"
			"0000000000403fff rsp+8 s c-8\n");
}

static void places_signal_frames(void **state)
{
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5 };
	static struct image m;
	uint32_t plain, cie;

	(void)state;
	start_code(&m, false);
	put(&m, 0x1100, sigreturn, sizeof(sigreturn));
	put(&m, 0x1201, sigreturn, sizeof(sigreturn));
	plain = add_usual_cie(&m);
	cie = add_cie(&m, "zRS", 16, "0c07089001");
	add_fde(&m, plain, CODE, 0x100, "");
	add_fde(&m, cie, CODE + 0x100, 9, "410e10");    /* begins with the code */
	add_fde(&m, cie, CODE + 0x200, 10, "410e10");   /* begins one byte before it, as glibc's */
	add_fde(&m, cie, CODE + 0x300, 0x10, "410e10"); /* no trampoline at all */
	assert_rows(&m, "0000000000401000 rsp+8 s c-8\n"
			"00000000004010ff signal\n"
			"0000000000401109 none\n"
			"0000000000401200 signal\n"
			"000000000040120a none\n"
			"0000000000401300 rsp+8 s c-8\n"
			"0000000000401301 rsp+16 s c-8\n"
			"0000000000401310 none\n");
}

/* There is no byte before the first one of a segment, and no page of the table for it. */
static void places_a_signal_frame_first(void **state)
{
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5 };
	const Elf64_Phdr code = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = CODE - BASE,
				  .p_vaddr = CODE,
				  .p_filesz = 0x1000,
				  .p_memsz = 0x1000 };
	static struct image m;

	(void)state;
	start_code(&m, false);
	put(&m, sizeof(Elf64_Ehdr), &code, sizeof(code));
	put(&m, CODE - BASE, sigreturn, sizeof(sigreturn));
	add_fde(&m, add_cie(&m, "zRS", 16, "0c07089001"), CODE, 9, "410e10");
	assert_rows(&m, "0000000000401000 signal\n"
			"0000000000401009 none\n");
}

/* .debug_frame: version 4, then a function of CODE; @is_64: in DWARF's 64-bit form. */
static void add_debug_frame(struct image *m, bool is_64)
{
	if (is_64) {
		add_hex(m, "ffffffff"
			   "1700000000000000"
			   "ffffffffffffffff"
			   "04000800"
			   "017810"
			   "0c07089001"
			   "000000");
		add_hex(m, "ffffffff"
			   "1b00000000000000"
			   "0000000000000000"
			   "0010400000000000"
			   "4000000000000000"
			   "410e10");
		return;
	}
	add_hex(m, "13000000"
		   "ffffffff"
		   "04000800"
		   "017810"
		   "0c07089001"
		   "000000");
	add_hex(m, "17000000"
		   "00000000"
		   "0010400000000000"
		   "4000000000000000"
		   "410e10");
}

#define DEBUG_ROWS                        \
	"0000000000401000 rsp+8 s c-8\n"  \
	"0000000000401001 rsp+16 s c-8\n" \
	"0000000000401040 none\n"

static void reads_debug_frame(void **state)
{
	(void)state;
	for (int is_64 = 0; is_64 < 2; is_64++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
		static struct image m;

		start_code(&m, false);
		add_debug_frame(&m, is_64);
		end_image(&m, ".debug_frame");
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_text(&text, DEBUG_ROWS);
	}
}

/* The program has rows for one function, its debug file for that one and another. */
static void adds_the_debug_file(void **state)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m, d;
	struct reader in = reader_of(m.bytes, IMAGE_SIZE), debug_in = reader_of(d.bytes, IMAGE_SIZE);
	scoped(elf_release) struct elf elf = { 0 }, debug = { 0 };

	(void)state;
	start_code(&m, false);
	add_function(&m, CODE + 0x20, 0x10, "0e40");
	end_image(&m, ".eh_frame");
	start_code(&d, false);
	add_debug_frame(&d, false);
	end_image(&d, ".debug_frame");
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(elf_parse(&debug_in, &debug), 0);
	assert_int_equal(unwind_table_build(&elf, &debug, &t), 0);
	unwind_text(&elf, &t, &text);
	assert_text(&text, "0000000000401000 rsp+8 s c-8\n"
			   "0000000000401001 rsp+16 s c-8\n"
			   "0000000000401020 rsp+64 s c-8\n"
			   "0000000000401030 rsp+16 s c-8\n"
			   "0000000000401040 none\n");
}

/* Many functions of the program lie in one of the debug file that has many rows of its own: it is cut into many pieces,
 * whose rows are found without going through them all. Seconds of work once, per file that anybody can map. */
#define CUT_COUNT 100000
#define CUT_STEP 20 /* a function of 4 bytes, and a gap that counts as one */
#define CUT_ROWS 300000
#define CUT_CODE ((uint64_t)CUT_COUNT * CUT_STEP)

static void start_large(struct image *m, struct reader *in, uint8_t *bytes, size_t size, const char *name, size_t frame)
{
	start_code(m, false);
	m->frame_size = frame;
	end_image(m, name);
	memcpy(bytes, m->bytes, FRAME_AT);
	*in = reader_of(bytes, size);
}

static size_t put_words(uint8_t *to, size_t at, const uint32_t *words, size_t count)
{
	memcpy(to + at, words, count * 4);
	return at + count * 4;
}

static size_t fill_many(uint8_t *to)
{
	size_t at = put_words(to, 0, (const uint32_t[]){ 16, 0, 0x78010001, 0x08070c10, 0x0190 }, 5);

	for (uint32_t i = 0; i < CUT_COUNT; i++)
		at = put_words(to, at, (const uint32_t[]){ 20, (uint32_t)at + 4, CODE + i * CUT_STEP, 0, 4, 0 }, 6);
	return at;
}

static size_t fill_one(uint8_t *to)
{
	size_t at = put_words(to, 0, (const uint32_t[]){ 16, UINT32_MAX, 0x78010001, 0x08070c10, 0x0190 }, 5);

	at = put_words(to, at, (const uint32_t[]){ 20 + CUT_ROWS * 3, 0, CODE, 0, CUT_CODE, 0 }, 6);
	for (size_t i = 0; i < CUT_ROWS; i++, at += 3)
		memcpy(to + at, i & 1 ? "\x41\x0e\x10" : "\x41\x0e\x18", 3);
	return at;
}

static void cuts_a_function_into_many_pieces(void **state)
{
	enum { SIZE = MIB(8) };
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(freep) uint8_t *bytes = calloc(2, SIZE);
	scoped(elf_release) struct elf elf = { 0 }, debug = { 0 };
	static struct image m;
	struct reader in, debug_in;
	clock_t before = clock();

	(void)state;
	assert_non_null(bytes);
	start_large(&m, &in, bytes, SIZE, ".eh_frame", fill_many(bytes + FRAME_AT));
	start_large(&m, &debug_in, bytes + SIZE, SIZE, ".debug_frame", fill_one(bytes + SIZE + FRAME_AT));
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(elf_parse(&debug_in, &debug), 0);
	elf.segments[0].file_size = elf.segments[0].memory_size = SIZE;
	assert_int_equal(unwind_table_build(&elf, &debug, &t), 0);
	for (uint32_t i = 0; i < CUT_COUNT; i += 997) { /* 4 bytes rsp+8, then what the one function says there */
		uint64_t at = CODE - BASE + (uint64_t)i * CUT_STEP;
		uint64_t odd = MIN((uint64_t)i * CUT_STEP + 5, (uint64_t)CUT_ROWS) & 1;

		assert_int_equal(unwind_table_find(t.elements, at + 3)->cfa_off, 1);
		assert_int_equal(unwind_table_find(t.elements, at + 5)->cfa_off, odd ? 3 : 2);
	}
	assert_true((clock() - before) / CLOCKS_PER_SEC < 5); /* 15 billion rows looked at take longer */
}

static void unpacks_debug_frame(void **state)
{
	(void)state;
	for (uint32_t type = ELFCOMPRESS_ZLIB; type <= 3; type++) { /* 2: zstd; 3: unknown */
		for (int wrong = 0; wrong < 2; wrong++) {
			scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
			static struct image plain, m;
			uint8_t packed[512];
			uLongf size = sizeof(packed);

			start_code(&plain, false);
			add_debug_frame(&plain, false);
			if (type == ELFCOMPRESS_ZLIB)
				assert_int_equal(compress(packed, &size, plain.bytes + FRAME_AT, plain.frame_size), 0);
			else
				size = ZSTD_compress(packed, size, plain.bytes + FRAME_AT, plain.frame_size, 3);
			start_code(&m, false);
			add_u32(&m, type);
			add_u32(&m, 0);
			add_u64(&m, plain.frame_size + (wrong ? 1 : 0));
			add_u64(&m, 1);
			add(&m, packed, size);
			end_image_as(&m, ".debug_frame", SHF_COMPRESSED);
			if (type == 3 || wrong) {
				assert_int_equal(rows_of(&m, &text, NULL), -EBADMSG);
				continue;
			}
			assert_int_equal(rows_of(&m, &text, NULL), 0);
			assert_text(&text, DEBUG_ROWS);
		}
	}
}

static void refuses_what_is_too_large(void **state)
{
	scoped(elf_release) struct elf elf = { 0 };
	static struct image m;
	struct unwind_table t = { .source = UNWIND_SOURCE_GO };
	struct reader in = reader_of(m.bytes, IMAGE_SIZE);

	(void)state;
	start_code(&m, false);
	end_image(&m, ".eh_frame");
	assert_int_equal(elf_parse(&in, &elf), 0);
	elf.in.size = (uint64_t)4 << 30; /* a sparse file */
	elf.sections[1].size = (uint64_t)2 << 30;
	assert_int_equal(unwind_table_build(&elf, NULL, &t), -E2BIG);
	assert_int_equal(t.source, UNWIND_SOURCE_GO); /* untouched on failure */
}

static int read_broken(void *self, void *dst, size_t size, uint64_t offset)
{
	const struct image *m = self;

	if (offset + size > FRAME_AT + 20)
		return -EIO;
	memcpy(dst, m->bytes + offset, size);
	return 0;
}

static void reports_a_failing_read(void **state)
{
	scoped(elf_release) struct elf elf = { 0 };
	static struct image m;
	struct unwind_table t;
	struct reader in = { .read = read_broken, .self = &m, .size = IMAGE_SIZE };

	(void)state;
	start_code(&m, false);
	add_function(&m, CODE, 0x10, "0e40");
	end_image(&m, ".eh_frame");
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(unwind_table_build(&elf, NULL, &t), -EIO);
}

static void recognises_bare_code(void **state)
{
	/* musl: entry code; the child side of __clone; __restore_rt */
	static const uint8_t entry[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 0, 0,
					 0,    0,    0x48, 0x83, 0xe4, 0xf0, 0xe8, 2,    0,    0, 0 };
	static const uint8_t clone[] = { 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7,
					 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4 };
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5 };
	static struct image m;

	(void)state;
	start_code(&m, true);
	put(&m, 0x1000, entry, sizeof(entry));
	put(&m, 0x1200, clone, sizeof(clone));
	put(&m, 0x1301, sigreturn, sizeof(sigreturn));
	assert_rows(&m, "0000000000401000 stop\n"
			"0000000000401016 none\n"
			"0000000000401200 stop\n"
			"000000000040120e none\n"
			"0000000000401300 signal\n"
			"000000000040130a none\n");
}

/* As crti.o, crtn.o and crtbeginS.o of GCC 12 have them; the distances are ours. */
#define CRT_INIT "4883ec08488b05112233004885c07402ffd04883c408c3"
#define CRT_REGISTER                                                                     \
	"488d3d00112200488d35001122004829fe4889f048c1ee3f48c1f8034801c648d1fe7414488b05" \
	"000011004885c07408ffe0660f1f440000c3"
#define CRT_DEREGISTER "488d3d11223300488d05112233004839f87415488b05112233004885c07409ffe00f1f8000000000c3"
#define CRT_DTORS                                                                        \
	"f30f1efa803d1122330000752b5548833d11223300004889e5740c488b3d11223300e8f9e5ffff" \
	"e864ffffffc60511223300015dc30f1f00c3"
#define CRT_DUMMY "f30f1efae977ffffff"
#define V8_PUSH_REGISTERS                        \
	"554889e568cdcdcd0053415441554156415749" \
	"89d04889e241ffd04883c4305dc3"

static void put_hex(struct image *m, size_t at, const char *hex)
{
	for (size_t i = 0; hex[2 * i]; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		put(m, at + i, &(uint8_t){ (uint8_t)byte }, 1);
	}
}

static void put_crt(struct image *m)
{
	start_code(m, false);
	m->frame_size = 0;
	put_hex(m, 0x1000, CRT_INIT);
	put_hex(m, 0x1100, CRT_DEREGISTER);
	put_hex(m, 0x1130, CRT_REGISTER);
	put_hex(m, 0x1170, CRT_DTORS);
	put_hex(m, 0x11b0, CRT_DUMMY);
	put_hex(m, 0x11d0, V8_PUSH_REGISTERS);
	add_fde(m, add_cie(m, "zR", 16, "0c07089001"), CODE + 0x20, 0x40, "");
	add_fde(m, add_cie(m, "zR", 16, "0c07089001"), CODE + 0x400, 0x40, "");
	end_image(m, ".eh_frame");
}

static void knows_the_compilers_start_code(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m;

	(void)state;
	put_crt(&m);
	assert_int_equal(rows_of(&m, &text, NULL), 0);
	assert_text(&text, "0000000000401000 rsp+8 s c-8\n"
			   "0000000000401004 rsp+16 s c-8\n"
			   "0000000000401016 rsp+8 s c-8\n"
			   "0000000000401060 none\n"
			   "0000000000401100 rsp+8 s c-8\n"
			   "000000000040117e rsp+16 c-16 c-8\n"
			   "00000000004011a4 rsp+8 s c-8\n"
			   "00000000004011b9 none\n"
			   "00000000004011d0 rsp+8 s c-8\n"
			   "00000000004011d1 rsp+16 c-16 c-8\n"
			   "00000000004011d4 rbp+16 c-16 c-8\n"
			   "00000000004011f0 rsp+8 s c-8\n"
			   "00000000004011f1 none\n"
			   "0000000000401400 rsp+8 s c-8\n"
			   "0000000000401440 none\n");
}

/* One byte of each function is another one. */
static void believes_no_other_start_code(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t byte;
		const char *gone;
	} cases[] = {
		{ "_init takes more", 0x1003, 0x10, "401004" },
		{ "_init gives back less", 0x1015, 0x00, "401004" },
		{ "_init jumps elsewhere", 0x100f, 0x06, "401004" },
		{ "_init does not return", 0x1016, 0x90, "401004" },
		{ "destructors: pushes another register", 0x117d, 0x53, "40117e" },
		{ "destructors: another jump", 0x117c, 0x2a, "40117e" },
		{ "destructors: pops another register", 0x11a3, 0x5b, "40117e" },
		{ "destructors: does not return", 0x11a8, 0x90, "40117e" },
		{ "frame_dummy jumps elsewhere", 0x11b5, 0x78, "4011b9" },
		{ "register_tm_clones does not return", 0x1168, 0x90, "4011b9" },
		{ "V8's: makes no frame", 0x11d2, 0x8b, "4011d4" },
		{ "V8's: gives back less", 0x11ee, 0x28, "4011d4" },
		{ "V8's: pops another register", 0x11ef, 0x5b, "4011d4" },
	};
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		put_crt(&m);
		put(&m, cases[i].at, &cases[i].byte, 1);
		buf_clear(&text);
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_true(str_search(buf_str(&text), str_of(cases[i].gone)) < 0);
		assert_true(str_search(buf_str(&text), STR("401400 rsp+8")) > 0);
	}
}

/* glibc: entry code and __start_context; Boost: the end of make_fcontext. */
static const uint8_t glibc_entry[] = { 0x31, 0xed, 0x49, 0x89, 0xd1, 0xe8, 0, 0, 0, 0, 0xf4 };
static const uint8_t start_context[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x08, 0xe8,
					 0,    0,    0,    0,    0x48, 0x89, 0xc7, 0xe8, 0,    0,    0,    0,    0xf4 };
static const uint8_t fcontext[] = { 0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8, 0, 0, 0, 0, 0xf4 };

static void recognises_roots_of_coroutines(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m;
	uint32_t cie;

	(void)state;
	start_code(&m, true);
	put(&m, 0x1000, glibc_entry, sizeof(glibc_entry));
	put(&m, 0x1400, start_context, sizeof(start_context));
	put(&m, 0x1600, fcontext, sizeof(fcontext));
	cie = add_usual_cie(&m);
	add_fde(&m, cie, CODE + 0x300, 0x100, "0e10");
	add_fde(&m, cie, CODE + 0x400, sizeof(start_context), "");
	assert_rows(&m, "0000000000401000 stop\n"
			"000000000040100b none\n"
			"0000000000401300 rsp+16 s c-8\n"
			"00000000004013ff stop\n"
			"000000000040141a none\n"
			"0000000000401600 stop\n"
			"000000000040160c none\n");
	/* The function before ends in a return, or in a call that does not return: a frame there has a caller. */
	for (size_t i = 0; i < 2; i++) {
		put(&m, 0x13fb, i ? "\xe8\0\0\0" : "\x90\x90\x90\x90", 4);
		put(&m, 0x13ff, i ? "\0" : "\xc3", 1);
		buf_clear(&text);
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_text(&text, "0000000000401000 stop\n"
				   "000000000040100b none\n"
				   "0000000000401300 rsp+16 s c-8\n"
				   "0000000000401400 stop\n"
				   "000000000040141a none\n"
				   "0000000000401600 stop\n"
				   "000000000040160c none\n");
	}
}

/* musl: _start; _start_c; __libc_start_main; libc_start_main_stage2. */
static void recognises_start_code_of_musl(void **state)
{
	static const uint8_t entry[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 0, 0,
					 0,    0,    0x48, 0x83, 0xe4, 0xf0, 0xe8, 0xea, 0,    0, 0 };
	static const uint8_t start_c[] = { 0x8b, 0x37, 0xe9, 0xf9, 0, 0, 0 };
	static const uint8_t start_main[] = {
		0x55, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x05, 0xf3, 0, 0, 0, 0x5d, 0xff, 0xe0
	};
	static const uint8_t stage2[] = { 0x53, 0xe8, 0, 0, 0, 0, 0xff, 0xd3, 0x89, 0xc7, 0xe8, 0, 0, 0, 0 };
	static const struct {
		const char *name;
		size_t at;
		uint8_t byte;
		bool is_root;
	} cases[] = {
		{ "as it is", 0x1000, 0x48, true },
		{ "another program's entry", 0x1002, 0xec, false },
		{ "a function that returns before", 0x1300, 0xc3, false },
		{ "main's value goes elsewhere", 0x1309, 0xc6, false },
		{ "nothing is called behind", 0x130a, 0x90, false },
	};
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		start_code(&m, true);
		put(&m, 0x1000, entry, sizeof(entry));
		put(&m, 0x1100, start_c, sizeof(start_c));
		put(&m, 0x1200, start_main, sizeof(start_main));
		put(&m, 0x1300, stage2, sizeof(stage2));
		put(&m, cases[i].at, &cases[i].byte, 1);
		add_function(&m, CODE + 0x2000, 16, "");
		end_image(&m, ".eh_frame");
		buf_clear(&text);
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_int_equal(str_search(buf_str(&text), STR("0000000000401300 stop\n000000000040130f none\n")) >= 0,
				 cases[i].is_root);
	}
}

/* glibc: between two tables of one function; musl: without any. */
static void recognises_clones_system_call(void **state)
{
	static const uint8_t glibc[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x10, 0x74, 0x01, 0xc3, 0x31, 0xed };
	static const uint8_t musl[] = { 0x0f, 0x05, 0x85, 0xc0, 0x75, 0x10, 0x31, 0xed, 0x5f, 0x41, 0xff,
					0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4 };
	static struct image m;
	uint32_t cie;

	(void)state;
	start_code(&m, false);
	put(&m, 0x1110, glibc, sizeof(glibc));
	put(&m, 0x1300, musl, sizeof(musl));
	cie = add_usual_cie(&m);
	add_fde(&m, cie, CODE + 0x100, 0x10, "");
	add_fde(&m, cie, CODE + 0x11a, 0x20, "0710");
	assert_rows(&m, "0000000000401100 rsp+8 s c-8\n"
			"0000000000401110 forked:rsp+8 s c-8\n"
			"000000000040111a stop\n"
			"000000000040113a none\n"
			"0000000000401300 forked:rsp+8 s c-8\n"
			"0000000000401306 stop\n"
			"0000000000401314 none\n");
}

/* What only looks like it keeps its own rules. */
static void believes_no_other_code_to_be_a_root(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t byte;
	} cases[] = {
		{ "another program starts here", 0x1000, 0x90 },
		{ "does not end", 0x1419, 0x90 },
		{ "another register", 0x1402, 0xdb },
		{ "jumps elsewhere", 0x140b, 0x09 },
	};
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	static struct image m;
	uint64_t start = CODE;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		start_code(&m, false);
		m.frame_size = 0;
		put(&m, offsetof(Elf64_Ehdr, e_entry), &start, 8);
		put(&m, 0x1000, glibc_entry, sizeof(glibc_entry));
		put(&m, 0x1400, start_context, sizeof(start_context));
		put(&m, 0x1600, fcontext, sizeof(fcontext));
		put(&m, 0x160b, "\x90", 1); /* no hlt behind _exit */
		put(&m, cases[i].at, &cases[i].byte, 1);
		add_function(&m, CODE + 0x400, sizeof(start_context), "");
		end_image(&m, ".eh_frame");
		buf_clear(&text);
		assert_int_equal(rows_of(&m, &text, NULL), 0);
		assert_true(str_search(buf_str(&text), STR("401400 rsp+8 s c-8\n")) > 0 ||
			    str_starts(buf_str(&text), STR("0000000000401400 rsp+8 s c-8\n")));
		assert_true(str_search(buf_str(&text), STR("401600")) < 0);
	}
}

/* The rows of a file of the fuzz corpus, whose first byte is not part of it. */
static void assert_rows_of_seed(const char *name, enum unwind_source source, const char *want)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64)), text = BUF_INIT(KIB(64)), path = BUF_INIT(4096);
	scoped(elf_release) struct elf elf = { 0 };
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	struct reader in;

	if (!root)
		skip_because("HEARTH_SOURCE_ROOT is not set");
	buf_addf(&path, "%s/tests/corpus/cfi/%s", root, name);
	assert_int_equal(io_read_file(buf_cstr(&path), &bytes), 0);
	in = reader_of(bytes.ptr + 1, bytes.len - 1);
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(unwind_table_build(&elf, NULL, &t), 0);
	assert_int_equal(t.source, source);
	check_table(&elf, &t);
	unwind_text(&elf, &t, &text);
	assert_text(&text, want);
}

/* Made by hand: a nop and the call of rt_sigreturn; a function with an early return; a leaf. */
static void makes_rows_for_the_vdso_of_aarch64(void **state)
{
	(void)state;
	assert_rows_of_seed("vdso_aarch64", UNWIND_SOURCE_CFI,
			    "000000000000021b signal\n"
			    "0000000000000224 sp+0 s s\n"
			    "000000000000022c sp+48 c-48 c-40\n"
			    "0000000000000238 sp+0 s s\n"
			    "000000000000023c sp+48 c-48 c-40\n"
			    "0000000000000244 sp+0 s s\n"
			    "0000000000000254 none\n");
}

/* Made by hand: goexit, mcall (leaves its stack), a plain function, sigreturn. */
static void reads_go_functions(void **state)
{
	(void)state;
	assert_rows_of_seed("go", UNWIND_SOURCE_GO,
			    "0000000000400400 stop\n"
			    "0000000000400410 rsp+8 s c-8\n"
			    "0000000000400411 rsp+16 s c-8\n"
			    "0000000000400414 rsp+16 c-16 c-8\n"
			    "0000000000400418 stop\n"
			    "0000000000400430 rsp+8 s c-8\n"
			    "0000000000400434 rsp+16 s c-8\n"
			    "0000000000400437 rsp+32 s c-8\n"
			    "0000000000400438 rsp+32 c-16 c-8\n"
			    "0000000000400455 rsp+16 c-16 c-8\n"
			    "0000000000400456 rsp+8 s c-8\n"
			    "0000000000400457 signal\n"
			    "0000000000400468 none\n");
}

/* The kernel's own, as it is in this process; then as if its section table had been left out. */
static void reads_the_vdso(void **state)
{
	const uint8_t *image = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	scoped(buf_release) struct buf with = BUF_INIT(KIB(64)), without = BUF_INIT(KIB(64));
	static uint8_t copy[4096 * 2];

	(void)state;
	if (!image)
		skip_because("no vDSO in this process");
	for (int bare = 0; bare < 2; bare++) {
		scoped(unwind_table_release) struct unwind_table t = { 0 };
		struct reader in = reader_of(copy, sizeof(copy));
		scoped(elf_release) struct elf elf = { 0 };

		memcpy(copy, image, 4096); /* its first page is all of it, or its second can be read, too */
		if (((const Elf64_Ehdr *)(const void *)image)->e_shoff >= 4096)
			memcpy(copy + 4096, image + 4096, 4096);
		if (bare)
			memset(copy + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(elf.section_count == 0, bare);
		assert_int_equal(unwind_table_build(&elf, NULL, &t), 0);
		assert_true(t.elements != NULL);
		check_table(&elf, &t);
		unwind_text(&elf, &t, bare ? &without : &with);
	}
	print_message("  %zu bytes of rows\n", with.len);
	assert_text(&without, buf_cstr(&with));
}

static int read_file(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static void reads_real_files(void **state)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3", "/usr/bin/git",
					     "/proc/self/exe" };
	int found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		scoped(unwind_table_release) struct unwind_table t = { 0 };
		scoped(closep) int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		scoped(elf_release) struct elf elf = { 0 };
		struct stat st;
		struct reader in = { .read = read_file, .self = &fd };

		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		in.size = (uint64_t)st.st_size;
		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(unwind_table_build(&elf, NULL, &t), 0);
		assert_int_equal(t.source, UNWIND_SOURCE_CFI);
		assert_int_equal(t.stats.bad, 0);
		print_message("  %s: %llu rows\n", paths[i], (unsigned long long)t.stats.rows);
		check_table(&elf, &t);
		found++;
	}
	if (!found)
		skip_because("no ELF file to read");
}

static int build_failing(void *ctx)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	struct image *m = ctx;
	struct reader in = reader_of(m->bytes, IMAGE_SIZE);
	scoped(elf_release) struct elf elf = { 0 };
	int r = elf_parse(&in, &elf);

	return r < 0 ? r : unwind_table_build(&elf, NULL, &t);
}

static void survives_failing_allocations(void **state)
{
	static struct image m;
	uint32_t cie;

	(void)state;
	start_code(&m, false);
	cie = add_usual_cie(&m);
	add_fde(&m, cie, CODE, 0x100, "410c0a10");
	add_fde(&m, cie, CODE + 0x200, 0x100, "410e10");
	end_image(&m, ".eh_frame");
	for_each_failing_allocation(build_failing, &m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_programs_of_x86),
		cmocka_unit_test(follows_programs_of_aarch64),
		cmocka_unit_test(leaves_out_what_is_malformed),
		cmocka_unit_test(orders_functions),
		cmocka_unit_test(places_signal_frames),
		cmocka_unit_test(places_a_signal_frame_first),
		cmocka_unit_test(reads_real_files),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(reads_debug_frame),
		cmocka_unit_test(adds_the_debug_file),
		cmocka_unit_test(cuts_a_function_into_many_pieces),
		cmocka_unit_test(unpacks_debug_frame),
		cmocka_unit_test(refuses_what_is_too_large),
		cmocka_unit_test(reports_a_failing_read),
		cmocka_unit_test(recognises_bare_code),
		cmocka_unit_test(knows_the_compilers_start_code),
		cmocka_unit_test(believes_no_other_start_code),
		cmocka_unit_test(recognises_roots_of_coroutines),
		cmocka_unit_test(recognises_start_code_of_musl),
		cmocka_unit_test(recognises_clones_system_call),
		cmocka_unit_test(believes_no_other_code_to_be_a_root),
		cmocka_unit_test(reads_the_vdso),
		cmocka_unit_test(makes_rows_for_the_vdso_of_aarch64),
		cmocka_unit_test(reads_go_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
