/* SPDX-License-Identifier: Apache-2.0 */
/* hearth store VERB: the collector's data directory while no collector runs. */
#include <dirent.h>
#include <inttypes.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/serve_options.h"
#include "store/export.h"
#include "store/snapshots.h"

struct config {
	const char *data_dir, *service, *type, *output;
};

static const struct opt options[] = {
	{ "data-dir", 0, OPT_PATH, .at = offsetof(struct config, data_dir), .arg = "DIR",
	  .help = "the store's directory (default: /var/lib/hearth for root, otherwise $XDG_STATE_HOME/hearth)" },
	{ "output", 'o', OPT_PATH, .at = offsetof(struct config, output), .arg = "DIR",
	  .help = "export: the folder for the files; it has to exist" },
	{ "service", 0, OPT_TEXT, .at = offsetof(struct config, service), .arg = "NAME",
	  .help = "export: only profiles of this service" },
	{ "type", 0, OPT_TEXT, .at = offsetof(struct config, type), .arg = "NAME",
	  .help = "export: only profiles of this type" },
	{ 0 },
};

struct session {
	const struct config *config;
	const struct store *store;
	struct store_state *state;
	struct snapshots *snapshots;
	struct buf out;
};

static void session_release(struct session *s)
{
	snapshots_close(s->snapshots);
	if (s->store)
		s->store->close(s->state);
	buf_release(&s->out);
}

static void tell_problem(void *ctx, const char *where, const char *what)
{
	struct session *s = ctx;

	buf_addf(&s->out, "%s: %s\n", where, what);
}

static int check(struct session *s)
{
	struct store_stats stats;
	struct snapshots_stats kept;
	int problems = s->store->check(s->state, tell_problem, s);
	int bad = snapshots_check(s->snapshots, tell_problem, s);
	int r = problems < 0 ? problems : bad < 0 ? bad : s->store->stats(s->state, &stats);

	if (r < 0)
		return command_fail(&command_store, "check: %s", strerror(-r));
	problems += bad;
	snapshots_stats(s->snapshots, &kept);
	buf_addf(&s->out, "%" PRIu64 " profiles in %" PRIu64 " files", stats.profiles, stats.partitions);
	if (kept.count)
		buf_addf(&s->out, ", %" PRIu64 " snapshots", kept.count);
	buf_addf(&s->out, ": %d problems", problems);
	if (stats.partitions_bad)
		buf_addf(&s->out, ", %" PRIu64 " damaged files set aside", stats.partitions_bad);
	if (stats.files_odd)
		buf_addf(&s->out, ", %" PRIu64 " files out of service", stats.files_odd);
	buf_addc(&s->out, '\n');
	r = command_print(&command_store, &s->out);
	return r == EXIT_DONE && (problems || stats.partitions_bad) ? EXIT_FAILED : r;
}

static int compact(struct session *s)
{
	int days = s->store->compact(s->state);

	if (days < 0)
		return command_fail(&command_store, "compact: %s", strerror(-days));
	buf_addf(&s->out, "%d days closed\n", days);
	return command_print(&command_store, &s->out);
}

static int stats(struct session *s)
{
	struct store_stats found;
	struct snapshots_stats kept;
	int r = s->store->stats(s->state, &found);

	if (r < 0)
		return command_fail(&command_store, "stats: %s", strerror(-r));
	snapshots_stats(s->snapshots, &kept);
	buf_addf(&s->out,
		 "profiles %" PRIu64 "\nfiles %" PRIu64 "\nbytes %" PRIu64 "\ndamaged %" PRIu64
		 "\nout of service %" PRIu64 "\nsnapshots %" PRIu64 "\nbytes of snapshots %" PRIu64 "\n",
		 found.profiles, found.partitions, found.bytes, found.partitions_bad, found.files_odd + kept.odd,
		 kept.count, kept.size);
	return command_print(&command_store, &s->out);
}

static int export(struct session *s)
{
	struct store_selector sel = { .service = str_of(s->config->service),
				      .type = str_of(s->config->type),
				      .to_ns = UINT64_MAX };
	uint64_t count;
	int r;

	if (!s->config->output) {
		command_fail(&command_store, "give -o DIR: where the files go");
		return EXIT_USAGE;
	}
	r = store_export(s->store, s->state, &sel, s->config->output, &count);
	if (r < 0)
		return command_fail(&command_store, "%s: %s, after %" PRIu64 " files", s->config->output, strerror(-r),
				    count);
	buf_addf(&s->out, "%" PRIu64 " profiles written\n", count);
	return command_print(&command_store, &s->out);
}

static const struct verb {
	const char *name;
	int (*run)(struct session *s);
	bool keeps_user; /* it writes elsewhere, too */
} verbs[] = { { "check", check }, { "compact", compact }, { "stats", stats }, { "export", export, true } };

/* Opening makes files: not in a folder that is something else. */
static int look_for_store(const char *path)
{
	const struct dirent *entry;
	DIR *dir = opendir(path);
	bool found = false;

	if (!dir)
		return command_fail(&command_store, "%s: %s", path, strerror(errno));
	while (!found && (entry = readdir(dir)))
		found = store_owns_name(str_of(entry->d_name));
	(void)closedir(dir);
	return found ? EXIT_DONE : command_fail(&command_store, "%s holds no stored profiles", path);
}

static int run_verb(const struct config *config, const struct verb *verb)
{
	scoped(session_release) struct session s = { .config = config, .out = BUF_INIT(MIB(64)) };
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	struct store_config options_of_store = { .clock = &clock_system };
	int r;

	serve_data_dir(config->data_dir, &path);
	options_of_store.path = buf_cstr(&path);
	r = look_for_store(options_of_store.path);
	if (r == EXIT_DONE && !verb->keeps_user)
		r = command_become_owner(&command_store, options_of_store.path);
	if (r != EXIT_DONE)
		return r;
	r = store_sqlite.open(&options_of_store, &s.state);
	if (r == -EWOULDBLOCK)
		return command_fail(&command_store, "%s: in use by another process", options_of_store.path);
	if (r < 0)
		return command_fail(&command_store, "%s: %s", options_of_store.path, strerror(-r));
	s.store = &store_sqlite;
	r = snapshots_open(&(struct snapshots_config){ .path = options_of_store.path }, &s.snapshots);
	if (r < 0)
		return command_fail(&command_store, "%s: %s", options_of_store.path, strerror(-r));
	return verb->run(&s);
}

static int run(void *config, int operand_count, char **operands)
{
	(void)operand_count;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(operands[0], verbs[i].name) == 0)
			return run_verb(config, &verbs[i]);
	command_fail(&command_store, "%s is none of check, compact, stats, export", operands[0]);
	return EXIT_USAGE;
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = { "hearth store check", "read everything that is stored and say what is damaged",
					"hearth store export --service api -o profiles",
					"every stored profile of one service as a pprof file", NULL };

const struct command command_store = {
	.name = "store",
	.summary = "check, compact, count or export stored profiles",
	.operands = "check|compact|stats|export",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
