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
#define SAME_SECOND_MAX 100 /* then the last one is written over */

/* fresh: the file's name while it is written. */
static const struct kind {
	const char *format, *suffix, *fresh, *link, *said;
} kinds[KINDS] = {
	{ "col", ".col", "profile.col.tmp", "last_profile.col", "Saved collapsed stacks to " },
	{ "html", ".html", "profile.html.tmp", "last_flamegraph.html", "Saved flamegraph to " },
};

struct sink_state {
	char *folder;
	size_t kinds; /* how many of them are wanted */
	bool rotating;
	struct codec_options options;
};

static void cycle_close(struct sink_state *s)
{
	if (!s)
		return;
	free(s->folder);
	free(s);
}

static void cycle_closep(struct sink_state **s)
{
	cycle_close(*s);
}

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int cycle_open(const struct sink_config *cfg, struct buf *why, struct sink_state **out)
{
	scoped(cycle_closep) struct sink_state *s = calloc(1, sizeof(*s));
	scoped(closep) int fd = -1;

	if (!s)
		return -ENOMEM;
	fd = open_folder(cfg->path);
	if (fd < 0) {
		buf_addf(why, "cannot write to '%s': %s", cfg->path, strerror(-fd));
		return fd;
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

static bool is_taken(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* profile_2026-08-03T21:30:25.col: of the end, in UTC. A second cycle that ends in that second (a signal came just
 * after the first one, or the clock was set back) is profile_2026-08-03T21:30:25_2.col; gProfiler writes over the
 * first. */
static int add_name(int folder, const struct window *w, const struct kind *kind, struct buf *out)
{
	time_t end = (time_t)(w->end_ns / NSEC_PER_SEC);
	struct tm tm;
	char text[64];

	if (!gmtime_r(&end, &tm) || !strftime(text, sizeof(text), "profile_%Y-%m-%dT%H:%M:%S", &tm))
		return -EINVAL;
	buf_addf(out, "%s%s", text, kind->suffix);
	for (int i = 2; i < SAME_SECOND_MAX && is_taken(folder, buf_cstr(out)); i++) {
		buf_clear(out);
		buf_addf(out, "%s_%d%s", text, i, kind->suffix);
	}
	(void)buf_cstr(out);
	return out->error;
}

static int write_new(int folder, const char *name, struct str bytes)
{
	scoped(closep) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : io_write_all(fd, bytes.ptr, bytes.len);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* Others may write to the folder: a link or a FIFO that lies where the file goes gives way and is never followed. What
 * a run that was killed has left is written over, so that such files do not become many. */
static int place_file(int folder, const struct kind *kind, const char *name, struct str bytes)
{
	int r;

	(void)unlinkat(folder, kind->fresh, 0);
	r = write_new(folder, kind->fresh, bytes);
	if (r == 0 && renameat(folder, kind->fresh, folder, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(folder, kind->fresh, 0);
	return r;
}

/* The link goes over at once. @before: where it led. */
static int move_link(int folder, const struct kind *kind, const char *name, char before[NAME_MAX + 1])
{
	scoped(buf_release) struct buf fresh = BUF_INIT(KIB(1));
	ssize_t len = readlinkat(folder, kind->link, before, NAME_MAX);

	before[MAX(len, (ssize_t)0)] = 0;
	buf_addf(&fresh, "%s.tmp", kind->link);
	(void)unlinkat(folder, buf_cstr(&fresh), 0); /* of one that was killed in between */
	if (symlinkat(name, folder, buf_cstr(&fresh)) < 0 || renameat(folder, buf_cstr(&fresh), folder, kind->link) < 0)
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

static int write_kind(struct sink_state *s, int folder, const struct kind *kind, const struct window *w,
		      struct buf *where)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(FILE_MAX_BYTES), path = BUF_INIT(KIB(16)),
				       name = BUF_INIT(KIB(1));
	char before[NAME_MAX + 1];
	int r = add_name(folder, w, kind, &name);

	r = r ? r : codec_encode(format_find(str_of(kind->format)), w, &s->options, &bytes);
	buf_addf(&path, "%s/%s", s->folder, buf_cstr(&name));
	(void)buf_cstr(&path);
	r = r ? r : path.error;
	r = r ? r : place_file(folder, kind, name.ptr, buf_str(&bytes));
	r = r ? r : move_link(folder, kind, name.ptr, before);
	if (r < 0)
		return r;
	if (s->rotating && is_old_one(before, name.ptr, kind))
		(void)unlinkat(folder, before, 0); /* the user may have been faster */
	buf_addf(where, "%s%s\n", kind->said, path.ptr);
	return where->error;
}

/* @where: a line for each file. A page that cannot be written leaves the .col file as it is. The folder is looked up
 * each time: in months it may be mounted anew, or removed and made again. */
static int cycle_write(struct sink_state *s, const struct window *w, struct buf *where)
{
	scoped(closep) int folder = open_folder(s->folder);
	int r = MIN(folder, 0);

	for (size_t i = 0; r == 0 && i < s->kinds; i++)
		r = write_kind(s, folder, &kinds[i], w, where);
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
