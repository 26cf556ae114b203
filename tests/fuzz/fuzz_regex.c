/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern, a NUL, a text: work is bounded, and patterns that mean the same say the same. */
#include "fuzz.h"

#include "base/buf.h"
#include "query/regex.h"

/* -1: refused. */
static int fits(struct str pattern, struct str text)
{
	struct regex re;
	int found;

	if (regex_compile(pattern, &re) < 0)
		return -1;
	must(re.states_count <= REGEX_STATES_MAX);
	found = regex_fits(&re, text);
	must(re.steps <= (uint64_t)(re.states_count * 2 + re.ranges_count * re.states_count) * (text.len + 1));
	regex_release(&re);
	return found;
}

static int fits_as(const char *before, struct str pattern, const char *behind, struct str text)
{
	scoped(buf_release) struct buf whole = BUF_INIT(KIB(8));

	buf_adds(&whole, str_of(before));
	buf_adds(&whole, pattern);
	buf_adds(&whole, str_of(behind));
	return fits(buf_str(&whole), text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size), pattern;
	int found, again;

	if (size > 512 || !str_next(&text, 0, &pattern))
		return 0;
	if (str_search(text, STR("\\E")) < 0 && text.len)
		must(fits_as("\\Q", text, "", text) == 1);
	found = fits(pattern, text);
	if (found < 0 || str_search(pattern, STR("\\Q")) >= 0 || str_search(pattern, STR("(?")) >= 0)
		return 0;
	again = fits_as("(?:", pattern, "){1}", text);
	must(again == found || again < 0);
	again = fits_as("(", pattern, "|\\x00x){1,1}", text);
	must(again == found || again < 0 || text.len == 2);
	return 0;
}
