/* SPDX-License-Identifier: Apache-2.0 */
/* What is found in files that say they are PHP (tests/corpus/php_probe/), and attaching to a process that has one. */
#include "support.h"

#include <elf.h>

#include "base/io.h"
#include "runtime/php/php_int.h"

#define BIAS 0x7f0000000000ULL

struct process {
	const struct php_binary *binary;
	uint64_t slot, offset; /* what lies at the addresses that the file names */
	bool has_started;      /* sapi_module is filled */
	const char *server;    /* its name */
	bool is_unmapped;
};

#define SERVER 0x6000 /* where that lies */

static int process_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct process *p = self;
	uint64_t value = 0;

	if (p->is_unmapped)
		return -EFAULT;
	if (at == SERVER && p->server) {
		memset(dst, 0, size);
		memcpy(dst, p->server, MIN(size, (uint32_t)strlen(p->server)));
		return 0;
	}
	if (at == p->binary->tls.value + BIAS)
		value = p->slot;
	else if (at == p->binary->globals_offset + BIAS)
		value = p->offset;
	else if (at == p->binary->module + BIAS)
		value = p->has_started ? SERVER : 0;
	memset(dst, 0, size);
	memcpy(dst, &value, MIN(size, (uint32_t)sizeof(value)));
	return 0;
}

static struct php_binary *look(const char *name, const char *path, bool be_quick, int want)
{
	scoped(buf_release) struct buf file = BUF_INIT(MIB(1)), bytes = BUF_INIT(MIB(1));
	scoped(elf_release) struct elf elf = { 0 };
	const struct runtime_file what = { .elf = &elf, .path = str_of(path), .be_quick = be_quick };
	struct runtime_binary *binary = NULL;
	struct reader in;

	buf_addf(&file, "%s/tests/corpus/php_probe/%s", getenv("HEARTH_SOURCE_ROOT"), name);
	assert_int_equal(io_read_file(buf_cstr(&file), &bytes), 0);
	in = reader_of(bytes.ptr, bytes.len);
	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(php_probe(&what, &binary), want);
	return (struct php_binary *)binary;
}

static struct php_binary *probed(const char *name, const char *path, int want)
{
	return look(name, path, false, want);
}

static void files(void **state)
{
	static const struct {
		const char *name, *version, *refused;
		bool has_globals;
	} cases[] = {
		{ "php8.2", "8.2.36", "", true },
		{ "aarch64-8.2", "8.2.36", "", true },
		{ "php7.0", "7.0.33", "", true },
		{ "php9.0", "9.0.1", "version 9.0.1 is not known", true },
		{ "php8.4-other", "8.4.27", "zend_get_executed_filename_ex() is not that of version 8.4", true },
		{ "zts8.4", "8.4.11-dev", "", false },
		{ "zts8.1", "8.1.2", "version 8.1 for threads was not tried", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct php_binary *b = probed(cases[i].name, "/usr/lib/whatever.so", 1);

		assert_null(look(cases[i].name, "/usr/lib/whatever.so", true, -EAGAIN)); /* the version is far away */
		print_message("  %s\n", cases[i].name);
		assert_string_equal(b->base.version, cases[i].version);
		assert_string_equal(b->base.refused, cases[i].refused);
		assert_int_equal(b->globals != 0, cases[i].has_globals);
		assert_int_equal(b->tls.kind, cases[i].has_globals ? ACCESSOR_TLS_NONE : ACCESSOR_TLS_SLOT);
		assert_int_equal(b->base.loop_count, 1);
		assert_int_equal(b->base.loops[0].end - b->base.loops[0].start, b->loop_size);
		assert_int_equal(b->is_hybrid, strcmp(cases[i].name, "aarch64-8.2") != 0);
		php_release(&b->base);
	}
}

/* Code that lacks, lies in no segment, or is cut; but not that of another function. */
static void less_is_unsure(const struct elf *elf, struct php_code places[PHP_CODE_COUNT],
			   const struct abi_php_layout *l)
{
	const struct php_code pass = places[PHP_CODE_PASS],
			      cases[] = { { 0, 0 }, { MIB(1), 64 }, { pass.address, pass.size - 1 } };
	const char *function = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		places[PHP_CODE_PASS] = cases[i];
		assert_int_equal(php_code_says(elf, places, l, 0, &function), PHP_CODE_UNSURE);
		assert_string_equal(function, "pass_two");
	}
	places[PHP_CODE_PASS] = (struct php_code){ 800, 99 };
	assert_int_equal(php_code_says(elf, places, l, 0, &function), PHP_CODE_DISAGREES);
	places[PHP_CODE_PASS] = pass;
}

/* A function that finds anything elsewhere than the table says is named. */
static void code(void **state)
{
	/* mov d(%rdi), %rax; with SIB: mov d(%rdi,%rcx), %rax */
	static const uint8_t by_register[] = { 0x48, 0x8b, 0x87 }, by_two[] = { 0x48, 0x8b, 0x84, 0x0f };
	const struct abi_php_layout *l = &php_version_find(8, 2)->layout;
	const uint32_t wanted[PHP_CODE_COUNT][4] = { { l->current, ABI_PHP_FRAME_FUNC, l->frame_prev },
						     { l->current, ABI_PHP_FRAME_FUNC, l->frame_prev, l->func_file },
						     { l->func_last, l->func_opcodes } };

	(void)state;
	for (int left_out = -1; left_out < 12; left_out++) {
		uint8_t bytes[KIB(1)] = { 0 };
		struct php_code places[PHP_CODE_COUNT];
		struct elf_segment segment = { .type = PT_LOAD, .file_size = KIB(1), .memory_size = KIB(1) };
		struct elf elf = { .machine = EM_X86_64,
				   .in = reader_of(bytes, sizeof(bytes)),
				   .segments = &segment,
				   .segment_count = 1 };
		const char *function = NULL;
		enum php_code_says says;

		for (uint32_t f = 0; f < PHP_CODE_COUNT; f++) {
			uint8_t *at = bytes + 256 * f;

			places[f].address = 256 * f;
			for (uint32_t i = 0; i < 4 && wanted[f][i]; i++) {
				uint32_t offset = wanted[f][i] + (left_out == (int)(4 * f + i) ? 8 : 0);
				const uint8_t *op = i & 1 ? by_two : by_register;
				size_t size = i & 1 ? sizeof(by_two) : sizeof(by_register);

				memcpy(at, op, size);
				memcpy(at + size, &offset, sizeof(offset));
				at += size + sizeof(offset);
			}
			places[f].size = (uint64_t)(at - bytes) - 256 * f;
		}
		says = php_code_says(&elf, places, l, 0, &function);
		if (left_out < 0 || !wanted[left_out / 4][left_out % 4]) {
			assert_int_equal(says, PHP_CODE_AGREES);
			assert_null(function);
			less_is_unsure(&elf, places, l);
			continue;
		}
		assert_int_equal(says, PHP_CODE_DISAGREES);
		assert_string_equal(function, left_out < 4   ? "zend_get_executed_lineno"
					      : left_out < 8 ? "zend_get_executed_filename_ex"
							     : "pass_two");
		places[PHP_CODE_LINE].size = 0; /* the one that disagrees is what counts */
		if (left_out >= 4)
			assert_int_equal(php_code_says(&elf, places, l, 0, &function), PHP_CODE_DISAGREES);
	}
}

static void attaching(void **state)
{
	struct process p = { .binary = probed("php8.2", "/usr/bin/php", 1) };
	struct runtime_target target = {
		.pid = 1, .start_ns = 7, .exec_id = 3, .bias = BIAS, .read = process_read, .self = &p
	};
	struct abi_php info;

	(void)state;
	assert_int_equal(php_attach(&p.binary->base, &target, &info), (int)sizeof(info));
	assert_int_equal(info.globals, p.binary->globals + BIAS);
	assert_int_equal(info.loop_low, p.binary->loop + BIAS);
	assert_in_range(info.body, info.loop_low + 1, info.loop_low + info.loop_size - 1);
	assert_int_equal(info.flags, ABI_PHP_R14_R15);
	assert_int_equal(info.start_ns, 7);
	assert_int_equal(info.exec_id, 3);
	p.is_unmapped = true; /* the loader has not got there yet */
	assert_int_equal(php_attach(&p.binary->base, &target, &info), -EAGAIN);
	php_release((struct runtime_binary *)(uintptr_t)p.binary);

	p = (struct process){ .binary = probed("zts8.4", "/usr/lib/libphp.so", 1) };
	assert_int_equal(php_attach(&p.binary->base, &target, &info), -EAGAIN); /* PHP has not started up */
	p.offset = 13424;
	p.slot = (uint64_t)-8;
	assert_int_equal(php_attach(&p.binary->base, &target, &info), (int)sizeof(info));
	assert_int_equal(info.flags, ABI_PHP_R14_R15 | ABI_PHP_THREADS);
	assert_int_equal(info.tls_at, -8);
	assert_int_equal(info.tls_offset, 13424);
	p.offset = MIB(64);
	assert_int_equal(php_attach(&p.binary->base, &target, &info), -ENOTSUP);
	php_release((struct runtime_binary *)(uintptr_t)p.binary);

	p = (struct process){ .binary = probed("php7.0", "/usr/bin/php", 1) }; /* nobody tried it, and no script runs */
	assert_int_equal(php_attach(&p.binary->base, &target, &info), -EAGAIN);
	php_release((struct runtime_binary *)(uintptr_t)p.binary);
	p = (struct process){ .binary = probed("php9.0", "/usr/bin/php", 1) };
	assert_int_equal(php_attach(&p.binary->base, &target, &info), -ENOTSUP);
	php_release((struct runtime_binary *)(uintptr_t)p.binary);
}

/* Only servers that clear what they answered are asked for it: elsewhere it points at memory that was freed. */
static void servers(void **state)
{
	static const struct {
		const char *name;
		bool is_asked;
		uint32_t flags;
	} cases[] = {
		{ "fpm-fcgi", true, 0 },
		{ "cgi-fcgi", true, ABI_PHP_STALE },
		{ "cli", true, ABI_PHP_STALE },
		{ "cli-server", false, 0 },
		{ "apache2handler", false, 0 },
		{ "embed", false, 0 },
		{ "fpm-fcgi2", false, 0 },
		{ "fpm", false, 0 },
		{ "", false, 0 },
		{ NULL, false, 0 },
	};
	struct php_binary *b = probed("php8.2", "/usr/bin/php", 1), *zts = probed("zts8.4", "/usr/lib/libphp.so", 1);
	struct process p = { .binary = b };
	struct runtime_target target = {
		.pid = 1, .start_ns = 7, .exec_id = 3, .bias = BIAS, .read = process_read, .self = &p
	};
	struct abi_php info;

	(void)state;
	b->request = zts->request_offset = 0x7000;
	b->module = zts->module = 0x7008;
	b->module_slot = zts->module_slot = 0;
	assert_int_equal(php_attach(&b->base, &target, &info), -EAGAIN); /* PHP has not started up */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		p = (struct process){ .binary = b, .has_started = true, .server = cases[i].name };
		print_message("  %s\n", cases[i].name ? cases[i].name : "(none)");
		assert_int_equal(php_attach(&b->base, &target, &info), (int)sizeof(info));
		assert_int_equal(info.request, cases[i].is_asked ? 0x7000 + BIAS : 0);
		assert_int_equal(info.flags, ABI_PHP_R14_R15 | cases[i].flags);
		p = (struct process){ .binary = zts,
				      .offset = 13424,
				      .slot = (uint64_t)-8,
				      .has_started = true,
				      .server = cases[i].name };
		assert_int_equal(php_attach(&zts->base, &target, &info), (int)sizeof(info));
		assert_int_equal(info.flags, ABI_PHP_R14_R15 | ABI_PHP_THREADS | cases[i].flags);
	}
	b->module = 0; /* not in the file: stripped, say */
	p = (struct process){ .binary = b, .has_started = true, .server = "fpm-fcgi" };
	assert_int_equal(php_attach(&b->base, &target, &info), (int)sizeof(info));
	assert_int_equal(info.request, 0);
	php_release(&b->base);
	php_release(&zts->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(code),
		cmocka_unit_test(attaching),
		cmocka_unit_test(servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
