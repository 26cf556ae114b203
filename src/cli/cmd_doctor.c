/* SPDX-License-Identifier: Apache-2.0 */
/* hearth doctor: what this machine allows, what is missing, and what to do about it. */
#include <unistd.h>

#include "cli/command.h"
#include "cli/doctor.h"

struct config {
	bool json, allow_dangerous_kernel;
	const char *host_root, *container_socket, *data_dir;
};

static const struct opt options[] = {
	{ "json", 0, OPT_FLAG, .at = offsetof(struct config, json), .help = "for programs to read" },
	{ "host-root", 0, OPT_PATH, .at = offsetof(struct config, host_root), .fallback = "", .arg = "DIR",
	  .help = "where the host's /proc and /sys are, in a container" },
	{ "container-socket", 0, OPT_PATH, .at = offsetof(struct config, container_socket), .arg = "PATH",
	  .help = "the container engine's socket" },
	{ "data-dir", 0, OPT_PATH, .at = offsetof(struct config, data_dir), .arg = "DIR",
	  .help = "where profiles are kept" },
	{ "allow-dangerous-kernel", 0, OPT_FLAG, .at = offsetof(struct config, allow_dangerous_kernel),
	  .help = "judge as with this option of record: kernels that can freeze are taken" },
	{ 0 },
};

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = { "sudo hearth doctor", "what root can do here", "hearth doctor --json",
					"the same for programs", NULL };

static int run(void *config_bytes, int operand_count, char **operands)
{
	const struct config *config = config_bytes;
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	struct doctor_config cfg = { .host_root = config->host_root,
				     .container_socket = config->container_socket,
				     .data_dir = config->data_dir,
				     .allow_dangerous_kernel = config->allow_dangerous_kernel };
	char program[2048]; /* longer or unknown: none is named */
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	bool root = geteuid() == 0;
	scoped(freep) struct probe_fact *facts = calloc(DOCTOR_FACT_MAX, sizeof(*facts));
	size_t count;
	int r;

	(void)operand_count;
	(void)operands;
	if (!facts)
		return command_fail(&command_doctor, "out of memory");
	program[length > 0 && (size_t)length < sizeof(program) - 1 ? length : 0] = '\0';
	count = doctor_collect(&cfg, facts);
	if (config->json && doctor_json(facts, count, program, root, &text) < 0)
		return command_fail(&command_doctor, "out of memory");
	if (!config->json)
		doctor_text(facts, count, program, root, &text);
	r = command_print(&command_doctor, &text);
	return r == EXIT_DONE && !doctor_usable(facts, count) ? EXIT_NOT_PERMITTED : r;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what this machine allows, what is missing, and what to do about it",
	.operands = "",
	.details = "Exit status: 0 when sampling works, 77 when the whole machine cannot be sampled. The last line is "
		   "the\n"
		   "command that mends all that a command can mend.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.run = run,
};
