/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/picture_frames.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "render/png.h"

#define BYTES_MAX GIB(1)
#define NAME_MAX_BYTES KIB(4)
#define DRAWING_PERCENT 70 /* of a window's time: beyond, pictures are those before once more */

struct picture_frames {
	const struct command *command;
	struct picture_frames_config config;
	struct model sum; /* samples so far */
	uint64_t begin_ns, made,
		again; /* begin_ns: of the first window, wall clock; again: made of these without drawing */
	struct buf picture;
	struct model_sample *part; /* room for samples of a window */
	int error;
	bool has_begun;
};

/* The pattern becomes no printf format: it is split in two around its number. */
struct pattern {
	struct str before, behind;
	uint64_t width;
	bool zeros;
};

static int split(struct str text, struct pattern *out)
{
	ptrdiff_t at = str_find(text, '%');
	struct str rest = str_skip(text, (size_t)(at + 1)), digits;
	size_t len = 0;

	if (at < 0)
		return -EINVAL;
	out->before = str_first(text, (size_t)at);
	out->zeros = rest.len && rest.ptr[0] == '0';
	while (len < rest.len && rest.ptr[len] >= '0' && rest.ptr[len] <= '9')
		len++;
	digits = str_first(rest, len);
	out->behind = str_skip(rest, len + 1);
	out->width = 0;
	if (len && str_to_u64(digits, 0, 64, &out->width) < 0)
		return -EINVAL;
	if (len >= rest.len || rest.ptr[len] != 'd' || str_find(out->behind, '%') >= 0)
		return -EINVAL;
	return 0;
}

int picture_frames_check(const char *pattern)
{
	struct pattern p;

	return strlen(pattern) >= NAME_MAX_BYTES ? -EINVAL : split(str_of(pattern), &p);
}

int picture_size_parse(struct str text, uint32_t *width, uint32_t *height)
{
	ptrdiff_t at = str_find(text, 'x');
	uint64_t w, h;

	if (at < 0 || str_to_u64(str_first(text, (size_t)at), RENDER_PNG_SIDE_LEAST, RENDER_PNG_SIDE_MAX, &w) < 0 ||
	    str_to_u64(str_skip(text, (size_t)at + 1), RENDER_PNG_SIDE_LEAST, RENDER_PNG_SIDE_MAX, &h) < 0)
		return -EINVAL;
	*width = (uint32_t)w;
	*height = (uint32_t)h;
	return 0;
}

static void add_name(const struct picture_frames *f, uint64_t number, struct buf *out)
{
	struct pattern p = { 0 };

	ignore(split(str_of(f->config.pattern), &p)); /* it was checked */
	buf_adds(out, p.before);
	buf_addf(out, p.zeros ? "%0*" PRIu64 : "%*" PRIu64, (int)p.width, number);
	buf_adds(out, p.behind);
}

/* Whether a file can be made beside the pictures: said before anything is sampled. */
static int try_folder(struct str name)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	scoped(closep) int fd = -1;

	buf_adds(&path, str_first(name, (size_t)(str_rfind(name, '/') + 1)));
	buf_addf(&path, ".hearth-%d", (int)getpid());
	fd = open(buf_cstr(&path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ignore(unlink(buf_cstr(&path)) < 0); /* it was made just now */
	return 0;
}

int picture_frames_open(const struct command *c, const struct picture_frames_config *config,
			struct picture_frames **out)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(16));
	struct picture_frames *f = calloc(1, sizeof(*f));
	int r = f ? model_init(&f->sum, BYTES_MAX) : -ENOMEM;

	if (r < 0) {
		free(f);
		return command_fail(c, "%s", strerror(-r));
	}
	f->command = c;
	f->config = *config;
	f->picture = (struct buf)BUF_INIT(BYTES_MAX);
	add_name(f, 0, &name);
	r = io_make_folders(buf_cstr(&name));
	if (r < 0) {
		command_fail(c, "-g: cannot make the folder of %s: %s", buf_cstr(&name), strerror(-r));
		picture_frames_free(f);
		return EXIT_FAILED;
	}
	r = try_folder(buf_str(&name));
	if (r < 0) {
		command_fail(c, "-g: cannot write %s: %s", buf_cstr(&name), strerror(-r));
		picture_frames_free(f);
		return EXIT_FAILED;
	}
	*out = f;
	return EXIT_DONE;
}

void picture_frames_free(struct picture_frames *f)
{
	if (!f)
		return;
	model_release(&f->sum);
	buf_release(&f->picture);
	free(f->part);
	free(f);
}

/* Samples whose time lies in [from, until), counted from the window's start; those without one come with the last. */
static int take_samples(struct picture_frames *f, const struct window *w, uint64_t from_ns, uint64_t until_ns)
{
	struct model part = *w->model; /* its rows but for the samples */

	part.samples = f->part;
	part.samples_count = 0;
	for (size_t i = 0; i < w->model->samples_count; i++) {
		const struct model_sample *s = &w->model->samples[i];

		if (s->time_offset_ns >= from_ns && (s->time_offset_ns < until_ns || until_ns == UINT64_MAX))
			f->part[part.samples_count++] = *s;
	}
	return part.samples_count ? model_merge(&f->sum, &part) : 0;
}

static int draw(struct picture_frames *f)
{
	const struct render_png_config cfg = { .width = f->config.width,
					       .height = f->config.height,
					       .shimmer = f->config.shimmer ? f->made + 1 : 0 };
	const struct frame_style style = { 0 };
	struct tree tree = { 0 };
	int r = tree_from_model(&f->sum, model_count_value(&f->sum), 1, &style, &tree);

	buf_clear(&f->picture);
	r = r ? r : render_png(&tree, &cfg, &f->picture);
	tree_release(&tree);
	return r;
}

/* A picture is one of many: the disk is not waited for. What is not whole goes. Names are known before, and others may
 * write to the folder: a link that lies there gives way and is never followed. */
static int write_file(const char *path, const struct buf *bytes)
{
	scoped(closep) int fd = -1;
	int r;

	ignore(unlink(path) < 0); /* most are not there */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	r = fd < 0 ? -errno : io_write_all(fd, bytes->ptr, bytes->len);

	if (fd >= 0 && r < 0)
		ignore(unlink(path) < 0); /* the failure is said already */
	return r;
}

static int make(struct picture_frames *f, bool draws)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(16));
	int r = 0;

	if (!f->sum.samples_count) /* there is nothing to see yet */
		return 0;
	if (f->config.max && f->made >= f->config.max)
		return 0;
	if (draws || !f->picture.len)
		r = draw(f);
	else
		f->again++;
	add_name(f, f->made, &name);
	r = r ? r : write_file(buf_cstr(&name), &f->picture);
	if (r < 0) {
		command_fail(f->command, "cannot write %s: %s; no more pictures are made", buf_cstr(&name),
			     strerror(-r));
		return r;
	}
	f->made++;
	return 0;
}

/* Number @index of all times that pictures are of, in ns since the first window's start. */
static uint64_t time_of(const struct picture_frames *f, uint64_t index)
{
	return (index + 1) * NSEC_PER_SEC / f->config.rate;
}

static int add(struct picture_frames *f, const struct window *w)
{
	const uint64_t start_ns = w->start_ns - MIN(f->begin_ns, w->start_ns),
		       end_ns = start_ns + w->end_ns - w->start_ns;
	const uint64_t clock_ns = clock_monotonic_ns(&clock_system);
	const uint64_t patience_ns = (end_ns - start_ns) / 100 * DRAWING_PERCENT;
	uint64_t index = start_ns * f->config.rate / NSEC_PER_SEC, from_ns = 0;
	int r = 0;

	while (index && time_of(f, index - 1) > start_ns)
		index--;
	while (time_of(f, index) <= start_ns)
		index++;
	for (; time_of(f, index) <= end_ns && r == 0; index++) {
		const uint64_t until_ns = time_of(f, index) - start_ns;
		const bool is_last = time_of(f, index + 1) > end_ns;

		r = take_samples(f, w, from_ns, until_ns);
		r = r ? r : make(f, is_last || clock_monotonic_ns(&clock_system) - clock_ns < patience_ns);
		from_ns = until_ns;
	}
	return r ? r : take_samples(f, w, from_ns, UINT64_MAX);
}

void picture_frames_add(struct picture_frames *f, const struct window *w)
{
	struct model_sample *part;

	if (f->error)
		return;
	if (!f->has_begun)
		f->begin_ns = w->start_ns;
	f->has_begun = true;
	part = realloc(f->part, (w->model->samples_count + 1) * sizeof(*part));
	if (part)
		f->part = part;
	f->error = part ? add(f, w) : -ENOMEM;
}

int picture_frames_finish(struct picture_frames *f)
{
	scoped(buf_release) struct buf first = BUF_INIT(KIB(16)), last = BUF_INIT(KIB(16));

	add_name(f, 0, &first);
	add_name(f, f->made ? f->made - 1 : 0, &last);
	if (f->made && f->made == f->again)
		f->again = 0;
	if (f->made)
		command_fail(f->command, "%" PRIu64 " pictures written: %s to %s", f->made, buf_cstr(&first),
			     buf_cstr(&last));
	else if (!f->error)
		command_fail(f->command, "no picture was written: nothing was sampled");
	if (f->again)
		command_fail(f->command,
			     "%" PRIu64 " of them repeat the one before: drawing takes too long for --frame-rate",
			     f->again);
	return f->error ? EXIT_FAILED : EXIT_DONE;
}
