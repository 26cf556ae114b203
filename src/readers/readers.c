/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/readers.h"

#include "codec/folded.h"

#define COLUMNS_MAX GIB(2)
#define DEPTH_MAX ((UINT32_C(1) << 20) - 64) /* trees take no deeper stacks: TREE_DEPTH_MAX */

void readers_release(struct readers_file *f)
{
	buf_release(&f->meta);
	buf_release(&f->words);
	for (size_t i = 0; i < PAGE_TYPES_MAX; i++)
		buf_release(&f->columns[i]);
	f->count = 0;
}

static struct str input_text(const struct readers_input *in)
{
	return str_n(in->bytes, in->size);
}

static void input_free(struct readers_input *in)
{
	free(in->bytes);
	*in = (struct readers_input){ 0 };
}

struct reading {
	const struct render_progress *progress;
	uint64_t done, total; /* bytes */
};

static bool go_on(void *ctx)
{
	const struct reading *reading = ctx;

	if (reading->progress)
		reading->progress->show(reading->progress->ctx, reading->done, reading->total);
	return false;
}

static int decode(const struct codec *codec, struct str bytes, const struct render_progress *progress,
		  struct window *out, struct codec_error *error)
{
	struct reading reading = { .progress = progress, .total = bytes.len };
	struct codec_limits limits = {
		.depth_max = DEPTH_MAX, .stop = go_on, .stop_ctx = &reading, .done = &reading.done
	};

	return codec->decode_limited ? codec->decode_limited(bytes, &limits, out, error)
				     : codec->decode(bytes, out, error);
}

struct writing {
	struct readers_file *out;
	struct page_type types[PAGE_TYPES_MAX]; /* their names are of the model */
};

static int take_type(void *ctx, const struct page_type *type, struct tree *t)
{
	struct writing *w = ctx;
	struct buf *columns = &w->out->columns[w->out->count];

	w->types[w->out->count++] = *type;
	columns->max = COLUMNS_MAX;
	return tree_encode(t, columns);
}

static int write_meta(struct writing *w, struct str title)
{
	page_types_json(title, w->types, w->out->count, &w->out->meta);
	return w->out->meta.error;
}

/* As the formats know it, without the suffix of its compression. */
static struct str unpacked_name(struct str name)
{
	return str_ends(name, STR(".gz")) ? str_first(name, name.len - 3) : name;
}

/* Folded text under such a name needs no model, as page_of_folded() of cmd_convert.c has it. */
static int read_folded(struct readers_input *in, struct str name, const struct render_progress *progress,
		       struct readers_file *out)
{
	struct writing w = { .out = out };
	scoped(tree_release) struct tree tree = { 0 };
	struct page_type type = { .name = STR("samples"), .unit = STR("samples"), .scale = 1 };
	uint64_t bad_line;
	int r = tree_from_folded(input_text(in), progress, &tree, &bad_line);

	if (r < 0)
		return r;
	input_free(in);
	page_type_count(&type, &tree);
	r = take_type(&w, &type, &tree);
	return r < 0 ? r : write_meta(&w, name);
}

static int write_model(const struct model *m, struct str name, struct readers_file *out)
{
	const struct frame_style style = { 0 };
	struct writing w = { .out = out };
	int r;

	if (!m || !m->value_type_count)
		return -ENOENT;
	r = page_types_each(m, model_default_value(m), &style, take_type, &w);
	return r < 0 ? r : write_meta(&w, name);
}

/* Why it could not be read, as input_load() of src/cli says it. */
static int fail(struct readers_file *out, const struct codec *codec, int r, const struct codec_error *error)
{
	struct buf *words = &out->words;

	buf_clear(words);
	if (r == -ENOMEM || (r == -E2BIG && !error->reason[0]))
		buf_addf(words,
			 "it needs more memory than a page has; hearth convert and hearth view read larger files");
	else if (r == -ENOENT)
		buf_addf(words, "it has no samples");
	else if (error->reason[0] && error->position)
		buf_addf(words, "%s %llu: %s", error->is_line ? "line" : "byte", (unsigned long long)error->position,
			 error->reason);
	else
		buf_addf(words, "%s", error->reason[0] ? error->reason : "it is damaged");
	buf_addf(words, " (read as %s)", codec->name);
	return r;
}

static void note_losses(const struct codec_error *error, struct buf *words)
{
	if (error->left_out)
		buf_addf(words, "line %llu: %s; %llu such lines are left out", (unsigned long long)error->position,
			 error->reason, (unsigned long long)error->left_out);
	if (error->lost.text[0])
		buf_addf(words, "%s%s", words->len ? "; " : "", error->lost.text);
}

int readers_read(struct readers_input *in, struct str name, const struct render_progress *progress,
		 struct readers_file *out)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	const struct codec *codec = codec_sniff(input_text(in));
	int r = -EBADMSG;

	if (!codec)
		codec = codec_for_path(unpacked_name(name));
	if (!codec || !codec->decode || !in->size) {
		if (codec && in->size)
			buf_addf(&out->words, "hearth writes %s files but does not read them", codec->name);
		else
			buf_addf(&out->words, in->size ? "it is no profile in a known format" : "it is empty");
		return -ENOENT;
	}
	if (codec == &codec_folded && codec_for_path(unpacked_name(name)) == &codec_folded)
		r = read_folded(in, name, progress, out);
	if (r != -EBADMSG)
		return r < 0 ? fail(out, codec, r, &error) : 0;
	r = decode(codec, input_text(in), progress, &w, &error);
	input_free(in);
	if (r == 0)
		r = write_model(w.model, name, out);
	if (r < 0)
		return fail(out, codec, r, &error);
	note_losses(&error, &out->words);
	return 0;
}
