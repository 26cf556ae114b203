/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push_options.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/io.h"
#include "base/safe.h"
#include "render/terminal.h"

#define TOKEN_MAX KIB(4)

static const struct sink *http_sink(void)
{
	return sink_find(STR("http"));
}

int push_token(const struct command *c, const struct push_options *options, struct buf *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(TOKEN_MAX);
	const char *given = getenv("HEARTH_TOKEN");
	struct str token;
	int r = 0;

	if (options->token_file)
		r = io_read_file(options->token_file, &bytes);
	else if (given)
		buf_adds(&bytes, str_of(given));
	if (r == 0)
		r = bytes.error;
	if (r < 0)
		return command_fail(c, "%s: %s", options->token_file ? options->token_file : "HEARTH_TOKEN",
				    strerror(-r));
	token = str_trim(buf_str(&bytes));
	if (options->token_file && !token.len)
		return command_fail(c, "%s: there is no token in it", options->token_file);
	buf_adds(out, token);
	(void)buf_cstr(out);
	return out->error ? command_fail(c, "out of memory") : EXIT_DONE;
}

void push_labels_release(struct window_label *labels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(labels[i].key);
		free(labels[i].value);
		labels[i] = (struct window_label){ 0 };
	}
}

int push_labels(const struct command *c, const struct push_options *options, struct window_label *out)
{
	for (size_t i = 0; i < options->labels.count; i++) {
		struct str text = str_of(options->labels.items[i]), key;

		if (str_find(text, '=') <= 0) {
			command_fail(c, "--label %s: give it as KEY=VALUE", options->labels.items[i]);
			push_labels_release(out, i);
			return EXIT_USAGE;
		}
		ignore(str_next(&text, '=', &key)); /* there is one */
		out[i] = (struct window_label){ .key = str_dup(key), .value = str_dup(text) };
		if (!out[i].key || !out[i].value) {
			push_labels_release(out, i + 1);
			return command_fail(c, "out of memory");
		}
	}
	return EXIT_DONE;
}

static void default_spool(struct buf *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		buf_adds(out, STR("/var/spool/hearth"));
	else if (state && *state)
		buf_addf(out, "%s/hearth/spool", state);
	else
		buf_addf(out, "%s/.local/state/hearth/spool", home ? home : "");
}

static int choose_spool(struct pusher *p, const struct push_options *options)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));

	if (options->no_spool)
		return 0;
	if (options->spool_dir)
		buf_adds(&path, str_of(options->spool_dir));
	else
		default_spool(&path);
	p->spool_dir = path.error ? NULL : str_dup(buf_str(&path));
	return p->spool_dir ? 0 : -ENOMEM;
}

static int say_open(const struct pusher *p, const struct buf *why, int error)
{
	return command_fail(p->command, "--push: " STR_FMT "%s",
			    STR_ARG(why->len ? buf_str(why) : str_of(strerror(-error))),
			    p->spool_dir ? " (another place: --spool-dir; none: --no-spool)" : "");
}

/* @token has to stay as long as @out is used. */
static int configure(struct pusher *p, const struct push_options *options, struct buf *token, struct push_config *out)
{
	scoped(buf_release) struct buf url = BUF_INIT(KIB(8)), why = BUF_INIT(KIB(32));
	int e;

	if (upload_collector_url(&url, str_of(options->url), &why) == -EINVAL) {
		command_fail(p->command, "--push: %s", buf_cstr(&why));
		return EXIT_USAGE;
	}
	e = push_token(p->command, options, token);
	if (e == EXIT_DONE && choose_spool(p, options) < 0)
		e = command_fail(p->command, "out of memory");
	p->url = options->url;
	*out = (struct push_config){ .url = options->url,
				     .token = buf_str(token),
				     .ca_file = options->ca_file,
				     .no_verify = options->insecure,
				     .spool_dir = p->spool_dir,
				     .spool_max = options->spool_bytes,
				     .memory_max = p->spool_dir ? 0 : options->spool_bytes };
	return e;
}

/* The usual spool may belong to another run, or to root: then it goes without. One that was asked for has to be. */
static bool without_spool(struct pusher *p, const struct push_options *options, const struct buf *why,
			  struct push_config *cfg)
{
	if (!p->spool_dir || options->spool_dir)
		return false;
	command_fail(p->command, "--push: " STR_FMT "; profiles wait in memory (another place: --spool-dir)",
		     STR_ARG(buf_str(why)));
	free(p->spool_dir);
	p->spool_dir = NULL;
	cfg->spool_dir = NULL;
	return true;
}

int pusher_open(struct pusher *p, const struct command *c, const struct push_options *options, uint64_t jitter_ns)
{
	struct window_label labels[OPT_LIST_MAX] = { 0 };
	scoped(buf_release) struct buf token = BUF_INIT(TOKEN_MAX), why = BUF_INIT(KIB(16));
	struct sink_http_config http = { .labels = labels, .label_count = options->labels.count };
	const struct sink_config cfg = { .http = &http };
	int e, r;

	p->command = c;
	if (!options->url)
		return EXIT_DONE;
	e = configure(p, options, &token, &http.push);
	if (e == EXIT_DONE)
		e = push_labels(c, options, labels);
	if (e != EXIT_DONE)
		return e;
	http.push.jitter_ns = jitter_ns;
	r = http_sink()->open(&cfg, &why, &p->sink);
	if (r < 0 && why.len && without_spool(p, options, &why, &http.push))
		r = http_sink()->open(&cfg, &why, &p->sink);
	push_labels_release(labels, options->labels.count);
	return r < 0 ? say_open(p, &why, r) : EXIT_DONE;
}

int pusher_open_plain(struct pusher *p, const struct command *c, const struct push_options *options)
{
	scoped(buf_release) struct buf token = BUF_INIT(TOKEN_MAX), why = BUF_INIT(KIB(16));
	struct push_config cfg;
	int e, r;

	p->command = c;
	e = configure(p, options, &token, &cfg);
	if (e != EXIT_DONE)
		return e;
	r = push_open(&cfg, &why, &p->push);
	if (r < 0 && why.len && without_spool(p, options, &why, &cfg))
		r = push_open(&cfg, &why, &p->push);
	return r < 0 ? say_open(p, &why, r) : EXIT_DONE;
}

void pusher_write(struct pusher *p, const struct window *w)
{
	scoped(buf_release) struct buf where = BUF_INIT(KIB(16));
	int r = p->sink ? http_sink()->write(p->sink, w, &where) : 0;

	if (r < 0 && !p->failed++)
		command_fail(p->command, "--push: a part of a window is lost: %s", strerror(-r));
}

/* What has left, what waits, and what never will. */
static int report(struct pusher *p, const struct push_stats *s, struct buf *text)
{
	buf_adds(text, STR("\nPushed to "));
	safe_add_url(text, str_of(p->url));
	buf_addf(text, ": %" PRIu64 " profiles\n", s->sent);
	if (s->found)
		buf_addf(text, "  %" PRIu64 " that an earlier run had left waited in the spool\n", s->found);
	if (s->waiting > s->waiting_in_memory) {
		buf_addf(text, "  %" PRIu64 " wait in %s for the next run: ", s->waiting - s->waiting_in_memory,
			 p->spool_dir);
		terminal_add(text, str_of(s->last_error), 0); /* may quote what the server said */
		buf_addc(text, '\n');
	}
	if (s->denied)
		command_fail(p->command, "--push: the collector refused us, nothing more was sent: %s", s->last_error);
	if (s->refused)
		command_fail(p->command, "--push: the collector refused %" PRIu64 " profiles: %s", s->refused,
			     s->last_error);
	if (s->waiting_in_memory)
		command_fail(p->command, "--push: %" PRIu64 " profiles could not be sent and are lost: %s",
			     s->waiting_in_memory, s->last_error);
	if (s->dropped || s->damaged)
		command_fail(p->command,
			     "--push: %" PRIu64 " profiles were dropped to make room, %" PRIu64
			     " files of the spool are damaged",
			     s->dropped, s->damaged);
	return s->denied || s->refused || s->waiting_in_memory || s->dropped || s->damaged || p->failed ? EXIT_FAILED
													: EXIT_DONE;
}

int pusher_finish(struct pusher *p, struct buf *text)
{
	struct push_stats stats;

	if (!p->sink && !p->push)
		return EXIT_DONE;
	/* What is left then is told below. */
	ignore(p->sink ? http_sink()->flush(p->sink) : push_flush(p->push, SINK_HTTP_FLUSH_NS));
	if (p->sink)
		sink_http_stats(p->sink, &stats);
	else
		push_stats(p->push, &stats);
	return report(p, &stats, text);
}

void pusher_release(struct pusher *p)
{
	http_sink()->close(p->sink);
	push_close(p->push);
	free(p->spool_dir);
	*p = (struct pusher){ 0 };
}
