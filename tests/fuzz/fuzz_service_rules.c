/* SPDX-License-Identifier: Apache-2.0 */
/* A file of rules, held against its own text. */
#include "fuzz.h"

#include "base/safe.h"
#include "base/utf8.h"
#include "proc/service_rules.h"

/* The slow and obvious way. */
static bool fits(struct str pattern, struct str text)
{
	if (!pattern.len)
		return !text.len;
	if (pattern.ptr[0] == '*') {
		for (size_t i = 0; i <= text.len; i++)
			if (fits(str_skip(pattern, 1), str_skip(text, i)))
				return true;
		return false;
	}
	if (!text.len || (pattern.ptr[0] != '?' && pattern.ptr[0] != text.ptr[0]))
		return false;
	return fits(str_skip(pattern, 1), str_skip(text, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size), fields[SERVICE_RULE_FIELD_COUNT], name, pattern, rest = text;
	scoped(service_rules_freep) struct service_rules *rules = NULL;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	if (str_next(&rest, '\n', &pattern) && pattern.len <= 6 && rest.len)
		must(service_rules_fits(pattern, str_first(rest, 24)) == fits(pattern, str_first(rest, 24)));
	if (service_rules_parse(text, &why, &rules) < 0) {
		must(why.len && utf8_valid(buf_str(&why)));
		return 0;
	}
	must(service_rules_count(rules) <= size / 8 + 1);
	for (size_t i = 0; i < SERVICE_RULE_FIELD_COUNT; i++)
		fields[i] = text;
	name = service_rules_find(rules, fields);
	must(name.len <= SERVICE_RULE_NAME_MAX && utf8_valid(name));
	while (name.len)
		must(!safe_hides((uint32_t)utf8_next(&name)));
	return 0;
}
