/* SPDX-License-Identifier: Apache-2.0 */
/* hearth pull: scrapes Go programs and sends their profiles to a collector elsewhere. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/push_options.h"
#include "codec/pprof.h"
#include "collector/pull_run.h"

#define PROFILE_MAX GIB(1)
#define GZIP_LEVEL 3

struct config {
	const char *targets;
	uint64_t duration_ns, parallel;
	struct push_options push;
	bool quiet;
};

static const struct opt options[] = {
	{ "targets", 0, OPT_PATH, .at = offsetof(struct config, targets), .arg = "FILE",
	  .help = "what to scrape (docs/pull.md); read again at SIGHUP" },
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, duration_ns), .min = NSEC_PER_MSEC,
	  .arg = "TIME", .help = "how long (default: until Ctrl-C or SIGTERM)" },
	{ "parallel", 0, OPT_UINT, .at = offsetof(struct config, parallel), .min = 1, .max = 64, .fallback = "8",
	  .arg = "N", .help = "targets scraped at the same time" },
	PUSH_OPTIONS(struct config, push),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "no summary" },
	{ 0 },
};

struct pulling {
	const struct config *config;
	struct pusher pusher;
	struct pull *pull;
	struct window_label labels[OPT_LIST_MAX];
	uint64_t run[2];
	_Atomic uint64_t number;
	int signals;
};

static void pulling_release(struct pulling *p)
{
	pull_close(p->pull);
	pusher_release(&p->pusher);
	push_labels_release(p->labels, ARRAY_SIZE(p->labels));
	closep(&p->signals);
}

static int set_labels(const struct pulling *p, const struct pull_target *t, struct window *w)
{
	int r = 0;

	for (size_t i = 0; i < t->label_count && r == 0; i++)
		r = window_add_label(w, t->labels[i].key, t->labels[i].value);
	for (size_t i = 0; i < p->config->push.labels.count && r == 0; i++)
		r = window_add_label(w, str_of(p->labels[i].key), str_of(p->labels[i].value));
	return r;
}

/* On the threads that scrape. */
static int send_profile(void *ctx, const struct pulled *pulled)
{
	scoped(buf_release) struct buf query = BUF_INIT(UPLOAD_QUERY_MAX), key = BUF_INIT(UPLOAD_KEY_MAX),
				       body = BUF_INIT(PROFILE_MAX);
	struct pulling *p = ctx;
	struct window *w = pulled->window;
	struct upload u;
	int r = set_labels(p, pulled->target, w);

	if (r < 0)
		return r;
	upload_query(&query, str_of(pulled->target->service), pulled->type, w->labels, w->label_count,
		     pulled->created_ns);
	buf_addf(&key, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64, p->run[0], p->run[1], p->number++);
	r = pprof_encode_level(w, GZIP_LEVEL, &body);
	if (r == 0)
		r = query.error ? query.error : key.error;
	if (r < 0)
		return r;
	u = (struct upload){ .query = buf_str(&query), .key = buf_str(&key), .body = buf_str(&body) };
	return push_put(p->pusher.push, &u);
}

static int open_signals(struct pulling *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return p->signals < 0 ? -errno : 0;
}

/* Return: false when it is time to end. */
static bool take_signal(struct pulling *p)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct signalfd_siginfo got;

	if (read(p->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return true;
	if (got.ssi_signo != SIGHUP)
		return false;
	if (pull_reload(p->config->targets, &why, p->pull) < 0)
		log_warn("the targets stay as they were", LOG_CSTR("why", buf_cstr(&why)));
	else
		log_info("targets read again");
	return true;
}

static void wait_for_end(struct pulling *p)
{
	uint64_t start_ns = clock_monotonic_ns(&clock_system);

	for (;;) {
		struct pollfd wait = { .fd = p->signals, .events = POLLIN };
		uint64_t elapsed = clock_monotonic_ns(&clock_system) - start_ns, left = NSEC_PER_SEC;

		if (p->config->duration_ns && elapsed >= p->config->duration_ns)
			return;
		if (p->config->duration_ns)
			left = MIN(left, p->config->duration_ns - elapsed);
		if (poll(&wait, 1, (int)(left / NSEC_PER_MSEC) + 1) > 0 && !take_signal(p))
			return;
	}
}

static int finish(struct pulling *p)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));
	struct pull_stats stats;
	int e;

	pull_stats(p->pull, &stats);
	pull_close(p->pull);
	p->pull = NULL;
	buf_addf(&text,
		 "%" PRIu64 " scrapes, %" PRIu64 " failed; %" PRIu64 " without anything new, %" PRIu64
		 " restarts of targets, %" PRIu64 " profiles lost",
		 stats.scrapes, stats.failed, stats.empty, stats.restarts, stats.undelivered);
	e = pusher_finish(&p->pusher, &text);
	if (p->config->quiet)
		return e;
	return command_print(&command_pull, &text) == EXIT_DONE ? e : EXIT_FAILED;
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	scoped(pulling_release) struct pulling p = { .config = config_bytes, .signals = -1 };
	struct pull_config cfg = { .threads = (unsigned int)p.config->parallel, .deliver = send_profile, .ctx = &p };
	scoped(pull_targets_release) struct pull_targets targets = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r;

	(void)operand_count;
	(void)operands;
	if (!p.config->targets || !p.config->push.url) {
		command_fail(&command_pull, "give --targets FILE and --push URL; hearth serve --targets needs no URL");
		return EXIT_USAGE;
	}
	p.run[0] = random_u64();
	p.run[1] = random_u64();
	r = pull_load(p.config->targets, &why, &targets) < 0 ? command_fail(&command_pull, "%s", buf_cstr(&why))
							     : EXIT_DONE;
	r = r ? r : push_labels(&command_pull, &p.config->push, p.labels);
	if (r == EXIT_DONE && open_signals(&p) < 0)
		r = command_fail(&command_pull, "cannot watch for signals");
	r = r ? r : pusher_open_plain(&p.pusher, &command_pull, &p.config->push);
	if (r != EXIT_DONE)
		return r;
	r = pull_open(&cfg, &targets, &p.pull);
	if (r < 0)
		return command_fail(&command_pull, "%s", strerror(-r));
	wait_for_end(&p);
	return finish(&p);
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = { "hearth pull --targets targets.json --push https://collector:10100",
					"scrape what the file lists, until Ctrl-C", NULL };

const struct command command_pull = {
	.name = "pull",
	.summary = "scrape the /debug/pprof of Go programs for a collector",
	.operands = "",
	.details = "Heap, allocs, block and mutex profiles are sent as what the time since the last scrape added.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.run = run,
};
