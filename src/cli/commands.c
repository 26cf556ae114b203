/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of sub-commands and what they all share: parsing, help, error lines. */
#include "cli/command.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/safe.h"
#include "cli/terminal_size.h"

static const struct command *const commands[] = {
	&command_up,     &command_agent,   &command_record, &command_profile, &command_top,  &command_view,
	&command_report, &command_convert, &command_merge,  &command_diff,    &command_dump, &command_serve,
	&command_token,  &command_import,  &command_pull,   &command_store,   &command_java, &command_doctor,
};

const struct command *command_at(size_t index)
{
	return index < ARRAY_SIZE(commands) ? commands[index] : NULL;
}

const struct command *command_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (str_eq(name, str_of(commands[i]->name)))
			return commands[i];
	return NULL;
}

const struct command *command_of_program(const char *path)
{
	struct str base = str_base(str_of(path));

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (const char *const *alias = commands[i]->aliases; alias && *alias; alias++)
			if (str_eq(base, str_of(*alias)))
				return commands[i];
	return NULL;
}

static struct opt_spec spec_of(const struct command *c)
{
	return (struct opt_spec){
		.program = c->name, .dialect = c->dialect, .groups = c->groups, .stop_at_operand = c->stop_at_operand
	};
}

void command_help(const struct command *c, struct buf *out)
{
	struct opt_spec spec = spec_of(c);

	size_t width = terminal_width(STDOUT_FILENO);

	buf_addf(out, "Usage: hearth %s [OPTIONS] %s\n\n", c->name, c->operands);
	opt_wrap(str_of(c->summary), 0, 0, width, out);
	buf_addc(out, '\n');
	if (c->details) {
		buf_addc(out, '\n');
		opt_wrap(str_of(c->details), 0, 0, width, out);
		buf_addc(out, '\n');
	}
	opt_help(&spec, width, out);
	if (c->examples)
		buf_adds(out, STR("\nExamples:\n"));
	for (const char *const *e = c->examples; e && *e; e += 2) {
		buf_addf(out, "  %s\n      ", e[0]);
		opt_wrap(str_of(e[1]), 6, 6, width, out);
		buf_addc(out, '\n');
	}
}

static void say(const struct command *c, struct str message)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));

	if (log_get_style() == LOG_STYLE_GPROFILER) { /* its errors are lines of its log, once that is open */
		safe_add(&line, message);
		log_error(buf_cstr(&line));
		return;
	}
	buf_addf(&line, "hearth %s: ", c->name);
	safe_add(&line, message);
	buf_addc(&line, '\n');
	log_text(buf_str(&line), true);
}

int command_fail(const struct command *c, const char *format, ...)
{
	scoped(freep) char *text = NULL;
	va_list args;
	int size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0)
		text = NULL; /* glibc leaves it undefined */
	say(c, text ? str_of(text) : STR("out of memory"));
	return EXIT_FAILED;
}

int command_print(const struct command *c, const struct buf *text)
{
	int r = text->error;

	if (r == 0)
		r = io_write_all(STDOUT_FILENO, text->ptr, text->len);
	if (r == -EPIPE) /* the reader has seen enough */
		return EXIT_DONE;
	return r < 0 ? command_fail(c, "cannot write the output: %s", strerror(-r)) : EXIT_DONE;
}

static int usage_error(const struct command *c, struct str why)
{
	say(c, why);
	return EXIT_USAGE;
}

/* To ConfigArgParse a file that cannot be read is one, too. */
static bool is_usage_error(const struct command *c, int r)
{
	return r == -EINVAL || (r != -ENOMEM && c->dialect && c->dialect->is_configargparse);
}

static int check_operands(const struct command *c, int count)
{
	if (count < c->operands_min) {
		command_fail(c, "%s is missing; usage: hearth %s [OPTIONS] %s", c->operands, c->name, c->operands);
		return EXIT_USAGE;
	}
	if (c->operands_max >= 0 && count > c->operands_max) {
		command_fail(c, "too many operands; usage: hearth %s [OPTIONS] %s", c->name, c->operands);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

int command_main(const struct command *c, int argc, char **argv)
{
	scoped(opt_result_release) struct opt_result result = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	scoped(freep) void *config = calloc(1, MAX(c->config_size, (size_t)1));
	struct opt_spec spec = spec_of(c);
	int r;

	if (!config)
		return command_fail(c, "out of memory");
	r = opt_parse(&spec, argc, argv, config, &result, &text);
	if (r < 0)
		return is_usage_error(c, r) ? usage_error(c, buf_str(&text))
					    : command_fail(c, "%s", text.len ? buf_cstr(&text) : strerror(-r));
	if (result.help) {
		command_help(c, &text);
		return command_print(c, &text);
	}
	r = check_operands(c, result.operand_count);
	r = r == EXIT_DONE ? c->run(config, result.operand_count, result.operands) : r;
	log_finish();
	return r;
}
