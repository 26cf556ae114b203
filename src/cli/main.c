/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches to the sub-commands; nothing else. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "build_info.h"

#include "base/io.h"
#include "base/name_service.h"
#include "base/similar.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "symbol/lines_child.h"

static void add_overview(struct buf *out)
{
	buf_adds(out,
		 STR("hearth: a whole-machine continuous profiler\n\nUsage: hearth COMMAND [OPTIONS]\n\nCommands:\n"));
	for (size_t i = 0; command_at(i); i++)
		buf_addf(out, "  %-10s %s\n", command_at(i)->name, command_at(i)->summary);
	buf_adds(out, STR("  completion print the completion script for bash, zsh or fish\n"
			  "\nhearth COMMAND --help tells more. Start with: sudo hearth record -d 10\n"));
}

static int unknown(const char *word)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct similar like = similar_to(str_of(word));

	buf_adds(&text, STR("hearth: unknown command '"));
	for (const char *c = word; *c && text.len < KIB(1); c++)
		buf_addc(&text, (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
	for (size_t i = 0; command_at(i); i++)
		similar_offer(&like, command_at(i)->name);
	if (like.best)
		buf_addf(&text, "'; did you mean '%s'?\n", like.best);
	else
		buf_adds(&text, STR("'; hearth --help lists them\n"));
	fputs(buf_cstr(&text), stderr);
	return EXIT_USAGE;
}

static int special(struct str word, int argc, char **argv)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(256));
	int r;

	if (str_eq(word, STR("--help")) || str_eq(word, STR("-h")) || str_eq(word, STR("help"))) {
		const struct command *c = argc > 2 ? command_find(str_of(argv[2])) : NULL;

		if (argc > 2 && !c)
			return unknown(argv[2]);
		if (c)
			command_help(c, &text);
		else
			add_overview(&text);
	} else if (str_eq(word, STR("--version")) || str_eq(word, STR("-V")) || str_eq(word, STR("version"))) {
		buf_adds(&text, STR("hearth " HEARTH_VERSION " (commit " HEARTH_COMMIT ")\n"));
	} else if (str_eq(word, STR("completion"))) {
		if (completion(str_of(argc > 2 ? argv[2] : "bash"), &text) < 0) {
			fputs("hearth completion: there is one for bash, zsh and fish\n", stderr);
			return EXIT_USAGE;
		}
	} else if (str_eq(word, STR("--man-options")) && argc > 2) { /* for the build of the man pages */
		const struct command *c = command_find(str_of(argv[2]));

		if (!c)
			return unknown(argv[2]);
		completion_man(c, &text);
	} else {
		return unknown(argv[1]);
	}
	r = text.error ? text.error : io_write_all(STDOUT_FILENO, text.ptr, text.len);
	return r == 0 || r == -EPIPE ? EXIT_DONE : EXIT_FAILED; /* of a closed pipe: the reader has seen enough */
}

/* Wherever it stands: gProfiler does nothing else then. */
static bool wants_version(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--version"))
			return true;
	return false;
}

/* Who closed them would find the log's lines in the first file that is opened, a profile. Writing fails as before. */
static void fill_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0) /* the lowest that is free is this one */
			ignore(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (lines_child_wanted(argc, argv))
		return lines_child_main();
	name_service_confine();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, and so is ulimit -f: */
	signal(SIGXFSZ, SIG_IGN);
	fill_standard_files();
	c = command_of_program(argc ? argv[0] : "");
	if (c && wants_version(argc, argv)) {
		puts(HEARTH_VERSION); /* as gProfiler's, whose readers want three numbers */
		return EXIT_DONE;
	}
	if (c)
		return command_main(c, argc, argv);
	if (argc < 2) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(16));

		add_overview(&text);
		fputs(buf_cstr(&text), stderr);
		return EXIT_USAGE;
	}
	c = command_find(str_of(argv[1]));
	return c ? command_main(c, argc - 1, argv + 1) : special(str_of(argv[1]), argc, argv);
}
