/* SPDX-License-Identifier: Apache-2.0 */
/* hearth top: the functions that cost most right now, on a terminal or as tables one after the other.
 *
 * The main thread samples. The session's worker puts windows into the counts. A third thread draws, reads keys and
 * signals; it is the only one that touches the terminal. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/rights.h"
#include "cli/live_screen.h"
#include "cli/session_options.h"
#include "cli/targets.h"
#include "cli/terminal_size.h"
#include "cli/top_screen.h"
#include "cli/top_table.h"

#define STEP_MS 200
#define TEXT_MAX MIB(1)
#define PLAIN_WIDTH 65536
#define BACK_MS 500 /* in the background: how often to look whether the terminal is ours again */

struct config {
	struct session_options session;
	struct opt_list pids;
	const char *filter;
	uint64_t over_ns, count, rows;
	size_t sort;
	bool self, plain;
};

static const struct opt what_options[] = {
	{ "pid", 'p', OPT_LIST, .at = offsetof(struct config, pids), .arg = "PID[,PID]",
	  .help = "only these processes; ends when all of them have" },
	SESSION_WHO_OPTIONS(struct config, session),
	{ "self", 0, OPT_FLAG, .at = offsetof(struct config, self), .fallback = "true", .help = "sample hearth too" },
	{ 0 },
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_UINT, .at = offsetof(struct config, session.frequency), .min = 1, .max = 10000,
	  .fallback = "99", .arg = "HZ", .help = "samples per second on each CPU" },
	SESSION_EVENT_OPTIONS(struct config, session),
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, session.duration_ns), .min = NSEC_PER_MSEC,
	  .arg = "TIME", .help = "how long (default: until q or Ctrl-C)" },
	SESSION_MACHINE_OPTIONS(struct config, session),
	{ 0 },
};

static const struct opt runtime_options[] = RUNTIME_OPTIONS(struct config, session.runtimes);

static const struct opt shown_options[] = {
	{ "over", 0, OPT_DURATION, .at = offsetof(struct config, over_ns), .min = 200 * NSEC_PER_MSEC,
	  .max = 3600 * NSEC_PER_SEC, .fallback = "10s", .arg = "TIME", .help = "what is shown is of so long" },
	{ "refresh", 0, OPT_DURATION, .at = offsetof(struct config, session.window_ns), .min = 200 * NSEC_PER_MSEC,
	  .max = 3600 * NSEC_PER_SEC, .fallback = "1s", .arg = "TIME", .help = "and is drawn anew so often" },
	{ "sort", 0, OPT_CHOICE, .at = offsetof(struct config, sort), .choices = top_sort_names, .fallback = "self",
	  .arg = "NAME", .help = "by what rows are in order" },
	{ "filter", 0, OPT_TEXT, .at = offsetof(struct config, filter), .arg = "TEXT",
	  .help = "only rows with this text in function, process or container" },
	{ "plain", 0, OPT_FLAG, .at = offsetof(struct config, plain),
	  .help = "tables one after the other, as where standard output is no terminal" },
	{ "count", 'n', OPT_UINT, .at = offsetof(struct config, count), .min = 1, .max = UINT32_MAX, .arg = "N",
	  .help = "with --plain: end after so many tables" },
	{ "rows", 0, OPT_UINT, .at = offsetof(struct config, rows), .min = 1, .max = 100000, .fallback = "20",
	  .arg = "N", .help = "with --plain: rows of a table" },
	{ 0 },
};

struct top {
	const struct config *config;
	struct targets targets;
	struct session *session;
	int signals, news; /* news: eventfd; a window came, or the end */
	pthread_t drawer;
	bool has_drawer, is_plain;
	pthread_mutex_t lock; /* guards counts */
	struct top_counts counts;
	atomic_bool stop; /* set by whoever ends it */
	/* The drawing thread's */
	struct top_table table;
	struct top_screen screen;
	uint64_t shown, tidied;
	int status;
};

static void poke(const struct top *t)
{
	const uint64_t one = 1;

	ignore(write(t->news, &one, sizeof(one)) < 0); /* an eventfd takes it */
}

static void stop(struct top *t)
{
	atomic_store(&t->stop, true);
	poke(t);
}

static void top_release(struct top *t)
{
	stop(t);
	session_close(t->session);
	if (t->has_drawer)
		(void)pthread_join(t->drawer, NULL);
	top_screen_close(&t->screen);
	top_table_release(&t->table);
	top_counts_release(&t->counts);
	targets_release(&t->targets);
	closep(&t->signals);
	closep(&t->news);
	(void)pthread_mutex_destroy(&t->lock);
}

static void top_freep(struct top **t)
{
	if (*t)
		top_release(*t);
	free(*t);
}

/* On the worker. A held picture stays whole: what comes meanwhile is not counted. */
static void on_window(void *ctx, const struct window *w)
{
	struct top *t = ctx;

	(void)pthread_mutex_lock(&t->lock);
	if (!t->table.is_paused)
		top_counts_add(&t->counts, w);
	(void)pthread_mutex_unlock(&t->lock);
	poke(t);
}

/* Drawing */

static void draw(struct top *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	const size_t width = terminal_width(STDOUT_FILENO), height = terminal_height(STDOUT_FILENO);

	if (!top_screen_take(&t->screen))
		return;
	(void)pthread_mutex_lock(&t->lock);
	if (t->tidied != t->counts.tidied)
		top_table_renamed(&t->table);
	t->tidied = t->counts.tidied;
	top_table_draw(&t->table, &t->counts, width ? width : 80, height ? height : 24, 0, true, &text);
	(void)pthread_mutex_unlock(&t->lock);
	if (top_screen_show(&t->screen, &text) < 0)
		stop(t);
}

static void print(struct top *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	const size_t width = terminal_width(STDOUT_FILENO);

	(void)pthread_mutex_lock(&t->lock);
	top_table_draw(&t->table, &t->counts, width ? width : PLAIN_WIDTH, 0, t->config->rows, false, &text);
	(void)pthread_mutex_unlock(&t->lock);
	buf_addc(&text, '\n');
	t->status = command_print(&command_top, &text);
	if (++t->shown == t->config->count || t->status != EXIT_DONE)
		stop(t);
}

/* Return: whether something is to be drawn. */
static bool read_keys(struct top *t)
{
	char bytes[256];
	ssize_t n = read(t->screen.keys, bytes, sizeof(bytes));
	struct str rest;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		stop(t); /* the terminal is gone */
		return false;
	}
	rest = str_n(bytes, (size_t)MAX(n, (ssize_t)0));
	(void)pthread_mutex_lock(&t->lock);
	while (rest.len) {
		int key = top_key_read(&rest);

		if (key != TOP_KEY_NONE && !top_table_press(&t->table, &t->counts, key)) {
			stop(t);
			break;
		}
	}
	(void)pthread_mutex_unlock(&t->lock);
	return true;
}

/* The shell gets its terminal as it was; we go on where it says so. */
static void suspend(struct top *t)
{
	top_screen_give_back(&t->screen);
	ignore(kill(getpid(), SIGSTOP));
}

static void read_signals(struct top *t)
{
	struct signalfd_siginfo info;

	while (read(t->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			suspend(t);
		else if (info.ssi_signo == SIGCONT)
			top_screen_again(&t->screen);
		else if (info.ssi_signo != SIGWINCH)
			stop(t);
	}
}

static bool take_news(struct top *t)
{
	uint64_t count;

	if (read(t->news, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return false;
	return !atomic_load(&t->stop);
}

static void *draw_all(void *arg)
{
	struct top *t = arg;

	if (!t->is_plain)
		draw(t);
	while (!atomic_load(&t->stop)) {
		struct pollfd p[] = { { .fd = t->news, .events = POLLIN },
				      { .fd = t->signals, .events = POLLIN },
				      { .fd = t->screen.is_taken ? t->screen.keys : -1, .events = POLLIN },
				      { .fd = t->screen.pipe, .events = POLLIN } };
		bool is_new;

		ignore(poll(p, ARRAY_SIZE(p),
			    t->is_plain || t->screen.is_taken ? -1 : BACK_MS)); /* all are looked at */
		if (p[3].revents)
			top_screen_hear(&t->screen);
		if (p[1].revents)
			read_signals(t);
		is_new = p[0].revents && take_news(t);
		if (p[2].revents)
			(void)read_keys(t);
		if (atomic_load(&t->stop))
			break;
		if (!t->is_plain)
			draw(t);
		else if (is_new)
			print(t);
	}
	top_screen_close(&t->screen);
	return NULL;
}

/* Start */

static int open_signals(struct top *t)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail with constant numbers */
	for (size_t i = 0; i < (t->is_plain ? 3 : ARRAY_SIZE(numbers)); i++)
		(void)sigaddset(&set, numbers[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	t->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return t->signals < 0 || t->news < 0 ? -errno : 0;
}

static int open_session(struct top *t)
{
	const struct config *config = t->config;
	struct session_config cfg = {
		.sampling = { .pids = t->targets.pids, .pid_count = t->targets.count, .include_self = config->self },
		.on_window = on_window,
		.ctx = t,
	};

	return session_options_open(&command_top, &config->session, NULL, &cfg, &t->session);
}

static int prepare(struct top *t)
{
	const struct config *config = t->config;
	const uint64_t refresh_ns = config->session.window_ns;
	int r = open_signals(t);

	if (r < 0)
		return command_fail(&command_top, "cannot watch for signals: %s", strerror(-r));
	if (config->over_ns < refresh_ns || config->over_ns / refresh_ns > TOP_SLOTS_MAX) {
		command_fail(&command_top, "--over has to be at least --refresh, and at most %d times it",
			     TOP_SLOTS_MAX);
		return EXIT_USAGE;
	}
	if (config->filter && strlen(config->filter) > TOP_FILTER_MAX) {
		command_fail(&command_top, "--filter: more than %d bytes", TOP_FILTER_MAX);
		return EXIT_USAGE;
	}
	t->table.sort = (enum top_sort)config->sort;
	t->table.over_ns = config->over_ns;
	t->table.refresh_ns = refresh_ns;
	if (config->filter)
		memcpy(t->table.filter, config->filter, strlen(config->filter) + 1);
	if (top_counts_init(&t->counts, (size_t)((config->over_ns + refresh_ns - 1) / refresh_ns)) < 0)
		return command_fail(&command_top, "out of memory");
	if (rights_bound(true) < 0 || log_start() < 0)
		return command_fail(&command_top, "cannot start a thread, or give up rights");
	return targets_parse(&t->targets, &command_top, &config->pids);
}

/* Which runtimes were refused, when the terminal is as it was. */
static void say_notices(const struct top *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(256));

	session_options_notices(t->session, &text);
	if (text.len)
		log_text(buf_str(&text), true);
}

static int start_drawing(struct top *t)
{
	int r = t->is_plain ? 0 : top_screen_open(&t->screen);

	if (r < 0)
		return command_fail(&command_top, "cannot use the terminal: %s", strerror(-r));
	r = pthread_create(&t->drawer, NULL, draw_all, t);
	t->has_drawer = r == 0;
	return r ? command_fail(&command_top, "cannot start a thread: %s", strerror(r)) : EXIT_DONE;
}

static int sample(struct top *t)
{
	const uint64_t start_ns = clock_monotonic_ns(&clock_system), length_ns = t->config->session.duration_ns;
	int r = 0;

	while (r >= 0 && !atomic_load(&t->stop) && !targets_ended(&t->targets)) {
		uint64_t left_ns = STEP_MS * NSEC_PER_MSEC, ran_ns = clock_monotonic_ns(&clock_system) - start_ns;

		if (length_ns && ran_ns >= length_ns)
			break;
		if (length_ns)
			left_ns = MIN(left_ns, length_ns - ran_ns);
		r = session_step(t->session, (int)(left_ns / NSEC_PER_MSEC) + 1);
	}
	return r == -ENODATA ? 0 : MIN(r, 0);
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(top_freep) struct top *t = calloc(1, sizeof(*t));
	int r;

	(void)operand_count;
	(void)operands;
	if (!t)
		return command_fail(&command_top, "out of memory");
	t->config = config;
	t->signals = t->news = -1;
	t->screen = (struct top_screen)TOP_SCREEN_INIT;
	(void)pthread_mutex_init(&t->lock, NULL); /* no attributes: cannot fail on Linux */
	t->is_plain = t->config->plain || !live_screen_possible();
	r = prepare(t);
	r = r == EXIT_DONE ? open_session(t) : r;
	if (r != EXIT_DONE)
		return r;
	r = session_start(t->session);
	if (r < 0)
		return command_fail(&command_top, "cannot start sampling: %s", strerror(-r));
	r = start_drawing(t);
	if (r != EXIT_DONE)
		return r;
	r = sample(t);
	stop(t);
	(void)pthread_join(t->drawer, NULL); /* the terminal is as it was */
	t->has_drawer = false;
	say_notices(t);
	return r < 0 ? command_fail(&command_top, "sampling ended: %s", strerror(-r)) : t->status;
}

static const struct opt_group groups[] = { { "What to sample", what_options },
					   { "How", how_options },
					   { "Language runtimes", runtime_options },
					   { "What is shown", shown_options },
					   { 0 } };
static const char *const examples[] = {
	"sudo hearth top",
	"the functions that cost most in the last ten seconds",
	"sudo hearth top --container web --over 1m",
	"of one container, over the last minute",
	"sudo hearth top --plain -n 1 --refresh 10s > table.txt",
	"one table of ten seconds in a file",
	NULL,
};

const struct command command_top = {
	.name = "top",
	.summary = "the functions that cost most right now, live on the terminal",
	.operands = "",
	.details = "A table of functions by their share of the samples of the last seconds, drawn anew every second. "
		   "Keys sort and\n"
		   "filter; Enter shows who calls a function; q ends it. Without a terminal, or with --plain, a table "
		   "is printed\n"
		   "every second.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.run = run,
};
