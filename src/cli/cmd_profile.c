/* SPDX-License-Identifier: Apache-2.0 */
/* hearth profile: what bcc's profile does, with the sampler of hearth. */
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/rights.h"
#include "cli/end_signals.h"
#include "cli/profile_live.h"
#include "cli/profile_options.h"
#include "cli/profile_sampler.h"
#include "cli/targets.h"
#include "render/profile_sum.h"

#define STEP_MS 200
#define TEXT_MAX GIB(4)
#define STATUS_SECOND_SIGNAL 130

/* One run of the command. */
struct profile {
	struct profile_options *options;
	struct profile_plan plan;
	struct targets targets;
	struct profile_threads {
		pid_t tids[PROFILE_IDS_MAX], pids[PROFILE_IDS_MAX]; /* those that live, and whose they are */
		size_t count;
	} threads;
	struct service_rules *rules;
	struct end_signals signals;
	struct session *session;
	/* The worker's until session_stop(). */
	struct profile_text_missing missing;
	struct profile_counts {
		uint64_t samples, user, whole, guessed, cut, lost;
	} counts;
	/* With -E or -T windows are of a second, and reports are sums of them. */
	struct profile_live *live;
	struct profile_sum sum;
	uint64_t summed; /* windows in it */
	int status;
};

static void profile_release(struct profile *p)
{
	session_close(p->session);
	profile_live_free(p->live);
	profile_sum_release(&p->sum);
	service_rules_free(p->rules);
	targets_release(&p->targets);
	end_signals_release(&p->signals);
}

static void profile_freep(struct profile **p)
{
	if (*p)
		profile_release(*p);
	free(*p);
}

static void count_window(struct profile *p, const struct window *w)
{
	const struct window_classes classes = window_classes(w);

	p->counts.samples += window_counter(w, STR("samples"));
	p->counts.user += classes.user;
	p->counts.whole += classes.whole;
	p->counts.guessed += classes.guessed;
	p->counts.cut += classes.cut;
	p->counts.lost += classes.lost;
}

/* Reports of intervals follow each other: multi-line ones say when they ended. */
static void add_time(uint64_t end_ns, struct buf *out)
{
	time_t seconds = (time_t)(end_ns / NSEC_PER_SEC);
	struct tm parts;
	char text[32];

	if (localtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%H:%M:%S", &parts))
		buf_addf(out, "%s\n\n", text);
}

static void add_head(const struct profile *p, uint64_t end_ns, struct buf *out)
{
	if (!p->plan.text.folded)
		buf_addc(out, '\n');
	if (!p->plan.text.folded && p->plan.interval_s)
		add_time(end_ns, out);
}

/* @r: what made it. */
static void print_report(struct profile *p, int r, const struct buf *text)
{
	int e = r < 0 ? command_fail(&command_profile, "cannot write the report: %s", strerror(-r))
		      : command_print(&command_profile, text);

	if (e != EXIT_DONE)
		p->status = e;
}

static void print_sum(struct profile *p, uint64_t end_ns)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);

	p->summed = 0;
	add_head(p, end_ns, &text);
	print_report(p, profile_sum_write(&p->sum, &text), &text);
}

static void take_live_window(struct profile *p, const struct window *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	int r = profile_text(w, &p->plan.text, &text, &p->missing);

	r = r ? r : profile_sum_add(&p->sum, buf_str(&text));
	if (r < 0)
		p->status = command_fail(&command_profile, "a part of the report is missing: %s", strerror(-r));
	profile_live_add(p->live, w);
	if (++p->summed == p->plan.interval_s)
		print_sum(p, w->end_ns);
}

/* On the worker. */
static void on_window(void *ctx, const struct window *w)
{
	struct profile *p = ctx;
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);

	count_window(p, w);
	if (p->live) {
		take_live_window(p, w);
		return;
	}
	add_head(p, w->end_ns, &text);
	print_report(p, profile_text(w, &p->plan.text, &text, &p->missing), &text);
}

static void warn(const struct profile *p)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(256));

	if (p->missing.parts)
		buf_addf(&text, "WARNING: %llu stack traces could not be displayed.%s\n",
			 (unsigned long long)p->missing.parts,
			 p->missing.stacks_full ? " Consider increasing --stack-storage-size." : "");
	if (p->missing.left_out)
		buf_adds(&text, STR("WARNING: hash table full. Consider increasing --hash-storage-size.\n"));
	if (p->counts.lost)
		buf_addf(&text, "WARNING: %llu samples were lost. Consider increasing --ring-size.\n",
			 (unsigned long long)p->counts.lost);
	if (p->options->verbose)
		buf_addf(&text,
			 "%llu samples (%llu lost, %llu left out), with a user stack: %llu, of them whole: %llu, "
			 "guessed: %llu, cut: %llu\n",
			 (unsigned long long)p->counts.samples, (unsigned long long)p->counts.lost,
			 (unsigned long long)p->missing.left_out, (unsigned long long)p->counts.user,
			 (unsigned long long)p->counts.whole, (unsigned long long)p->counts.guessed,
			 (unsigned long long)p->counts.cut);
	session_options_notices(p->session, &text);
	if (text.len)
		log_text(buf_str(&text), true);
}

static int say_missing(pid_t id)
{
	return command_fail(&command_profile, "no such process: %d", (int)id);
}

/* Which of the processes there are: one is enough. */
static int find_processes(struct profile *p)
{
	const struct profile_ids *pids = &p->plan.pids;
	pid_t missing = -1;

	for (size_t i = 0; i < pids->count; i++) {
		int r = targets_add(&p->targets, pids->ids[i]);

		if (r == -ESRCH || r == -EINVAL) /* EINVAL: a thread, or 0 */
			missing = missing < 0 ? pids->ids[i] : missing;
		else if (r < 0)
			return command_fail(&command_profile, "cannot watch process %d: %s", (int)pids->ids[i],
					    strerror(-r));
	}
	if (missing >= 0 && !p->targets.count)
		return say_missing(missing);
	return EXIT_DONE;
}

/* Return: the process that a thread is of, or 0. */
static pid_t process_of(const char *host_root, pid_t tid)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	char path[64];
	struct str rest, line;
	uint64_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (io_read_below(host_root, path, &text) < 0)
		return 0;
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line))
		if (str_starts(line, STR("Tgid:")) &&
		    str_to_u64(str_trim(str_skip(line, strlen("Tgid:"))), 1, INT32_MAX, &pid) < 0)
			return 0;
	return (pid_t)pid;
}

/* The same of threads. */
static int find_threads(struct profile *p)
{
	const struct profile_ids *tids = &p->plan.tids;
	struct profile_threads *t = &p->threads;

	for (size_t i = 0; i < tids->count; i++) {
		pid_t pid = tids->ids[i] ? process_of(p->options->session.host_root, tids->ids[i]) : 0;

		if (!pid)
			continue;
		t->tids[t->count] = tids->ids[i];
		t->pids[t->count++] = pid;
	}
	return t->count || !tids->count ? EXIT_DONE : say_missing(tids->ids[0]);
}

/* There is no descriptor of a thread before Linux 6.9. */
static bool threads_ended(const struct profile *p)
{
	for (size_t i = 0; i < p->threads.count; i++)
		if (process_of(p->options->session.host_root, p->threads.tids[i]) == p->threads.pids[i])
			return false;
	return p->threads.count > 0;
}

static int open_session(struct profile *p)
{
	struct session_config cfg = {
		.sampling = { .pids = p->threads.count ? p->threads.pids : p->targets.pids,
			      .pid_count = p->threads.count ? p->threads.count : p->targets.count,
			      .tids = p->threads.tids,
			      .tid_count = p->threads.count,
			      .cgroup_path = p->options->cgroup,
			      .cgroup_map = p->options->cgroup_map,
			      .mount_map = p->options->mount_map,
			      .cpus = p->plan.is_limited ? &p->plan.cpus : NULL,
			      .idle_tasks = p->options->idle,
			      .no_kernel = p->options->user_only,
			      .no_user = p->options->kernel_only,
			      .include_self = true },
		.selection.container = p->options->container,
		.addresses = p->plan.text.addresses && !p->plan.text.folded,
		.codes = true,
		.on_window = on_window,
		.ctx = p,
	};
	int e;

	cfg.sampling.frequency_hz = (uint32_t)p->options->session.frequency; /* to try with */
	cfg.sampler = profile_sampler(&command_profile, &cfg.sampling);
	if (!cfg.sampler)
		return EXIT_NOT_PERMITTED;
	e = session_options_open(&command_profile, &p->options->session, p->rules, &cfg, &p->session);
	if (e == EXIT_DONE)
		profile_warn_hidden(&cfg.sampling);
	return e;
}

static int print_header(const struct profile *p)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	if (p->plan.text.folded)
		return EXIT_DONE;
	profile_header(p->options, &p->plan, &text);
	return command_print(&command_profile, &text);
}

static int print_program(void)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));

	buf_adds(&text, str_of(sampler_source));
	return command_print(&command_profile, &text);
}

static int step_timeout_ms(uint64_t duration_ns, uint64_t start_ns)
{
	uint64_t elapsed = clock_monotonic_ns(&clock_system) - start_ns, left = STEP_MS * NSEC_PER_MSEC;

	if (duration_ns)
		left = elapsed >= duration_ns ? 0 : MIN(left, duration_ns - elapsed);
	return (int)((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

/* As of a pipe into head. Pictures and the live graph have other readers. */
static bool nobody_reads(const struct profile *p)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return !p->live && poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

/* Until the time is up, a signal comes, or what was watched has ended. */
static int run_loop(struct profile *p)
{
	uint64_t start_ns = clock_monotonic_ns(&clock_system);
	int timeout_ms, r = 0;

	while ((timeout_ms = step_timeout_ms(p->options->session.duration_ns, start_ns)) > 0) {
		r = session_step(p->session, timeout_ms);
		if (r < 0 || end_signals_came(&p->signals) || targets_ended(&p->targets) || threads_ended(p) ||
		    nobody_reads(p))
			break;
	}
	return r == -ENODATA ? 0 : MIN(r, 0);
}

static void on_second_signal(int number)
{
	(void)number;
	_exit(STATUS_SECOND_SIGNAL);
}

static int finish(struct profile *p, int r)
{
	int stopped;

	ignore(signal(SIGINT, on_second_signal) == SIG_ERR);
	end_signals_close(&p->signals);
	stopped = session_stop(p->session);
	if (p->live && (p->summed || !p->plan.interval_s))
		print_sum(p, clock_wall_ns(&clock_system));
	if (p->live && profile_live_finish(p->live) != EXIT_DONE)
		p->status = EXIT_FAILED;
	warn(p);
	r = r < 0 ? r : stopped;
	if (r < 0)
		return command_fail(&command_profile, "sampling ended early: %s; what was gathered is shown",
				    strerror(-r));
	return p->status;
}

/* Before there are threads: -T forks. */
static int open_live(struct profile *p)
{
	struct session_options *session = &p->options->session;

	if (!profile_live_wanted(&p->options->live))
		return EXIT_DONE;
	session->window_ns = NSEC_PER_SEC;
	session->sample_times = true;
	profile_sum_init(&p->sum, p->plan.text.folded);
	return profile_live_open(&command_profile, &p->options->live, &p->live);
}

static int prepare(struct profile *p, int operand_count, char **operands)
{
	int e = profile_options_get(&command_profile, p->options, operand_count, operands, &p->plan);

	if (e == EXIT_DONE)
		e = find_processes(p);
	if (e == EXIT_DONE)
		e = find_threads(p);
	if (e == EXIT_DONE)
		e = open_live(p);
	if (e == EXIT_DONE && (rights_bound(true) < 0 || log_start() < 0))
		e = command_fail(&command_profile, "cannot start a thread, or give up rights");
	return e;
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	int e, r;

	if (!p)
		return command_fail(&command_profile, "out of memory");
	p->options = config;
	p->signals = (struct end_signals)END_SIGNALS_INIT;
	if (p->options->version) {
		puts("profile " HEARTH_VERSION);
		return EXIT_DONE;
	}
	if (p->options->ebpf)
		return print_program();
	r = end_signals_open(&p->signals);
	if (r < 0)
		return command_fail(&command_profile, "cannot watch for signals: %s", strerror(-r));
	e = prepare(p, operand_count, operands);
	if (e == EXIT_DONE) {
		profile_options_event(&command_profile, p->options, &p->plan);
		e = open_session(p);
	}
	if (e == EXIT_DONE)
		e = print_header(p);
	if (e != EXIT_DONE)
		return e;
	r = session_start(p->session);
	if (r < 0)
		return command_fail(&command_profile, "cannot start sampling: %s", strerror(-r));
	return finish(p, run_loop(p));
}

static const char *const examples[] = {
	"sudo hearth profile",
	"the whole machine at 49 Hertz until Ctrl-C",
	"sudo hearth profile -F 99 -adf 10 > out.folded",
	"ten seconds, one line for each stack, kernel frames marked",
	"sudo hearth profile -p 1234 --interval 5",
	"one process, a report every five seconds",
	NULL,
};

const struct command command_profile = {
	.name = "profile",
	.aliases = (const char *const[]){ "profile", "profile-bpfcc", NULL },
	.summary = "sample stacks and print them, as bcc's profile does",
	.operands = "[duration]",
	.details = "Samples the stacks that use the CPUs, and prints each with how often it was met, the most frequent "
		   "last. duration is in seconds; without it Ctrl-C ends it. Options, their defaults and both forms of "
		   "output are those of bcc's profile; stacks are walked as hearth record does, or with --unwind fp as "
		   "bcc does.",
	.examples = examples,
	.groups = profile_groups,
	.dialect = &profile_dialect,
	.config_size = sizeof(struct profile_options),
	.operands_max = -1,
	.run = run,
};
