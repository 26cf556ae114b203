/* SPDX-License-Identifier: Apache-2.0 */
/* hearth java attach: commands for a live JVM, as jcmd sends them. */
#include "base/clock.h"
#include "base/safe.h"
#include "cli/command.h"
#include "runtime/java/server.h"

#define USUAL "VM.command_line"

struct config {
	const char *library, *library_options;
	uint64_t timeout_s;
};

#define AT(field) offsetof(struct config, field)

static const struct opt options[] = {
	{ "timeout", 0, OPT_UINT, .at = AT(timeout_s), .fallback = "30", .min = 1, .max = 3600, .arg = "SECONDS",
	  .help = "how long the JVM may take in all" },
	{ "library", 0, OPT_PATH, .at = AT(library), .arg = "PATH",
	  .help = "load this agent library, async-profiler's for example, in place of a command; as the JVM sees it" },
	{ "library-options", 0, OPT_TEXT, .at = AT(library_options), .arg = "TEXT",
	  .help = "what the library is told: start,event=alloc,file=/tmp/a.jfr" },
	{ 0 },
};

/* Lines stay lines; what could act on a terminal does not. */
static void add_text(struct buf *out, struct str text)
{
	struct str line;

	while (str_next(&text, '\n', &line)) {
		struct str cell;

		if (!text.ptr && !line.len)
			return; /* behind the last line feed */
		for (bool first = true; str_next(&line, '\t', &cell); first = false) {
			buf_adds(out, first ? STR("") : STR("\t"));
			safe_add(out, cell);
		}
		buf_addc(out, '\n');
	}
}

static int exit_of(int error)
{
	return error == -EPERM || error == -EACCES ? EXIT_NOT_PERMITTED : EXIT_FAILED;
}

static int ask(const struct config *config, uint64_t pid, const struct java_request *request)
{
	const struct java_server server = { .pid = (uint32_t)pid, .timeout_ns = config->timeout_s * NSEC_PER_SEC };
	scoped(buf_release) struct buf bytes = BUF_INIT(JAVA_ANSWER_MAX), why = BUF_INIT(KIB(1)),
				       text = BUF_INIT(GIB(1));
	struct java_answer answer;
	int r = java_server_ask(&server, request, &bytes, &why);

	if (r < 0) {
		command_fail(&command_java, "process %llu: %s (%s)", (unsigned long long)pid, buf_cstr(&why),
			     strerror(-r));
		return exit_of(r);
	}
	if (java_answer_parse(buf_str(&bytes), config->library != NULL, &answer) < 0)
		return command_fail(&command_java, "process %llu: what it answers is nothing that a JVM says",
				    (unsigned long long)pid);
	add_text(&text, answer.text);
	r = command_print(&command_java, &text);
	if (answer.code)
		return command_fail(&command_java, "process %llu: the JVM refuses, code %lld", (unsigned long long)pid,
				    (long long)answer.code);
	return r;
}

static int join(char **words, int count, struct buf *out)
{
	for (int i = 0; i < count; i++)
		buf_addf(out, "%s%s", i ? " " : "", words[i]);
	return out->error;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(buf_release) struct buf command = BUF_INIT(KIB(64));
	struct java_request request = { .command = STR("jcmd") };
	uint64_t pid;

	if (strcmp(operands[0], "attach") != 0) {
		command_fail(&command_java, "%s is no verb: attach", operands[0]);
		return EXIT_USAGE;
	}
	if (str_to_u64(str_of(operands[1]), 1, INT32_MAX, &pid) < 0) {
		command_fail(&command_java, "%s is no number of a process", operands[1]);
		return EXIT_USAGE;
	}
	if (config->library ? operand_count > 2 || config->library[0] != '/' : config->library_options != NULL) {
		command_fail(&command_java, "--library wants a path from the root on and no command; --library-options "
					    "wants --library");
		return EXIT_USAGE;
	}
	if (config->library)
		request = (struct java_request){ .command = STR("load"),
						 .words = { str_of(config->library), STR("true"),
							    str_of(config->library_options) } };
	else if (operand_count > 2 ? join(operands + 2, operand_count - 2, &command) < 0 : 0)
		return command_fail(&command_java, "the command is too long");
	else
		request.words[0] = command.len ? buf_str(&command) : STR(USUAL);
	return ask(config, pid, &request);
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = {
	"sudo hearth java attach 4711",
	"how the JVM was started: VM.command_line",
	"sudo hearth java attach 4711 Compiler.perfmap",
	"a perf map, for tools that read one; hearth needs none",
	"sudo hearth java attach 4711 JFR.start name=alloc settings=profile duration=60s filename=/tmp/a.jfr",
	"a flight recording, which hearth reads, too; JFR.stop and JFR.dump end and copy it",
	"sudo hearth java --library /opt/ap/libasyncProfiler.so --library-options start,event=alloc attach 4711",
	"allocations by async-profiler's library, which lies where the JVM sees it",
	NULL,
};

const struct command command_java = {
	.name = "java",
	.summary = "send a live JVM a command, as jcmd does",
	.operands = "attach PID [COMMAND [ARGUMENT...]]",
	.details = "The command runs inside of the JVM: only what is asked for here is attached to. Profiling Java "
		   "needs none "
		   "of it.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.stop_at_operand = true,
	.operands_min = 2,
	.operands_max = -1,
	.run = run,
};
