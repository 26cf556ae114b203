/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pack.h"

#include <zstd.h>

#include "base/u64map.h"
#include "codec/window_codec.h"

/* Of the keys of a dictionary: from this part of them on a window gets all stacks at once. Looking each up takes about
 * ten times as long as copying it. */
#define ALL_SHARE 8

/* Into the dictionary */

struct packing {
	struct dictionary *d;
	const struct window *w;
	const struct model *m;
	struct remap rm;
	struct u64map twins; /* dictionary row of a mapping -> how many of the profile's are like it */
	struct header *h;
	struct columns *c;
};

static void packing_release(struct packing *p)
{
	remap_release(&p->rm);
	u64map_release(&p->twins);
}

/* A mapping without its address. One of no size at an address is not one that stands for a kind: it starts at 1. */
static int place(struct packing *p, uint32_t row)
{
	const struct model_mapping *from = &p->m->mappings[row];
	struct model_mapping as = *from;
	uint32_t first, twins = 0;
	int r;

	as.start = from->start == from->limit && from->start ? 1 : 0;
	as.limit = as.start + (from->limit - from->start);
	as.flags = 0; /* in the header */
	r = remap_place(&p->rm, row, &as);
	if (r < 0)
		return r;
	first = p->rm.mappings[row];
	ignore(u64map_get(&p->twins, first, &twins)); /* not there: none yet */
	r = u64map_put(&p->twins, first, twins + 1);
	if (r == 0 && twins) {
		as.start += twins;
		as.limit += twins;
		r = remap_place(&p->rm, row, &as);
	}
	if (r < 0)
		return r;
	return header_add_mapping(p->h, &(struct header_mapping){ p->rm.mappings[row], from->flags, from->start });
}

static int pack_head(struct packing *p)
{
	const struct model *m = p->m;
	struct remap *rm = &p->rm;
	struct header *h = p->h;
	uint32_t comment;
	int r = 0;

	*h = (struct header){ .profiles = 1,
			      .period = m->period,
			      .time_ns = m->time_ns,
			      .duration_ns = m->duration_ns,
			      .start_ns = p->w->start_ns,
			      .end_ns = p->w->end_ns,
			      .value_type_count = m->value_type_count };
	for (size_t i = 0; r == 0 && i < m->value_type_count; i++)
		r = remap_type(rm, m->value_types[i], &h->value_types[i]);
	r = r ? r : remap_type(rm, m->period_type, &h->period_type);
	r = r ? r : remap_string(rm, m->drop_frames, &h->drop_frames);
	r = r ? r : remap_string(rm, m->keep_frames, &h->keep_frames);
	r = r ? r : remap_string(rm, m->default_type, &h->default_type);
	r = r ? r : remap_string(rm, m->doc_url, &h->doc_url);
	for (size_t i = 0; r == 0 && i < m->comments_count; i++) {
		r = remap_string(rm, m->comments[i], &comment);
		r = r ? r : header_add_comment(h, comment);
	}
	for (uint32_t i = 1; r == 0 && i < m->mappings_count; i++)
		r = place(p, i);
	return r;
}

static int pack_sample(struct packing *p, size_t row)
{
	const struct model_sample *s = &p->m->samples[row];
	const int64_t *values = model_values(p->m, s);
	struct dictionary_key key;
	int r = remap_stack(&p->rm, s->stack, &key.stack);

	r = r ? r : remap_process(&p->rm, s->process, &key.process);
	r = r ? r : remap_thread(&p->rm, s->thread, &key.thread);
	r = r ? r : remap_label_set(&p->rm, s->label_set, &key.label_set);
	r = r ? r : remap_string(&p->rm, s->end, &key.end);
	r = r ? r : dictionary_key(p->d, &key, &p->c->keys[row]);
	if (r < 0)
		return r;
	p->c->times[row] = s->time_offset_ns;
	p->c->has_times |= s->time_offset_ns != MODEL_NO_TIME;
	for (size_t i = 0; i < p->c->width; i++) {
		p->c->values[i * p->c->count + row] = values[i];
		p->h->totals[i] = saturating_add(p->h->totals[i], values[i]);
	}
	return 0;
}

int pack_window(struct dictionary *d, const struct window *w, struct header *h, struct columns *c)
{
	scoped(packing_release) struct packing p = { .d = d, .w = w, .m = w->model, .h = h, .c = c };
	int r = remap_init(&p.rm, &d->m, p.m);

	u64map_init(&p.twins, HEADER_MAPPINGS_MAX);
	if (r == 0)
		remap_find_strings(&p.rm); /* most of it came with earlier profiles */
	r = r ? r : pack_head(&p);
	if (r == 0)
		remap_find(&p.rm);
	r = r ? r : columns_room(c, p.m->samples_count, p.m->value_type_count);
	for (size_t i = 0; r == 0 && i < p.m->samples_count; i++)
		r = pack_sample(&p, i);
	return r ? r : columns_sort(c);
}

/* The facts are a window with an empty model. */
int pack_facts(const struct window *w, struct buf *out)
{
	scoped(window_release) struct window empty = { 0 };
	struct window copy = *w;
	struct buf plain = BUF_INIT(KIB(1));
	int r = window_init(&empty, 0);

	if (r < 0)
		return r;
	r = codec_window.encode(&empty, &plain);
	copy.model = empty.model;
	copy.start_ns = copy.end_ns = 0;
	r = r ? r : codec_window.encode(&copy, out);
	if (r == 0 && str_eq(buf_str(&plain), buf_str(out)))
		buf_clear(out);
	buf_release(&plain);
	return r;
}

/* Out of the dictionary */

static int unpack_head(struct remap *rm, const struct header *h, struct model *m)
{
	uint32_t comment;
	int r = 0;

	for (size_t i = 0; r == 0 && i < h->value_type_count; i++)
		r = model_add_value_type(m, model_string(rm->from, h->value_types[i].type),
					 model_string(rm->from, h->value_types[i].unit));
	r = r ? r : remap_type(rm, h->period_type, &m->period_type);
	r = r ? r : remap_string(rm, h->drop_frames, &m->drop_frames);
	r = r ? r : remap_string(rm, h->keep_frames, &m->keep_frames);
	r = r ? r : remap_string(rm, h->default_type, &m->default_type);
	r = r ? r : remap_string(rm, h->doc_url, &m->doc_url);
	for (size_t i = 0; r == 0 && i < h->comments_count; i++) {
		r = remap_string(rm, h->comments[i], &comment);
		r = r ? r : model_add_comment(m, model_string(m, comment));
	}
	for (size_t i = 0; r == 0 && i < h->mappings_count; i++) {
		struct model_mapping as = rm->from->mappings[h->mappings[i].row];

		as.limit = h->mappings[i].start + (as.limit - as.start);
		as.start = h->mappings[i].start;
		as.flags = h->mappings[i].flags;
		r = remap_place(rm, h->mappings[i].row, &as);
	}
	m->period = h->period;
	m->time_ns = h->time_ns;
	m->duration_ns = h->duration_ns;
	return r;
}

static int unpack_sample(struct remap *rm, const struct dictionary_key *key, const struct columns *c, size_t row)
{
	struct model_sample sample = { .time_offset_ns = c->has_times ? c->times[row] : MODEL_NO_TIME };
	int64_t values[MODEL_VALUE_TYPES_MAX];
	int r = remap_stack(rm, key->stack, &sample.stack);

	r = r ? r : remap_process(rm, key->process, &sample.process);
	r = r ? r : remap_thread(rm, key->thread, &sample.thread);
	r = r ? r : remap_label_set(rm, key->label_set, &sample.label_set);
	r = r ? r : remap_string(rm, key->end, &sample.end);
	for (size_t i = 0; i < c->width; i++)
		values[i] = c->values[i * c->count + row];
	return r ? r : model_add_sample(rm->into, &sample, values);
}

static int read_facts(struct str facts, size_t byte_max, struct window *w)
{
	int r;

	if (!facts.len)
		return window_init(w, byte_max);
	r = codec_window.decode(facts, w, NULL);
	if (r < 0)
		return r;
	model_release(w->model); /* an empty one of no size */
	return model_init(w->model, byte_max);
}

static void reserve_all(const struct model *from, struct model *m)
{
	const struct model_room room = { .strings = intern_count(&from->strings),
					 .string_bytes = from->strings.size,
					 .functions = from->functions_count,
					 .locations = from->locations_count,
					 .lines = from->lines_count };

	m->may_repeat = true;
	model_reserve(m, &room);
}

static int unpack(const struct dictionary *d, const struct header *h, const struct columns *c, struct str facts,
		  bool all, struct window *out)
{
	scoped(window_release) struct window w = { 0 };
	scoped(remap_release) struct remap rm = { 0 };
	int r = read_facts(facts, DICTIONARY_BYTES_MAX, &w);

	if (r < 0)
		return r;
	if (all)
		reserve_all(&d->m, w.model);
	w.start_ns = h->start_ns;
	w.end_ns = h->end_ns;
	r = remap_init(&rm, w.model, &d->m);
	r = r ? r : unpack_head(&rm, h, w.model);
	if (r == 0 && all)
		r = remap_all(&rm);
	for (size_t i = 0; r == 0 && i < c->count; i++)
		r = unpack_sample(&rm, &d->keys[c->keys[i]], c, i);
	if (r < 0)
		return r;
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

int unpack_window(const struct dictionary *d, const struct header *h, const struct columns *c, struct str facts,
		  struct window *out)
{
	return unpack(d, h, c, facts, false, out);
}

int unpack_to_read(const struct dictionary *d, const struct header *h, const struct columns *c, struct window *out)
{
	return unpack(d, h, c, str_n("", 0), c->count >= d->keys_count / ALL_SHARE, out);
}

/* From dictionary to dictionary */

int pack_key(struct remap *rm, struct dictionary *into, const struct dictionary_key *key, uint32_t *out)
{
	struct dictionary_key moved;
	int r = remap_stack(rm, key->stack, &moved.stack);

	r = r ? r : remap_process(rm, key->process, &moved.process);
	r = r ? r : remap_thread(rm, key->thread, &moved.thread);
	r = r ? r : remap_label_set(rm, key->label_set, &moved.label_set);
	r = r ? r : remap_string(rm, key->end, &moved.end);
	return r ? r : dictionary_key(into, &moved, out);
}

int pack_place_all(struct remap *rm)
{
	int r = 0;

	for (uint32_t i = 1; r == 0 && i < rm->from->mappings_count; i++) {
		struct model_mapping as = rm->from->mappings[i];

		as.flags = 0;
		r = remap_place(rm, i, &as);
	}
	return r;
}

int pack_header(struct remap *rm, const struct header *from, struct header *into)
{
	int r = 0;

	*into = *from;
	into->comments = NULL;
	into->mappings = NULL;
	into->comments_count = into->comments_cap = into->mappings_count = into->mappings_cap = 0;
	for (size_t i = 0; r == 0 && i < from->value_type_count; i++)
		r = remap_type(rm, from->value_types[i], &into->value_types[i]);
	r = r ? r : remap_type(rm, from->period_type, &into->period_type);
	r = r ? r : remap_string(rm, from->drop_frames, &into->drop_frames);
	r = r ? r : remap_string(rm, from->keep_frames, &into->keep_frames);
	r = r ? r : remap_string(rm, from->default_type, &into->default_type);
	r = r ? r : remap_string(rm, from->doc_url, &into->doc_url);
	for (size_t i = 0; r == 0 && i < from->comments_count; i++) {
		uint32_t comment = 0;

		r = remap_string(rm, from->comments[i], &comment);
		r = r ? r : header_add_comment(into, comment);
	}
	for (size_t i = 0; r == 0 && i < from->mappings_count; i++) {
		struct header_mapping row = from->mappings[i];

		row.row = rm->mappings[row.row];
		r = header_add_mapping(into, &row);
	}
	return r;
}

/* Compression */

#define EXPAND_MAX 40000 /* a run of 128 KiB takes four bytes (RFC 8878, RLE block) */

static void free_context(ZSTD_CCtx **context)
{
	(void)ZSTD_freeCCtx(*context); /* NULL is fine */
}

int pack_compress(struct str bytes, int level, struct buf *out)
{
	scoped(free_context) ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t most = ZSTD_compressBound(bytes.len), size;
	char *at = buf_reserve(out, most);

	if (!at || !context)
		return at ? -ENOMEM : out->error;
	(void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level); /* known parameters: cannot fail */
	(void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);         /* SQLite has none of its own */
	size = ZSTD_compress2(context, at, most, bytes.ptr ? bytes.ptr : "", bytes.len);
	if (ZSTD_isError(size))
		return -ENOMEM; /* there is room, so nothing else can go wrong */
	buf_commit(out, size);
	return 0;
}

int pack_expand(struct str bytes, struct buf *out)
{
	unsigned long long plain = ZSTD_getFrameContentSize(bytes.ptr, bytes.len);
	size_t size;
	char *at;

	if (plain == ZSTD_CONTENTSIZE_ERROR || plain == ZSTD_CONTENTSIZE_UNKNOWN)
		return -EBADMSG;
	if (plain > PACK_BYTES_MAX)
		return -E2BIG;
	if (plain > MIB(1) && plain / EXPAND_MAX > bytes.len)
		return -EBADMSG; /* only claimed: no frame of this size holds so much */
	at = buf_reserve(out, MAX((size_t)plain, (size_t)1));
	if (!at)
		return out->error;
	size = ZSTD_decompress(at, plain, bytes.ptr, bytes.len);
	if (ZSTD_isError(size) || size != plain)
		return -EBADMSG;
	buf_commit(out, size);
	return 0;
}
