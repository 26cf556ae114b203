/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to JVMs that were recorded (tests/walk/java_record.c), also when memory goes missing. */
#include "support.h"

#include <fcntl.h>
#include <linux/types.h>
#include <unistd.h>

#include "abi/java.h"
#include "base/io.h"
#include "fuzz/java_image.h"
#include "object/elf.h"
#include "runtime/java/code.h"
#include "runtime/java/names.h"
#include "tests/walk/java_attach_image.h"

static const char *const names[] = { "8", "11", "17", "21", "25", "26", "aarch64-17", "aarch64-21" };

static void take(const char *name, struct buf *bytes, struct java_attach_image *image, struct runtime_target *target)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[512];

	*bytes = (struct buf)BUF_INIT(MIB(1));
	snprintf(path, sizeof(path), "%s/tests/corpus/java_attach/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(path, bytes), 0);
	assert_true(java_attach_open(cur_of(bytes->ptr, bytes->len), image));
	*target = (struct runtime_target){
		.pid = 1, .start_ns = 7, .exec_id = 3, .read = java_attach_read, .self = image, .bias = image->bias
	};
}

static void attaches(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct java_attach_image image;
		struct runtime_target target;
		struct abi_java info;
		uint8_t room[RUNTIME_INFO_MAX];
		struct buf bytes;

		take(names[i], &bytes, &image, &target);
		assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), sizeof(info));
		memcpy(&info, room, sizeof(info));
		assert_int_equal(info.start_ns, 7);
		assert_int_equal(info.exec_id, 3);
		bool has_one = image.layout.flags & JAVA_LAYOUT_ONE_HEAP;

		assert_int_equal(info.shift, has_one ? 6 : 7); /* CodeCacheSegmentSize: 64 or 128 bytes */
		assert_true(info.heaps[0].map && !info.heaps[1].map == has_one && !info.heaps[2].map == has_one &&
			    !info.heaps[3].map);
		assert_int_equal(info.bcp_slot, image.binary.machine == EM_AARCH64 ? 9 : has_one ? 7 : 8);
		assert_true(info.call_stub_return > info.low && info.call_stub_return < info.high);
		assert_true(info.returns_low < info.returns_high && info.entries_low < info.entries_high);
		for (size_t k = 0; k < ABI_JAVA_ENTRIES && info.entries[k].high; k++)
			assert_true(info.entries[k].pop < info.entries[k].push &&
				    info.entries[k].filled - info.entries[k].push < 64);
		assert_int_equal(!(info.flags & ABI_JAVA_KINDS), info.names[0] != 0);
		buf_release(&bytes);
	}
}

static void reads_fail(void **state)
{
	struct java_attach_image image;
	struct runtime_target target;
	uint8_t room[RUNTIME_INFO_MAX];
	struct buf bytes;
	size_t all;

	(void)state;
	take("17", &bytes, &image, &target);
	assert_true(java_attach_with(&image.binary.base, &target, &image.layout, room) > 0);
	all = image.reads;
	for (size_t n = 1; n <= all; n += n < 64 ? 1 : 37) {
		image.reads = 0;
		image.fails_at = n;
		assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), -EFAULT);
	}
	buf_release(&bytes);
}

/* What differs there: which register has the caller's sp, and the stub's instructions. */
static void attaches_on_aarch64(void **state)
{
	static const struct {
		const char *name;
		uint16_t sender;
		uint8_t before, ret, after;
	} cases[] = { { "aarch64-17", 13, 0x84, 0x6c, 0x88 }, { "aarch64-21", 19, 0x98, 0x84, 0xa0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct java_attach_image image;
		struct runtime_target target;
		struct abi_java info;
		uint8_t room[RUNTIME_INFO_MAX];
		struct buf bytes;

		take(cases[i].name, &bytes, &image, &target);
		assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), sizeof(info));
		memcpy(&info, room, sizeof(info));
		for (size_t k = 0; k < 4; k++) {
			assert_int_equal(info.entries[k].sender, cases[i].sender);
			assert_true(info.entries[k].push < info.entries[k].filled);
		}
		assert_int_equal(info.call_stub_before, cases[i].before);
		assert_int_equal(info.call_stub_ret, cases[i].ret);
		assert_int_equal(info.call_stub_after, cases[i].after);
		assert_int_equal(info.flags & ABI_JAVA_CHUNKS, 0);
		image.binary.literals[JAVA_LITERAL_COMPILED] = 0; /* that it is behind "native " is x86-64's */
		assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), -ENOTSUP);
		image.binary.machine = EM_X86_64; /* no entry looks so */
		assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), -EBADMSG);
		buf_release(&bytes);
	}
}

/* ---- the stub through which native code calls Java ---- */

#define STUB_REACH 255

struct stub_image { /* a JVM whose stub has that code */
	struct java_attach_image *image;
	uint64_t at; /* of code */
	uint8_t code[2 * STUB_REACH];
};

static int stub_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct stub_image *s = self;

	if (at != s->at)
		return java_attach_read(s->image, dst, size, at);
	assert_int_equal(size, sizeof(s->code));
	memcpy(dst, s->code, size);
	return 0;
}

static void put(struct stub_image *s, int from_return, const char *bytes, size_t count)
{
	memcpy(s->code + STUB_REACH + from_return, bytes, count);
}

static void call_stubs_are_found(void **state)
{
	static const struct {
		const char *what;
		int begin, other, end; /* from the return address on; 0: there is none */
		const char *behind;
		size_t behind_size;
		uint8_t want[3]; /* before, ret, after */
	} cases[] = {
		{ "no other way out", -136, -200, 77, "\x90\x90\x90\x90\x90\x90\x90", 7, { 136, 78, 79 } },
		{ "three others",
		  -137,
		  0,
		  101,
		  "\x48\x89\x07\xeb\xbf\xc5\xfa\x11\x07\xeb\xb9\xc5\xfb\x11\x07\xeb\xb3\x90",
		  18,
		  { 137, 102, 120 } },
		{ "code that jumps lies too far behind",
		  -133,
		  0,
		  81,
		  "\x90\x90\x90\x90\x90\x90\xeb\x00",
		  8,
		  { 133, 82, 83 } },
		{ "the largest", -255, 0, 253, "", 0, { 255, 254, 255 } },
		{ "no beginning", 0, 0, 77, "", 0, { 0 } },
		{ "no end", -136, 0, 0, "", 0, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct java_attach_image image;
		struct stub_image stub = { .image = &image };
		struct runtime_target target;
		struct abi_java info;
		uint8_t room[RUNTIME_INFO_MAX];
		struct buf bytes;

		print_message("  %s\n", cases[i].what);
		take("17", &bytes, &image, &target);
		must(java_attach_with(&image.binary.base, &target, &image.layout, room) > 0);
		memcpy(&info, room, sizeof(info));
		assert_int_equal(info.call_stub_before | info.call_stub_after, 0); /* the recording lacks it */
		stub.at = info.call_stub_return - STUB_REACH;
		if (cases[i].begin)
			put(&stub, cases[i].begin, "\x55\x48\x8b\xec\x48", 5);
		if (cases[i].other)
			put(&stub, cases[i].other, "\x55\x48\x8b\xec\x48", 5);
		if (cases[i].end) {
			put(&stub, cases[i].end, "\x5d\xc3", 2);
			put(&stub, cases[i].end + 2, cases[i].behind, cases[i].behind_size);
		}
		target.read = stub_read;
		target.self = &stub;
		must(java_attach_with(&image.binary.base, &target, &image.layout, room) > 0);
		memcpy(&info, room, sizeof(info));
		assert_int_equal(info.call_stub_before, cases[i].want[0]);
		assert_int_equal(info.call_stub_ret, cases[i].want[1]);
		assert_int_equal(info.call_stub_after, cases[i].want[2]);
		buf_release(&bytes);
	}
}

/* ---- another JVM ---- */

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	ssize_t got = pread(*(int *)self, dst, size, (off_t)offset);

	return got < 0 ? -errno : (size_t)got == size ? 0 : -ENODATA;
}

/* It has none of HotSpot's tables: its name is all that is known of it. */
static void openj9_is_told(void **state)
{
	static const struct {
		const char *path;
		int want;
	} cases[] = {
		{ "/opt/java/openjdk/lib/default/libj9vm29.so", 1 },
		{ "/opt/java/openjdk/lib/default/libj9jit29.so", 0 },
		{ "/opt/java/openjdk/lib/server/libjvm.so", 0 }, /* OpenJ9's has no tables, either */
	};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = read_fd, .self = &fd };

	(void)state;
	assert_true(fd >= 0);
	in.size = (uint64_t)lseek(fd, 0, SEEK_END);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(elf_release) struct elf elf = { 0 };
		struct runtime_file file = { .elf = &elf, .path = str_of(cases[i].path) };
		struct runtime_binary *binary = NULL;

		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(java_probe(&file, &binary), cases[i].want);
		if (cases[i].want)
			assert_string_equal(binary->refused, "is OpenJ9, whose frames are not known");
		free(binary);
	}
	close(fd);
}

/* A JVM that starts up. */
static void comes_again(void **state)
{
	struct java_attach_image image;
	struct runtime_target target;
	uint8_t room[RUNTIME_INFO_MAX];
	struct buf bytes;

	(void)state;
	take("25", &bytes, &image, &target);
	image.layout.queue_limit = image.layout.queue_begin; /* 0: not what it has used */
	assert_int_equal(java_attach_with(&image.binary.base, &target, &image.layout, room), -EAGAIN);
	buf_release(&bytes);
}

/* ---- two processes of one libjvm ---- */

#define NMETHOD_SIZE 352ULL /* in 17 */

/* What the tables say is somewhere among them. */
static void change_tables(struct buf *bytes, uint64_t from, uint64_t to)
{
	for (size_t at = (1 + JAVA_SYMBOL_COUNT) * 8; at + 8 <= bytes->len; at += 8)
		if (java_u64(bytes->ptr, at) == from)
			memcpy(bytes->ptr + at, &to, sizeof(to));
}

static void open_tables(struct buf *bytes, struct java_image *image, struct runtime_target *target)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[512];

	*bytes = (struct buf)BUF_INIT(MIB(1));
	snprintf(path, sizeof(path), "%s/tests/corpus/java_tables/jdk17", root ? root : ".");
	assert_int_equal(io_read_file(path, bytes), 0);
	assert_true(java_image_open(cur_of(bytes->ptr, bytes->len), image));
	*target = (struct runtime_target){ .read = java_image_read, .self = image };
}

static void learn(struct runtime_target *target, void *of_file, void **learnt)
{
	target->of_file = of_file;
	assert_int_equal(java_learn_process(target, NULL, learnt), 0);
	target->of_process = *learnt;
}

/* What a process writes there when it has been looked at changes nothing any more; what it writes in between two looks
 * is its own. */
static void tables_that_change(void **state)
{
	static const uint64_t sizes[] = { 0, 8, NMETHOD_SIZE + 8, 0xfff0, UINT64_MAX };
	struct java_binary binary = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		const struct abi_java info = { .epoch_at = 0 };
		struct runtime_target target;
		struct runtime_function f;
		struct java_layout first;
		struct java_image image;
		struct buf bytes;
		void *learnt;

		open_tables(&bytes, &image, &target);
		memcpy(binary.symbols, image.symbols, sizeof(binary.symbols));
		assert_int_equal(java_layout_of(&binary, &target, &first), 0);
		change_tables(&bytes, NMETHOD_SIZE, sizes[i]);
		learn(&target, &binary, &learnt);
		assert_int_equal(first.nmethod_header_size, NMETHOD_SIZE);
		if (java_process_of(&target).layout) /* else it is refused: no names */
			assert_int_equal(java_process_of(&target).layout->nmethod_header_size, sizes[i]);
		assert_true(java_read_code(&target, &info, image.symbols[0] & ~7ULL, ABI_JAVA_COMPILED | 1, &room, &f) <
			    0);
		memset(bytes.ptr, 0xff, bytes.len);
		if (java_process_of(&target).layout)
			assert_int_equal(java_process_of(&target).layout->nmethod_header_size, sizes[i]);
		assert_int_equal(java_read_name(&target, &info, 8, 1, &room, &f) < 0, true);
		java_unlearn(learnt);
		buf_release(&bytes);
	}
}

/* The first process may say what it likes. */
static void own_tables(void **state)
{
	struct runtime_target liar, honest, broken;
	struct java_image images[3];
	struct java_binary binary = { 0 };
	struct buf bytes[3];
	void *file, *learnt[3];

	(void)state;
	open_tables(&bytes[0], &images[0], &liar);
	open_tables(&bytes[1], &images[1], &honest);
	open_tables(&bytes[2], &images[2], &broken);
	change_tables(&bytes[0], NMETHOD_SIZE, NMETHOD_SIZE + 8);
	memset(bytes[2].ptr, 0, bytes[2].len);
	memcpy(binary.symbols, images[0].symbols, sizeof(binary.symbols));
	assert_int_equal(java_learn_file(&binary.base, &liar, &file), 0);
	learn(&liar, file, &learnt[0]);
	learn(&honest, file, &learnt[1]);
	learn(&broken, file, &learnt[2]);
	assert_int_equal(java_process_of(&liar).layout->nmethod_header_size, NMETHOD_SIZE + 8);
	assert_int_equal(java_process_of(&honest).layout->nmethod_header_size, NMETHOD_SIZE);
	assert_null(java_process_of(&broken).layout);
	for (size_t i = 0; i < ARRAY_SIZE(learnt); i++) {
		java_unlearn(learnt[i]);
		buf_release(&bytes[i]);
	}
	java_unlearn(file);
}

/* Who asks is told the reason. */
static void refuses_by_name(void **state)
{
	static const char text[] = "_log2_segment_size";
	char why[RUNTIME_WHY_MAX] = "";
	struct java_binary binary = { 0 };
	uint8_t room[RUNTIME_INFO_MAX];
	struct runtime_target target;
	struct java_image image;
	struct buf bytes;
	char *at;

	(void)state;
	open_tables(&bytes, &image, &target);
	at = memmem(bytes.ptr, bytes.len, text, sizeof(text));
	assert_non_null(at);
	*at = ' ';
	memcpy(binary.symbols, image.symbols, sizeof(binary.symbols));
	assert_int_equal(java_attach(&binary.base, &target, room), -ENOTSUP);
	target.why = why;
	assert_int_equal(java_attach(&binary.base, &target, room), -ENOTSUP);
	assert_string_equal(why, "CodeHeap::_log2_segment_size is not there");
	buf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refuses_by_name),      cmocka_unit_test(attaches),
					    cmocka_unit_test(attaches_on_aarch64),  cmocka_unit_test(reads_fail),
					    cmocka_unit_test(call_stubs_are_found), cmocka_unit_test(openj9_is_told),
					    cmocka_unit_test(comes_again),          cmocka_unit_test(own_tables),
					    cmocka_unit_test(tables_that_change) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
