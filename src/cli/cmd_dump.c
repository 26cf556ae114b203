/* SPDX-License-Identifier: Apache-2.0 */
/* hearth dump FILE: every sample, location and mapping of a profile, as text (the form of pprof's golden files); with
 * --unwind the unwind rows of a program or library; with -p the stacks of a live process. */
#include <fcntl.h>
#include <unistd.h>

#include "agent/dump_process.h"
#include "base/io.h"
#include "cli/format_names.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/runtime_options.h"
#include "object/unwind/text.h"
#include "render/render.h"

struct config {
	uint64_t memory_bytes;
	const char *from, *host_root;
	uint64_t pid;
	bool unwind, freeze, json;
	struct runtime_options runtimes;
};

static const struct opt options[] = {
	{ "from", 0, OPT_TEXT, .at = offsetof(struct config, from), .arg = "FORMAT",
	  .help = "read the file as " FORMATS_READ " (default: by content)" },
	{ "pid", 'p', OPT_UINT, .at = offsetof(struct config, pid), .min = 1, .max = INT32_MAX, .arg = "PID",
	  .help = "the stacks of all threads of this live process: kernel and native frames, and those of language "
		  "runtimes" },
	{ "freeze", 0, OPT_FLAG, .at = offsetof(struct config, freeze),
	  .help = "with -p: stop its threads while they are read (well under a second), for whole native stacks of "
		  "all of them" },
	{ "json", 0, OPT_FLAG, .at = offsetof(struct config, json), .help = "with -p: as one JSON object" },
	{ "host-root", 0, OPT_PATH, .at = offsetof(struct config, host_root), .fallback = "", .arg = "DIR",
	  .help = "where the host's file system is mounted, when run in a container" },
	{ "unwind", 0, OPT_FLAG, .at = offsetof(struct config, unwind),
	  .help = "FILE is a program or library: show how its stack frames are found" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

static const struct opt runtime_options[] = RUNTIME_SWITCHES(struct config, runtimes);

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

static int dump_live(const struct config *config)
{
	const struct dump_config cfg = { .pid = (uint32_t)config->pid,
					 .freeze = config->freeze,
					 .without_runtimes = runtime_options_without(&config->runtimes),
					 .host_root = config->host_root };
	scoped(buf_release) struct buf text = BUF_INIT(GIB(1)), why = BUF_INIT(KIB(4));
	scoped(dump_release) struct dump dump = { 0 };
	int r = dump_process(&cfg, &why, &dump);

	if (r < 0) {
		command_fail(&command_dump, "%s", why.len ? buf_cstr(&why) : strerror(-r));
		return r == -EPERM ? EXIT_NOT_PERMITTED : EXIT_FAILED;
	}
	if (config->json)
		dump_json(&dump, &text);
	else
		dump_text(&dump, &text);
	return command_print(&command_dump, &text);
}

static int check(const struct config *config, int operand_count)
{
	const char *problem = NULL;

	if (config->pid ? operand_count || config->unwind || config->from : operand_count != 1)
		problem = "name one FILE, or a live process with -p PID";
	else if (!config->pid && (config->freeze || config->json || runtime_options_without(&config->runtimes)))
		problem = "--freeze, --json and what leaves out runtimes go with -p PID";
	if (problem)
		command_fail(&command_dump, "%s", problem);
	return problem ? EXIT_USAGE : EXIT_DONE;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(GIB(2));
	char room[160];
	int r;

	r = check(config, operand_count);
	if (r != EXIT_DONE)
		return r;
	if (config->pid)
		return dump_live(config);
	if (config->unwind)
		return dump_unwind(operands[0]);
	memory_limit(config->memory_bytes);
	r = input_load(&command_dump, operands[0], config->from, false, &w);
	if (r != EXIT_DONE)
		return r;
	r = render_dump(&w, isatty(STDOUT_FILENO), &text);
	if (r < 0)
		return command_fail(&command_dump, "%s: %s", operands[0], memory_reason(r, room));
	return command_print(&command_dump, &text);
}

static const struct opt_group groups[] = { { NULL, options },
					   { "With -p: language runtimes", runtime_options },
					   { 0 } };
static const char *const examples[] = {
	"hearth dump profile.pb.gz",
	"all of it, one sample a line",
	"hearth dump --unwind /usr/bin/git",
	"its unwind rows, to be held against readelf -wF",
	"sudo hearth dump -p 1234",
	"where every thread of a process is right now; nothing is stopped",
	NULL,
};

const struct command command_dump = {
	.name = "dump",
	.summary = "show everything in a profile file, or the stacks of a live process",
	.operands = "FILE | -p PID",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 0,
	.operands_max = 1,
	.run = run,
};
