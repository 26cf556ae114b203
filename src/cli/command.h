/* SPDX-License-Identifier: Apache-2.0 */
/* A sub-command: one file each (cmd_NAME.c), ending in one const entry, listed in commands.c. */
#pragma once

#include "base/opt.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 77,
};

struct command {
	const char *name;
	const char *const *aliases;  /* the program's names under which it is this command; NULL ends; may be NULL */
	const char *summary;         /* one line, for the list of commands and the man page's NAME */
	const char *operands;        /* what follows the options in the usage line, or "" */
	const char *details;         /* paragraphs below the usage line, or NULL */
	const char *const *examples; /* pairs: command line, what it does; NULL ends; may be NULL */
	const struct opt_group *groups;
	const struct opt_dialect *dialect; /* NULL: the usual one */
	size_t config_size;                /* of the configuration struct the tables write to */
	bool stop_at_operand;              /* operands are a command line of their own */
	int operands_min, operands_max;    /* checked before run(); max -1: any number */
	/** Return: enum exit_status. @config is zeroed and filled by the option tables; say errors with command_fail().
	 */
	int (*run)(void *config, int operand_count, char **operands);
};

extern const struct command command_agent, command_convert, command_diff, command_doctor, command_dump, command_import,
	command_java, command_pull, command_merge, command_profile, command_record, command_report, command_serve,
	command_store, command_token, command_top, command_up, command_view;

const struct command *command_at(size_t index); /* NULL behind the last */
const struct command *command_find(struct str name);
/** command_of_program - of argv[0]; NULL: a word says which. */
const struct command *command_of_program(const char *path);

/** command_main - parse, help, run. argv[0] is the command's name. Return: exit status. */
int command_main(const struct command *c, int argc, char **argv);
/** command_help - what --help prints. */
void command_help(const struct command *c, struct buf *out);

/** command_fail - "hearth NAME: message" on stderr, foreign bytes escaped. Return: EXIT_FAILED. */
int command_fail(const struct command *c, const char *format, ...) printf_like(2, 3);

/** command_print - write a buffer to stdout. Return: EXIT_DONE, or EXIT_FAILED after saying why. */
int command_print(const struct command *c, const struct buf *text);
