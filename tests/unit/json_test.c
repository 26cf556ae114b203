/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "codec/json.h"

#define OUT_MAX MIB(1)

struct json_case {
	const char *name;
	struct str in, want; /* want.ptr NULL: refused */
};

#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static struct str guarded(struct str s)
{
	struct cur in = guard_page(s.ptr, s.len);

	return str_n((const char *)in.pos, s.len);
}

static void reformats_as_python_does(void **state)
{
	static const struct json_case cases[] = {
		{ "object", S("{\"a\":1,\"b\" : [ 1,2 ],\n\"c\":{}}"), S("{\"a\": 1, \"b\": [1, 2], \"c\": {}}") },
		{ "words", S("[true,false,null]"), S("[true, false, null]") },
		{ "numbers stay as they are", S("[1.50,-0,1e400,123456789012345678901234567890]"),
		  S("[1.50, -0, 1e400, 123456789012345678901234567890]") },
		{ "ASCII only", S("\"\xc3\xa9\xf0\x9f\x94\xa5\""), S("\"\\u00e9\\ud83d\\udd25\"") },
		{ "lone surrogate", S("\"\\udc80\""), S("\"\\udc80\"") },
		{ "escapes", S("\"\\/\\u0041\\n\\t\\\"\""), S("\"/A\\n\\t\\\"\"") },
		{ "empty", S(""), { NULL, 0 } },
		{ "blanks", S("  "), { NULL, 0 } },
		{ "open object", S("{\"a\":1"), { NULL, 0 } },
		{ "open string", S("\"a"), { NULL, 0 } },
		{ "cut escape", S("\"\\u00"), { NULL, 0 } },
		{ "wrong bracket", S("[1}"), { NULL, 0 } },
		{ "comma at the end", S("[1,]"), { NULL, 0 } },
		{ "no colon", S("{\"a\" 1}"), { NULL, 0 } },
		{ "key no string", S("{1:1}"), { NULL, 0 } },
		{ "two values", S("1 2"), { NULL, 0 } },
		{ "word cut", S("tru"), { NULL, 0 } },
		{ "number of a sign", S("-"), { NULL, 0 } },
		{ "leading zero", S("01"), { NULL, 0 } },
		{ "raw line break", S("\"a\nb\""), { NULL, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		int r = json_reformat(guarded(cases[i].in), &out);

		print_message("  %s\n", cases[i].name);
		assert_int_equal(r, cases[i].want.ptr ? 0 : -EBADMSG);
		if (r == 0)
			assert_string_equal(buf_cstr(&out), cases[i].want.ptr);
	}
}

static void bounds_depth(void **state)
{
	(void)state;
	for (size_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
		scoped(buf_release) struct buf text = BUF_INIT(OUT_MAX);
		struct str rest, value;

		for (size_t i = 0; i < 2 * depth; i++)
			buf_addc(&text, i < depth ? '[' : ']');
		rest = guarded(buf_str(&text));
		assert_int_equal(json_value(&rest, &value), depth <= JSON_DEPTH_MAX ? 0 : -EBADMSG);
	}
}

static void walks_members(void **state)
{
	struct str rest = guarded(STR(" {\"one\": [1, {\"x\": \"]\"}], \"\\u0074wo\": \"a\\nb\"} tail")), object, key,
		   value;
	scoped(buf_release) struct buf text = BUF_INIT(OUT_MAX);
	struct str array;

	(void)state;
	assert_int_equal(json_value(&rest, &object), 0);
	assert_true(str_eq(str_trim(rest), STR("tail")));
	assert_int_equal(json_member(&object, &key, &value), 1);
	assert_true(str_eq(key, STR("\"one\"")));
	assert_true(str_eq(value, STR("[1, {\"x\": \"]\"}]")));
	array = value;
	assert_int_equal(json_member(&array, &key, &value), 1);
	assert_int_equal(key.len, 0);
	assert_true(str_eq(value, STR("1")));
	assert_int_equal(json_member(&array, &key, &value), 1);
	assert_int_equal(json_text(value, &text), -EBADMSG);
	assert_int_equal(json_member(&array, &key, &value), 0);
	assert_int_equal(json_member(&object, &key, &value), 1);
	assert_int_equal(json_text(key, &text), 0);
	assert_int_equal(json_text(value, &text), 0);
	assert_string_equal(buf_cstr(&text), "twoa\nb");
	assert_int_equal(json_member(&object, &key, &value), 0);
}

static void write_all(struct buf *out)
{
	struct json_out j = { .out = out };

	json_out_begin(&j, '{');
	json_out_key(&j, STR("text"));
	json_out_string(&j, STR("a\"\\\x01\x7f\xff\xc3\xa9"));
	json_out_key(&j, STR("list"));
	json_out_begin(&j, '[');
	json_out_u64(&j, UINT64_MAX);
	json_out_number(&j, 0.1);
	json_out_number(&j, 1.0 / 0.0);
	json_out_end(&j, ']');
	json_out_key(&j, STR("raw"));
	json_out_raw(&j, STR("null"));
	json_out_end(&j, '}');
}

static void writes(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX);

	(void)state;
	write_all(&out);
	assert_string_equal(buf_cstr(&out), "{\"text\": \"a\\\"\\\\\\u0001\x7f\\ufffd\\u00e9\", "
					    "\"list\": [18446744073709551615, 0.1, null], \"raw\": null}");
	assert_int_equal(json_reformat(buf_str(&out), &again), 0); /* what is written can be read, and stays */
	assert_true(str_eq(buf_str(&out), buf_str(&again)));
}

static int write_once(void *ctx)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX);

	(void)ctx;
	write_all(&out);
	return out.error ? out.error : json_reformat(buf_str(&out), &again);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(write_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reformats_as_python_does),
		cmocka_unit_test(bounds_depth),
		cmocka_unit_test(walks_members),
		cmocka_unit_test(writes),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
