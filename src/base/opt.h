/* SPDX-License-Identifier: Apache-2.0 */
/* One table feeds flags, environment, configuration file, --help, man pages and shell completion. */
#pragma once

#include "base/buf.h"

enum opt_type {
	OPT_FLAG,     /* bool; --no-NAME sets it to false */
	OPT_SWITCH,   /* uint8_t: enum opt_switch, so that a default can depend on other options; --no-NAME turns off */
	OPT_UINT,     /* uint64_t within [min, max] */
	OPT_DURATION, /* uint64_t ns: "10", "1.5s", "200ms", "2m", "1h", "1d"; a bare number is seconds */
	OPT_SIZE,     /* uint64_t bytes: "64K", "8M", "1G"; UINT64_MAX for the one word in choices, if there are any */
	OPT_TEXT,     /* const char *, borrowed from argv, the environment or the file */
	OPT_PATH,     /* the same; completed as a file name */
	OPT_CHOICE,   /* size_t: index into choices */
	OPT_LIST,     /* struct opt_list: may be given more than once */
};

enum opt_switch { OPT_SWITCH_UNSET, OPT_SWITCH_ON, OPT_SWITCH_OFF };

#define OPT_LIST_MAX 64

struct opt_list {
	const char *items[OPT_LIST_MAX];
	size_t count;
};

struct opt {
	const char *name; /* long name; NULL ends a table */
	char letter;      /* or 0 */
	enum opt_type type;
	size_t at; /* offset of the value in the configuration struct */
	uint64_t min, max;
	const char *fallback;       /* default, in the same text form; NULL: zero */
	const char *const *choices; /* NULL-terminated */
	const char *arg, *help;     /* help NULL: a working alias that is not listed */
	const char *bare;           /* the value where a flag that takes one stands alone; NULL: it may not */
};

/* Tables may be put together: a command lists its fragments. All offsets are of one configuration struct. */
struct opt_group {
	const char *title; /* heading in --help; NULL: none */
	const struct opt *opts;
};

/* Where values come from besides the flags, for a command that keeps the habits of another program. */
struct opt_dialect {
	const char *environment; /* what precedes the names of variables: "HEARTH_" */
	const char *file;        /* read when it is there and --config names no other; NULL: there is none */
	/* As ConfigArgParse: the file may say "name: value", "name value", "[a, b]" for lists and "[section]";
	 * a switch may be named with no- before it, there and in the environment. */
	bool is_configargparse;
	bool letters_take_equals; /* as Go's flag: "-d=true", "-F=99" */
};

struct opt_spec {
	const char *program;               /* "hearth record": starts every message */
	const struct opt_dialect *dialect; /* NULL: the usual one, of HEARTH_NAME */
	const struct opt_group *groups;    /* opts NULL ends */
	bool stop_at_operand;              /* the first operand begins a command line: options behind it are not ours */
};

struct opt_result {
	char **operands; /* points into argv */
	int operand_count;
	bool help;        /* --help was given: nothing else was checked */
	char *file_text;  /* what --config read: values point into it */
	char **words;     /* argv with single-dash long options made double: operands point into it */
	char **rewritten; /* those words; values may point into them */
	size_t rewritten_count, rewritten_cap;
};

/**
 * opt_parse - defaults, then the file named by --config, then the environment, then the flags
 * @config: zeroed by the caller; filled by table
 * @why: on failure one line, without a line end, that names the option, the value and what is allowed
 *
 * A single-dash word that equals a long name exactly is that option (-addr, -addr=x); otherwise short options bundle.
 * Return: 0, or -EINVAL (usage), -errno of an unreadable file.
 */
int opt_parse(const struct opt_spec *spec, int argc, char **argv, void *config, struct opt_result *out,
	      struct buf *why) warn_unused;
void opt_result_release(struct opt_result *result);

/** opt_help - the options as --help shows them; @width: of the terminal, 0: lines are not wrapped. */
void opt_help(const struct opt_spec *spec, size_t width, struct buf *out);
/** opt_wrap - @text, of which no line is wider than @width (0: any) where it has a blank; @indent blanks begin all
 * lines but the first, which begins at column @at. */
void opt_wrap(struct str text, size_t at, size_t indent, size_t width, struct buf *out);
/** opt_for_each - every option that is listed, those of every command last. */
void opt_for_each(const struct opt_spec *spec, void (*visit)(void *ctx, const struct opt *o, bool takes_value),
		  void *ctx);
/** opt_man - the options as scdoc source. */
void opt_man(const struct opt_spec *spec, struct buf *out);
/** opt_words - every --long and -s word, blank-separated, for completion. */
void opt_words(const struct opt_spec *spec, struct buf *out);

int opt_parse_duration(struct str text, uint64_t *out_ns) warn_unused;
int opt_parse_size(struct str text, uint64_t *out_bytes) warn_unused;
/** opt_is_yes - "true", "1", "yes" or "false", "0", "no", in any case. Return: 0 or -EBADMSG. */
int opt_is_yes(const char *text, bool *out) warn_unused;
