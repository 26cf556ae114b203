/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_options.h"

#include <malloc.h>
#include <pwd.h>
#include <sys/resource.h>

#include "base/io.h"
#include "render/terminal.h"
#include "sampler/event.h"

#define DESCRIPTORS_WANTED 4096
#define DESCRIPTORS_NEEDED 64
#define POLL_INTERVAL_MS 200

/* Tables of rows and symbols are built in arrays of megabytes that live for milliseconds. Left to itself, glibc keeps
 * such memory once it was used, in an arena per thread. */
static void keep_memory_small(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, KIB(256));
	(void)mallopt(M_TRIM_THRESHOLD, KIB(512));
	(void)mallopt(M_ARENA_MAX, 2);
}

/* Mapped files and their symbol tables are kept open: the soft limit of 1,024 is tight for a whole machine. */
static void raise_descriptor_limit(const struct command *c)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	ignore(setrlimit(RLIMIT_NOFILE, &limit)); /* with fewer, old files are closed and opened again */
	if (limit.rlim_cur < DESCRIPTORS_NEEDED)
		command_fail(
			c, "only %llu files may be open: most frames will have no names; allow more with ulimit -n %d",
			(unsigned long long)limit.rlim_cur, DESCRIPTORS_WANTED);
}

static void apply(const struct session_options *o, struct session_config *cfg)
{
	struct sampler_config *sampling = &cfg->sampling;

	sampling->frequency_hz = (uint32_t)o->frequency;
	sampling->off_cpu = o->off_cpu;
	sampling->wait_min_ns = o->wait_min_ns;
	sampling->wait_share = (uint32_t)((o->wait_percent % 100 << 32) / 100); /* 100 %: 0, all */
	sampling->ring_bytes = o->ring_bytes;
	sampling->poll_interval_ms = POLL_INTERVAL_MS;
	sampling->allow_dangerous_kernel = o->allow_dangerous_kernel;
	sampling->host_root = o->host_root;
	cfg->window_ns = o->window_ns;
	cfg->duration_ns = o->duration_ns;
	cfg->unwind_bytes = o->unwind.memory_bytes;
	cfg->clock = &clock_system;
	cfg->host_root = o->host_root;
	cfg->container_socket = o->container_socket;
	cfg->lines = o->lines;
	cfg->sample_times = o->sample_times;
	cfg->only_runtime = unwind_options_only_runtime(&o->unwind);
	cfg->service_name = o->service_name;
	unwind_options_apply(&o->unwind, sampling);
	runtime_options_apply(&o->runtimes, cfg);
}

/* "alice:x:1000:..."; those of the host, not of a container we run in. */
static bool find_in_passwd(struct str text, struct str name, uint32_t *out)
{
	struct str line, field, id;
	uint64_t value;

	while (str_next(&text, '\n', &line)) {
		if (!str_next(&line, ':', &field) || !str_eq(field, name))
			continue;
		if (str_next(&line, ':', &field) && str_next(&line, ':', &id) &&
		    str_to_u64(id, 0, UINT32_MAX - 1, &value) == 0) {
			*out = (uint32_t)value;
			return true;
		}
	}
	return false;
}

static bool find_user(const char *host_root, const char *name, uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(16));
	const struct passwd *user;
	uint64_t value;

	if (str_to_u64(str_of(name), 0, UINT32_MAX - 1, &value) == 0) {
		*out = (uint32_t)value;
		return true;
	}
	if (io_read_below(host_root, "/etc/passwd", &text) == 0 && find_in_passwd(buf_str(&text), str_of(name), out))
		return true;
	user = host_root && *host_root ? NULL : getpwnam(name); /* from a directory service */
	if (user)
		*out = user->pw_uid;
	return user;
}

/* Return: EXIT_DONE, or EXIT_USAGE after saying why. */
static int select_processes(const struct command *c, const struct session_options *o, struct session_config *cfg)
{
	struct selection *s = &cfg->selection;

	s->comms = &o->comms;
	s->units = &o->units;
	s->pods = &o->pods;
	if (o->container)
		s->container = o->container;
	if (o->cgroup)
		cfg->sampling.cgroup_path = o->cgroup;
	for (size_t i = 0; i < o->users.count; i++) {
		if (find_user(o->host_root, o->users.items[i], &s->users[s->user_count++]))
			continue;
		command_fail(c, "--user: there is no user '%s'", o->users.items[i]);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

_Static_assert(OPT_LIST_MAX <= SELECTION_USERS_MAX, "each has a place");

/* Return: EXIT_DONE, EXIT_USAGE, EXIT_NOT_PERMITTED after saying why. @out: of cfg->sampling, when one is asked for. */
static int find_event(const struct command *c, const struct session_options *o, struct session_config *cfg,
		      struct sampler_event *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	int r;

	if (!o->event && !o->event_period)
		return EXIT_DONE;
	r = event_parse(o->host_root, str_of(o->event ? o->event : "cpu-clock"), out, &why);
	out->period = o->event_period;
	if (r == 0)
		r = event_probe(out, (uint32_t)o->frequency, &why);
	cfg->sampling.event = out;
	if (r == 0)
		return EXIT_DONE;
	command_fail(c, STR_FMT, STR_ARG(why.len ? buf_str(&why) : str_of(strerror(-r))));
	return r == -ENOENT || r == -EBADMSG ? EXIT_USAGE : EXIT_NOT_PERMITTED;
}

int session_options_open(const struct command *c, const struct session_options *o, const struct service_rules *rules,
			 struct session_config *cfg, struct session **out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	struct sampler_event event = { 0 };
	int r;

	keep_memory_small();
	raise_descriptor_limit(c);
	apply(o, cfg);
	cfg->service_rules = rules;
	r = select_processes(c, o, cfg);
	r = r == EXIT_DONE ? find_event(c, o, cfg, &event) : r;
	if (r != EXIT_DONE)
		return r;
	r = session_open(cfg, &why, out);
	cfg->sampling.event = NULL; /* the session has its own */
	if (r == 0)
		return EXIT_DONE;
	command_fail(c, STR_FMT, STR_ARG(why.len ? buf_str(&why) : str_of(strerror(-r))));
	return r == -EPERM || r == -EACCES || r == -ENOTSUP ? EXIT_NOT_PERMITTED : EXIT_FAILED;
}

void session_options_notices(struct session *s, struct buf *out)
{
	scoped(buf_release) struct buf notices = BUF_INIT(KIB(128));

	session_notices(s, &notices);
	terminal_add_lines(out, buf_str(&notices));
}
