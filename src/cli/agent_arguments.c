/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_arguments.h"

#include "codec/json.h"

enum form {
	AS_IS,         /* as the option's type says; a text that was not given is null */
	NOT,           /* the option turns it off */
	OR_NULL,       /* a number that is null when not given */
	NUMBERS,       /* a list of numbers: "1,2" or "[1, 2]", or several of these */
	OR_NO_NUMBERS, /* the same; none are null */
	WORDS,         /* "a,b" */
	MODE,          /* --NAME-mode, or "disabled" after --no-NAME */
	FIXED,         /* what it would be for is not there: always the usual value */
	NODEJS_MODE,   /* whether --nodejs-mode is the usual value. Source: gprofiler/main.py, args.perf_inject = */
	LEFT_OUT,
};

/* Source: gprofiler/main.py parse_cmd_args() and the @register_profiler() of gprofiler/profilers: dest=, in the order
 * of the parser's dictionary. */
static const struct argument {
	const char *name, *option; /* option NULL: the same, with - for _ */
	enum form form;
	const char *usual; /* of an option that was not given; NULL: null */
} arguments[] = {
	{ "pid_file", NULL, AS_IS, NULL },
	{ "frequency", "profiling-frequency", AS_IS, NULL },
	{ "duration", "profiling-duration", AS_IS, NULL },
	{ "min_duration", NULL, AS_IS, NULL },
	{ "insert_dso_name", NULL, AS_IS, NULL },
	{ "output_dir", NULL, AS_IS, NULL },
	{ "flamegraph", NULL, AS_IS, NULL },
	{ "profiling_mode", "mode", AS_IS, NULL },
	{ "alloc_interval", NULL, AS_IS, NULL },
	{ "rotating_output", NULL, AS_IS, NULL },
	{ "pids_to_profile", "pids", OR_NO_NUMBERS, NULL },
	{ "max_processes_per_profiler", "max-processes-runtime-profiler", AS_IS, NULL },
	{ "max_system_processes_for_system_profilers", "skip-system-profilers-above", AS_IS, NULL },
	{ "rootless", NULL, AS_IS, NULL },
	{ "dotnet_mode", "dotnet", MODE, "disabled" },
	{ "python_mode", "python", MODE, NULL },
	{ "python_add_versions", "python-versions", AS_IS, NULL },
	{ "python_pyperf_user_stacks_pages", "pyperf-user-stacks-pages", OR_NULL, NULL },
	{ "python_pyperf_verbose", NULL, AS_IS, NULL },
	{ "python_pyspy_process", NULL, NUMBERS, NULL },
	{ "python_skip_pyperf_profiler_above", NULL, AS_IS, NULL },
	{ "java_mode", "java", MODE, "ap" },
	{ "java_version_check", "java-no-version-check", NOT, NULL },
	{ "java_async_profiler_mode", NULL, AS_IS, NULL },
	{ "java_async_profiler_safemode", NULL, AS_IS, NULL },
	{ "java_async_profiler_features", NULL, WORDS, "probesp,vtable" },
	{ "java_async_profiler_args", NULL, AS_IS, NULL },
	{ "java_safemode", NULL, AS_IS, "profiled-oom,profiled-signaled,hserr" },
	{ "java_jattach_timeout", NULL, AS_IS, NULL },
	{ "java_async_profiler_mcache", NULL, AS_IS, NULL },
	{ "java_collect_spark_app_name_as_appid", NULL, AS_IS, NULL },
	{ "java_async_profiler_report_meminfo", "java-async-profiler-no-report-meminfo", NOT, NULL },
	{ "java_collect_jvm_flags", NULL, AS_IS, "default" },
	{ "java_full_hserr", NULL, AS_IS, NULL },
	{ "java_include_method_modifiers", NULL, AS_IS, NULL },
	{ "java_line_numbers", NULL, AS_IS, NULL },
	{ "java_collect_thread_names", NULL, AS_IS, NULL },
	{ "perf_mode", "perf", MODE, NULL },
	{ "perf_dwarf_stack_size", NULL, AS_IS, NULL },
	{ "perf_memory_restart", "perf-no-memory-restart", NOT, NULL },
	{ "perf_use_cgroups", NULL, AS_IS, NULL },
	{ "perf_max_cgroups", NULL, AS_IS, NULL },
	{ "perf_max_docker_containers", NULL, AS_IS, NULL },
	{ "php_mode", "php", MODE, "disabled" },
	{ "php_process_filter", "php-proc-filter", AS_IS, "php-fpm" },
	{ "ruby_mode", "ruby", MODE, "rbspy" },
	{ "perf_event", NULL, AS_IS, NULL },
	{ "perf_event_period", NULL, OR_NULL, NULL },
	{ "hw_events_file", NULL, AS_IS, NULL },
	{ "spark_sample_period", NULL, AS_IS, NULL },
	{ "collect_spark_metrics", NULL, AS_IS, NULL },
	{ "nodejs_mode", "nodejs", MODE, "disabled" },
	{ "log_usage", NULL, AS_IS, NULL },
	{ "upload_results", NULL, AS_IS, NULL },
	{ "disable_core_files", "dont-disable-core-files", NOT, NULL },
	{ "subcommand", NULL, FIXED, "null" }, /* these make no profile */
	{ "server_host", NULL, AS_IS, NULL },
	{ "api_server", NULL, AS_IS, NULL },
	{ NULL, "glogger-server", LEFT_OUT, NULL }, /* another name of it */
	{ "server_upload_timeout", NULL, AS_IS, NULL },
	{ NULL, "token", LEFT_OUT, NULL },
	{ "service_name", NULL, AS_IS, NULL },
	{ "curlify_requests", NULL, AS_IS, NULL },
	{ "verify", NULL, AS_IS, NULL },
	{ "verbose", NULL, AS_IS, NULL },
	{ "log_file", NULL, AS_IS, NULL },
	{ "log_rotate_max_size", NULL, AS_IS, NULL },
	{ "log_rotate_backup_count", NULL, AS_IS, NULL },
	{ "log_to_server", "dont-send-logs", NOT, NULL },
	{ "container_names", "disable-container-names", NOT, NULL },
	{ "continuous", NULL, AS_IS, NULL },
	{ "profile_api_version", NULL, AS_IS, NULL },
	{ "pid_ns_check", "disable-pidns-check", NOT, NULL },
	{ "collect_metrics", "disable-metrics-collection", NOT, NULL },
	{ "collect_metadata", "disable-metadata-collection", NOT, NULL },
	{ "collect_appids", "disable-application-identifiers", NOT, NULL },
	{ "app_id_args_filters", "app-id-args-filter", AS_IS, NULL },
	{ "application_metadata", "disable-application-metadata", NOT, NULL },
	{ "controller_pid", NULL, OR_NULL, NULL },
	{ "external_metadata", NULL, AS_IS, NULL },
	{ "databricks_job_name_as_service_name", NULL, AS_IS, NULL },
	{ "profile_spawned_processes", NULL, AS_IS, NULL },
	{ "diagnostics", NULL, AS_IS, NULL },
	{ "heartbeat_file", NULL, AS_IS, NULL },
	{ "enable_heartbeat_server", NULL, AS_IS, NULL },
	{ "heartbeat_interval", NULL, AS_IS, NULL },
	{ "collect_hw_metrics", "enable-hw-metrics-collection", AS_IS, NULL },
	{ "tool_perfspect_path", "perfspect-path", AS_IS, NULL },
	{ "tool_perfspect_duration", "perfspect-duration", AS_IS, NULL },
	{ "perf_inject", "nodejs", NODEJS_MODE, "perf" },
	{ "perf_node_attach", "nodejs", NODEJS_MODE, "attach-maps" },
	{ "extract_resources", NULL, FIXED, "false" },
	{ NULL, "file-path", LEFT_OUT, NULL }, /* of sub-commands */
	{ NULL, "resources-dest", LEFT_OUT, NULL },
};

static char underscored(char c)
{
	return c == '-' ? '_' : c;
}

/* Is @option the one that @name means, written with _ for -? */
static bool is_same(const char *option, const char *name)
{
	while (*option && underscored(*option) == underscored(*name))
		option++, name++;
	return underscored(*option) == underscored(*name);
}

static const struct opt *find_option(const char *name)
{
	for (const struct opt_group *g = agent_option_groups; g->opts; g++)
		for (const struct opt *row = g->opts; row->name; row++)
			if (is_same(row->name, name))
				return row;
	return NULL;
}

static const void *value_of(const struct agent_options *o, const struct opt *row)
{
	return (const char *)o + row->at;
}

static bool flag_of(const struct agent_options *o, const struct opt *row)
{
	return *(const bool *)value_of(o, row);
}

static const char *text_of(const struct agent_options *o, const struct opt *row)
{
	return *(const char *const *)value_of(o, row);
}

static void put_text(struct json_out *j, const char *text)
{
	if (text)
		json_out_string(j, str_of(text));
	else
		json_out_raw(j, STR("null"));
}

static void put_list(struct json_out *j, const struct opt_list *list)
{
	json_out_begin(j, '[');
	for (size_t i = 0; i < list->count; i++)
		json_out_string(j, str_of(list->items[i]));
	json_out_end(j, ']');
}

static void put_words(struct json_out *j, const char *text)
{
	struct str rest = str_of(text), one;

	json_out_begin(j, '[');
	while (rest.len && str_next(&rest, ',', &one))
		json_out_string(j, str_trim(one));
	json_out_end(j, ']');
}

/* What is no number is a usage error or has no meaning. */
static void put_numbers(struct json_out *j, const struct opt_list *list)
{
	json_out_begin(j, '[');
	for (size_t i = 0; i < list->count; i++) {
		struct str rest = str_of(list->items[i]), one;
		uint64_t number;

		if (str_starts(rest, STR("[")) && str_ends(rest, STR("]")) && rest.len > 1)
			rest = str_skip(str_first(rest, rest.len - 1), 1);
		while (rest.len && str_next(&rest, ',', &one))
			if (str_to_u64(str_trim(one), 0, UINT64_MAX, &number) == 0)
				json_out_u64(j, number);
	}
	json_out_end(j, ']');
}

static void put_value(struct json_out *j, const struct agent_options *o, const struct opt *row, const char *usual)
{
	const void *value = value_of(o, row);

	switch (row->type) {
	case OPT_FLAG:
		json_out_raw(j, flag_of(o, row) ? STR("true") : STR("false"));
		break;
	case OPT_SWITCH: {
		uint8_t on = *(const uint8_t *)value;

		json_out_raw(j, on == OPT_SWITCH_UNSET ? STR("null")
				: on == OPT_SWITCH_ON  ? STR("true")
						       : STR("false"));
		break;
	}
	case OPT_UINT:
	case OPT_DURATION:
	case OPT_SIZE:
		json_out_u64(j, *(const uint64_t *)value);
		break;
	case OPT_CHOICE:
		put_text(j, row->choices[*(const size_t *)value]);
		break;
	case OPT_TEXT:
	case OPT_PATH:
		put_text(j, text_of(o, row) ? text_of(o, row) : usual);
		break;
	case OPT_LIST:
		put_list(j, value);
		break;
	}
}

static bool is_automatic(const struct agent_options *o, const struct opt *row)
{
	return row->type == OPT_CHOICE && !strcmp(row->choices[*(const size_t *)value_of(o, row)], "auto");
}

/* @name: of the profiler; its switch is the row of that name. @usual: gProfiler's word for what it does when nothing is
 * said. Where that is nothing, and hearth names the functions all the same, "auto" stays. */
static void put_mode(struct json_out *j, const struct agent_options *o, const char *name, const char *usual)
{
	const struct opt *on = find_option(name), *row;
	char mode[40];

	(void)snprintf(mode, sizeof(mode), "%s-mode", name);
	row = find_option(mode);
	if (!row || (on && !flag_of(o, on)))
		put_text(j, "disabled");
	else if (usual && strcmp(usual, "disabled") != 0 && is_automatic(o, row))
		put_text(j, usual);
	else
		put_value(j, o, row, usual);
}

static bool is_nodejs_mode(const struct agent_options *o, const char *mode)
{
	const struct runtime_options *r = &o->session.runtimes;

	return r->on[RUNTIME_nodejs] && !strcmp(runtime_modes_nodejs[r->mode[RUNTIME_nodejs]], mode);
}

static void put_argument(struct json_out *j, const struct agent_options *o, const struct argument *a,
			 const struct opt *row)
{
	json_out_key(j, str_of(a->name));
	switch (a->form) {
	case NOT:
		json_out_raw(j, flag_of(o, row) ? STR("false") : STR("true"));
		break;
	case NUMBERS:
		put_numbers(j, value_of(o, row));
		break;
	case WORDS:
		put_words(j, text_of(o, row) ? text_of(o, row) : a->usual);
		break;
	case MODE:
		put_mode(j, o, a->option, a->usual);
		break;
	case NODEJS_MODE:
		json_out_raw(j, is_nodejs_mode(o, a->usual) ? STR("true") : STR("false"));
		break;
	case OR_NO_NUMBERS:
		if (((const struct opt_list *)value_of(o, row))->count)
			put_numbers(j, value_of(o, row));
		else
			json_out_raw(j, STR("null"));
		break;
	case OR_NULL:
		if (!*(const uint64_t *)value_of(o, row)) {
			json_out_raw(j, STR("null"));
			break;
		}
		put_value(j, o, row, a->usual);
		break;
	case AS_IS:
	case FIXED:
	case LEFT_OUT:
		put_value(j, o, row, a->usual);
		break;
	}
}

/* Of gProfiler: a row of the table, or what such a row is made of. */
static bool is_told(const struct opt *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++) {
		const struct argument *a = &arguments[i];

		if (is_same(row->name, a->option ? a->option : a->name) ||
		    (a->form == MODE && is_same(row->name, a->name)))
			return true;
	}
	return false;
}

static void put_own(struct json_out *j, const struct agent_options *o)
{
	for (const struct opt_group *g = agent_option_groups; g->opts; g++)
		for (const struct opt *row = g->opts; row->name; row++) {
			char name[64] = "";

			if (is_told(row))
				continue;
			for (size_t i = 0; row->name[i] && i < sizeof(name) - 1; i++)
				name[i] = underscored(row->name[i]);
			json_out_key(j, str_of(name));
			put_value(j, o, row, NULL);
		}
}

int agent_arguments_json(const struct agent_options *o, struct buf *out)
{
	struct json_out j = { .out = out };

	json_out_begin(&j, '{');
	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++) {
		const struct argument *a = &arguments[i];
		const struct opt *row = find_option(a->option ? a->option : a->name);

		if (a->form == FIXED) { /* no option of ours */
			json_out_key(&j, str_of(a->name));
			json_out_raw(&j, str_of(a->usual));
		} else if (a->form != LEFT_OUT && row) {
			put_argument(&j, o, a, row);
		}
	}
	put_own(&j, o);
	json_out_end(&j, '}');
	return out->error;
}
