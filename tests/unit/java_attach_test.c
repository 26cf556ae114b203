/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to JVMs that were recorded (tests/walk/java_record.c), also when memory goes missing. */
#include "support.h"

#include <linux/types.h>

#include "abi/java.h"
#include "base/io.h"
#include "tests/walk/java_attach_image.h"

static const char *const names[] = { "17", "25" };

static void take(const char *name, struct buf *bytes, struct java_attach_image *image, struct runtime_target *target)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[512];

	*bytes = (struct buf)BUF_INIT(MIB(1));
	snprintf(path, sizeof(path), "%s/tests/corpus/java_attach/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(path, bytes), 0);
	assert_true(java_attach_open(cur_of(bytes->ptr, bytes->len), image));
	*target = (struct runtime_target){ .pid = 1,
					   .start_ns = 7,
					   .exec_id = 3,
					   .read = java_attach_read,
					   .self = image,
					   .bias = image->bias,
					   .of_file = &image->layout };
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
		assert_int_equal(java_attach(&image.binary.base, &target, room), sizeof(info));
		memcpy(&info, room, sizeof(info));
		assert_int_equal(info.start_ns, 7);
		assert_int_equal(info.exec_id, 3);
		assert_int_equal(info.shift, 7); /* CodeCacheSegmentSize is 128 bytes */
		assert_true(info.heaps[0].map && info.heaps[1].map && info.heaps[2].map && !info.heaps[3].map);
		assert_true(info.call_stub_return > info.low && info.call_stub_return < info.high);
		assert_true(info.returns_low < info.returns_high && info.entries_low < info.entries_high);
		for (size_t k = 0; k < ABI_JAVA_ENTRIES; k++)
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
	assert_true(java_attach(&image.binary.base, &target, room) > 0);
	all = image.reads;
	for (size_t n = 1; n <= all; n += n < 64 ? 1 : 37) {
		image.reads = 0;
		image.fails_at = n;
		assert_int_equal(java_attach(&image.binary.base, &target, room), -EFAULT);
	}
	buf_release(&bytes);
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
	target.of_file = NULL;
	assert_int_equal(java_attach(&image.binary.base, &target, room), -EAGAIN);
	target.of_file = &image.layout;
	image.layout.queue_limit = image.layout.queue_begin; /* 0: not what it has used */
	assert_int_equal(java_attach(&image.binary.base, &target, room), -EAGAIN);
	buf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(attaches), cmocka_unit_test(reads_fail),
					    cmocka_unit_test(comes_again) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
