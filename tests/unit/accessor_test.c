/* SPDX-License-Identifier: Apache-2.0 */
/* Where variables are, by the code of functions of real builds of CPython. */
#include "support.h"

#include "object/accessor.h"

static struct accessor_code code_at(const char *hex, uint64_t address)
{
	struct cur in = guard_page_hex(hex);

	return (struct accessor_code){ .bytes = in.pos, .size = cur_left(&in), .address = address };
}

static void finds_what_real_code_says(void **state)
{
	struct accessor_code code;
	struct accessor_place place;
	struct accessor_tls tls;
	uint64_t at;

	(void)state;
	code = code_at("488b05c9080e00c3", 0x116e00); /* 2.7.18, PyInterpreterState_Head */
	assert_true(accessor_load(&code, &at));
	assert_int_equal(at, 0x1f76d0);
	code = code_at("48833d38070e0000740e8b3d28070e00e92b85f2ff", 0x116fa0); /* 2.7.18, GetThisThreadState */
	assert_true(accessor_int_argument(&code, &at));
	assert_int_equal(at, 0x1f76d8);
	code = code_at("488b05c18616004883b8680500000074"
		       "0f488db870050000e9237aebff",
		       0x1b25b0); /* 3.8.18 */
	assert_true(accessor_argument(&code, &place));
	assert_int_equal(place.kind, ACCESSOR_OFFSET);
	assert_int_equal(place.at, 0x570);
	code = code_at("f30f1efa833d65c8510000"
		       "0f84d02af0ff8b3d5dc85100e994e3efff",
		       0x523400); /* Debian's 3.13.5 */
	assert_true(accessor_argument(&code, &place));
	assert_int_equal(place.kind, ACCESSOR_ADDRESS);
	assert_int_equal(place.at, 0xa3fc70);
	code = code_at("f30f1efa833d3b49770000740abfe010ba00e97f2e1100", 0x42c79a); /* Debian's 3.14.10 */
	assert_true(accessor_argument(&code, &place));
	assert_int_equal(place.at, 0xba10e0);
	code = code_at("4883ec0866488d3dd4db26006666"
		       "48e8b722e3ff488b004883c408c3",
		       0x2d6310); /* 3.12.1 */
	assert_true(accessor_thread_local(&code, &tls));
	assert_int_equal(tls.kind, ACCESSOR_TLS_MODULE);
	assert_int_equal(tls.value, 0x543ef0);
	code = code_at("f30f1efa64488b0425e8ffffffc3", 0x774880); /* Debian's 3.14.10 */
	assert_true(accessor_thread_local(&code, &tls));
	assert_int_equal(tls.kind, ACCESSOR_TLS_OFFSET);
	assert_int_equal(tls.value, (uint64_t)-24);
	code = code_at("488b05f9ff070064488b00c3", 0x1000); /* initial exec: through a slot */
	assert_true(accessor_thread_local(&code, &tls));
	assert_int_equal(tls.kind, ACCESSOR_TLS_SLOT);
	assert_int_equal(tls.value, 0x81000);
	code = code_at("e800000000c3", 0x1000); /* calls who knows what */
	assert_false(accessor_thread_local(&code, &tls));
	assert_false(accessor_int_argument(&code, &at));
	assert_false(accessor_argument(&code, &place));
	assert_false(accessor_load(&code, &at));
}

static void says_what_is_returned_and_nothing_else(void **state)
{
	static const struct {
		const char *what, *code;
		bool is_found, is_read;
		uint64_t at;
	} cases[] = {
		{ "its address", "488d05f9ff0700c3", true, false, 0x81000 },
		{ "the same behind endbr64", "f30f1efa488d05f5ff0700c3", true, false, 0x81000 },
		{ "what lies there", "488b05f9ff0700c3", true, true, 0x81000 },
		{ "likewise of 4 bytes", "8b05faff0700c3", true, true, 0x81000 },
		{ "by its address", "488d05f9ff0700488b00c3", true, true, 0x81000 },
		{ "by a constant address", "b8001000808b00c3", true, true, 0x80001000 },
		{ "a constant", "b800108000c3", true, false, 0x801000 },
		{ "a long constant", "48b80010008000000000c3", true, false, 0x80001000 },
		{ "more than that: a pointer's pointer", "488b05f9ff0700488b00c3", false, false, 0 },
		{ "something in it", "488d05f9ff0700488b4008c3", false, false, 0 },
		{ "another register", "488d0df9ff0700c3", false, false, 0 },
		{ "of a thread", "64488b042500000000c3", false, false, 0 },
		{ "two things", "488d05f9ff0700b800108000c3", false, false, 0 },
		{ "a frame of its own", "55488d05f9ff07005dc3", false, false, 0 },
		{ "it goes on elsewhere", "488d05f9ff0700eb00", false, false, 0 },
		{ "it does not return", "488d05f9ff0700cc", false, false, 0 },
		{ "nothing", "c3", false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct accessor_code code = code_at(cases[i].code, 0x1000);
		struct accessor_value value = { 0 };

		print_message("  %s\n", cases[i].what);
		assert_int_equal(accessor_value(&code, &value), cases[i].is_found);
		if (!cases[i].is_found)
			continue;
		assert_int_equal(value.at, cases[i].at);
		assert_int_equal(value.is_read, cases[i].is_read);
	}
}

/* Code that ends anywhere, and none at all: nothing is read behind it. */
static void ends_with_the_code(void **state)
{
	static const char *const codes[] = { "488b05c9080e00c3",
					     "4883ec0866488d3dd4db2600666648e8b722e3ff488b004883c408c3",
					     "f30f1efa833d65c85100000f84d02af0ff8b3d5dc85100e994e3efff" };
	struct accessor_place place;
	struct accessor_value value;
	struct accessor_tls tls;
	uint64_t at[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct accessor_code whole = code_at(codes[i], 0x1000);

		for (size_t size = 0; size < whole.size; size++) {
			char hex[64] = { 0 };
			struct accessor_code code;

			memcpy(hex, codes[i], size * 2);
			code = code_at(hex, 0x1000);
			ignore(!accessor_load(&code, &at[0]));
			ignore(!accessor_int_argument(&code, &at[0]));
			ignore(!accessor_argument(&code, &place));
			ignore(!accessor_thread_local(&code, &tls));
			ignore(!accessor_value(&code, &value));
			assert_in_range(accessor_addresses(&code, at, ARRAY_SIZE(at)), 0, ARRAY_SIZE(at));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_real_code_says),
		cmocka_unit_test(says_what_is_returned_and_nothing_else),
		cmocka_unit_test(ends_with_the_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
