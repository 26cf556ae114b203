/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

static void add_option_words(const struct command *c, struct buf *out)
{
	struct opt_spec spec = { .program = c->name, .groups = c->groups };
	scoped(buf_release) struct buf words = BUF_INIT(KIB(16));

	opt_words(&spec, &words);
	buf_addf(out, "\t%s) words='%s' ;;\n", c->name, buf_cstr(&words));
}

static void add_choices(const struct command *c, struct buf *out)
{
	for (const struct opt_group *g = c->groups; g->opts; g++)
		for (const struct opt *o = g->opts; o->name; o++) {
			if (o->type != OPT_CHOICE || !o->help)
				continue;
			buf_addf(out, "\t%s:--%s) COMPREPLY=($(compgen -W '", c->name, o->name);
			for (size_t i = 0; o->choices[i]; i++)
				buf_addf(out, "%s%s", i ? " " : "", o->choices[i]);
			buf_adds(out, STR("' -- \"$current\")); return ;;\n"));
		}
}

void completion_bash(struct buf *out)
{
	buf_adds(out, STR("# Completion of hearth for bash, made from its option tables. To use it:\n"
			  "#   hearth completion > /etc/bash_completion.d/hearth\n"
			  "_hearth()\n{\n"
			  "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=\n"
			  "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '"));
	for (size_t i = 0; command_at(i); i++)
		buf_addf(out, "%s ", command_at(i)->name);
	buf_adds(out, STR("help version completion' -- \"$current\"))\n\t\treturn\n\tfi\n"
			  "\tcase ${COMP_WORDS[1]}:$previous in\n"));
	for (size_t i = 0; command_at(i); i++)
		add_choices(command_at(i), out);
	buf_adds(out, STR("\tesac\n\tcase ${COMP_WORDS[1]} in\n"));
	for (size_t i = 0; command_at(i); i++)
		add_option_words(command_at(i), out);
	buf_adds(out, STR("\tesac\n\tcase $current in\n"
			  "\t-*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
			  "\tesac\n}\n"
			  "# Without an answer of the function bash completes file names itself, spaces and all.\n"
			  "complete -o bashdefault -o default -F _hearth hearth\n"));
}

void completion_man(const struct command *c, struct buf *out)
{
	struct opt_spec spec = { .program = c->name, .groups = c->groups };

	buf_adds(out, STR("# OPTIONS\n\n"));
	opt_man(&spec, out);
	if (!c->examples)
		return;
	buf_adds(out, STR("# EXAMPLES\n\n"));
	for (const char *const *e = c->examples; *e; e += 2)
		buf_addf(out, "*%s*\n\t%s.\n\n", e[0], e[1]);
}
