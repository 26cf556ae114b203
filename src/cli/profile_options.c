/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the words: tools/profile.py of github.com/iovisor/bcc. */
#include "cli/profile_options.h"

#include <inttypes.h>

#include "base/io.h"

#define FREQUENCY_USUAL 49
#define RATE_LIMIT "/proc/sys/kernel/perf_event_max_sample_rate"

/* In the help of which a default stands, since 0 means: not given. */
static const struct opt what_options[] = {
	{ "pid", 'p', OPT_LIST, .at = offsetof(struct profile_options, pids), .arg = "PID[,PID]",
	  .help = "only these processes; ends when all of them have" },
	{ "cgroup", 0, OPT_PATH, .at = offsetof(struct profile_options, cgroup), .arg = "DIR",
	  .help = "only processes of this cgroup v2 directory and those below it" },
	{ "container", 0, OPT_TEXT, .at = offsetof(struct profile_options, container), .arg = "NAME",
	  .help = "only this container: its name, or at least 12 digits of its id" },
	{ 0 },
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_TEXT, .at = offsetof(struct profile_options, frequency), .arg = "HZ",
	  .help = "samples per second on each CPU (default: 49)" },
	{ "interval", 0, OPT_TEXT, .at = offsetof(struct profile_options, interval), .arg = "SECONDS",
	  .help = "a report every SECONDS, each of its own samples; otherwise one at the end" },
	{ 0 },
};

static const struct opt walk_options[] = { SESSION_MACHINE_OPTIONS(struct profile_options, session), { 0 } };

static const struct opt runtime_options[] = RUNTIME_OPTIONS(struct profile_options, session.runtimes);

static const struct opt output_options[] = {
	{ "folded", 'f', OPT_FLAG, .at = offsetof(struct profile_options, folded),
	  .help = "one line for each stack, for flame graph tools" },
	{ "delimited", 'd', OPT_FLAG, .at = offsetof(struct profile_options, delimited),
	  .help = "a separator between the kernel's and the user's part of a stack" },
	{ "annotations", 'a', OPT_FLAG, .at = offsetof(struct profile_options, annotated),
	  .help = "_[k] behind the names of kernel frames" },
	{ "aggregate", 0, OPT_FLAG, .at = offsetof(struct profile_options, aggregate), .fallback = "true",
	  .help = "with -f: add lines of equal text; otherwise they stay apart where addresses differ" },
	{ "stack-storage-size", 0, OPT_TEXT, .at = offsetof(struct profile_options, stack_storage), .arg = "COUNT",
	  .help = "keep so many different stacks, and show others as missed (default: all)" },
	{ "hash-storage-size", 0, OPT_TEXT, .at = offsetof(struct profile_options, hash_storage), .arg = "COUNT",
	  .help = "keep so many different rows (default: all)" },
	{ "perf-max-stack-depth", 0, OPT_TEXT, .at = offsetof(struct profile_options, depth), .arg = "COUNT",
	  .help = "show so many frames of each part, from the innermost on (default: all)" },
	{ "verbose", 'v', OPT_FLAG, .at = offsetof(struct profile_options, verbose),
	  .help = "say at the end what was sampled, lost and cut" },
	{ "version", 'V', OPT_FLAG, .at = offsetof(struct profile_options, version), .help = "print the version" },
	{ 0 },
};

static const struct opt live_options[] = PROFILE_LIVE_OPTIONS(struct profile_options, live);

const struct opt_group profile_groups[] = { { "What to sample", what_options },
					    { "How", how_options },
					    { "Stacks", walk_options },
					    { "Language runtimes", runtime_options },
					    { "Output", output_options },
					    { "While it runs", live_options },
					    { 0 } };

const struct opt_dialect profile_dialect = { .environment = "HEARTH_", .letters_take_equals = true };

static int complain(const struct command *c, const char *argument, const char *why)
{
	command_fail(c, "argument %s: %s", argument, why);
	return EXIT_USAGE;
}

/* @text NULL: not given, *out stays. */
static int get_number(const struct command *c, const char *argument, struct str text, uint64_t *out)
{
	int64_t value;
	int r;

	if (!text.ptr)
		return EXIT_DONE;
	r = str_to_i64(text, &value);
	if (r == -ERANGE)
		return complain(c, argument, "that number is too large");
	if (r < 0)
		return complain(c, argument, "must be an integer");
	if (value < 0)
		return complain(c, argument, "must be positive");
	if (value == 0)
		return complain(c, argument, "must be nonzero");
	*out = (uint64_t)value;
	return EXIT_DONE;
}

/* "1,2": process 0 is none, but a number. */
static int get_ids(const struct command *c, const char *argument, const struct opt_list *texts, struct profile_ids *out)
{
	for (size_t i = 0; i < texts->count; i++) {
		struct str rest = str_of(texts->items[i]), piece;

		while (str_next(&rest, ',', &piece)) {
			int64_t id;

			if (str_to_i64(str_trim(piece), &id) < 0 || id > INT32_MAX)
				return complain(c, argument, "must be an integer");
			if (id < 0)
				return complain(c, argument, "must be positive");
			if (out->count == PROFILE_IDS_MAX)
				return complain(c, argument, "more than 1024 of them");
			out->ids[out->count++] = (pid_t)id;
		}
	}
	return EXIT_DONE;
}

static int get_frequency(const struct command *c, struct profile_options *o)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	uint64_t max;
	int e;

	o->session.frequency = FREQUENCY_USUAL;
	e = get_number(c, "-F/--frequency", str_of(o->frequency), &o->session.frequency);
	if (e != EXIT_DONE || !o->frequency)
		return e;
	if (io_read_below(o->session.host_root, RATE_LIMIT, &text) < 0 ||
	    str_to_u64(str_trim(buf_str(&text)), 1, UINT32_MAX, &max) < 0)
		max = UINT32_MAX; /* the kernel refuses it later */
	if (o->session.frequency <= max)
		return EXIT_DONE;
	command_fail(c,
		     "argument -F/--frequency: %" PRIu64 " is above the kernel's limit of %" PRIu64
		     " (kernel.perf_event_max_sample_rate)",
		     o->session.frequency, max);
	return EXIT_USAGE;
}

static int get_times(const struct command *c, struct profile_options *o, int operand_count, char **operands,
		     struct profile_plan *out)
{
	int e = EXIT_DONE;

	out->duration_s = PROFILE_FOREVER_S;
	if (operand_count > 1) {
		command_fail(c, "Unrecognized positional argument: %s", operands[1]);
		return EXIT_USAGE;
	}
	if (operand_count)
		e = get_number(c, "duration", str_of(operands[0]), &out->duration_s);
	if (e == EXIT_DONE)
		e = get_number(c, "--interval", str_of(o->interval), &out->interval_s);
	out->duration_s = MIN(out->duration_s, (uint64_t)PROFILE_FOREVER_S);
	out->interval_s = MIN(out->interval_s, (uint64_t)PROFILE_FOREVER_S);
	o->session.duration_ns = out->duration_s == PROFILE_FOREVER_S ? 0 : out->duration_s * NSEC_PER_SEC;
	o->session.window_ns = out->interval_s * NSEC_PER_SEC;
	return e;
}

static int get_sizes(const struct command *c, const struct profile_options *o, struct profile_text_config *out)
{
	const struct {
		const char *argument, *text;
		size_t *to;
	} sizes[] = {
		{ "--stack-storage-size", o->stack_storage, &out->stack_max },
		{ "--hash-storage-size", o->hash_storage, &out->row_max },
		{ "--perf-max-stack-depth", o->depth, &out->depth_max },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t value = 0;
		int e = get_number(c, sizes[i].argument, str_of(sizes[i].text), &value);

		if (e != EXIT_DONE)
			return e;
		*sizes[i].to = (size_t)value;
	}
	return EXIT_DONE;
}

int profile_options_get(const struct command *c, struct profile_options *o, int operand_count, char **operands,
			struct profile_plan *out)
{
	int e = get_ids(c, "-p/--pid", &o->pids, &out->pids);

	out->text = (struct profile_text_config){
		.folded = o->folded, .delimited = o->delimited, .annotated = o->annotated, .no_sum = !o->aggregate
	};
	if (e == EXIT_DONE)
		e = get_frequency(c, o);
	if (e == EXIT_DONE)
		e = get_times(c, o, operand_count, operands, out);
	return e == EXIT_DONE ? get_sizes(c, o, &out->text) : e;
}

static void add_ids(struct buf *out, const char *what, const struct profile_ids *ids)
{
	buf_addf(out, "%s [", what);
	for (size_t i = 0; i < ids->count; i++)
		buf_addf(out, "%s%d", i ? ", " : "", (int)ids->ids[i]);
	buf_addc(out, ']');
}

void profile_header(const struct profile_options *o, const struct profile_plan *plan, struct buf *out)
{
	buf_addf(out, "Sampling at %" PRIu64 " Hertz of ", o->session.frequency);
	if (plan->pids.count)
		add_ids(out, "PID", &plan->pids);
	else
		buf_adds(out, STR("all threads"));
	buf_adds(out, STR(" by user + kernel stack"));
	if (plan->duration_s == PROFILE_FOREVER_S)
		buf_adds(out, STR("... Hit Ctrl-C to end.\n"));
	else
		buf_addf(out, " for %" PRIu64 " secs.\n", plan->duration_s);
}
