/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_filter.h"

/* As re.search(): an expression fits when it fits somewhere. */
static int compile(const char *pattern, struct regex *out)
{
	scoped(buf_release) struct buf whole = BUF_INIT(REGEX_PATTERN_MAX);

	buf_addf(&whole, "(?s).*(?:%s).*", pattern);
	return whole.error ? whole.error : regex_compile(buf_str(&whole), out);
}

int agent_filter_open(const struct command *c, const struct opt_list *patterns, struct agent_filter *out)
{
	out->items = patterns->count ? calloc(patterns->count, sizeof(*out->items)) : NULL;
	if (patterns->count && !out->items)
		return command_fail(c, "out of memory");
	for (size_t i = 0; i < patterns->count; i++) {
		int r = compile(patterns->items[i], &out->items[out->count]);

		if (r == 0) {
			out->count++;
			continue;
		}
		if (r == -ENOMEM)
			return command_fail(c, "out of memory");
		command_fail(c, "--app-id-args-filter: '%s' is no regular expression of RE2's syntax%s",
			     patterns->items[i], r == -E2BIG ? ", or too long" : "");
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

bool agent_filter_wants(struct agent_filter *filter, struct str argument)
{
	for (size_t i = 0; i < filter->count; i++)
		if (regex_fits(&filter->items[i], argument))
			return true;
	return false;
}

void agent_filter_release(struct agent_filter *f)
{
	for (size_t i = 0; i < f->count; i++)
		regex_release(&f->items[i]);
	free(f->items);
	*f = (struct agent_filter){ 0 };
}
