/* SPDX-License-Identifier: Apache-2.0 */
/* hearth dump FILE: every sample, location and mapping of a profile, as text (the form of pprof's golden files); with
 * --unwind the unwind rows of a program or library. */
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/input.h"
#include "object/unwind_text.h"
#include "render/render.h"

struct config {
	const char *from;
	bool unwind;
};

static const struct opt options[] = {
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the file as pprof, col, folded, window or legacy (default: by content)" },
	{ "unwind", 0, OPT_FLAG, .at = offsetof(struct config, unwind),
	  .help = "FILE is a program or library: show how its stack frames are found" },
	{ 0 },
};

static int read_file(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static int unwind_rows(int fd, struct buf *text)
{
	scoped(unwind_table_release) struct unwind_table table = { 0 };
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = { .read = read_file, .self = &fd };
	struct stat st;
	int r = fstat(fd, &st);

	if (r < 0)
		return -errno;
	in.size = (uint64_t)st.st_size;
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = unwind_table_build(&elf, NULL, &table);
	if (r < 0)
		return r;
	unwind_text(&elf, &table, text);
	return text->error;
}

static int dump_unwind(const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(GIB(2));
	scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : unwind_rows(fd, &text);

	if (r == -EBADMSG)
		return command_fail(&command_dump, "%s: not an ELF file, or its unwind tables are malformed", path);
	if (r < 0)
		return command_fail(&command_dump, "%s: %s", path, strerror(-r));
	return command_print(&command_dump, &text);
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(GIB(2));
	int r;

	(void)operand_count;
	if (config->unwind)
		return dump_unwind(operands[0]);
	r = input_load(&command_dump, operands[0], config->from, &w);
	if (r != EXIT_DONE)
		return r;
	r = render_dump(&w, isatty(STDOUT_FILENO), &text);
	if (r < 0)
		return command_fail(&command_dump, "%s: %s", operands[0], strerror(-r));
	return command_print(&command_dump, &text);
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = {
	"hearth dump profile.pb.gz",
	"all of it, one sample a line",
	"hearth dump --unwind /usr/bin/git",
	"its unwind rows, to be held against readelf -wF",
	NULL,
};

const struct command command_dump = {
	.name = "dump",
	.summary = "show everything in a profile file, sample by sample",
	.operands = "FILE",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
