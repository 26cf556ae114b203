/* SPDX-License-Identifier: Apache-2.0 */
/* hearth up: agent and collector in one command, as two processes. The agent keeps the rights it needs; the collector
 * has given up all of them before it takes the first byte. Windows go from one to the other over a socketpair.
 *
 *   agent (this process) --socketpair--> collector (child): store, HTTP
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/rights.h"
#include "cli/live_screen.h"
#include "cli/serve_options.h"
#include "cli/session_options.h"
#include "cli/terminal_size.h"
#include "cli/up_table.h"
#include "codec/window_codec.h"
#include "collector/feed.h"

struct config {
	struct serve_config serve; /* first: the tables of hearth serve have their offsets in it */
	struct session_options session;
	bool table;
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_UINT, .at = offsetof(struct config, session.frequency), .min = 1, .max = 1000,
	  .fallback = "99", .arg = "HZ", .help = "samples per second on each CPU" },
	{ "window", 0, OPT_DURATION, .at = offsetof(struct config, session.window_ns), .min = NSEC_PER_SEC,
	  .fallback = "10s", .arg = "TIME", .help = "one profile of each service for every such time" },
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, session.duration_ns), .min = NSEC_PER_MSEC,
	  .arg = "TIME", .help = "how long (default: until Ctrl-C)" },
	SESSION_SAMPLING_OPTIONS(struct config, session),
	SESSION_TIMES_OPTION(struct config, session, "true"),
	SESSION_SERVICE_OPTIONS(struct config, session),
	{ "table", 0, OPT_FLAG, .at = offsetof(struct config, table), .fallback = "true",
	  .help = "on a terminal a table of services by cost, in place of log lines of requests where both share the "
		  "terminal" },
	{ 0 },
};

static const struct opt runtime_options[] = RUNTIME_LABEL_OPTIONS(struct config, session.runtimes);

/* Two threads: the main one, and the session's worker, which runs on_window(). The worker owns what says so, until
 * session_stop() has joined it; from then on finish() of the main thread does. feed is the worker's to read and write
 * for as long. All else but the atomic ones is the main thread's, and is set before the worker starts or not read by
 * it. */
struct up {
	const struct config *config;
	struct service_rules *rules; /* the session's */
	struct session *session;
	pid_t child;
	int feed, ready, signals;
	struct live_screen screen;
	struct up_table *table;    /* NULL: none is shown; both threads use it (up_table.h) */
	bool is_cut;               /* worker: a frame was begun and not ended: nothing may follow it */
	uint64_t stored;           /* worker: windows that the collector has in its store */
	uint64_t refused;          /* worker: that it could not store, not whole */
	_Atomic uint64_t sent;     /* to it, whole */
	_Atomic uint64_t lost;     /* not */
	_Atomic uint64_t until_ns; /* monotonic: when to give up sending; 0: the session goes on */
};

#define SEND_PATIENCE_NS (10 * NSEC_PER_SEC) /* at the end, for the last windows */
#define END_PATIENCE_NS (10 * NSEC_PER_SEC)  /* for the collector's end, and --exit-timeout */

static void up_release(struct up *up)
{
	session_close(up->session);
	closep(&up->feed); /* the collector ends by it, and what it says then is still shown */
	live_screen_close(&up->screen);
	up_table_free(up->table);
	service_rules_free(up->rules);
	closep(&up->ready);
	closep(&up->signals);
}

/* What the terminal shows */

static int open_table(struct up *up)
{
	int r;

	if (!up->config->table || !live_screen_possible())
		return 0;
	up->table = up_table_new(up->config->session.window_ns);
	r = up->table ? live_screen_open(&up->screen) : -ENOMEM;
	return r;
}

static bool shows_utf8(void)
{
	const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static void show_table(struct up *up)
{
	size_t width = terminal_width(STDOUT_FILENO), height = terminal_height(STDOUT_FILENO);
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	if (!up->table)
		return;
	up_table_draw(up->table, width ? width : 80, height ? height : 24, shows_utf8(), &text);
	live_screen_show(&up->screen, &text);
}

/* The agent's side */

/* What the collector has dealt with: it sends a byte for each window (enum feed_answer). */
static void count_stored(struct up *up)
{
	char bytes[256];
	ssize_t n;

	while ((n = recv(up->feed, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++) {
			up->stored += bytes[i] == FEED_STORED;
			up->refused += bytes[i] == FEED_FAILED;
		}
}

/* A collector that stands still is waited for, until the end has come and its patience is over. */
static int send_all(struct up *up, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = send(up->feed, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		uint64_t until_ns = atomic_load(&up->until_ns);
		struct pollfd p = { .fd = up->feed, .events = POLLOUT };

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
			continue;
		}
		if (until_ns && clock_monotonic_ns(&clock_system) >= until_ns)
			return -ETIMEDOUT;
		ignore(poll(&p, 1, 100)); /* looked at again in any case */
		count_stored(up);
	}
	return 0;
}

static int send_frame(struct up *up, const struct buf *window)
{
	uint8_t head[4] = { (uint8_t)window->len, (uint8_t)(window->len >> 8), (uint8_t)(window->len >> 16),
			    (uint8_t)(window->len >> 24) };
	int r = send_all(up, head, sizeof(head));

	return r ? r : send_all(up, window->ptr, window->len);
}

/* On the session's worker. While the collector is busy this waits, and the session drops its oldest window and says so.
 */
static void on_window(void *ctx, const struct window *w)
{
	struct up *up = ctx;
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(512));
	int r = codec_window.encode(w, &bytes);

	if (up->table)
		up_table_add(up->table, w);
	r = r ? r : up->is_cut ? -EPIPE : send_frame(up, &bytes);
	up->is_cut |= r < 0;
	count_stored(up);
	if (r == 0) {
		up->sent++;
		return;
	}
	if (!up->lost++)
		log_error("a window did not reach the collector and is lost", LOG_ERR(r));
}

static int open_session(struct up *up)
{
	struct session_config cfg = {
		.sampling = { .include_self = true }, .thread_names = true, .on_window = on_window, .ctx = up
	};
	int r = session_options_open(&command_up, &up->config->session, up->rules, &cfg, &up->session), e;

	if (r != EXIT_DONE)
		return r;
	e = session_start(up->session);
	return e < 0 ? command_fail(&command_up, "cannot start sampling: %s", strerror(-e)) : EXIT_DONE;
}

static bool child_ended(struct up *up, int *status)
{
	if (up->child <= 0 || waitpid(up->child, status, WNOHANG) != up->child)
		return up->child <= 0;
	up->child = 0;
	return true;
}

/* Who closes the terminal of a table does not want a sampler that nobody sees. */
static bool is_terminal_gone(const struct up *up)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return up->table && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* SIGHUP is the collector's: it reads tokens and certificates again. Or the terminal is closed. */
static bool was_signalled(struct up *up)
{
	struct signalfd_siginfo info;

	if (read(up->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	if (info.ssi_signo == SIGHUP && is_terminal_gone(up))
		return true;
	if (info.ssi_signo == SIGHUP && up->child > 0)
		ignore(kill(up->child, SIGHUP)); /* it may have ended: that is seen elsewhere */
	if (info.ssi_signo == SIGCONT)           /* the shell has written meanwhile */
		live_screen_forget(&up->screen);
	return info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM;
}

static int sample(struct up *up)
{
	uint64_t start = clock_monotonic_ns(&clock_system);
	int r = 0, status;

	while (r >= 0 && !was_signalled(up)) {
		uint64_t ran = clock_monotonic_ns(&clock_system) - start;

		if (up->config->session.duration_ns && ran >= up->config->session.duration_ns)
			break;
		if (child_ended(up, &status))
			return command_fail(&command_up, "the collector ended");
		show_table(up);
		r = session_step(up->session, 200);
		session_log_notices(up->session);
	}
	return r < 0 && r != -ENODATA ? command_fail(&command_up, "sampling ended: %s", strerror(-r)) : EXIT_DONE;
}

/* The collector says where it is, or ends; a signal ends the wait. */
static int wait_for_collector(struct up *up)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));
	struct pollfd p[3] = { { .fd = up->ready, .events = POLLIN },
			       { .fd = up->signals, .events = POLLIN },
			       { .fd = up->screen.pipe, .events = POLLIN } };
	int status = 0;

	while (!p[0].revents) {
		ignore(poll(p, ARRAY_SIZE(p), -1)); /* looked at again in any case */
		if (p[2].revents)
			live_screen_show(&up->screen, &line); /* only log lines: the table is not drawn yet */
		if (p[1].revents && was_signalled(up)) {
			ignore(kill(up->child, SIGKILL)); /* it has stored nothing yet */
			ignore(waitpid(up->child, &status, 0));
			up->child = 0;
			return command_fail(&command_up, "ended before the collector was there");
		}
	}
	ignore(io_read_fd(up->ready, &line)); /* an empty one says it all */
	if (line.len)
		return command_print(&command_up, &line);
	if (waitpid(up->child, &status, 0) == up->child)
		up->child = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* One that was stopped (SIGSTOP) will not end by itself, and a program that stays behind would keep port and folder.
 * What it had acknowledged is safe: it may be killed at any time. */
static bool collector_ends(struct up *up, int *status)
{
	uint64_t begin_ns = clock_monotonic_ns(&clock_system), patience_ns = END_PATIENCE_NS;
	const struct timespec pause = { 0, 20 * (long)NSEC_PER_MSEC };
	siginfo_t info = { 0 };

	patience_ns += MIN(up->config->serve.exit_timeout_ns, 3600 * NSEC_PER_SEC);
	if (waitid(P_PID, (id_t)up->child, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == up->child)
		patience_ns = NSEC_PER_SEC;
	while (!child_ended(up, status)) {
		if (clock_monotonic_ns(&clock_system) - begin_ns >= patience_ns) {
			ignore(kill(up->child, SIGKILL)); /* nobody else has waited for it: it is there */
			ignore(waitpid(up->child, status, 0));
			up->child = 0;
			return false;
		}
		show_table(up);
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

/* The last window goes out, the socket's end ends the collector. */
static int finish(struct up *up, int result)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + SEND_PATIENCE_NS;
	int status = 0, r;
	bool ended;

	atomic_store(&up->until_ns, until_ns);
	r = session_stop(up->session);
	(void)shutdown(up->feed, SHUT_WR);
	ended = collector_ends(up, &status);
	show_table(up); /* with the last window */
	count_stored(up);
	closep(&up->feed);
	up->lost += up->sent - MIN(up->stored + up->refused, up->sent);
	if (up->refused)
		command_fail(&command_up,
			     "%" PRIu64 " windows could not be stored whole (a full or failing disk; the log says "
			     "more), %" PRIu64 " are stored",
			     up->refused, up->stored);
	if (!ended)
		command_fail(&command_up,
			     "the collector does not end (stopped, or its disk hangs) and was killed: "
			     "%" PRIu64 " windows are lost, %" PRIu64 " are stored",
			     up->lost, up->stored);
	else if (up->lost)
		command_fail(&command_up, "%" PRIu64 " windows are lost, %" PRIu64 " are stored", up->lost, up->stored);
	if (r < 0)
		command_fail(&command_up, "the last window is lost: %s", strerror(-r));
	if (result != EXIT_DONE)
		return result;
	return ended && !up->lost && !up->refused && r >= 0 && WIFEXITED(status) && !WEXITSTATUS(status) ? EXIT_DONE
													 : EXIT_FAILED;
}

/* Both sides */

static int open_signals(struct up *up)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail with constant numbers */
	(void)sigaddset(&set, SIGCONT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	up->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return up->signals < 0 ? -errno : 0;
}

/* Never returns. */
static void run_collector(struct up *up, int feed, int ready)
{
	struct serve_config serve = up->config->serve;
	int result;

	serve.access_log &= up->screen.pipe < 0; /* no flood above the table */
	live_screen_forked(&up->screen);
	serve.feed_fd = feed;
	serve.ready_fd = ready;
	result = serve_command(&command_up, &serve);
	log_finish();
	_exit(result);
}

/* Return: 0 or -errno. */
static int start_collector(struct up *up)
{
	int feed[2] = { -1, -1 }, ready[2] = { -1, -1 };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, feed) < 0)
		return -errno;
	if (pipe2(ready, O_CLOEXEC) == 0)
		up->child = fork();
	if (up->child == 0) {
		closep(&feed[0]);
		closep(&ready[0]);
		closep(&up->signals);
		run_collector(up, feed[1], ready[1]);
	}
	closep(&feed[1]);
	closep(&ready[1]);
	up->feed = feed[0];
	up->ready = ready[0];
	return up->child < 0 ? -errno : 0;
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(up_release) struct up up = {
		.config = config, .child = -1, .feed = -1, .ready = -1, .signals = -1, .screen = LIVE_SCREEN_INIT
	};
	int r = service_rules_load(&command_up, up.config->session.service_rules, &up.rules);

	(void)operand_count;
	(void)operands;
	if (r != EXIT_DONE)
		return r;
	r = open_signals(&up);
	r = r ? r : open_table(&up);
	r = r ? r : start_collector(&up);
	if (r < 0)
		return command_fail(&command_up, "%s", strerror(-r));
	r = wait_for_collector(&up);
	if (r == EXIT_DONE && (rights_bound(true) < 0 || log_start() < 0))
		r = command_fail(&command_up, "cannot start a thread, or give up rights");
	r = r ? r : open_session(&up);
	r = r ? r : sample(&up);
	return up.session ? finish(&up, r) : r;
}

static const struct opt_group groups[] = {
	{ "What to sample", how_options },      { "Language runtimes", runtime_options },
	{ "Collector", serve_options_general }, { "Keeping", serve_options_keeping },
	{ "Access", serve_options_access },     { "Limits", serve_options_limits },
	{ "Logging", serve_options_logging },   { 0 }
};
static const char *const examples[] = { "sudo hearth up", "profile this machine from now on and keep 14 days of it",
					"sudo hearth up --retention 30d --retention-size 50G", "keep more", NULL };

const struct command command_up = {
	.name = "up",
	.summary = "profile this machine, keep the profiles and serve them: agent and collector in one",
	.operands = "",
	.details = "Two processes: the agent samples and needs root; the collector stores and serves, as another user "
		   "and without\n"
		   "any rights. Prints the URL, and on a terminal a table of services by cost. Ctrl-C ends both, with "
		   "what was\n"
		   "gathered stored; so does closing the terminal of the table. SIGHUP reads tokens and certificates "
		   "again.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.run = run,
};
