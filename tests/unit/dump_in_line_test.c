/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of frames in line, of a runtime that makes up as many and as long ones as it likes. */
#include "support.h"

#include "agent/dump_int.h"

static struct {
	size_t reads, name_size, room_size;
	uint64_t of; /* the cookie that functions have */
} fake;

static int read_function(struct buf *room, uint64_t key, uint64_t cookie, struct runtime_function *out)
{
	size_t size = MAX(fake.name_size, (size_t)20);
	char *name = buf_reserve(room, MAX(size, fake.room_size));

	fake.reads++;
	if (!name)
		return room->error;
	if (cookie != fake.of)
		return -ESTALE;
	memset(name, 'x', size);
	snprintf(name, 20, "%018llu", (unsigned long long)key);
	name[19] = 'x';
	name[18] = 'x';
	buf_commit(room, size);
	*out = (struct runtime_function){ .name = str_n(name, size), .file = STR("file") };
	return 0;
}

static int read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out)
{
	(void)target;
	(void)info;
	return read_function(room, key, cookie, out);
}

static int32_t line(const struct runtime_function *function, uint32_t position)
{
	(void)function;
	return (int32_t)position;
}

static size_t expand(const struct runtime_function *code, uint32_t position, bool is_return,
		     struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	(void)position;
	(void)is_return;
	for (int i = 0; i < 2; i++)
		out[i] = (struct runtime_shown){ .function = *code, .line = i + 1 };
	return 2;
}

static const struct runtime runtime = {
	.name = "fake", .read_name = read_name, .read_code = read_name, .line = line, .expand = expand
};

static void open_dumper(struct dumper **d, struct dump *out)
{
	*d = calloc(1, sizeof(**d));
	assert_non_null(*d);
	*out = (struct dump){ 0 };
	intern_init(&out->strings, DUMP_STRING_BYTES);
	(*d)->out = out;
	(*d)->runtime = &runtime;
	u64map_init(&(*d)->code_index, DUMP_CODES_MAX);
	memset(&fake, 0, sizeof(fake));
	fake.of = 7;
}

static void close_dumper(struct dumper *d, struct dump *out)
{
	dump_release_learnt(d);
	free(d);
	dump_release(out);
}

static struct abi_frame frame_of(uint64_t key, uint64_t cookie, uint32_t position)
{
	return (struct abi_frame){ .a = key, .b = cookie, .extra = position };
}

/* Many threads wait in one function: it is read once. */
static void read_once(void **state)
{
	struct abi_frame f, stale = frame_of(1, 8, 0);
	struct dumper *d;
	struct dump out;

	(void)state;
	open_dumper(&d, &out);
	for (uint32_t i = 0; i < 100; i++) {
		f = frame_of(1 + i % 2, 7, i);
		assert_int_equal(dump_add_in_line(d, &f), 0);
		assert_int_equal(out.frames[i].line, i);
		assert_int_not_equal(out.frames[i].name, 0);
	}
	assert_int_equal(fake.reads, 2);
	assert_int_equal(out.frames[0].name, out.frames[98].name);
	assert_int_not_equal(out.frames[0].name, out.frames[1].name);
	assert_int_equal(dump_add_in_line(d, &stale), 0); /* another one lay there */
	assert_int_equal(fake.reads, 3);
	assert_int_equal(out.frames[100].name, 0);
	close_dumper(d, &out);
}

/* Names that are too long are missing, and nothing else is. */
static void too_long_names(void **state)
{
	struct abi_frame f;
	struct dumper *d;
	struct dump out;
	uint32_t count = 0;

	(void)state;
	open_dumper(&d, &out);
	fake.name_size = MIB(1);
	for (; count < 80; count++) {
		f = frame_of(count, 7, count);
		assert_int_equal(dump_add_in_line(d, &f), 0);
	}
	assert_int_equal(out.frame_count, 80);
	assert_int_not_equal(out.frames[62].name, 0);
	assert_int_equal(out.frames[79].name, 0);
	assert_int_equal(out.frames[79].line, 79);
	assert_true(d->has_lost_names);
	assert_int_equal(intern_get(&out.strings, out.frames[79].file).len, 4); /* a text that is there already */
	f = frame_of(1, 7, 0);
	assert_int_equal(dump_add_in_line(d, &f), 0);
	assert_int_equal(out.frames[80].name, out.frames[1].name);
	close_dumper(d, &out);
}

/* What was read is kept as far as there is room. */
static void room_is_bounded(void **state)
{
	struct abi_frame f;
	struct dumper *d;
	struct dump out;

	(void)state;
	open_dumper(&d, &out);
	fake.room_size = MIB(15);
	for (uint32_t i = 0; i < 40; i++) {
		f = frame_of(i, 7, i);
		assert_int_equal(dump_add_in_line(d, &f), 0);
		assert_int_not_equal(out.frames[i].name, 0);
	}
	assert_true(d->code_bytes <= DUMP_CODES_BYTES);
	assert_true(d->code_count <= DUMP_CODES_BYTES / MIB(15));
	assert_int_equal(fake.reads, 40);
	assert_int_equal(dump_add_in_line(d, &f), 0); /* the last one is at hand */
	assert_int_equal(fake.reads, 40);
	close_dumper(d, &out);
}

/* Frames that came when the time was over are named when the process runs again, the others stay where they are. */
static void named_later(void **state)
{
	struct dump_frame native = { .kind = DUMP_KERNEL, .line = 5 }, unnamed = { .kind = DUMP_RUNTIME };
	struct dumper *d;
	struct dump out;

	(void)state;
	open_dumper(&d, &out);
	out.threads = calloc(3, sizeof(*out.threads));
	d->unnamed = calloc(3, sizeof(*d->unnamed));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(dump_add_frame(d, &native), 0);
		assert_int_equal(dump_add_frame(d, &unnamed), 0);
		out.threads[i] = (struct dump_thread){ .first = i * 2, .count = 2 };
		d->unnamed[i] = (struct dump_unnamed){ i * 2 + 1, frame_of(i, 7, 30 + (uint32_t)i), true };
	}
	d->unnamed[1].frame.flags = ABI_FRAME_COMPILED; /* two functions */
	d->unnamed[2].frame.b = 8;                      /* another one lies there since */
	out.thread_count = d->unnamed_count = 3;
	assert_int_equal(dump_name_frames(d), 0);
	assert_int_equal(out.frame_count, 7);
	assert_int_equal(out.threads[1].first, 2);
	assert_int_equal(out.threads[1].count, 3);
	assert_int_equal(out.threads[2].first, 5);
	assert_int_equal(out.frames[1].line, 30);
	assert_int_not_equal(out.frames[1].name, 0);
	assert_int_equal(out.frames[3].line, 1);
	assert_int_equal(out.frames[4].line, 2);
	assert_int_equal(out.frames[5].line, 5);
	assert_int_equal(out.frames[6].kind, DUMP_RUNTIME);
	assert_int_equal(out.frames[6].name, 0);
	free(d->unnamed);
	close_dumper(d, &out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_once),
		cmocka_unit_test(too_long_names),
		cmocka_unit_test(room_is_bounded),
		cmocka_unit_test(named_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
