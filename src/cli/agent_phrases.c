/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_phrases.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"

#define WORDS_MAX KIB(32)
#define SEEN_MAX 65536

static void add_without(struct buf *out, struct str text, struct str secret)
{
	ptrdiff_t at;

	while (secret.len && (at = str_search(text, secret)) >= 0) {
		buf_adds(out, str_first(text, (size_t)at));
		buf_adds(out, STR("***"));
		text = str_skip(text, (size_t)at + secret.len);
	}
	buf_adds(out, text);
}

/* "--token" or a beginning of it, or "-token", with "=VALUE" or without. Of several the last one counts, and none is
 * shown. */
static bool names_token(struct str word, bool *has_value)
{
	ptrdiff_t equals = str_find(word, '=');
	struct str name = equals < 0 ? word : str_first(word, (size_t)equals);

	*has_value = equals >= 0;
	return str_eq(name, STR("-token")) || (name.len > 2 && str_starts(STR("--token"), name));
}

static void add_words(const struct agent_options *o, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(WORDS_MAX);
	struct str words, word;
	bool is_secret = false;

	if (io_read_file("/proc/self/cmdline", &text) < 0)
		return;
	words = buf_str(&text);
	for (bool is_first = true; words.len && str_next(&words, '\0', &word); is_first = false) {
		bool has_value;

		if (is_first)
			continue;
		if (out->len)
			buf_addc(out, ' ');
		if (is_secret) {
			buf_adds(out, STR("***"));
			is_secret = false;
		} else if (names_token(word, &has_value)) {
			buf_adds(out, has_value ? str_first(word, (size_t)str_find(word, '=') + 1) : word);
			buf_adds(out, has_value ? STR("***") : STR(""));
			is_secret = !has_value;
		} else {
			add_without(out, word, o->token ? str_of(o->token) : STR(""));
		}
	}
}

void agent_phrases_start(const struct agent_options *o, const char *arguments)
{
	scoped(buf_release) struct buf words = BUF_INIT(WORDS_MAX), line = BUF_INIT(WORDS_MAX);
	struct utsname host = { 0 };
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);

	add_words(o, &words);
	log_info("Running gProfiler", LOG_CSTR("version", HEARTH_VERSION), LOG_STR("commandline", buf_str(&words)));
	buf_addf(&line, "all arguments: %s", arguments);
	log_debug(buf_cstr(&line));
	(void)uname(&host); /* into a struct that is there: it cannot fail */
	log_info("this machine", LOG_CSTR("kernel", host.release), LOG_CSTR("hostname", host.nodename),
		 LOG_U64("processors", (uint64_t)sysconf(_SC_NPROCESSORS_CONF)),
		 LOG_U64("memory_mb", pages * page / MIB(1)));
}

void agent_seen_init(struct agent_seen *s)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	s->begin_ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	u64map_init(&s->said, SEEN_MAX);
}

void agent_seen_release(struct agent_seen *s)
{
	u64map_release(&s->said);
}

/* One that was met in a cycle may show its runtime in a later one only. */
static bool is_new(struct agent_seen *s, const struct model_process *p)
{
	uint64_t key = p->start_ns ^ (uint64_t)p->pid << 40;
	uint32_t pid;

	if (p->start_ns <= s->begin_ns || u64map_get(&s->said, key, &pid) == 0)
		return false;
	if (u64map_put(&s->said, key, p->pid) < 0) /* those that run still are said again */
		u64map_clear(&s->said);
	return true;
}

void agent_phrases_window(const struct agent_options *o, const struct window *w, struct agent_seen *seen)
{
	bool is_filtered = o->pids.count || o->max_processes || o->min_duration_s;
	char line[100];
	size_t count = 0;

	for (size_t i = 0; i < w->model->processes_count; i++) {
		const struct model_process *p = &w->model->processes[i];

		if (!p->app_metadata) /* only a language runtime has them */
			continue;
		count++;
		if (!o->spawned || !is_new(seen, p))
			continue;
		(void)snprintf(line, sizeof(line), "Profiling spawned process %u", p->pid);
		log_debug(line);
	}
	(void)snprintf(line, sizeof(line),
		       is_filtered ? "processes left after filtering: %zu" : "selected %zu processes to profile",
		       count);
	log_debug(line);
}
