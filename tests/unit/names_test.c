/* SPDX-License-Identifier: Apache-2.0 */
/* The table of function names: what is shared, what is asked for, what goes when there is no room. */
#include "support.h"

#include "fake_runtime.h"
#include "runtime/names.h"

static const struct runtime *const runtimes[] = { &fake_runtime, NULL };

static struct names_key key_of(uint32_t pid, uint64_t key)
{
	return (struct names_key){ .program = { .pid = pid, .exec_id = 1, .start_ns = 1000 + pid },
				   .key = key,
				   .cookie = key * 3,
				   .runtime = FAKE_RUNTIME };
}

static uint64_t now_ns = NSEC_PER_SEC; /* stands still, but where a test moves it */

static uint64_t now_for_the_test(void *self)
{
	(void)self;
	return now_ns;
}

static const struct clock clock = { .monotonic_ns = now_for_the_test };

static struct runtime_function function_of(const char *name, int32_t first_line)
{
	return (struct runtime_function){ .file = STR("/app.py"), .name = str_of(name), .first_line = first_line };
}

static int put(struct names *n, uint32_t pid, uint64_t key, const char *name, int32_t first_line)
{
	const struct names_key k = key_of(pid, key);
	const struct runtime_function f = function_of(name, first_line);

	return names_put(n, &k, &f);
}

static enum names_answer find(struct names *n, uint32_t pid, uint64_t key, struct runtimes_frame *out)
{
	const struct names_key k = key_of(pid, key);

	return names_find(n, &k, 5, out);
}

static void equal_functions_have_one_number(void **state)
{
	struct runtimes_frame a, b, c;
	struct runtime_function f;
	struct names_stats stats;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(put(n, 1, 0x1000, "run", 10), 0);
	assert_int_equal(put(n, 2, 0x2000, "run", 10), 0); /* another worker, elsewhere in memory */
	assert_int_equal(put(n, 2, 0x3000, "run", 11), 0); /* another function */
	assert_int_equal(find(n, 1, 0x1000, &a), NAMES_FOUND);
	assert_int_equal(find(n, 2, 0x2000, &b), NAMES_FOUND);
	assert_int_equal(find(n, 2, 0x3000, &c), NAMES_FOUND);
	assert_int_equal(a.function, 1);
	assert_int_equal(b.function, 1);
	assert_int_equal(c.function, 2);
	assert_int_equal(a.line, 15); /* as the fake runtime counts */
	assert_int_equal(c.line, 16);
	assert_int_equal(names_function(n, 2, &f), 0);
	assert_int_equal(f.first_line, 11);
	assert_true(str_eq(f.name, STR("run")));
	assert_int_equal(names_function(n, 3, &f), -ENOENT);
	names_stats(n, &stats);
	assert_int_equal(stats.entries, 3);
	assert_int_equal(stats.functions, 2);
	names_free(n);
	names_free(NULL);
}

/* Compiled and interpreted, a method has the same name. */
static void kinds_are_told_apart(void **state)
{
	const struct names_key one = key_of(1, 0x1000), other = key_of(1, 0x2000);
	struct runtime_function f = function_of("run", 10);
	struct runtimes_frame a, b;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(names_put(n, &one, &f), 0);
	f.kind = MODEL_KIND_JAVA_INTERPRETED;
	assert_int_equal(names_put(n, &other, &f), 0);
	assert_int_equal(find(n, 1, 0x1000, &a), NAMES_FOUND);
	assert_int_equal(find(n, 1, 0x2000, &b), NAMES_FOUND);
	assert_int_not_equal(a.function, b.function);
	assert_int_equal(names_function(n, b.function, &f), 0);
	assert_int_equal(f.kind, MODEL_KIND_JAVA_INTERPRETED);
	names_free(n);
}

static void what_is_missing_is_asked_for_once(void **state)
{
	const struct names_key k = key_of(1, 0x1000),
			       bare = { .program = k.program, .key = 7, .runtime = FAKE_RUNTIME };
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
	assert_int_equal(out.function, 0);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT);
	names_not_asked(n, &k);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
	names_unreadable(n, &k);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT);
	assert_int_equal(put(n, 1, 0x1000, "late", 3), 0); /* its record comes after all */
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_FOUND);
	assert_int_equal(find(n, 1, 0x2000, &out), NAMES_ASK);
	assert_int_equal(names_find(n, &bare, 5, &out), NAMES_WAIT); /* no cookie: nothing says what lies there */
	assert_false(names_want_recall(n));                          /* nothing was evicted */
	names_free(n);
}

/* Position 5 of a cut table is line 0 to this runtime. */
static int32_t line_of_long_tables(const struct runtime_function *function, uint32_t position)
{
	return function->lines.size > position ? function->lines.bytes[position] : 0;
}

/* What could not be read may have been on its way to another place, or a process was looked at in a bad moment: it is
 * asked for again as long as it is met, ever more rarely. */
static void unreadable_is_asked_again(void **state)
{
	const struct names_key k = key_of(1, 0x1000);
	struct runtimes_frame out;
	unsigned int turn = 0;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
	for (unsigned int wanted = 2; wanted <= 1U << 17; wanted *= 4) {
		names_unreadable(n, &k);
		while (++turn < wanted)
			assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT);
		assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
		assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT); /* until it is answered */
	}
	names_unreadable(n, &k);
	assert_int_equal(put(n, 1, 0x1000, "late", 1), 0); /* its record came after all */
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_FOUND);
	names_free(n);
}

/* What is met seldom, or was met often while something was in the way, is asked for again when time has passed. */
static void unreadable_is_asked_again_later(void **state)
{
	const struct names_key k = key_of(1, 0x1000);
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
	for (uint64_t ms = 40; ms <= 20 << 14; ms *= 2) {
		names_unreadable(n, &k);
		now_ns += ms * NSEC_PER_MSEC - 1;
		assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT);
		now_ns++;
		assert_int_equal(find(n, 1, 0x1000, &out), NAMES_ASK);
	}
	names_unreadable(n, &k); /* for the fifteenth time */
	now_ns += 3600 * NSEC_PER_SEC;
	assert_int_equal(find(n, 1, 0x1000, &out), NAMES_WAIT);
	names_free(n);
}

static void more_of_a_function_replaces_less(void **state)
{
	static const uint8_t table[600] = { [5] = 50, [500] = 99 };
	const struct runtime runtime = { .id = FAKE_RUNTIME, .line = line_of_long_tables };
	const struct runtime *const only[] = { &runtime, NULL };
	const struct names_key one = key_of(1, 0x1000), two = key_of(2, 0x1000);
	struct runtime_function f = function_of("long", 1), whole, name_cut;
	struct runtimes_frame out, other;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, only, &n), 0);
	f.lines = (struct runtime_lines){ table, 256 };
	f.lines_whole = sizeof(table);
	f.lines_at = 0x9000;
	whole = f;
	whole.lines.size = sizeof(table);
	assert_int_equal(names_put(n, &one, &f), 0);
	assert_int_equal(names_put(n, &two, &f), 0);
	assert_int_equal(names_find(n, &one, 5, &out), NAMES_FOUND);
	assert_int_equal(out.line, 50);
	assert_int_equal(names_find(n, &one, 500, &out), NAMES_ASK);
	assert_int_equal(out.line, 0);
	assert_int_equal(names_find(n, &one, 500, &out), NAMES_WAIT);
	assert_int_equal(names_put(n, &one, &whole), 0);
	assert_int_equal(names_find(n, &one, 500, &out), NAMES_FOUND);
	assert_int_equal(out.line, 99);
	assert_int_equal(names_find(n, &two, 500, &other), NAMES_FOUND); /* the other worker's too: it is the same */
	assert_int_equal(other.function, out.function);
	/* A name that was cut is another function than the whole one, until that is known. */
	name_cut = function_of("lon", 1);
	name_cut.is_cut = true;
	assert_int_equal(names_put(n, &one, &name_cut), 0); /* the record comes again */
	assert_int_equal(names_find(n, &one, 500, &other), NAMES_FOUND);
	assert_int_equal(other.function, out.function);
	assert_int_equal(
		names_put(n,
			  &(struct names_key){ .program = one.program, .key = 3, .cookie = 1, .runtime = FAKE_RUNTIME },
			  &name_cut),
		0);
	assert_int_equal(names_find(n,
				    &(struct names_key){
					    .program = one.program, .key = 3, .cookie = 1, .runtime = FAKE_RUNTIME },
				    0, &other),
			 NAMES_ASK);
	assert_int_equal(other.function, out.function + 1);
	names_free(n);
}

static const struct runtime *const with_code[] = { &fake_inline, NULL };

/* Code and a function of one key are two things; what code says is read as often as the budget allows. */
static void code_is_expanded(void **state)
{
	static uint8_t table[KIB(512)] = { 0, 0, 9, 0, 1, 3, 0, 0, 0, 1, 0, 0, 0, 1, 'x' };
	static struct runtime_shown shown[RUNTIME_EXPAND_MAX];
	const struct names_key key = { .program = { .pid = 1 }, .key = 5, .cookie = 6, .runtime = FAKE_INLINE },
			       code = { .program = { .pid = 1 },
					.key = 5,
					.cookie = 6,
					.runtime = FAKE_INLINE,
					.is_code = true };
	struct runtime_function f = function_of("made", 1), name = function_of("made", 1), other;
	struct runtimes_frame out, named;
	struct names *n;
	int i;

	(void)state;
	assert_int_equal(names_new(0, &clock, with_code, &n), 0);
	assert_int_equal(names_find(n, &code, 4, &out), NAMES_ASK);
	f.is_code = true;
	f.lines = (struct runtime_lines){ table, sizeof(table) };
	assert_int_equal(names_put_more(n, &code, &f), 0);
	assert_int_equal(names_find(n, &key, 4, &named), NAMES_ASK);
	assert_int_equal(names_put(n, &key, &name), 0);
	assert_int_equal(names_find(n, &key, 4, &named), NAMES_FOUND);
	assert_int_equal(names_find(n, &code, 4, &out), NAMES_FOUND);
	assert_int_not_equal(out.function, named.function);
	assert_int_equal(out.line, 0);
	assert_int_equal(names_expand(n, out.function, 4, false, shown), 1);
	assert_true(str_eq(shown[0].function.name, STR("x")));
	assert_int_equal(shown[0].line, 3);
	assert_int_equal(names_expand(n, out.function, 10, false, shown), 0);
	assert_int_equal(names_expand(n, out.function, 10, true, shown), 1); /* a return address */
	assert_int_equal(names_expand(n, named.function, 4, false, shown), -ENOENT);
	assert_int_equal(names_expand(n, 99, 4, false, shown), -ENOENT);
	for (i = 0; i < 100 && names_expand(n, out.function, 4, false, shown) == 1; i++)
		;
	assert_in_range(i, 16, 32); /* NAMES_LINE_BYTES are that many tables */
	assert_int_equal(names_expand(n, out.function, 4, false, shown), -EAGAIN);
	names_add_line_budget(n, sizeof(table));
	assert_int_equal(names_expand(n, out.function, 4, false, shown), 1);
	/* Another one that differs behind the bytes that a record would have. */
	table[sizeof(table) - 1] = 1;
	other = f;
	assert_int_equal(
		names_put(n, &(struct names_key){ .key = 7, .cookie = 1, .runtime = FAKE_INLINE, .is_code = true },
			  &other),
		0);
	assert_int_equal(
		names_find(n, &(struct names_key){ .key = 7, .cookie = 1, .runtime = FAKE_INLINE, .is_code = true }, 0,
			   &named),
		NAMES_FOUND);
	assert_int_not_equal(named.function, out.function);
	names_free(n);
}

/* Memory of a function is another's by the time the worker reads it, and the cookie is equal by chance. */
static void what_is_read_late_is_the_same_function(void **state)
{
	const struct names_key key = key_of(1, 0x1000);
	const struct runtime_function others[] = { function_of("lonely", 1), function_of("long_other", 2),
						   function_of("other", 1) };
	struct runtime_function cut = function_of("long", 1), whole = function_of("longest", 1), f;
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	cut.is_cut = true;
	assert_int_equal(names_put(n, &key, &cut), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_ASK);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(names_put_more(n, &key, &others[i]), 0);
		assert_int_equal(names_find(n, &key, 0, &out), NAMES_WAIT);
		assert_int_equal(names_function(n, out.function, &f), 0);
		assert_true(str_eq(f.name, STR("long")));
	}
	assert_int_equal(names_put_more(n, &key, &whole), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_true(str_eq(f.name, STR("longest")));
	assert_int_equal(names_put(n, &key, &others[2]), 0); /* a record is believed */
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_true(str_eq(f.name, STR("other")));
	names_free(n);
}

/* A name that says that it is cut. */
static void names_with_dots(void **state)
{
	const struct names_key key = key_of(1, 0x1000);
	struct runtime_function cut = function_of("lon...", 1), whole = function_of("longest", 1),
				other = function_of("lo", 1), f;
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	cut.is_cut = true;
	assert_int_equal(names_put(n, &key, &cut), 0);
	assert_int_equal(names_put_more(n, &key, &other), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_ASK);
	assert_int_equal(names_put_more(n, &key, &whole), 0);
	assert_int_equal(names_put(n, &key, &cut), 0); /* the record comes again */
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_true(str_eq(f.name, STR("longest")));
	names_free(n);
}

/* A record that has no lines, as Java's: what is read later has them, and the record that another CPU sends takes them
 * not away again. */
static void lines_that_no_record_has(void **state)
{
	const struct names_key key = key_of(1, 0x1000);
	struct runtime_function record = function_of("work", 0), whole = function_of("work", 7), f;
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	record.is_cut = true;
	record.file = STR("");
	assert_int_equal(names_put(n, &key, &record), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_ASK);
	assert_int_equal(names_put_more(n, &key, &whole), 0);
	assert_int_equal(names_put(n, &key, &record), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_int_equal(f.first_line, 7);
	assert_true(f.file.len && !f.is_cut);
	names_free(n);
}

/* Lines that may be there later are asked for ever more rarely, for functions and for code; then they replace the
 * function. */
static void lines_that_come_later(void **state)
{
	(void)state;
	for (int is_code = 0; is_code < 2; is_code++) {
		struct names_key key = key_of(1, 0x1000);
		struct runtime_function bare = function_of("work", 0), whole = function_of("work", 7), f;
		size_t asked = 0, last = 0;
		struct runtimes_frame out;
		struct names *n;

		key.is_code = is_code;
		bare.lacks_lines = true;
		bare.lines = (struct runtime_lines){ (const uint8_t *)"abc", 3 };
		bare.lines_whole = 4;
		bare.is_code = whole.is_code = is_code;
		assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
		assert_int_equal(names_put(n, &key, &bare), 0);
		for (size_t i = 1; i <= 5000; i++) {
			if (names_find(n, &key, 0, &out) != NAMES_ASK)
				continue;
			assert_true(!last || i >= 2 * last);
			last = i;
			asked++;
			assert_int_equal(names_put_more(n, &key, &bare), 0); /* nothing new */
		}
		assert_int_equal(asked, 6); /* after 2, 8, 32, 128, 512, 2048 */
		assert_int_equal(names_put_more(n, &key, &whole), 0);
		for (size_t i = 0; i < 50000; i++)
			assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
		assert_int_equal(names_function(n, out.function, &f), 0);
		assert_int_equal(f.first_line, 7);
		assert_false(f.lacks_lines);
		names_free(n);
	}
}

static void without_class(struct str name, struct buf *out)
{
	buf_adds(out, str_skip(name, (size_t)(str_rfind(name, '#') + 1)));
}

/* What a name is qualified by is known where it was met: what is read later does not take it away. */
static void what_is_read_late_keeps_the_class(void **state)
{
	struct runtime qualifies = fake_runtime;
	const struct runtime *const these[] = { &qualifies, NULL };
	const struct names_key key = key_of(1, 0x1000);
	struct runtime_function met = function_of("Shop#work", 1), later = function_of("work", 1), f;
	struct runtimes_frame out;
	struct names *n;

	(void)state;
	qualifies.plain = without_class;
	assert_int_equal(names_new(0, &clock, these, &n), 0);
	met.lines_whole = 40;
	later.lines_whole = 40;
	later.lines = (struct runtime_lines){ (const uint8_t *)"0123456789012345678901234567890123456789", 40 };
	assert_int_equal(names_put(n, &key, &met), 0);
	assert_int_equal(names_put_more(n, &key, &later), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_true(str_eq(f.name, STR("Shop#work")));
	assert_int_equal(f.lines.size, 40);
	later.name = STR("walk");
	assert_int_equal(names_put_more(n, &key, &later), 0);
	assert_int_equal(names_find(n, &key, 0, &out), NAMES_FOUND);
	assert_int_equal(names_function(n, out.function, &f), 0);
	assert_true(str_eq(f.name, STR("Shop#work")));
	names_free(n);
}

static void the_room_is_bounded(void **state)
{
	char name[1000];
	struct runtimes_frame out;
	struct runtime_function f;
	struct names_stats stats;
	uint32_t first;
	struct names *n;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	assert_int_equal(names_new(MIB(1), &clock, runtimes, &n), 0);
	assert_int_equal(put(n, 1, 8, "kept by use", 1), 0);
	assert_int_equal(find(n, 1, 8, &out), NAMES_FOUND);
	first = out.function;
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(put(n, 1 + i % 3, 0x1000 + i, name, (int32_t)i + 1), 0);
		assert_int_equal(find(n, 1 + i % 3, 0x1000 + i, &out), NAMES_FOUND);
		assert_int_equal(find(n, 1, 8, &out), NAMES_FOUND);
		assert_int_equal(out.function, first);
		names_stats(n, &stats);
		assert_true(stats.bytes <= MIB(1));
	}
	assert_true(stats.evicted > 15000);
	assert_int_equal(names_function(n, first + 1, &f), -ENOENT);
	assert_int_equal(find(n, 2, 0x1001, &out), NAMES_ASK); /* its record will not come again by itself */
	assert_true(names_want_recall(n));
	assert_false(names_want_recall(n));
	assert_int_equal(names_put(n, &(struct names_key){ .key = 1 },
				   &(struct runtime_function){ .name = str_n(name, sizeof(name) - 1),
							       .lines = { (const uint8_t *)n, UINT32_MAX } }),
			 -E2BIG);
	names_free(n);
}

/* Code that is made anew all the time: one function, ever more places. */
static void entries_are_bounded_too(void **state)
{
	struct runtimes_frame out;
	struct names_stats stats;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(KIB(256), &clock, runtimes, &n), 0);
	for (uint32_t i = 1; i < 50000; i++) {
		assert_int_equal(put(n, 1, i, "f", 1), 0);
		assert_int_equal(find(n, 1, i, &out), NAMES_FOUND);
		assert_int_equal(out.function, 1);
	}
	names_stats(n, &stats);
	assert_true(stats.bytes <= KIB(256));
	assert_int_equal(stats.functions, 1);
	names_free(n);
}

/* A function with a long table, met in each of its instructions. */
static void decoding_lines_is_bounded(void **state)
{
	static uint8_t table[KIB(256)];
	const struct names_key k = key_of(1, 0x1000);
	struct runtime_function f = function_of("long", 10);
	struct runtimes_frame out;
	struct names_stats stats;
	struct names *n;
	uint32_t lines = 0;

	(void)state;
	f.lines = (struct runtime_lines){ table, sizeof(table) };
	f.lines_whole = sizeof(table);
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	assert_int_equal(names_put(n, &k, &f), 0);
	for (uint32_t position = 0; position < 1000; position++) {
		assert_int_equal(names_find(n, &k, position, &out), NAMES_FOUND);
		assert_true(!out.line || out.line == 10 + (int32_t)position);
		lines += out.line != 0;
	}
	assert_int_equal(lines, NAMES_LINE_BYTES / sizeof(table));
	assert_true(names_want_line_budget(n));
	names_stats(n, &stats);
	assert_int_equal(stats.lines_put_off, 1000 - lines);
	names_add_line_budget(n, UINT64_MAX / 2);
	assert_false(names_want_line_budget(n));
	assert_int_equal(names_find(n, &k, 999, &out), NAMES_FOUND);
	assert_int_equal(out.line, 10 + 999);
	names_free(n);
}

static void a_program_is_forgotten_alone(void **state)
{
	const struct program gone = key_of(1, 0).program, never = { .pid = 99 };
	struct runtimes_frame out;
	struct names_stats stats;
	struct names *n;

	(void)state;
	assert_int_equal(names_new(0, &clock, runtimes, &n), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(put(n, 1, i + 1, "f", 1), 0);
		assert_int_equal(put(n, 2, i + 1, "f", 1), 0);
	}
	names_forget(n, &gone);
	names_forget(n, &gone);
	names_forget(n, &never);
	names_stats(n, &stats);
	assert_int_equal(stats.entries, 100);
	assert_int_equal(find(n, 1, 1, &out), NAMES_ASK);
	assert_int_equal(find(n, 2, 1, &out), NAMES_FOUND);
	names_free(n);
}

static int fill(void *ctx)
{
	struct names *n;
	struct runtimes_frame out;
	int r = names_new(KIB(64), &clock, runtimes, &n);

	(void)ctx;
	if (r < 0)
		return r;
	for (uint32_t i = 1; i < 300 && r == 0; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i % 50);
		r = put(n, i % 4 + 1, i, name, 1);
		find(n, i % 4 + 1, i, &out);
		find(n, i % 4 + 1, i + 1000, &out);
	}
	names_free(n);
	return r;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(fill, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_functions_have_one_number),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(what_is_missing_is_asked_for_once),
		cmocka_unit_test(unreadable_is_asked_again),
		cmocka_unit_test(unreadable_is_asked_again_later),
		cmocka_unit_test(code_is_expanded),
		cmocka_unit_test(more_of_a_function_replaces_less),
		cmocka_unit_test(what_is_read_late_is_the_same_function),
		cmocka_unit_test(names_with_dots),
		cmocka_unit_test(lines_that_no_record_has),
		cmocka_unit_test(lines_that_come_later),
		cmocka_unit_test(what_is_read_late_keeps_the_class),
		cmocka_unit_test(the_room_is_bounded),
		cmocka_unit_test(entries_are_bounded_too),
		cmocka_unit_test(decoding_lines_is_bounded),
		cmocka_unit_test(a_program_is_forgotten_alone),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
