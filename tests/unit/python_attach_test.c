/* SPDX-License-Identifier: Apache-2.0 */
/* Probing and attaching over seeds of the fuzz targets (files made for this, memory of real interpreters), and over
 * memory made by hand: what starts up, what is hostile, where C libraries keep keys. */
#include "support.h"

#include <elf.h>

#include "base/io.h"
#include "fuzz/attach_recording.h"

static void read_seed(const char *folder, const char *name, struct buf *out)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/corpus/%s/%s", root ? root : ".", folder, name);
	assert_int_equal(io_read_file(path, out), 0);
}

/* ---- files ---- */

static void probes(void **state)
{
	static const struct {
		const char *name, *version, *refused;
		int loops;
		bool has_key, has_tls, has_head;
	} cases[] = {
		{ "py2.7.18", "2.7.18", "", 2, false, false, true },
		{ "py3.9.18", "3.9.18", "", 2, true, false, false },
		{ "py3.13.0", "3.13.0", "", 2, true, true, false },
		{ "py3.15.0", "3.15.0", "version 3.15.0 is not known", 2, true, true, false },
		{ "stripped3.9", "3.9.18", "", 1, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		scoped(elf_release) struct elf elf = { 0 };
		struct runtime_file file = { .elf = &elf, .path = STR("/opt/renamed"), .is_program = true };
		struct runtime_binary *binary = NULL;
		const struct python_binary *b;
		struct reader in;

		print_message("  %s\n", cases[i].name);
		read_seed("python_probe", cases[i].name, &bytes);
		in = reader_of(bytes.ptr, bytes.len);
		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(python_probe(&file, &binary), 1);
		b = (const struct python_binary *)binary;
		assert_string_equal(binary->version, cases[i].version);
		assert_string_equal(binary->refused, cases[i].refused);
		assert_int_equal(binary->loop_count, cases[i].loops);
		assert_int_equal(b->key.kind != ACCESSOR_NONE, cases[i].has_key);
		assert_int_equal(b->tls.kind == ACCESSOR_TLS_MODULE, cases[i].has_tls);
		assert_int_equal(b->interp_head != 0, cases[i].has_head);
		python_release(binary);
	}
}

static int probe_once(void *ctx)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct runtime_file file = { .elf = &elf, .path = STR("/usr/bin/python3"), .is_program = true };
	struct runtime_binary *binary = NULL;
	struct reader in = *(const struct reader *)ctx;
	int r = elf_parse(&in, &elf);

	if (r == 0)
		r = python_probe(&file, &binary);
	python_release(binary);
	return r == 1 ? 0 : r;
}

static void out_of_memory(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct reader in;

	(void)state;
	read_seed("python_probe", "py3.13.0", &bytes);
	in = reader_of(bytes.ptr, bytes.len);
	for_each_failing_allocation(probe_once, &in);
}

/* ---- memory of real interpreters ---- */

static void attaches_to_recorded(void **state)
{
	static const struct {
		const char *name;
		uint8_t ways, major, minor;
	} cases[] = {
		{ "py2.7.18", ABI_PYTHON_HOLDER, 2, 7 },
		{ "py3.6.15", ABI_PYTHON_HOLDER | ABI_PYTHON_KEY, 3, 6 },
		{ "py3.9.18", ABI_PYTHON_HOLDER | ABI_PYTHON_KEY, 3, 9 },
		{ "py3.11.7", ABI_PYTHON_HOLDER | ABI_PYTHON_KEY, 3, 11 },
		{ "py3.12.1", ABI_PYTHON_KEY | ABI_PYTHON_TLS, 3, 12 },
		{ "py3.13.0", ABI_PYTHON_KEY | ABI_PYTHON_TLS, 3, 13 },
		{ "free3.13.5", ABI_PYTHON_KEY | ABI_PYTHON_TLS, 3, 13 },
		{ "musl3.11.2", ABI_PYTHON_HOLDER | ABI_PYTHON_KEY, 3, 11 },
		{ "sid3.14", ABI_PYTHON_KEY | ABI_PYTHON_TLS, 3, 14 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
		struct recording recording;
		struct runtime_target target = { .pid = 1, .read = recording_read, .self = &recording };
		uint8_t room[RUNTIME_INFO_MAX];
		struct abi_python info;

		print_message("  %s\n", cases[i].name);
		read_seed("python_attach", cases[i].name, &bytes);
		assert_true(recording_open(cur_of(bytes.ptr, bytes.len), EM_X86_64, &recording));
		target.bias = recording.bias;
		assert_int_equal(python_attach(&recording.binary.base, &target, room), sizeof(info));
		memcpy(&info, room, sizeof(info));
		assert_int_equal(info.ways, cases[i].ways);
		assert_int_equal(info.layout.version_major, cases[i].major);
		assert_int_equal(info.layout.version_minor, cases[i].minor);
	}
}

/* ---- memory made by hand: 3.9 ---- */

#define RUNTIME 0x10000
#define INTERPRETER 0x20000
#define THREAD 0x30000
#define POINTER 0x40000 /* the thread pointer */
#define WORDS_MAX 32

struct memory {
	struct {
		uint64_t at, value;
	} words[WORDS_MAX];
	size_t count, reads;
};

static uint8_t byte_at(const struct memory *m, uint64_t at)
{
	for (size_t i = 0; i < m->count; i++)
		if (at - m->words[i].at < 8)
			return (uint8_t)(m->words[i].value >> 8 * (at - m->words[i].at));
	return 0; /* everything else is mapped and zero */
}

static int memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct memory *m = self;

	m->reads++;
	for (uint32_t i = 0; i < size; i++)
		((uint8_t *)dst)[i] = byte_at(m, at + i);
	return 0;
}

static void put(struct memory *m, uint64_t at, uint64_t value)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->words[i].at == at) {
			m->words[i].value = value;
			return;
		}
	}
	assert_true(m->count < WORDS_MAX);
	m->words[m->count].at = at;
	m->words[m->count++].value = value;
}

/* One thread; key number @key, whose value lies nowhere yet. */
static void put_process(struct memory *m, uint64_t key)
{
	*m = (struct memory){ 0 };
	put(m, RUNTIME + 32, INTERPRETER);
	put(m, INTERPRETER + 8, THREAD);
	put(m, THREAD + 16, INTERPRETER);
	put(m, THREAD + 176, POINTER);
	put(m, RUNTIME + 584, 1 | key << 32);
}

static int attach(struct memory *m, uint16_t machine, struct abi_python *out)
{
	const struct python_binary binary = { .version = python_version_find(3, 9, 2),
					      .major = 3,
					      .minor = 9,
					      .micro = 2,
					      .runtime = RUNTIME - 0x1000,
					      .machine = machine };
	const struct runtime_target target = { .pid = 1, .read = memory_read, .self = m, .bias = 0x1000 };
	uint8_t room[RUNTIME_INFO_MAX];
	int r = python_attach(&binary.base, &target, room);

	assert_true(m->reads < 2000);
	if (r > 0)
		memcpy(out, room, sizeof(*out));
	return r;
}

static void waits_for_the_start(void **state)
{
	struct abi_python info;
	struct memory m = { 0 };

	(void)state;
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN); /* no interpreter */
	put(&m, RUNTIME + 32, INTERPRETER);
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN); /* no thread */
	put(&m, INTERPRETER + 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN); /* not of this interpreter */
	put(&m, THREAD + 16, INTERPRETER);
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN); /* it does not run yet */
	put(&m, THREAD + 176, POINTER);
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN); /* no key */
	put(&m, RUNTIME + 584, 1);
	put(&m, POINTER + 784 + 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.ways, ABI_PYTHON_HOLDER | ABI_PYTHON_KEY);
	assert_int_equal(info.key_at, 792); /* key 0 is one as any other */
}

static void finds_keys(void **state)
{
	struct abi_python info;
	struct memory m;

	(void)state;
	put_process(&m, 5); /* glibc */
	put(&m, POINTER + 784 + 5 * 16 + 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.key_at, 784 + 5 * 16 + 8);
	assert_false(info.flags & ABI_PYTHON_KEY_INDIRECT);

	put_process(&m, 40); /* glibc, in the second block */
	put(&m, POINTER + 1296 + 8, 0x50000);
	put(&m, 0x50000 + 8 * 16 + 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.key_at, 1304);
	assert_int_equal(info.key_offset, 8 * 16 + 8);
	assert_true(info.flags & ABI_PYTHON_KEY_INDIRECT);

	put_process(&m, 3); /* musl 1.2 */
	put(&m, POINTER + 128, 0x50000);
	put(&m, 0x50000 + 3 * 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.key_at, 128);
	assert_int_equal(info.key_offset, 24);
	assert_true(info.flags & ABI_PYTHON_KEY_INDIRECT);

	put_process(&m, 3); /* musl 1.1 */
	put(&m, POINTER + 136, 0x50000);
	put(&m, 0x50000 + 3 * 8, THREAD);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.key_at, 136);

	put_process(&m, 5); /* another C library: a key whose value is not the thread's state is not used */
	put(&m, POINTER + 784 + 5 * 16 + 8, 0x12345);
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.ways, ABI_PYTHON_HOLDER);

	put_process(&m, 100000); /* no such key */
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	assert_int_equal(info.ways, ABI_PYTHON_HOLDER);
}

/* Objects that are 16 bytes larger, as with reference tracing. */
static void other_layouts_are_refused(void **state)
{
	struct python_binary binary = { .version = python_version_find(3, 9, 2),
					.major = 3,
					.minor = 9,
					.micro = 2,
					.runtime = RUNTIME,
					.code_type = 0x60000,
					.machine = EM_X86_64 };
	struct memory m;
	const struct runtime_target target = { .pid = 1, .read = memory_read, .self = &m };
	uint8_t room[RUNTIME_INFO_MAX];
	uint64_t text[2] = { 0 };

	(void)state;
	put_process(&m, 0);
	put(&m, 0x60000 + 240, 0x61000);
	put(&m, 0x61000, 0x62000);
	put(&m, 0x61000 + 16, 104);
	memcpy(text, "co_filename", 12);
	put(&m, 0x62000, text[0]);
	put(&m, 0x62008, text[1]);
	assert_int_equal(python_attach(&binary.base, &target, room), sizeof(struct abi_python));
	put(&m, 0x61000 + 16, 120);
	assert_int_equal(python_attach(&binary.base, &target, room), -ENOTSUP);
}

/* Where nothing has a name the interpreter is looked for among the variables: one whose thread points back. */
static void stripped_ones_are_searched(void **state)
{
	struct python_binary binary = { .version = python_version_find(3, 9, 2),
					.major = 3,
					.minor = 9,
					.micro = 2,
					.machine = EM_X86_64,
					.is_stripped = true,
					.data_start = 0xf000,
					.data_end = 0x10100 };
	struct memory m;
	const struct runtime_target target = { .pid = 1, .read = memory_read, .self = &m, .bias = 0x100 };
	uint8_t room[RUNTIME_INFO_MAX];
	struct abi_python info;

	(void)state;
	put_process(&m, 2);
	assert_int_equal(python_attach(&binary.base, &target, room), -EAGAIN);
	put(&m, RUNTIME + 40, INTERPRETER); /* the main interpreter is the first one */
	assert_int_equal(python_attach(&binary.base, &target, room), -EAGAIN);
	put(&m, POINTER, POINTER); /* as the ABI wants */
	put(&m, POINTER + 784 + 2 * 16 + 8, THREAD);
	assert_int_equal(python_attach(&binary.base, &target, room), sizeof(info));
	memcpy(&info, room, sizeof(info));
	assert_int_equal(info.interpreters, RUNTIME + 32);
	assert_int_equal(info.holder, RUNTIME + 568);
	assert_int_equal(info.ways, ABI_PYTHON_HOLDER | ABI_PYTHON_KEY);
	assert_int_equal(binary.found, RUNTIME + 32 - 0x100); /* the next process has it there */
}

/* One process says a wrong place and another one never shows any: the others are none the worse. */
static void stripped_ones_may_lie(void **state)
{
	struct python_binary binary = { .version = python_version_find(3, 9, 2),
					.major = 3,
					.minor = 9,
					.micro = 2,
					.machine = EM_X86_64,
					.is_stripped = true,
					.found = RUNTIME - 0x100 - 64,
					.data_start = 0xf000,
					.data_end = 0x10100 };
	struct memory m;
	uint64_t effort[2] = { 0 };
	struct runtime_target target = {
		.pid = 1, .read = memory_read, .self = &m, .bias = 0x100, .effort = &effort[0]
	};
	uint8_t room[RUNTIME_INFO_MAX];
	int looks = 0, r;

	(void)state;
	put_process(&m, 2);
	do
		r = python_attach(&binary.base, &target, room);
	while (r == -EAGAIN && ++looks < 100000);
	assert_int_equal(r, -ENOTSUP); /* given up: that one alone */
	assert_true(looks > 100 && binary.tries < 1 << 19);
	target.effort = &effort[1];
	put(&m, RUNTIME + 40, INTERPRETER);
	put(&m, POINTER, POINTER);
	put(&m, POINTER + 784 + 2 * 16 + 8, THREAD);
	assert_int_equal(python_attach(&binary.base, &target, room), sizeof(struct abi_python));
	assert_int_equal(binary.found, RUNTIME + 32 - 0x100);
	binary.tries = UINT64_C(1) << 40; /* others are looking in vain: it is not asked for, but the place is known */
	binary.tried_ns = 0;
	assert_int_equal(python_attach(&binary.base, &target, room), sizeof(struct abi_python));
	binary.found = 0;
	assert_int_equal(python_attach(&binary.base, &target, room), -EAGAIN); /* when time has passed */
}

static void hostile_lists_end(void **state)
{
	struct abi_python info;
	struct memory m;

	(void)state;
	put_process(&m, 0);
	put(&m, THREAD + 8, THREAD);           /* follows itself */
	put(&m, INTERPRETER + 0, INTERPRETER); /* so does this */
	assert_int_equal(attach(&m, EM_X86_64, &info), sizeof(info));
	put(&m, THREAD + 8, UINT64_MAX - 3); /* leads out of the address space */
	assert_true(attach(&m, EM_X86_64, &info) == sizeof(info) || attach(&m, EM_X86_64, &info) == -EAGAIN);
	put(&m, RUNTIME + 32, UINT64_MAX - 7);
	assert_int_equal(attach(&m, EM_X86_64, &info), -EAGAIN);
}

static void other_machines_have_the_list_alone(void **state)
{
	struct abi_python info;
	struct memory m;

	(void)state;
	put_process(&m, 0);
	assert_int_equal(attach(&m, EM_AARCH64, &info), sizeof(info));
	assert_false(info.ways & (ABI_PYTHON_KEY | ABI_PYTHON_TLS));
}

static void versions_are_in_order(void **state)
{
	const struct python_version *v, *before = NULL;

	(void)state;
	for (size_t i = 0; (v = python_version_at(i)); before = v, i++) {
		const struct abi_python_layout *l = &v->layout;

		assert_int_equal(l->version_major, v->major);
		assert_int_equal(l->version_minor, v->minor);
		assert_int_equal(python_version_find(v->major, v->minor, 255)->minor, v->minor);
		assert_true(l->frame_size <= 128);
		if (before)
			assert_true(before->major < v->major || before->minor < v->minor || before->micro < v->micro);
	}
	assert_int_equal(python_version_find(3, 7, 3)->runtime_key, 1416);
	assert_int_equal(python_version_find(3, 7, 4)->runtime_key, 1504);
	assert_null(python_version_find(3, PYTHON_NEWEST_MINOR + 1, 0));
	assert_null(python_version_find(3, 4, 9));
	assert_null(python_version_find(2, 6, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(attaches_to_recorded),
		cmocka_unit_test(waits_for_the_start),
		cmocka_unit_test(finds_keys),
		cmocka_unit_test(other_layouts_are_refused),
		cmocka_unit_test(stripped_ones_are_searched),
		cmocka_unit_test(stripped_ones_may_lie),
		cmocka_unit_test(hostile_lists_end),
		cmocka_unit_test(other_machines_have_the_list_alone),
		cmocka_unit_test(versions_are_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
