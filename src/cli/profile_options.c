/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the words: tools/profile.py of github.com/iovisor/bcc. */
#include "cli/profile_options.h"

#include <inttypes.h>

#include "base/io.h"
#include "sampler/event.h"

#define FREQUENCY_USUAL 49
#define CLOCK_PERIOD_MIN_NS 10000 /* linux, kernel/events/core.c, perf_swevent_start_hrtimer() */
#define RATE_LIMIT "/proc/sys/kernel/perf_event_max_sample_rate"

/* In the help of which a default stands, since 0 means: not given. */
static const struct opt what_options[] = {
	{ "pid", 'p', OPT_LIST, .at = offsetof(struct profile_options, pids), .arg = "PID[,PID]",
	  .help = "only these processes; ends when all of them have" },
	{ "tid", 'L', OPT_LIST, .at = offsetof(struct profile_options, tids), .arg = "TID[,TID]",
	  .help = "only these threads; ends when all of them have" },
	{ "user-stacks-only", 'U', OPT_FLAG, .at = offsetof(struct profile_options, user_only),
	  .help = "without the kernel's part of stacks" },
	{ "kernel-stacks-only", 'K', OPT_FLAG, .at = offsetof(struct profile_options, kernel_only),
	  .help = "without the user's part of stacks" },
	{ "include-idle", 'I', OPT_FLAG, .at = offsetof(struct profile_options, idle),
	  .help = "also the idle tasks, as swapper/CPU" },
	{ "cpu", 'C', OPT_TEXT, .at = offsetof(struct profile_options, cpus), .arg = "CPUS",
	  .help = "only these CPUs: 3, or 0-3,8 (default: -1, all)" },
	{ "cgroup", 0, OPT_PATH, .at = offsetof(struct profile_options, cgroup), .arg = "DIR",
	  .help = "only processes of this cgroup v2 directory and those below it" },
	{ "container", 0, OPT_TEXT, .at = offsetof(struct profile_options, container), .arg = "NAME",
	  .help = "only this container: its name, or at least 12 digits of its id" },
	{ "cgroupmap", 0, OPT_PATH, .at = offsetof(struct profile_options, cgroup_map), .arg = "PATH",
	  .help = "only cgroups whose ids are keys of this pinned BPF map" },
	{ "mntnsmap", 0, OPT_PATH, .at = offsetof(struct profile_options, mount_map), .arg = "PATH",
	  .help = "only mount namespaces whose inodes are keys of this pinned BPF map" },
	{ 0 },
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_TEXT, .at = offsetof(struct profile_options, frequency), .arg = "HZ",
	  .help = "samples per second on each CPU (default: 49)" },
	{ "count", 'c', OPT_TEXT, .at = offsetof(struct profile_options, count), .arg = "EVENTS",
	  .help = "a sample each so many events instead: cycles, or where no counter is nanoseconds of CPU time" },
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
	{ "address", 'A', OPT_FLAG, .at = offsetof(struct profile_options, addresses),
	  .help = "without -f: the address before each name" },
	{ "aggregate", 0, OPT_FLAG, .at = offsetof(struct profile_options, aggregate), .fallback = "true",
	  .help = "with -f: add lines of equal text; otherwise they stay apart where addresses differ" },
	{ "stack-storage-size", 0, OPT_TEXT, .at = offsetof(struct profile_options, stack_storage), .arg = "COUNT",
	  .help = "keep so many different stacks, and show others as missed (default: all)" },
	{ "hash-storage-size", 0, OPT_TEXT, .at = offsetof(struct profile_options, hash_storage), .arg = "COUNT",
	  .help = "keep so many different rows (default: all)" },
	{ "perf-max-stack-depth", 0, OPT_TEXT, .at = offsetof(struct profile_options, depth), .arg = "COUNT",
	  .help = "show so many frames of each part, from the innermost on (default: all)" },
	{ "ebpf", 0, OPT_FLAG, .at = offsetof(struct profile_options, ebpf) },
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

static int clash(const struct command *c, const char *argument, const char *with)
{
	command_fail(c, "argument %s: not allowed with argument %s", argument, with);
	return EXIT_USAGE;
}

static int check_pairs(const struct command *c, const struct profile_options *o)
{
	if (o->pids.count && o->tids.count)
		return clash(c, "-L/--tid", "-p/--pid");
	if (o->user_only && o->kernel_only)
		return clash(c, "-K/--kernel-stacks-only", "-U/--user-stacks-only");
	return o->frequency && o->count ? clash(c, "-c/--count", "-F/--frequency") : EXIT_DONE;
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

static int get_count(const struct command *c, struct profile_options *o, struct profile_plan *out)
{
	int e = get_number(c, "-c/--count", str_of(o->count), &out->count);

	if (e == EXIT_DONE && out->count > INT64_MAX / 2)
		return complain(c, "-c/--count", "that number is too large");
	return e;
}

static int get_cpus(const struct command *c, const struct profile_options *o, struct profile_plan *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	struct cpus online;

	if (!o->cpus || !strcmp(o->cpus, "-1"))
		return EXIT_DONE;
	if (cpus_parse(str_of(o->cpus), &out->cpus) == -EBADMSG)
		return complain(c, "-C/--cpu", "must be a number or a list such as 0-3,8");
	out->is_limited = true;
	if (io_read_below(o->session.host_root, "/sys/devices/system/cpu/online", &text) < 0 ||
	    cpus_parse(buf_str(&text), &online) < 0)
		return EXIT_DONE; /* opening the event tells */
	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpus_has(&out->cpus, cpu) && !cpus_has(&online, cpu)) {
			command_fail(c, "argument -C/--cpu: CPU %u is not online; these are: " STR_FMT, cpu,
				     STR_ARG(str_trim(buf_str(&text))));
			return EXIT_USAGE;
		}
	return EXIT_DONE;
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
	int e = check_pairs(c, o);

	out->text = (struct profile_text_config){ .folded = o->folded,
						  .delimited = o->delimited,
						  .annotated = o->annotated,
						  .addresses = o->addresses,
						  .no_user = o->kernel_only,
						  .no_kernel = o->user_only,
						  .no_sum = !o->aggregate };
	if (e == EXIT_DONE)
		e = get_ids(c, "-p/--pid", &o->pids, &out->pids);
	if (e == EXIT_DONE)
		e = get_ids(c, "-L/--tid", &o->tids, &out->tids);
	if (e == EXIT_DONE)
		e = get_frequency(c, o);
	if (e == EXIT_DONE)
		e = get_count(c, o, out);
	if (e == EXIT_DONE)
		e = get_cpus(c, o, out);
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

/* For the size of the ring: samples a second of a busy CPU, as far as they are known. */
static uint64_t rate_of_clock(uint64_t period_ns)
{
	return MAX(NSEC_PER_SEC / MAX(period_ns, (uint64_t)CLOCK_PERIOD_MIN_NS), (uint64_t)FREQUENCY_USUAL);
}

void profile_options_event(const struct command *c, struct profile_options *o, const struct profile_plan *plan)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct sampler_event cycles = { 0 };
	bool has_cycles;

	if (!plan->count && o->verbose)
		command_fail(c, "sampling the CPU's clock %" PRIu64 " times a second", o->session.frequency);
	if (!plan->count)
		return;
	has_cycles = event_parse(o->session.host_root, STR("cycles"), &cycles, &why) == 0;
	cycles.period = plan->count;
	has_cycles = has_cycles && event_probe(&cycles, 0, &why) == 0;
	o->session.event_period = plan->count;
	o->session.event = has_cycles ? "cycles" : "cpu-clock";
	if (!has_cycles) {
		o->session.frequency = rate_of_clock(plan->count);
		command_fail(c, "no hardware counter of cycles here: -c counts nanoseconds of CPU time%s",
			     plan->count < CLOCK_PERIOD_MIN_NS ? ", and at least 10000 for a sample" : "");
	} else if (o->verbose) {
		command_fail(c, "-c counts cycles");
	}
}

static void add_who(const struct profile_plan *plan, struct buf *out)
{
	if (plan->pids.count)
		add_ids(out, "PID", &plan->pids);
	else if (plan->tids.count)
		add_ids(out, "TID", &plan->tids);
	else
		buf_adds(out, STR("all threads"));
}

void profile_header(const struct profile_options *o, const struct profile_plan *plan, struct buf *out)
{
	if (plan->count)
		buf_addf(out, "Sampling at every %" PRIu64 " events of ", plan->count);
	else
		buf_addf(out, "Sampling at %" PRIu64 " Hertz of ", o->session.frequency);
	add_who(plan, out);
	buf_addf(out, " by %s stack", o->user_only ? "user" : o->kernel_only ? "kernel" : "user + kernel");
	if (plan->is_limited)
		buf_addf(out, " on CPU#%s", o->cpus);
	if (plan->duration_s == PROFILE_FOREVER_S)
		buf_adds(out, STR("... Hit Ctrl-C to end.\n"));
	else
		buf_addf(out, " for %" PRIu64 " secs.\n", plan->duration_s);
}
