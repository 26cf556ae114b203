/* SPDX-License-Identifier: Apache-2.0 */
/* hearth serve: the collector. */
#include "cli/serve_options.h"

struct config {
	struct serve_config serve; /* first: the tables have their offsets in it */
	bool version, unused_flag;
	const char *storage_type, *clickhouse, *s3, *gcs, *unused;
};

#define AT(field) .at = offsetof(struct config, field)

/* What existing unit files of profefe say (profefe, cmd/profefe/main.go). What means nothing here is taken and not
 * used. */
static const struct opt aliases[] = {
	{ "log.level", 0, OPT_CHOICE, AT(serve.log_level), .choices = serve_log_levels, .arg = "LEVEL" },
	{ "log.format", 0, OPT_CHOICE, AT(serve.log_format), .choices = serve_log_formats, .arg = "NAME" },
	{ "badger.dir", 0, OPT_PATH, AT(serve.data_dir), .arg = "DIR" },
	{ "badger.data-ttl", 0, OPT_DURATION, AT(serve.age_max_ns), .arg = "TIME" },
	{ "badger.gc-interval", 0, OPT_TEXT, AT(unused), .arg = "TIME" },
	{ "badger.gc-discard-ratio", 0, OPT_TEXT, AT(unused), .arg = "N" },
	{ "storage-type", 0, OPT_TEXT, AT(storage_type), .arg = "NAME" },
	{ "version", 0, OPT_FLAG, AT(version) },
	{ "clickhouse.dsn", 0, OPT_TEXT, AT(clickhouse), .arg = "DSN" },
	{ "clickhouse.samples-writer.pool-size", 0, OPT_TEXT, AT(unused), .arg = "N" },
	{ "s3.bucket", 0, OPT_TEXT, AT(s3), .arg = "NAME" },
	{ "s3.region", 0, OPT_TEXT, AT(unused), .arg = "NAME" },
	{ "s3.endpoint-url", 0, OPT_TEXT, AT(unused), .arg = "URL" },
	{ "s3.disable-ssl", 0, OPT_FLAG, AT(unused_flag) },
	{ "s3.max-retries", 0, OPT_TEXT, AT(unused), .arg = "N" },
	{ "gcs.bucket", 0, OPT_TEXT, AT(gcs), .arg = "NAME" },
	{ "gcs.max-retries", 0, OPT_TEXT, AT(unused), .arg = "N" },
	{ "profefe.agent.collector-addr", 0, OPT_TEXT, AT(unused), .arg = "URL" },
	{ "profefe.agent.service-name", 0, OPT_TEXT, AT(unused), .arg = "NAME" },
	{ "profefe.agent.labels", 0, OPT_TEXT, AT(unused), .arg = "LABELS" },
	{ "profefe.agent.read-interval", 0, OPT_TEXT, AT(unused), .arg = "TIME" },
	{ "profefe.agent.enable-cpu-profile", 0, OPT_TEXT, AT(unused), .arg = "TIME" },
	{ "profefe.agent.enable-heap-profile", 0, OPT_FLAG, AT(unused_flag) },
	{ "profefe.agent.enable-block-profile", 0, OPT_FLAG, AT(unused_flag) },
	{ "profefe.agent.enable-mutex-profile", 0, OPT_FLAG, AT(unused_flag) },
	{ "profefe.agent.enable-goroutine-profile", 0, OPT_FLAG, AT(unused_flag) },
	{ "profefe.agent.enable-thread-creation-profile", 0, OPT_FLAG, AT(unused_flag) },
	{ 0 },
};

static const struct opt_group groups[] = { { NULL, serve_options_general },
					   { "Keeping", serve_options_keeping },
					   { "Access", serve_options_access },
					   { "Limits", serve_options_limits },
					   { "Logging", serve_options_logging },
					   { "Aliases", aliases },
					   { 0 } };

/* Engines by name; "auto" and profefe's own engine stand for the usual one. */
static const struct store *engine(struct str type)
{
	bool is_usual = !type.len || str_eq(type, STR("auto")) || str_eq(type, STR("badger"));

	return is_usual ? &store_sqlite : store_find(type);
}

static int choose_storage(struct config *config)
{
	struct str rest = str_of(config->storage_type ? config->storage_type : ""), type;

	while (str_next(&rest, ',', &type)) {
		config->serve.store = engine(type);
		if (!config->serve.store)
			return command_fail(&command_serve,
					    "storage type '" STR_FMT
					    "' is not supported; there are sqlite, in --data-dir, and memory",
					    STR_ARG(type));
	}
	if (config->clickhouse || config->s3 || config->gcs)
		return command_fail(&command_serve, "storage in %s is not supported; there is one store, in --data-dir",
				    config->clickhouse ? "ClickHouse"
				    : config->s3       ? "S3"
						       : "GCS");
	return EXIT_DONE;
}

static int run(void *at, int operand_count, char **operands)
{
	struct config *config = at;
	int r = choose_storage(config);

	(void)operand_count;
	(void)operands;
	if (config->version) {
		puts("hearth " HEARTH_VERSION);
		return EXIT_DONE;
	}
	if (r == EXIT_DONE && !config->serve.tls_cert != !config->serve.tls_key) {
		command_fail(&command_serve, "--tls-cert and --tls-key go together");
		r = EXIT_USAGE;
	}
	return r == EXIT_DONE ? serve_command(&command_serve, &config->serve) : r;
}

static const char *const examples[] = { "hearth serve",
					"collect on http://127.0.0.1:10100 for programs of this machine",
					"hearth token create --scope ingest,read; hearth serve --addr :10100",
					"collect for a fleet, with tokens", NULL };

const struct command command_serve = {
	.name = "serve",
	.summary = "collect, keep, merge and serve profiles over HTTP",
	.operands = "",
	.details = "Takes profiles by the APIs of profefe and Pyroscope. SIGHUP reads tokens and certificates again; "
		   "SIGTERM and\n"
		   "SIGINT end it once running requests are done. profefe's own flags are understood.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.run = run,
};
