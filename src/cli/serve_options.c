/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_options.h"

#include "collector/privilege.h"

#define AT(field) .at = offsetof(struct serve_config, field)

const struct opt serve_options_general[] = {
	{ "addr", 0, OPT_TEXT, AT(addr), .fallback = "127.0.0.1:10100", .arg = "HOST:PORT",
	  .help = "where to listen; without a host on every address" },
	{ "data-dir", 0, OPT_PATH, AT(data_dir), .arg = "DIR",
	  .help = "the store's directory (default: /var/lib/hearth for root, otherwise $XDG_STATE_HOME/hearth)" },
	{ "user", 0, OPT_TEXT, AT(user), .arg = "NAME",
	  .help = "started as root: become this user (default: hearth, or nobody where there is no such user)" },
	{ "targets", 0, OPT_PATH, AT(targets), .arg = "FILE",
	  .help = "scrape the /debug/pprof of these Go programs (docs/pull.md); read by --user, again at SIGHUP" },
	{ "exit-timeout", 0, OPT_DURATION, AT(exit_timeout_ns), .fallback = "5s", .arg = "TIME",
	  .help = "how long running requests may take once the server is told to stop" },
	{ 0 },
};

static const char *const auto_size[] = { "auto", NULL };

const struct opt serve_options_keeping[] = {
	{ "retention", 0, OPT_DURATION, AT(age_max_ns), .fallback = "14d", .arg = "TIME",
	  .help = "remove a day's profiles this long after the last of them came; 0: never" },
	{ "retention-size", 0, OPT_SIZE, AT(size_max), .fallback = "10G", .arg = "SIZE",
	  .help = "remove the oldest days above this many bytes; 0: no limit" },
	{ "retention-free", 0, OPT_SIZE, AT(free_min), .choices = auto_size, .fallback = "auto", .arg = "SIZE",
	  .help = "remove the oldest days while the file system has less space left; auto: 1G, or 5 % of the file "
		  "system "
		  "where that is less; 0: no limit" },
	{ "retention-daily", 0, OPT_DURATION, AT(rollup_age_max_ns), .fallback = "400d", .arg = "TIME",
	  .help = "keep the sums of whole days this long; 0: for ever" },
	{ "snapshots", 0, OPT_UINT, AT(snapshots_max), .max = 65536, .fallback = "1000", .arg = "N",
	  .help = "keep at most this many snapshots (results that stay when their profiles are gone); none is removed "
		  "to make room. 0: take none" },
	{ "snapshots-size", 0, OPT_SIZE, AT(snapshots_size), .fallback = "1G", .arg = "SIZE",
	  .help = "bytes of all snapshots" },
	{ "dictionary-memory", 0, OPT_SIZE, AT(dictionary_max), .fallback = "96M", .arg = "SIZE",
	  .help = "memory for what recent profiles have in common" },
	{ "flame-memory", 0, OPT_SIZE, AT(flame_max), .fallback = "32M", .arg = "SIZE",
	  .help = "memory for flame graphs that may be asked for again; 0: none are kept" },
	{ 0 },
};

const struct opt serve_options_access[] = {
	{ "tls-cert", 0, OPT_PATH, AT(tls_cert), .arg = "FILE",
	  .help = "serve HTTPS with this certificate chain (PEM)" },
	{ "tls-key", 0, OPT_PATH, AT(tls_key), .arg = "FILE",
	  .help = "its private key (PEM); --user has to be able to read it" },
	{ "insecure-no-auth", 0, OPT_FLAG, AT(no_auth), .help = "ask nobody for a token, wherever they come from" },
	{ "cors-origin", 0, OPT_LIST, AT(cors), .arg = "ORIGIN",
	  .help = "let pages of this origin read answers; may be given more than once" },
	{ "web-dir", 0, OPT_PATH, AT(web_dir), .arg = "DIR",
	  .help = "serve the viewer's files from this folder instead of those in the program, anew at every request" },
	{ 0 },
};

const struct opt serve_options_limits[] = {
	{ "max-body", 0, OPT_SIZE, AT(body_max), .fallback = "32M", .arg = "SIZE", .help = "largest upload" },
	{ "max-expanded", 0, OPT_SIZE, AT(expanded_max), .fallback = "64M", .arg = "SIZE",
	  .help = "largest upload once all compression is taken off" },
	{ "max-samples", 0, OPT_UINT, AT(samples_max), .min = 1, .max = UINT32_MAX, .fallback = "1000000", .arg = "N",
	  .help = "most samples of one profile" },
	{ "max-merge", 0, OPT_UINT, AT(merge_max), .max = 1 << 24, .fallback = "0", .arg = "N",
	  .help = "most profiles, the most recent ones, in one merge; 0: any number" },
	{ "list-limit", 0, OPT_UINT, AT(list_limit), .min = 1, .max = 100000, .fallback = "1000", .arg = "N",
	  .help = "profiles in a list that asks for no number" },
	{ "max-connections", 0, OPT_UINT, AT(connections_max), .min = 1, .max = 65000, .fallback = "1024", .arg = "N",
	  .help = "open connections" },
	{ "max-connections-per-ip", 0, OPT_UINT, AT(connections_per_ip), .max = 65000, .fallback = "0", .arg = "N",
	  .help = "open connections of one address; 0: any number" },
	{ "max-uploads-memory", 0, OPT_SIZE, AT(bodies_max), .fallback = "64M", .arg = "SIZE",
	  .help = "memory of all uploads on their way in; more get 503" },
	{ "max-series", 0, OPT_UINT, AT(series_max), .max = 1 << 24, .fallback = "20000", .arg = "N",
	  .help = "series that are written to within an hour; more are stored as one. 0: any number" },
	{ "max-rate", 0, OPT_SIZE, AT(rate_max), .fallback = "32M", .arg = "SIZE",
	  .help = "bytes a second that one token or address may upload, twice as many at once; 0: any number" },
	{ "max-answers-memory", 0, OPT_SIZE, AT(answers_max), .fallback = "256M", .arg = "SIZE",
	  .help = "memory of answers and of streams' pieces that wait for their readers; more get 503, or wait. 0: "
		  "any" },
	{ "max-past", 0, OPT_DURATION, AT(past_max_ns), .fallback = "3650d", .arg = "TIME",
	  .help = "store no profile of a time longer ago, unless its token has the scope admin; 0: of any time" },
	{ "max-ahead", 0, OPT_DURATION, AT(ahead_max_ns), .fallback = "1d", .arg = "TIME",
	  .help = "the same for times to come" },
	{ "query-timeout", 0, OPT_DURATION, AT(query_max_ns), .fallback = "60s", .arg = "TIME",
	  .help = "end a query that takes longer; 0: never" },
	{ "header-timeout", 0, OPT_DURATION, AT(header_ns), .fallback = "10s", .arg = "TIME",
	  .help = "for the first request of a connection to begin" },
	{ "idle-timeout", 0, OPT_DURATION, AT(idle_ns), .fallback = "120s", .arg = "TIME", .help = "for the next one" },
	{ 0 },
};

const struct opt serve_options_logging[] = {
	{ "log-level", 0, OPT_CHOICE, AT(log_level), .choices = serve_log_levels, .fallback = "info", .arg = "LEVEL",
	  .help = "least important lines to log" },
	{ "log-format", 0, OPT_CHOICE, AT(log_format), .choices = serve_log_formats, .fallback = "console",
	  .arg = "NAME", .help = "form of the log's lines" },
	{ "access-log", 0, OPT_FLAG, AT(access_log), .fallback = "true", .help = "log a line for each request" },
	{ 0 },
};

int serve_command(const struct command *c, const struct serve_config *config)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	if (serve_address_check(config->addr) < 0) {
		command_fail(c, "--addr: '%s' is not HOST:PORT", config->addr);
		return EXIT_USAGE;
	}
	return serve_run(config, &why) < 0 ? command_fail(c, "%s", buf_cstr(&why)) : EXIT_DONE;
}

int command_become_owner(const struct command *c, const char *folder)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	return privilege_become_owner(folder, &why) < 0 ? command_fail(c, "%s", buf_cstr(&why)) : EXIT_DONE;
}
