/* SPDX-License-Identifier: Apache-2.0 */
/* Probing files that say of themselves that they are Node.js, and attaching to a made-up process (fuzz/nodejs_image.h).
 */
#include "support.h"

#include <elf.h>

#include "fuzz/nodejs_image.h"

/* ---- a file: dynamic symbols and what they point to ---- */

#define CONSTANTS_MAX 128
#define HEAD KIB(1) /* ELF's head, segments, sections */
#define FILE_MAX KIB(64)

struct constant {
	const char *name;
	int32_t value;
};

/* All that the newest file must have, with values that make sense. */
static const struct constant good[] = {
	{ "_ZN2v88internal7Version6major_E", 13 },
	{ "_ZN2v88internal7Version6minor_E", 6 },
	{ "_ZN2v88internal7Version6build_E", 233 },
	{ "v8dbg_off_fp_context", -8 },
	{ "v8dbg_off_fp_function", -16 },
	{ "v8dbg_off_fp_bytecode_array", -32 },
	{ "v8dbg_off_fp_bytecode_offset", -40 },
	{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", 32 },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", 24 },
	{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", 40 },
	{ "v8dbg_class_Script__source__Object", 8 },
	{ "v8dbg_class_Script__name__Object", 16 },
	{ "v8dbg_class_String__length__int32_t", 12 },
	{ "v8dbg_class_SeqOneByteString__chars__char", 16 },
	{ "v8dbg_class_ConsString__first__String", 16 },
	{ "v8dbg_class_ConsString__second__String", 24 },
	{ "v8dbg_class_SlicedString__parent__String", 16 },
	{ "v8dbg_class_SlicedString__offset__SMI", 24 },
	{ "v8dbg_class_ThinString__actual__String", 16 },
	{ "v8dbg_class_ExternalString__resource__Object", 16 },
	{ "v8dbg_FirstNonstringType", 128 },
	{ "v8dbg_StringRepresentationMask", 7 },
	{ "v8dbg_StringEncodingMask", 8 },
	{ "v8dbg_OneByteStringTag", 8 },
	{ "v8dbg_ConsStringTag", 1 },
	{ "v8dbg_ExternalStringTag", 2 },
	{ "v8dbg_SlicedStringTag", 3 },
	{ "v8dbg_ThinStringTag", 5 },
	{ "v8dbg_class_Map__instance_type__uint16_t", 12 },
	{ "v8dbg_class_BytecodeArray__data__uintptr_t", 64 },
	{ "v8dbg_class_FixedArrayBase__length__SMI", 8 },
	{ "v8dbg_class_FixedArray__data__uintptr_t", 16 },
	{ "v8dbg_scopeinfo_idx_ncontextlocals", 2 },
	{ "v8dbg_scopeinfo_idx_first_vars", 5 },
	{ "v8dbg_class_InstructionStream__instruction_start__uintptr_t", 32 },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262 },
	{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", 261 },
	{ "v8dbg_type_Script__SCRIPT_TYPE", 167 },
	{ "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191 },
	{ "v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE", 159 },
	{ "v8dbg_type_Code__CODE_TYPE", 245 },
	{ "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE", 190 },
	{ "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", 175 },
	{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", 2066 },
	{ "v8dbg_frametype_BuiltinExitFrame", 20 },
};

static size_t put_bytes(uint8_t *file, size_t at, const void *bytes, size_t size)
{
	memcpy(file + at, bytes, size);
	return at + size;
}

/* A program of one segment: head, hash table of one bucket, symbols, names, values, what says where those are. */
static size_t make_file(uint8_t *file, const struct constant *constants, size_t count, uint16_t machine)
{
	size_t hash = HEAD, symbols = hash + 4 * (2 + 1 + count + 1), names, values, dynamic, end;
	uint32_t *table = (uint32_t *)(void *)(file + hash);

	memset(file, 0, FILE_MAX);
	symbols = (symbols + 7) & ~(size_t)7;
	names = symbols + (count + 1) * sizeof(Elf64_Sym);
	values = names + 1;
	for (size_t i = 0; i < count; i++)
		values += strlen(constants[i].name) + 1;
	values = (values + 7) & ~(size_t)7;
	dynamic = values + 8 * count;
	end = dynamic + 6 * sizeof(Elf64_Dyn);
	assert_true(end <= FILE_MAX);
	table[0] = 1;
	table[1] = (uint32_t)count + 1;
	table[2] = count ? 1 : 0;
	for (size_t i = 0, at = names + 1; i < count; i++) {
		const Elf64_Sym symbol = { .st_name = (uint32_t)(at - names),
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
					   .st_shndx = 1,
					   .st_value = values + 8 * i,
					   .st_size = 4 };

		table[3 + i + 1] = i + 1 < count ? (uint32_t)i + 2 : 0;
		put_bytes(file, symbols + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		put_bytes(file, values + 8 * i, &constants[i].value, 4);
		at = put_bytes(file, at, constants[i].name, strlen(constants[i].name) + 1);
	}
	const Elf64_Dyn entries[] = { { DT_HASH, { hash } },
				      { DT_SYMTAB, { symbols } },
				      { DT_STRTAB, { names } },
				      { DT_STRSZ, { values - names } },
				      { DT_SYMENT, { sizeof(Elf64_Sym) } },
				      { DT_NULL, { 0 } } };
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = end, .p_memsz = end, .p_align = 4096 },
		{ .p_type = PT_DYNAMIC,
		  .p_flags = PF_R,
		  .p_offset = dynamic,
		  .p_vaddr = dynamic,
		  .p_filesz = sizeof(entries),
		  .p_memsz = sizeof(entries),
		  .p_align = 8 },
	};
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
				    .e_type = ET_DYN,
				    .e_machine = machine,
				    .e_version = EV_CURRENT,
				    .e_phoff = sizeof(header),
				    .e_ehsize = sizeof(header),
				    .e_phentsize = sizeof(segments[0]),
				    .e_phnum = ARRAY_SIZE(segments),
				    .e_shentsize = sizeof(Elf64_Shdr) };

	put_bytes(file, dynamic, entries, sizeof(entries));
	put_bytes(file, put_bytes(file, 0, &header, sizeof(header)), segments, sizeof(segments));
	return end;
}

/* *refused: "" when it is accepted. Return: as probe(). */
static int probe(const struct constant *constants, size_t count, uint16_t machine, bool be_quick,
		 char refused[RUNTIME_WHY_MAX])
{
	static uint8_t bytes[FILE_MAX];
	size_t size = make_file(bytes, constants, count, machine);
	struct reader in = reader_of(bytes, size);
	struct runtime_binary *binary = NULL;
	struct elf elf = { 0 };
	const struct runtime_file file = { .elf = &elf, .path = STR("/usr/bin/node"), .be_quick = be_quick };
	int r;

	assert_int_equal(elf_parse(&in, &elf), 0);
	r = nodejs_probe(&file, &binary);
	assert_true((r == 1) == (binary != NULL));
	refused[0] = 0;
	if (binary) {
		memcpy(refused, binary->refused, RUNTIME_WHY_MAX);
		nodejs_release(binary);
	}
	elf_release(&elf);
	return r;
}

static void set(struct constant *constants, const char *name, int32_t value)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!strcmp(constants[i].name, name))
			constants[i].value = value;
}

static void files_are_refused_by_name(void **state)
{
	static const struct {
		const char *constant;
		int32_t value;
		uint16_t machine;
		const char *want;
	} cases[] = {
		{ "v8dbg_off_fp_context", -8, EM_X86_64, "" },
		{ "v8dbg_off_fp_context", -8, EM_AARCH64, "only x86-64 is known" },
		{ "_ZN2v88internal7Version6minor_E", 7, EM_X86_64, "V8 13.7.233 is not known" },
		{ "_ZN2v88internal7Version6major_E", -1, EM_X86_64, "V8 -1.6.233 is not known" },
		{ "_ZN2v88internal7Version6build_E", 1, EM_X86_64, "" }, /* another patch level */
		/* what does not fit in a constant is as good as missing */
		{ "v8dbg_off_fp_function", 40000, EM_X86_64, "it lacks v8dbg_off_fp_function" },
		{ "v8dbg_off_fp_function", 16, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_off_fp_function", -56, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_off_fp_context", -9, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_class_Map__instance_type__uint16_t", 63, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", 4, EM_X86_64,
		  "its constants make no sense" },
		{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", 512, EM_X86_64,
		  "its constants make no sense" },
		{ "v8dbg_class_String__length__int32_t", -1, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_class_BytecodeArray__data__uintptr_t", 256, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_frametype_BuiltinExitFrame", ABI_NODEJS_TYPES_MAX, EM_X86_64, "its constants make no sense" },
		{ "v8dbg_frametype_BuiltinExitFrame", 0, EM_X86_64, "its constants make no sense" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct constant constants[ARRAY_SIZE(good)];
		char refused[RUNTIME_WHY_MAX];

		print_message("  %s = %d\n", cases[i].constant, cases[i].value);
		memcpy(constants, good, sizeof(good));
		set(constants, cases[i].constant, cases[i].value);
		assert_int_equal(probe(constants, ARRAY_SIZE(good), cases[i].machine, false, refused), 1);
		assert_string_equal(refused, cases[i].want);
	}
}

/* Each one that is missing is named, or makes it another program, or is one that the table has. */
static void each_constant_is_needed(void **state)
{
	static const char *const spare[] = { "v8dbg_off_fp_bytecode_array", "v8dbg_off_fp_bytecode_offset" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct constant constants[ARRAY_SIZE(good)];
		char refused[RUNTIME_WHY_MAX];
		bool is_spare = false;
		int r;

		memcpy(constants, good, sizeof(good));
		constants[i].name = "x";
		r = probe(constants, ARRAY_SIZE(good), EM_X86_64, false, refused);
		if (!strcmp(good[i].name, "v8dbg_off_fp_context")) {
			assert_int_equal(r, 0);
			continue;
		}
		assert_int_equal(r, 1);
		for (size_t k = 0; k < ARRAY_SIZE(spare); k++)
			is_spare |= !strcmp(good[i].name, spare[k]);
		if (!strncmp(good[i].name, "_ZN", 3))
			assert_string_equal(refused, "its version of V8 cannot be found");
		else if (strcmp(refused, "its constants make no sense") != 0)
			assert_true(is_spare || str_starts(str_of(refused), STR("it lacks v8dbg_")));
	}
}

static void other_files(void **state)
{
	char refused[RUNTIME_WHY_MAX];

	(void)state;
	assert_int_equal(probe(good, 0, EM_X86_64, false, refused), 0);
	assert_int_equal(probe(good, 3, EM_X86_64, false, refused),
			 0); /* V8 without what debuggers need: Electron, Deno */
	assert_int_equal(probe(good, ARRAY_SIZE(good), EM_386, false, refused), 0);
	assert_int_equal(probe(good, ARRAY_SIZE(good), EM_X86_64, true, refused), -EINPROGRESS);
}

/* ---- a process ---- */

/* Return: as attach(). @m: made by image_make() and changed. */
static int attach(struct nodejs_image *m, const char *maps, struct abi_nodejs *info)
{
	struct runtime_target target = { .pid = 1,
					 .read = image_read,
					 .self = m,
					 .start_ns = 1,
					 .exec_id = 5,
					 .proc_dir = image_folder(maps, strlen(maps)) };
	_Alignas(uint64_t) uint8_t room[RUNTIME_INFO_MAX] = { 0 };
	int r;

	assert_true(target.proc_dir >= 0);
	r = nodejs_attach(&m->binary.base, &target, room);
	image_folder_close(target.proc_dir);
	memcpy(info, room, sizeof(*info));
	return r;
}

static const uint8_t all[][2] = { { 7, 8 }, { 8, 4 }, { 9, 4 }, { 10, 2 }, { 11, 3 }, { 12, 4 }, { 13, 6 }, { 14, 6 } };

static void each_version_is_proven(void **state)
{
	static struct nodejs_image m;
	struct abi_nodejs info;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		print_message("  V8 %d.%d\n", all[i][0], all[i][1]);
		image_make(&m, nodejs_version_find(all[i][0], all[i][1]));
		assert_int_equal(attach(&m, image_proc_maps, &info), sizeof(info));
		assert_int_equal(info.sfi_map, IMAGE_MAPS + 64 + ABI_NODEJS_TAG);
		assert_int_equal(info.bytecode_map, IMAGE_MAPS + 3 * 64 + ABI_NODEJS_TAG);
		assert_int_equal(info.script_id, 64);
		assert_int_equal(info.version_major, all[i][0]);
	}
}

/* Each constant that is proven: with another value the process is refused, or not believed yet. */
static void other_layouts_are_refused(void **state)
{
	static struct nodejs_image m;
	struct nodejs_layout *l = &m.binary.layout;
	struct abi_nodejs info;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const struct nodejs_version *v = nodejs_version_find(all[i][0], all[i][1]);

		for (int what = 0; what < 9; what++) {
			int r;

			image_make(&m, v);
			switch (what) {
			case 0:
				l->sfi_name = 24;
				break;
			case 1:
				l->sfi_script = 24;
				break;
			case 2:
				l->version.sfi_data = 24;
				break;
			case 3:
				l->version.bytecode_positions += 8;
				break;
			case 4:
				l->function_shared = 40;
				break;
			case 5:
				l->version.positions_from = v->positions_from ? 0 : -1;
				break;
			case 6:
				l->version.positions_shift = v->positions_shift ? 0 : 1;
				break;
			case 7:
				l->bytecode_sizes[0][3] = 1;
				break;
			default:
				l->string_length = 4;
				break;
			}
			r = attach(&m, image_proc_maps, &info);
			print_message("  V8 %d.%d, %d: %d\n", v->major, v->minor, what, r);
			assert_true(r == -ENOTSUP || r == -EAGAIN);
		}
	}
}

/* Where the numbers of scripts are not proven, the walk goes without them. */
static void numbers_of_scripts(void **state)
{
	static struct nodejs_image m;
	struct abi_nodejs info;

	(void)state;
	image_make(&m, nodejs_version_find(11, 3));
	m.binary.layout.script_id = 72; /* zeros */
	assert_int_equal(attach(&m, image_proc_maps, &info), sizeof(info));
	assert_int_equal(info.script_id, 0);
}

static void what_is_not_there_yet(void **state)
{
	static struct nodejs_image m;
	struct abi_nodejs info;

	(void)state;
	image_make(&m, nodejs_version_find(11, 3));
	assert_int_equal(attach(&m, strchr(image_proc_maps, '\n') + 1, &info), -EAGAIN); /* no maps of types */
	assert_int_equal(attach(&m, "", &info), -EAGAIN);
	memset(m.heap, 0, sizeof(m.heap));
	assert_int_equal(attach(&m, image_proc_maps, &info), -EAGAIN);
	image_make(&m, nodejs_version_find(11, 3));
	memset(m.heap + KIB(4) + 7 * IMAGE_EACH, 0, sizeof(m.heap) - KIB(4) - 7 * IMAGE_EACH); /* 7 of 8 */
	assert_int_equal(attach(&m, image_proc_maps, &info), -EAGAIN);
}

/* ---- names and lines ---- */

#define FUNCTION(i) (IMAGE_HEAP + KIB(4) + (i)*IMAGE_EACH)

static int read_name(struct nodejs_image *m, struct nodejs_process *p, struct buf *room, struct runtime_function *out)
{
	const struct runtime_target target = { .read = image_read, .self = m, .of_process = p, .proc_dir = -1 };
	const struct abi_nodejs info = { .sfi_map = IMAGE_MAPS + 64 + ABI_NODEJS_TAG,
					 .sfi_name = 16,
					 .sfi_script = 32,
					 .sfi_data = 8,
					 .script_id = 64 };
	__u64 words[ABI_NODEJS_SFI_WORDS];

	p->layout = m->binary.layout;
	memcpy(words, m->heap + KIB(4), sizeof(words));
	buf_clear(room);
	return nodejs_read_name(&target, &info, FUNCTION(0), walk_nodejs_cookie(nodejs_guard(&target, &info, words), 0),
				room, out);
}

/* V8 may make a table when somebody asks for it: until then the line that runs is not known, and said not to be. */
static void tables_that_are_made_late(void **state)
{
	static struct nodejs_image m;
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	const uint8_t at = nodejs_version_find(11, 3)->bytecode_positions;
	struct nodejs_process *p = calloc(1, sizeof(*p));
	struct runtime_function f;
	uint64_t table;

	(void)state;
	assert_non_null(p);
	image_make(&m, nodejs_version_find(11, 3));
	memcpy(&table, m.heap + KIB(4) + IMAGE_BYTECODE + at, sizeof(table));
	for (int i = 0; i < 2; i++) { /* a small integer; an object that is no table */
		image_put(m.heap, KIB(4) + IMAGE_BYTECODE + at, i ? FUNCTION(0) + IMAGE_SCRIPT + ABI_NODEJS_TAG : 0);
		assert_int_equal(read_name(&m, p, &room, &f), 0);
		assert_true(f.lacks_lines && str_eq(f.name, STR("work")));
		assert_int_equal(nodejs_line(&f, 0), 0);
		assert_int_equal(nodejs_line(&f, 3), 0);
	}
	image_put(m.heap, KIB(4) + IMAGE_BYTECODE + at, table);
	assert_int_equal(read_name(&m, p, &room, &f), 0);
	assert_false(f.lacks_lines);
	assert_int_equal(nodejs_line(&f, 0), 1);
	assert_int_equal(nodejs_line(&f, 3), 2);
	nodejs_unlearn(p);
}

/* In this second too much was gone through: another time. */
static void lines_that_were_too_much(void **state)
{
	static struct nodejs_image m;
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	struct nodejs_process *p = calloc(1, sizeof(*p));
	struct runtime_function f;

	(void)state;
	assert_non_null(p);
	image_make(&m, nodejs_version_find(11, 3));
	for (int try = 0; try < 10 && (!try || !f.lacks_lines); try++) { /* a second may end just then */
		nodejs_scripts_drop(p);
		assert_true(nodejs_take_scan(p, 0));
		p->scanned = NODEJS_SCAN_PER_S;
		assert_int_equal(read_name(&m, p, &room, &f), 0);
	}
	assert_true(f.lacks_lines);
	assert_int_equal(nodejs_line(&f, 3), 0);
	p->scanned = 0;
	assert_int_equal(read_name(&m, p, &room, &f), 0);
	assert_false(f.lacks_lines);
	assert_int_equal(nodejs_line(&f, 3), 2);
	nodejs_unlearn(p);
}

/* ---- compiled code ---- */

#define CODE (IMAGE_HEAP + KIB(128))
#define CODE_SIZE 256
#define PC(piece) (CODE + 64 + 100 + 8 * (uint64_t)(piece)) /* as if each were in another one */
#define PLACE(character, call) ((uint64_t)((character) + 1) << 1 | (uint64_t)((call) + 1) << 31)

static void put_at(struct nodejs_image *m, uint64_t at, uint64_t word)
{
	image_put(m->heap, (size_t)(at - IMAGE_HEAP), word);
}

/* An array of bytes, or of @length words, whose map is the one with number @map. */
static uint64_t put_array(struct nodejs_image *m, uint64_t at, size_t map, uint64_t length)
{
	put_at(m, at, IMAGE_MAPS + map * 64 + ABI_NODEJS_TAG);
	put_at(m, at + 8, length << 32);
	return at + ABI_NODEJS_TAG;
}

/* Code of function 0 with one inlined call of function 1. Its table has one entry, for place @place at @offset. */
static void put_code(struct nodejs_image *m, int64_t offset, uint64_t place)
{
	const struct nodejs_version *v = &m->binary.layout.version;
	uint64_t deopt, literals, inlining, table;
	struct buf bytes = BUF_INIT(64);

	m->binary.layout.stream_start = 64;
	image_map(m, 9, m->binary.layout.type_array);
	deopt = put_array(m, CODE + KIB(4), 9, 8);
	literals = put_array(m, CODE + KIB(5), 9, 1);
	inlining = put_array(m, CODE + KIB(6), 4, 16);
	nodejs_varint_add(&bytes, (uint64_t)(offset - v->positions_from) << 1);
	nodejs_varint_add(&bytes, place << 1);
	table = put_array(m, CODE + KIB(7), 4, bytes.len);
	memcpy(m->heap + (CODE + KIB(7) - IMAGE_HEAP) + 16, bytes.ptr, bytes.len);
	buf_release(&bytes);
	put_at(m, CODE + KIB(4) + 16 + 8 * v->deopt_inlined_count, 1ULL << 32);
	put_at(m, CODE + KIB(4) + 16 + 8 * v->deopt_literals, literals);
	put_at(m, CODE + KIB(4) + 16 + 8 * v->deopt_sfi, FUNCTION(0) + ABI_NODEJS_TAG);
	put_at(m, CODE + KIB(4) + 16 + 8 * v->deopt_inlining, inlining);
	put_at(m, CODE + KIB(5) + 16, FUNCTION(1) + ABI_NODEJS_TAG);
	put_at(m, CODE + KIB(6) + 16, PLACE(4, -1)); /* it is called there, */
	put_at(m, CODE + KIB(6) + 24, 0);            /* and is the first of the functions */
	put_at(m, CODE, IMAGE_MAPS + 7 * 64 + ABI_NODEJS_TAG);
	put_at(m, CODE + v->code_deopt, deopt);
	put_at(m, CODE + v->code_positions, table);
	put_at(m, CODE + v->code_size, CODE_SIZE);
	put_at(m, CODE + v->code_flags, v->kind_turbofan);
}

static int read_code(struct nodejs_image *m, struct nodejs_process *p, unsigned int piece, struct buf *room,
		     char remark[RUNTIME_WHY_MAX], struct runtime_function *out)
{
	const struct runtime_target target = {
		.read = image_read, .self = m, .of_process = p, .proc_dir = -1, .remark = remark
	};
	const struct abi_nodejs info = { .sfi_map = IMAGE_MAPS + 64 + ABI_NODEJS_TAG,
					 .code_map = IMAGE_MAPS + 7 * 64 + ABI_NODEJS_TAG,
					 .sfi_name = 16,
					 .sfi_script = 32,
					 .sfi_data = 8,
					 .script_id = 64 };
	__u64 words[ABI_NODEJS_SFI_WORDS], code[WALK_NODEJS_CODE_COOKIE];

	p->layout = m->binary.layout;
	memcpy(words, m->heap + KIB(4), sizeof(words));
	memcpy(code, m->heap + (PC(piece) - WALK_NODEJS_CODE_BEFORE - IMAGE_HEAP), sizeof(code));
	buf_clear(room);
	return nodejs_read_code(&target, &info, PC(piece),
				walk_nodejs_code_cookie(code, FUNCTION(0), nodejs_guard(&target, &info, words)), room,
				out);
}

/* Tables that name what is not there are not believed; a process in which all are like that is told of once, and its
 * code is hardly read until some is right. */
static void code_that_cannot_be(void **state)
{
	static const struct {
		const char *name;
		int64_t offset;
		uint64_t place;
		int want;
	} cases[] = {
		{ "an inlined call", 90, PLACE(2, 0), 0 },
		{ "no inlined call", 90, PLACE(2, -1), 0 },
		{ "a call that was not inlined", 90, PLACE(2, 1), -EBADMSG },
		{ "a place behind the code", CODE_SIZE + 1, PLACE(2, 0), -EBADMSG },
	};
	static struct runtime_shown shown[RUNTIME_EXPAND_MAX];
	static struct nodejs_image m;
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nodejs_process *p = calloc(1, sizeof(*p));
		char remark[RUNTIME_WHY_MAX] = "";
		struct runtime_function f;

		print_message("  %s\n", cases[i].name);
		assert_non_null(p);
		image_make(&m, nodejs_version_find(10, 2));
		put_code(&m, cases[i].offset, cases[i].place);
		for (unsigned int turn = 1; turn <= 2 * NODEJS_CODES_FEW;
		     turn++) { /* one piece is one, however often */
			assert_int_equal(read_code(&m, p, 1, &room, remark, &f), cases[i].want);
			assert_int_equal(remark[0], 0);
		}
		for (unsigned int piece = 2; piece <= NODEJS_CODES_FEW; piece++) {
			assert_int_equal(read_code(&m, p, piece, &room, remark, &f), cases[i].want);
			assert_int_equal(remark[0] != 0, cases[i].want && piece == NODEJS_CODES_FEW);
		}
		remark[0] = 0;
		put_code(&m, 90, PLACE(2, 0)); /* right from now on */
		for (unsigned int turn = 1; cases[i].want && turn < NODEJS_CODES_TRIED; turn++)
			assert_int_equal(read_code(&m, p, 1, &room, remark, &f), -ENOTSUP);
		for (unsigned int turn = 0; turn < 2; turn++)
			assert_int_equal(read_code(&m, p, 1, &room, remark, &f), 0);
		assert_int_equal(remark[0], 0);
		put_code(&m, cases[i].offset, cases[i].place);
		assert_int_equal(read_code(&m, p, 1, &room, remark, &f), cases[i].want);
		if (!cases[i].want) {
			assert_int_equal(nodejs_expand(&f, 0, true, shown), i ? 1 : 2);
			assert_int_equal(shown[0].line, 2); /* character 2 of "a\nb\nc\nd" */
			assert_int_equal(shown[i ? 0 : 1].line, i ? 2 : 3);
		}
		nodejs_unlearn(p);
	}
}

/* The function that was compiled is called with -1 where it is inlined into itself: a recursion is shown as one. */
static void recursion_that_is_inlined(void **state)
{
	static struct runtime_shown shown[RUNTIME_EXPAND_MAX];
	static struct nodejs_image m;
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
	char remark[RUNTIME_WHY_MAX] = "";

	(void)state;
	for (uint32_t index = UINT32_MAX - 1; index; index++) { /* the first one stands for no function */
		struct nodejs_process *p = calloc(1, sizeof(*p));
		bool is_known = index == UINT32_MAX;
		struct runtime_function f;

		assert_non_null(p);
		image_make(&m, nodejs_version_find(10, 2));
		put_code(&m, 90, PLACE(2, 0));
		put_at(&m, CODE + KIB(6) + 24, index);
		assert_int_equal(read_code(&m, p, 1, &room, remark, &f), is_known ? 0 : -EBADMSG);
		if (is_known) {
			assert_int_equal(nodejs_expand(&f, 0, true, shown), 2);
			assert_true(str_eq(shown[0].function.name, shown[1].function.name));
			assert_int_equal(shown[0].line, 2);
			assert_int_equal(shown[1].line, 3);
		}
		nodejs_unlearn(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_refused_by_name),
		cmocka_unit_test(each_constant_is_needed),
		cmocka_unit_test(other_files),
		cmocka_unit_test(each_version_is_proven),
		cmocka_unit_test(other_layouts_are_refused),
		cmocka_unit_test(numbers_of_scripts),
		cmocka_unit_test(what_is_not_there_yet),
		cmocka_unit_test(tables_that_are_made_late),
		cmocka_unit_test(lines_that_were_too_much),
		cmocka_unit_test(code_that_cannot_be),
		cmocka_unit_test(recursion_that_is_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
