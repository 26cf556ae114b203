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

static void completion_bash(struct buf *out)
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

/* Both shells take a text in single quotes; what else means something to zsh's _arguments has a backslash. */
static void add_quoted(struct buf *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_adds(out, STR("'\\''"));
		else if (strchr(special, *text))
			buf_addf(out, "\\%c", *text);
		else
			buf_addc(out, *text);
	}
}

static void add_choice_words(const struct opt *o, struct buf *out)
{
	for (size_t i = 0; o->choices[i]; i++)
		buf_addf(out, "%s%s", i ? " " : "", o->choices[i]);
}

static void zsh_option(void *ctx, const struct opt *o, bool takes_value)
{
	struct buf *out = ctx;

	for (int form = o->letter ? 0 : 1; form < 2; form++) {
		buf_adds(out, STR(" \\\n\t\t\t'*"));
		if (form)
			buf_addf(out, "--%s%s", o->name, takes_value ? "=" : "");
		else
			buf_addf(out, "-%c%s", o->letter, takes_value ? "+" : "");
		buf_addc(out, '[');
		add_quoted(out, o->help, "[]:\\");
		buf_addc(out, ']');
		if (takes_value) {
			buf_addf(out, ":%s:", o->arg ? o->arg : "value");
			if (o->type == OPT_CHOICE) {
				buf_addc(out, '(');
				add_choice_words(o, out);
				buf_addc(out, ')');
			} else if (o->type == OPT_PATH || o->type == OPT_LIST) {
				buf_adds(out, STR("_files"));
			}
		}
		buf_addc(out, '\'');
	}
}

static struct opt_spec spec_of(const struct command *c)
{
	return (struct opt_spec){ .program = c->name, .groups = c->groups };
}

static void completion_zsh(struct buf *out)
{
	buf_adds(out, STR("#compdef hearth\n"
			  "# Completion of hearth for zsh, made from its option tables. To use it:\n"
			  "#   hearth completion zsh > a folder of $fpath/_hearth\n"
			  "_hearth()\n{\n\tlocal -a commands\n\tcommands=(\n"));
	for (size_t i = 0; command_at(i); i++) {
		buf_addf(out, "\t\t'%s:", command_at(i)->name);
		add_quoted(out, command_at(i)->summary, ":\\");
		buf_adds(out, STR("'\n"));
	}
	buf_adds(out, STR("\t\t'help:show the help of a command' 'version:show the version'\n"
			  "\t\t'completion:print the completion script of a shell'\n\t)\n"
			  "\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
			  "\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n"
			  "\thelp) _describe command commands ;;\n\tcompletion) compadd bash zsh fish ;;\n"));
	for (size_t i = 0; command_at(i); i++) {
		struct opt_spec spec = spec_of(command_at(i));

		buf_addf(out, "\t%s) _arguments -s -S", command_at(i)->name);
		opt_for_each(&spec, zsh_option, out);
		buf_adds(out, STR(" \\\n\t\t\t'*:file:_files' ;;\n"));
	}
	buf_adds(out, STR("\tesac\n}\nif [ \"$funcstack[1]\" = _hearth ]; then\n\t_hearth \"$@\"\nelse\n"
			  "\tcompdef _hearth hearth\nfi\n"));
}

/* In single quotes only these two mean something to fish. */
static void fish_text(struct buf *out, const char *text)
{
	buf_adds(out, STR(" -d '"));
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *text);
	}
	buf_adds(out, STR("'\n"));
}

struct fish {
	struct buf *out;
	const char *command;
};

static void fish_option(void *ctx, const struct opt *o, bool takes_value)
{
	const struct fish *f = ctx;

	buf_addf(f->out, "complete -c hearth -n '__fish_seen_subcommand_from %s' -l %s", f->command, o->name);
	if (o->letter)
		buf_addf(f->out, " -s %c", o->letter);
	if (o->type == OPT_CHOICE) {
		buf_adds(f->out, STR(" -x -a '"));
		add_choice_words(o, f->out);
		buf_addc(f->out, '\'');
	} else if (takes_value) {
		buf_adds(f->out, o->type == OPT_PATH || o->type == OPT_LIST ? STR(" -r") : STR(" -x"));
	}
	fish_text(f->out, o->help);
}

static void completion_fish(struct buf *out)
{
	buf_adds(out, STR("# Completion of hearth for fish, made from its option tables. To use it:\n"
			  "#   hearth completion fish > ~/.config/fish/completions/hearth.fish\n"));
	for (size_t i = 0; command_at(i); i++) {
		buf_addf(out, "complete -c hearth -n __fish_use_subcommand -f -a %s", command_at(i)->name);
		fish_text(out, command_at(i)->summary);
	}
	buf_adds(out, STR("complete -c hearth -n __fish_use_subcommand -f -a 'help version completion'\n"
			  "complete -c hearth -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"));
	for (size_t i = 0; command_at(i); i++) {
		struct opt_spec spec = spec_of(command_at(i));
		struct fish f = { out, command_at(i)->name };

		opt_for_each(&spec, fish_option, &f);
	}
}

int completion(struct str shell, struct buf *out)
{
	static const struct {
		const char *shell;
		void (*write)(struct buf *out);
	} rows[] = { { "bash", completion_bash }, { "zsh", completion_zsh }, { "fish", completion_fish } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (str_eq(shell, str_of(rows[i].shell))) {
			rows[i].write(out);
			return 0;
		}
	return -EINVAL;
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
