/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/value.h"

int value_choose(const struct command *c, const struct model *m, const char *name, size_t *out)
{
	scoped(buf_release) struct buf have = BUF_INIT(KIB(16));
	int index = name ? model_value_index(m, str_of(name)) : (int)model_default_value(m);

	if (index >= 0) {
		*out = (size_t)index;
		return EXIT_DONE;
	}
	for (size_t i = 0; i < m->value_type_count; i++) {
		buf_adds(&have, i ? STR(", ") : STR(""));
		buf_adds(&have, model_string(m, m->value_types[i].type));
	}
	command_fail(c, "--value: the profile has no '%s'; it has %s", name, buf_cstr(&have));
	return EXIT_USAGE;
}

int value_apply(const struct command *c, struct model *m, const char *name, struct codec_options *options)
{
	size_t column = 0;
	int r = name ? value_choose(c, m, name, &column) : EXIT_DONE;

	if (name && r == EXIT_DONE) {
		m->default_type = m->value_types[column].type;
		options->value = name;
	}
	return r;
}
