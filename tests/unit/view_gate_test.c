/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view_gate.h"
#include "support.h"

#define KEY "00112233445566778899aabbccddeeff"
#define TICKET "ffeeddccbbaa99887766554433221100"

static struct view_gate known_gate(void)
{
	return (struct view_gate){ .key = KEY, .ticket = TICKET };
}

static void secrets_are_new(void **state)
{
	struct view_gate a, b;

	(void)state;
	assert_int_equal(view_gate_init(&a), 0);
	assert_int_equal(view_gate_init(&b), 0);
	assert_int_equal(strlen(a.key), VIEW_SECRET_SIZE);
	assert_int_equal(strspn(a.key, "0123456789abcdef"), VIEW_SECRET_SIZE);
	assert_string_not_equal(a.key, b.key);
	assert_string_not_equal(a.key, a.ticket);
	assert_false(a.is_used);
}

static void ways(void **state)
{
	static const struct {
		const char *name, *method, *path;
		enum view_gate_way want;
		const char *rest;
	} cases[] = {
		{ "the page", "GET", "/" KEY "/", VIEW_GATE_PASS, "/" },
		{ "only its head", "HEAD", "/" KEY "/", VIEW_GATE_PASS, "/" },
		{ "without its slash", "GET", "/" KEY, VIEW_GATE_ENTER, NULL },
		{ "a file of it", "GET", "/" KEY "/ui/app.js", VIEW_GATE_PASS, "/ui/app.js" },
		{ "an answer", "GET", "/" KEY "/api/v1/flame", VIEW_GATE_PASS, "/api/v1/flame" },
		{ "an answer to a body", "POST", "/" KEY "/api/v1/flame", VIEW_GATE_PASS, "/api/v1/flame" },
		{ "nothing is sent there", "POST", "/" KEY "/api/v1/export", VIEW_GATE_METHOD, NULL },
		{ "nor signed in", "POST", "/" KEY "/api/v1/session", VIEW_GATE_METHOD, NULL },
		{ "nor deleted", "DELETE", "/" KEY "/api/v1/flame", VIEW_GATE_METHOD, NULL },
		{ "nor written", "PUT", "/" KEY "/ui/app.js", VIEW_GATE_METHOD, NULL },
		{ "uploads", "POST", "/" KEY "/ingest", VIEW_GATE_NOTHING, NULL },
		{ "profefe's uploads", "POST", "/" KEY "/api/0/profiles", VIEW_GATE_NOTHING, NULL },
		{ "metrics", "GET", "/" KEY "/metrics", VIEW_GATE_NOTHING, NULL },
		{ "the folder of files", "GET", "/" KEY "/ui/", VIEW_GATE_NOTHING, NULL },
		{ "a way out of it", "GET", "/" KEY "/ui/../metrics", VIEW_GATE_NOTHING, NULL },
		{ "the same, hidden", "GET", "/" KEY "/ui/%2e%2e%2fmetrics", VIEW_GATE_NOTHING, NULL },
		{ "two slashes", "GET", "/" KEY "//", VIEW_GATE_NOTHING, NULL },
		{ "no key", "GET", "/", VIEW_GATE_NOTHING, NULL },
		{ "no key before a file", "GET", "/ui/app.js", VIEW_GATE_NOTHING, NULL },
		{ "no slash", "GET", "*", VIEW_GATE_NOTHING, NULL },
		{ "nothing", "GET", "", VIEW_GATE_NOTHING, NULL },
		{ "another key", "GET", "/00112233445566778899aabbccddeefe/", VIEW_GATE_NOTHING, NULL },
		{ "a key cut short", "GET", "/00112233445566778899aabbccddeef/", VIEW_GATE_NOTHING, NULL },
		{ "a longer key", "GET", "/" KEY "0/", VIEW_GATE_NOTHING, NULL },
		{ "upper case", "GET", "/00112233445566778899AABBCCDDEEFF/", VIEW_GATE_NOTHING, NULL },
		{ "the ticket as key", "GET", "/" TICKET "/ui/app.js", VIEW_GATE_NOTHING, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct view_gate g = known_gate();
		struct str rest = STR("untouched");

		print_message("  %s\n", cases[i].name);
		assert_int_equal(view_gate_check(&g, str_of(cases[i].method), str_of(cases[i].path), &rest),
				 cases[i].want);
		assert_true(str_eq(rest, str_of(cases[i].rest ? cases[i].rest : "untouched")));
		assert_false(g.is_used);
	}
}

static void ticket_leads_in_once(void **state)
{
	struct view_gate g = known_gate();
	struct str rest = STR("");

	(void)state;
	assert_int_equal(view_gate_check(&g, STR("GET"), STR("/" TICKET "/"), &rest), VIEW_GATE_NOTHING);
	assert_int_equal(view_gate_check(&g, STR("GET"), STR("/" TICKET), &rest), VIEW_GATE_ENTER);
	assert_int_equal(view_gate_check(&g, STR("GET"), STR("/" TICKET), &rest), VIEW_GATE_USED);
	assert_int_equal(view_gate_check(&g, STR("GET"), STR("/" KEY "/"), &rest), VIEW_GATE_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_new),
		cmocka_unit_test(ways),
		cmocka_unit_test(ticket_leads_in_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
