/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf by tables: its JSON form in both directions, beside bytes that were put together by hand. */
#include "support.h"

#include "query/proto.h"

static const char *const colours[] = { "RED", "GREEN", NULL };

static const struct proto_field inner_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "name" },
	{ .number = 2, .kind = PROTO_INT, .name = "values", .repeated = true },
};
static const struct proto_message inner = PROTO_TABLE(inner_fields);

static const struct proto_field outer_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "text" },
	{ .number = 2, .kind = PROTO_INT, .name = "int_value", .json = "intValue" },
	{ .number = 3, .kind = PROTO_UINT, .name = "uint" },
	{ .number = 4, .kind = PROTO_BOOL, .name = "flag" },
	{ .number = 5, .kind = PROTO_DOUBLE, .name = "real" },
	{ .number = 6, .kind = PROTO_ENUM, .name = "colour", .values = colours },
	{ .number = 7, .kind = PROTO_MESSAGE, .name = "one", .message = &inner },
	{ .number = 8, .kind = PROTO_MESSAGE, .name = "many", .repeated = true, .message = &inner },
	{ .number = 9, .kind = PROTO_TEXT, .name = "texts", .repeated = true },
	{ .number = 10, .kind = PROTO_UINT, .name = "uints", .repeated = true },
	{ .number = 11, .kind = PROTO_DOUBLE, .name = "reals", .repeated = true },
	{ .number = 12, .kind = PROTO_BOOL, .name = "flags", .repeated = true },
};
static const struct proto_message outer = PROTO_TABLE(outer_fields);

static struct str guarded(const char *text)
{
	struct cur c = guard_page(text, strlen(text));

	return cur_rest(&c);
}

static void add_hex(struct buf *out, struct str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		buf_addf(out, "%02x", (unsigned int)(uint8_t)bytes.ptr[i]);
}

struct json_case {
	const char *name, *json, *hex; /* hex NULL: refused */
};

static const struct json_case from_json_cases[] = {
	{ "nothing", "{}", "" },
	{ "blanks around", " { } ", "" },
	{ "text", "{\"text\": \"a\\u00e4\\n\"}", "0a0461c3a40a" },
	{ "a lone surrogate", "{\"text\": \"\\ud800\"}", "0a03efbfbd" },
	{ "empty text is a value", "{\"text\": \"\"}", "0a00" },
	{ "a number", "{\"intValue\": 5}", "1005" },
	{ "by the name of the .proto file", "{\"int_value\": 5}", "1005" },
	{ "in quotes", "{\"intValue\": \"-1\"}", "10ffffffffffffffffff01" },
	{ "the smallest", "{\"intValue\": \"-9223372036854775808\"}", "1080808080808080808001" },
	{ "with an exponent", "{\"intValue\": 1e3}", "10e807" },
	{ "whole with a point", "{\"intValue\": 5.0}", "1005" },
	{ "the largest", "{\"uint\": \"18446744073709551615\"}", "18ffffffffffffffffff01" },
	{ "zeros say nothing", "{\"intValue\": 0, \"uint\": 0, \"real\": 0, \"flag\": false, \"colour\": \"RED\"}",
	  "" },
	{ "true", "{\"flag\": true}", "2001" },
	{ "a real number", "{\"real\": 1.5}", "29000000000000f83f" },
	{ "infinite", "{\"real\": \"-Infinity\"}", "29000000000000f0ff" },
	{ "an enum by name", "{\"colour\": \"GREEN\"}", "3001" },
	{ "an enum by number", "{\"colour\": 7}", "3007" },
	{ "a message", "{\"one\": {\"name\": \"x\", \"values\": [1, \"2\", 0]}}", "3a090a0178100110021000" },
	{ "messages", "{\"many\": [{}, {\"name\": \"\"}]}", "420042020a00" },
	{ "texts", "{\"texts\": [\"a\", \"\"]}", "4a01614a00" },
	{ "zeros of a list count", "{\"uints\": [0, 1], \"reals\": [0], \"flags\": [false, true]}",
	  "500050015900000000000000006000"
	  "6001" },
	{ "null is nothing", "{\"text\": null, \"many\": null, \"one\": null}", "" },
	{ "members that nobody knows", "{\"x\": {\"text\": \"no\"}, \"flag\": true, \"y\": [[[]]]}", "2001" },
	{ "no object", "[]", NULL },
	{ "nothing at all", "", NULL },
	{ "more behind it", "{} {}", NULL },
	{ "not closed", "{\"text\": \"a\"", NULL },
	{ "a number for a text", "{\"text\": 1}", NULL },
	{ "a text for a message", "{\"one\": \"x\"}", NULL },
	{ "one for many", "{\"texts\": \"a\"}", NULL },
	{ "many for one", "{\"text\": [\"a\"]}", NULL },
	{ "a negative one", "{\"uint\": -1}", NULL },
	{ "half of one", "{\"intValue\": 1.5}", NULL },
	{ "too large", "{\"intValue\": \"9223372036854775808\"}", NULL },
	{ "no number", "{\"intValue\": \"5x\"}", NULL },
	{ "an empty number", "{\"intValue\": \"\"}", NULL },
	{ "in hexadecimal", "{\"real\": \"0x10\"}", NULL },
	{ "beyond a double", "{\"real\": 1e999}", NULL },
	{ "no such value", "{\"colour\": \"BLUE\"}", NULL },
	{ "a number for a truth", "{\"flag\": 1}", NULL },
};

static void reads_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(from_json_cases); i++) {
		const struct json_case *c = &from_json_cases[i];
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4)), hex = BUF_INIT(KIB(8));

		print_message("  %s\n", c->name);
		assert_int_equal(proto_from_json(&outer, guarded(c->json), &out), c->hex ? 0 : -EBADMSG);
		if (!c->hex)
			continue;
		add_hex(&hex, buf_str(&out));
		assert_string_equal(buf_cstr(&hex), c->hex);
	}
}

static const struct json_case to_json_cases[] = {
	{ "nothing", "{}", "" },
	{ "text", "{\"text\": \"a\\u00e4\\n\"}", "0a0461c3a40a" },
	{ "text that is no UTF-8", "{\"text\": \"\\ufffd\"}", "0a01ff" },
	{ "numbers of 64 bits are texts", "{\"intValue\": \"-1\", \"uint\": \"18446744073709551615\"}",
	  "10ffffffffffffffffff0118ffffffffffffffffff01" },
	{ "truth", "{\"flag\": true}", "2001" },
	{ "real numbers", "{\"real\": 1.5}", "29000000000000f83f" },
	{ "not a number", "{\"real\": \"NaN\"}", "29000000000000f87f" },
	{ "infinite", "{\"real\": \"-Infinity\"}", "29000000000000f0ff" },
	{ "an enum", "{\"colour\": \"GREEN\"}", "3001" },
	{ "one without a name", "{\"colour\": 7}", "3007" },
	{ "a message", "{\"one\": {\"name\": \"x\", \"values\": [\"1\", \"2\", \"0\"]}}", "3a090a0178100110021000" },
	{ "packed", "{\"one\": {\"values\": [\"1\", \"300\"]}}", "3a05120301ac02" },
	{ "packed, and one behind it", "{\"one\": {\"values\": [\"1\", \"2\"]}}", "3a051201011002" },
	{ "packed real numbers", "{\"reals\": [1.5]}", "5a08000000000000f83f" },
	{ "messages", "{\"many\": [{}, {\"name\": \"\"}]}", "420042020a00" },
	{ "fields that nobody knows", "{\"flag\": true}", "f80105fa0101612001" },
	{ "a number for a text", NULL, "0801" },
	{ "a text for a number", NULL, "120161" },
	{ "a number for a message", NULL, "3801" },
	{ "cut off", NULL, "0a05" },
	{ "cut off inside", NULL, "3a020a05" },
	{ "a number that ends early", NULL, "3a0412028080" },
	{ "half a real number", NULL, "5a04000000f8" },
};

static int write_json(struct str bytes, size_t size, struct buf *out)
{
	struct proto_json j;
	int r;

	proto_json_begin(&j, &outer, bytes);
	do
		r = proto_json_next(&j, size, out);
	while (r == 1);
	return r;
}

static void writes_json(void **state)
{
	static const size_t sizes[] = { 1, 7, SIZE_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(to_json_cases) * ARRAY_SIZE(sizes); i++) {
		const struct json_case *c = &to_json_cases[i / ARRAY_SIZE(sizes)];
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
		struct cur bytes = guard_page_hex(c->hex);

		print_message("  %s\n", c->name);
		assert_int_equal(write_json(cur_rest(&bytes), sizes[i % ARRAY_SIZE(sizes)], &out),
				 c->json ? 0 : -EBADMSG);
		if (c->json)
			assert_string_equal(buf_cstr(&out), c->json);
	}
}

/* What JSON says comes back as the bytes that it was. */
static void comes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(from_json_cases); i++) {
		scoped(buf_release) struct buf first = BUF_INIT(KIB(4)), json = BUF_INIT(KIB(4)),
					       second = BUF_INIT(KIB(4));

		if (!from_json_cases[i].hex)
			continue;
		print_message("  %s\n", from_json_cases[i].name);
		assert_int_equal(proto_from_json(&outer, guarded(from_json_cases[i].json), &first), 0);
		assert_int_equal(write_json(buf_str(&first), 16, &json), 0);
		assert_int_equal(proto_from_json(&outer, buf_str(&json), &second), 0);
		assert_true(str_eq(buf_str(&first), buf_str(&second)));
	}
}

static const struct {
	const char *name, *in, *out; /* out NULL: refused */
} clean_cases[] = {
	{ "nothing", "", "" },
	{ "fields that nobody knows", "f80105fa0101612001", "2001" },
	{ "zeros", "10001800200030002900000000000000002001", "2001" },
	{ "a zero of a list", "50005001", "50005001" },
	{ "packed numbers stay", "3a05120301ac02", "3a05120301ac02" },
	{ "inside messages", "42060a0178f80105", "42030a0178" },
	{ "text that is no UTF-8", "0a0261ff", "0a0461efbfbd" },
	{ "real numbers", "29000000000000f83f", "29000000000000f83f" },
	{ "a number for a text", "0801", NULL },
	{ "a number for a message", "3801", NULL },
	{ "a text for a number", "120161", NULL },
	{ "four bytes for eight", "2d00000000", NULL },
	{ "cut off", "0a05", NULL },
	{ "a group", "0b0c", NULL },
};

static void cleans(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clean_cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4)), hex = BUF_INIT(KIB(8));
		struct cur bytes = guard_page_hex(clean_cases[i].in);

		print_message("  %s\n", clean_cases[i].name);
		assert_int_equal(proto_clean(&outer, cur_rest(&bytes), &out), clean_cases[i].out ? 0 : -EBADMSG);
		if (!clean_cases[i].out)
			continue;
		add_hex(&hex, buf_str(&out));
		assert_string_equal(buf_cstr(&hex), clean_cases[i].out);
	}
}

/* A buffer that is full says so, and nothing is read behind it. */
static void room_runs_out(void **state)
{
	(void)state;
	for (size_t max = 0; max < 8; max++) {
		scoped(buf_release) struct buf out = BUF_INIT(max), json = BUF_INIT(max), clean = BUF_INIT(max);
		struct cur bytes = guard_page_hex("0a08616161616161616120012001");

		assert_int_equal(proto_from_json(&outer, STR("{\"text\": \"aaaaaaaa\"}"), &out), -E2BIG);
		assert_int_equal(write_json(cur_rest(&bytes), 1, &json), -E2BIG);
		assert_int_equal(proto_clean(&outer, cur_rest(&bytes), &clean), -E2BIG);
	}
}

static int all_ways(void *ctx)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4)), json = BUF_INIT(KIB(4)), clean = BUF_INIT(KIB(4));
	int r = proto_from_json(&outer, STR("{\"many\": [{\"name\": \"a\", \"values\": [1]}], \"text\": \"\\ud800\"}"),
				&bytes);

	(void)ctx;
	r = r ? r : write_json(buf_str(&bytes), 5, &json);
	return r ? r : proto_clean(&outer, buf_str(&bytes), &clean);
}

static void without_memory(void **state)
{
	(void)state;
	for_each_failing_allocation(all_ways, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_json), cmocka_unit_test(writes_json),   cmocka_unit_test(comes_back),
		cmocka_unit_test(cleans),     cmocka_unit_test(room_runs_out), cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
