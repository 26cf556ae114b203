/* SPDX-License-Identifier: Apache-2.0 */
/* Each window as gProfiler leaves a cycle: profile_END.col and .html in a directory, and links to the last ones.
 * Source: gprofiler/main.py, _generate_output_files(). */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "sink/format.h"
#include "sink/sinks.h"

#define FILE_MAX_BYTES GIB(2)
#define KINDS 2

static const struct kind {
	const char *format, *suffix, *link, *said;
} kinds[KINDS] = {
	{ "col", ".col", "last_profile.col", "Saved collapsed stacks to " },
	{ "html", ".html", "last_flamegraph.html", "Saved flamegraph to " },
};

struct sink_state {
	char *folder;
	int fd;
	size_t kinds; /* how many of them are wanted */
	bool rotating;
	struct codec_options options;
};

static void cycle_close(struct sink_state *s)
{
	if (!s)
		return;
	closep(&s->fd);
	free(s->folder);
	free(s);
}

static void cycle_closep(struct sink_state **s)
{
	cycle_close(*s);
}

static int cycle_open(const struct sink_config *cfg, struct buf *why, struct sink_state **out)
{
	scoped(cycle_closep) struct sink_state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = open(cfg->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0) {
		buf_addf(why, "cannot write to '%s': %s", cfg->path, strerror(errno));
		return -errno;
	}
	s->folder = str_dup(str_of(cfg->path));
	if (!s->folder)
		return -ENOMEM;
	s->kinds = cfg->without_page ? 1 : KINDS;
	s->rotating = cfg->rotating;
	s->options = cfg->options;
	*out = s;
	s = NULL;
	return 0;
}

/* profile_2026-08-03T21:30:25.col: of the end, in UTC. Two that end in one second, of a clock that was set back, are
 * the same name: the later one stays, as gProfiler has it. */
static int add_name(const struct window *w, const struct kind *kind, struct buf *out)
{
	time_t end = (time_t)(w->end_ns / NSEC_PER_SEC);
	struct tm tm;
	char text[64];

	if (!gmtime_r(&end, &tm) || !strftime(text, sizeof(text), "profile_%Y-%m-%dT%H:%M:%S", &tm))
		return -EINVAL;
	buf_addf(out, "%s%s", text, kind->suffix);
	(void)buf_cstr(out);
	return out->error;
}

/* The link goes over at once. @before: where it led. */
static int move_link(const struct sink_state *s, const struct kind *kind, const char *name, char before[NAME_MAX + 1])
{
	scoped(buf_release) struct buf fresh = BUF_INIT(KIB(1));
	ssize_t len = readlinkat(s->fd, kind->link, before, NAME_MAX);

	before[MAX(len, (ssize_t)0)] = 0;
	buf_addf(&fresh, "%s.tmp", kind->link);
	(void)unlinkat(s->fd, buf_cstr(&fresh), 0); /* of one that was killed in between */
	if (symlinkat(name, s->fd, buf_cstr(&fresh)) < 0 || renameat(s->fd, buf_cstr(&fresh), s->fd, kind->link) < 0)
		return -errno;
	return 0;
}

/* A file of ours, in this folder, and not the one that was just written: what a link says may be anybody's. */
static bool is_old_one(const char *before, const char *name, const struct kind *kind)
{
	struct str s = str_of(before);

	return strcmp(before, name) != 0 && str_starts(s, STR("profile_")) && str_ends(s, str_of(kind->suffix)) &&
	       str_find(s, '/') < 0;
}

static int write_kind(struct sink_state *s, const struct kind *kind, const struct window *w, struct buf *where)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(FILE_MAX_BYTES), path = BUF_INIT(KIB(16)),
				       name = BUF_INIT(KIB(1));
	char before[NAME_MAX + 1];
	int r = add_name(w, kind, &name);

	r = r ? r : codec_encode(format_find(str_of(kind->format)), w, &s->options, &bytes);
	buf_addf(&path, "%s/%s", s->folder, buf_cstr(&name));
	(void)buf_cstr(&path);
	r = r ? r : path.error;
	r = r ? r : io_replace_file(path.ptr, bytes.ptr, bytes.len);
	r = r ? r : move_link(s, kind, name.ptr, before);
	if (r < 0)
		return r;
	if (s->rotating && is_old_one(before, name.ptr, kind))
		(void)unlinkat(s->fd, before, 0); /* the user may have been faster */
	buf_addf(where, "%s%s\n", kind->said, path.ptr);
	return where->error;
}

/* @where: a line for each file. A page that cannot be written leaves the .col file as it is. */
static int cycle_write(struct sink_state *s, const struct window *w, struct buf *where)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->kinds; i++)
		r = write_kind(s, &kinds[i], w, where);
	return r;
}

static int cycle_flush(struct sink_state *s)
{
	(void)s; /* every file was synced when it was written */
	return 0;
}

const struct sink sink_cycle = {
	.name = "cycle",
	.open = cycle_open,
	.write = cycle_write,
	.flush = cycle_flush,
	.close = cycle_close,
};
