/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs, comparisons and exports of the viewer (docs/api.yaml). The server cuts to the largest nodes; what a
 * node's missing children have is said, and a call path of it can be asked for. */
#include "codec/codec.h"
#include "collector/flame_key.h"
#include "collector/grouping.h"
#include "collector/totals.h"
#include "query/flame.h"
#include "render/source_lines.h"
#include "sink/format.h"

#define NODES_DEFAULT 20000
#define NODES_MAX 5000000
#define META_MAX MIB(1)
#define LINES_MAX 1000 /* of an answer; `count` says how many there are */
#define ABOUT_BASE "the base: "

/* How far the stacks of the shown value can be believed. */
struct facts {
	uint64_t whole, guessed, cut, unknown;
	uint64_t untimed;              /* beside them: samples without a time, where times are asked for */
	struct tree_negative negative; /* beside them, too */
};

/* The tree of one selection, and what answers say of it. Kept for the next question; without its tree where that is too
 * large. */
struct made {
	struct recalled item;
	struct facts facts;
	uint64_t profiles;
	struct buf sample, unit; /* of the column */
	bool has_tree;
	struct tree tree;
};

/* The columns of a binary answer, kept, too. */
struct packed {
	struct recalled item;
	struct sizes {
		uint64_t total, nodes, whole_total, whole_nodes, base_total;
	} sizes;
	struct buf columns;
};

/* One selection, added up. */
struct side {
	struct kept kept; /* where it is a snapshot: what the range's texts borrow from */
	struct query_range range;
	struct window sum; /* in parts: the first one */
	struct store_sum info;
	struct facts facts;
	size_t column;
	struct made *made;
	bool has_key;
	struct recall_key key; /* of what is made */
	uint64_t listed;       /* profiles of the key */
};

struct flame {
	struct side main, base;
	bool compares, is_binary;
	uint64_t nodes;
	struct str sample;
	struct flame_groups groups;
	struct flame_path path;
	struct tree whole; /* of a comparison: both */
	uint64_t *base_total;
};

static void made_free(struct recalled *item)
{
	struct made *m = (struct made *)item;

	buf_release(&m->sample);
	buf_release(&m->unit);
	tree_release(&m->tree);
	free(m);
}

static void packed_free(struct recalled *item)
{
	struct packed *p = (struct packed *)item;

	buf_release(&p->columns);
	free(p);
}

static void made_done(struct call *call, struct made *m)
{
	recall_done(call->collector->recall, m ? &m->item : NULL);
}

static void side_release(struct side *s)
{
	query_range_release(&s->range);
	window_release(&s->sum);
	kept_release(&s->kept);
}

static void flame_release(struct call *call, struct flame *f)
{
	made_done(call, f->main.made);
	made_done(call, f->base.made);
	side_release(&f->main);
	side_release(&f->base);
	flame_groups_release(&f->groups);
	flame_path_release(&f->path);
	tree_release(&f->whole);
	free(f->base_total);
}

static bool bad(struct call *call, const char *what)
{
	answer_error(call->rs, 400, "bad request: %s", what);
	return false;
}

static bool read_path(struct call *call, struct flame *f)
{
	int r = call->rq->body.len ? flame_path_parse(call->rq->body, &f->path) : 0;

	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r < 0)
		answer_error(call->rs, 400, "bad request: the body is no {\"path\": [...]}%s",
			     r == -E2BIG ? " of at most 65536 steps" : "");
	return r == 0;
}

static bool read_groups(struct call *call, struct flame *f)
{
	int r = flame_groups_parse(http_query_get(&call->query, STR("group")), &f->groups);

	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r < 0)
		answer_error(call->rs, 400, "bad request: bad \"group\": %s",
			     r == -E2BIG ? "at most 8" : "thread, host and label:NAME are known");
	return r == 0;
}

static bool read_base(struct call *call, struct flame *f)
{
	bool fine;

	if (!f->compares)
		return true;
	call->about = ABOUT_BASE;
	fine = call_range(call, &query_range_base, &f->base.range);
	call->about = NULL;
	return fine;
}

static bool read_params(struct call *call, struct flame *f)
{
	struct str format = http_query_get(&call->query, STR("format"));
	struct str nodes = http_query_get(&call->query, STR("max-nodes"));

	f->sample = http_query_get(&call->query, STR("sample"));
	f->nodes = NODES_DEFAULT;
	f->is_binary = str_eq(format, STR("bin"));
	if (format.len && !f->is_binary && !str_eq(format, STR("json")))
		return bad(call, "bad \"format\": json and bin are written");
	if (nodes.len && str_to_u64(nodes, 1, NODES_MAX, &f->nodes) < 0)
		return bad(call, "bad \"max-nodes\": 1 to 5000000");
	return call_range(call, &query_range_view, &f->main.range) && read_base(call, f) && read_groups(call, f) &&
	       read_path(call, f);
}

/* A snapshot says itself what it is of, besides whose samples. */
static bool take_kept(struct call *call, struct str id, struct side *s, struct window *w)
{
	const struct snapshot_head *head = &s->kept.head;
	struct query_whose whose;
	int r;

	if (s->range.within.to_ns)
		return bad(call, "a snapshot has no times of samples: \"within\" is for stored profiles");
	if (!call_whose(call, &whose) || !call_kept(call, id, &s->kept, w))
		return false;
	s->range.service = head->service;
	s->range.type = head->type;
	s->range.from_ns = head->from_ns;
	s->range.to_ns = head->to_ns;
	s->info = (struct store_sum){ .profiles = (size_t)head->profiles };
	r = call_pick_whose(&whose, w, &s->info);
	if (r < 0)
		answer_store(call, r, "failed to choose samples");
	else if (!s->info.profiles)
		call_nothing(call, &s->range);
	return r == 0 && s->info.profiles;
}

/* @name: of the parameter that names a snapshot in place of the range. */
static bool sum_side(struct call *call, struct side *s, const char *name)
{
	struct str id = http_query_get(&call->query, str_of(name));

	return id.len ? take_kept(call, id, s, &s->sum) : call_sum(call, &s->range, &s->sum, &s->info);
}

static void tell_merged(struct call *call, const struct side *s)
{
	if (s->kept.size) /* nothing was merged for this */
		return;
	if (s->info.profiles)
		answer_merged(call, &s->info);
	else /* when it was made */
		answer_count(call->rs, "X-Profiles-Merged", s->made->profiles);
}

/* The parts of one side on their way into its tree. */
struct adding {
	struct call *call;
	struct side *side;
	const struct flame_groups *groups;
	struct str sample; /* empty until the first part says which is the default one */
	bool is_default;   /* it was empty */
	bool lacks;        /* a part without it was left out */
	struct tree_maker *maker;
};

static void add_facts(struct facts *facts, const struct model *m, size_t column)
{
	for (size_t i = 0; i < m->samples_count; i++) {
		struct str end = model_string(m, m->samples[i].end);
		int64_t value = model_values(m, &m->samples[i])[column];
		uint64_t *to = str_eq(end, STR("complete"))  ? &facts->whole
			       : str_eq(end, STR("guessed")) ? &facts->guessed
			       : str_starts(end, STR("cut")) ? &facts->cut
							     : &facts->unknown;

		*to = totals_plus(*to, value > 0 ? (uint64_t)value : 0);
	}
}

/* Return: the part's column, or -1: it counts something else. */
static int column_of_part(const struct adding *a, const struct model *m)
{
	const struct side *s = a->side;

	if (s->sum.model)
		return model_column_like(s->sum.model, s->column, m);
	return a->sample.len ? model_value_index(m, a->sample) : (int)model_default_value(m);
}

static bool add_part(void *ctx, struct window *w, const struct store_sum *info, const struct tree_group *groups)
{
	struct adding *a = ctx;
	struct side *s = a->side;
	int column = column_of_part(a, w->model);
	int r;

	if (column < 0 && !a->is_default && model_value_index(w->model, a->sample) < 0) {
		a->lacks = true; /* it has 0 of what was asked for */
		return true;
	}
	if (column < 0) { /* a total without them would not be one of what is shown */
		call_no_sample(a->call, a->sample);
		return false;
	}
	r = tree_maker_add(a->maker, w->model, (size_t)column, groups, a->groups->count);
	if (r < 0) {
		answer_store(a->call, r, "failed to make a tree");
		return false;
	}
	add_facts(&s->facts, w->model, (size_t)column);
	s->info.profiles += info->profiles;
	s->info.parts_bad += info->parts_bad;
	if (s->sum.model)
		return true;
	s->sum = *w;
	*w = (struct window){ 0 }; /* moved out */
	s->column = (size_t)column;
	if (a->is_default)
		a->sample = model_string(s->sum.model, s->sum.model->value_types[column].type);
	return true;
}

static bool add_kept(struct adding *a, struct str id)
{
	scoped(window_release) struct window w = { 0 };
	struct side *s = a->side;
	struct store_sum info;

	if (!take_kept(a->call, id, s, &w))
		return false;
	info = s->info;
	s->info = (struct store_sum){ 0 };
	return add_part(a, &w, &info, a->groups->items);
}

/* @snapshot: the parameter that names one in place of the range. */
static bool add_parts(struct adding *a, const char *snapshot)
{
	struct str id = http_query_get(&a->call->query, str_of(snapshot));
	bool fine = id.len ? add_kept(a, id) : grouping_sum(a->call, &a->side->range, a->groups, add_part, a);

	if (!fine || a->side->sum.model)
		return fine;
	if (a->lacks)
		call_no_sample(a->call, a->sample);
	else
		call_nothing(a->call, &a->side->range);
	return false;
}

/* Without a tree. */
static int made_new(const struct facts *facts, uint64_t profiles, struct str sample, struct str unit, struct made **out)
{
	struct made *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return -ENOMEM;
	made->item = (struct recalled){ .refs = 1, .free = made_free };
	made->facts = *facts;
	made->profiles = profiles;
	made->sample = made->unit = (struct buf)BUF_INIT(SIZE_MAX);
	buf_adds(&made->sample, sample);
	buf_adds(&made->unit, unit);
	made->item.size = sizeof(*made) + made->sample.cap + made->unit.cap;
	r = made->sample.error ? made->sample.error : made->unit.error;
	if (r < 0)
		made_free(&made->item);
	else
		*out = made;
	return r;
}

/* Without its tree it takes next to nothing, and answers that were packed are of use with it. */
static void keep_head(struct call *call, const struct side *s)
{
	const struct made *made = s->made;
	struct made *head;

	if (made_new(&made->facts, made->profiles, buf_str(&made->sample), buf_str(&made->unit), &head) < 0)
		return;
	recall_put(call->collector->recall, &s->key, &head->item);
	made_done(call, head);
}

/* Kept only where it is of the very profiles that the key names: one may have come or gone while it was made. */
static void keep_made(struct call *call, struct side *s, struct str sample)
{
	struct recall *recall = call->collector->recall;
	struct recall_key now;
	uint64_t listed;

	if (!s->has_key)
		return;
	s->has_key = !s->info.parts_bad && (s->range.within.to_ns || s->info.profiles == s->listed) &&
		     flame_key(call, &s->range, sample, &now, &listed) &&
		     !memcmp(now.bytes, s->key.bytes, sizeof(now.bytes));
	if (!s->has_key)
		return;
	tree_trim(&s->made->tree);
	s->made->item.size += tree_memory(&s->made->tree);
	if (recall_fits(recall, s->made->item.size))
		recall_put(recall, &s->key, &s->made->item);
	else
		keep_head(call, s);
}

/* @sample: its column; @snapshot: the parameter that names one in place of the range. */
static void find_made(struct call *call, struct side *s, const char *snapshot, struct str sample)
{
	struct recalled *item;

	if (s->made || http_query_get(&call->query, str_of(snapshot)).len)
		return;
	s->has_key = flame_key(call, &s->range, sample, &s->key, &s->listed);
	item = s->has_key ? recall_get(call->collector->recall, &s->key) : NULL;
	s->made = item ? (struct made *)item : NULL;
}

static int finish_made(struct side *s, struct tree_maker *maker)
{
	const struct model *m = s->sum.model;
	const struct model_value_type *type = &m->value_types[s->column];
	int r = made_new(&s->facts, s->info.profiles, model_string(m, type->type), model_string(m, type->unit),
			 &s->made);

	window_release(&s->sum); /* its memory is better used for the tree */
	r = r ? r : tree_maker_finish(maker, &s->made->tree);
	if (r < 0)
		return r;
	s->made->has_tree = true;
	s->made->facts.negative = s->made->tree.negative;
	return 0;
}

static bool add_up(struct call *call, struct side *s, const char *snapshot, struct str sample,
		   const struct flame_groups *groups)
{
	struct adding a = { .call = call, .side = s, .groups = groups, .sample = sample, .is_default = !sample.len };
	bool fine;
	int r;

	if (s->made && s->made->has_tree)
		return true;
	made_done(call, s->made);
	s->made = NULL;
	call->untimed = 0;
	r = tree_maker_new(&a.maker);
	fine = r == 0 && add_parts(&a, snapshot);
	s->facts.untimed = call->untimed;
	if (r == 0 && fine)
		r = finish_made(s, a.maker);
	if (r < 0)
		answer_store(call, r, "failed to make a tree");
	tree_maker_free(a.maker);
	if (r == 0 && fine)
		keep_made(call, s, sample);
	return r == 0 && fine;
}

/* What is asked of one side is asked of the other: the same column. */
static struct str sample_of_base(const struct flame *f)
{
	return f->sample.len ? f->sample : buf_str(&f->main.made->sample);
}

static bool add_base(struct call *call, struct flame *f)
{
	struct str sample;
	bool fine;
	int r;

	if (!f->compares)
		return true;
	must(f->main.made);
	sample = sample_of_base(f);
	find_made(call, &f->base, "base-snapshot", sample);
	call->about = ABOUT_BASE;
	fine = add_up(call, &f->base, "base-snapshot", sample, &f->groups);
	call->about = NULL;
	if (!fine)
		return false;
	must(f->base.made);
	if (!str_eq(buf_str(&f->base.made->unit), buf_str(&f->main.made->unit))) {
		answer_error(call->rs, 409, "the base counts in \"" STR_FMT "\", not in \"" STR_FMT "\"",
			     STR_ARG(buf_str(&f->base.made->unit)), STR_ARG(buf_str(&f->main.made->unit)));
		return false;
	}
	r = tree_pair(&f->base.made->tree, &f->main.made->tree, &f->whole, &f->base_total);
	if (r < 0)
		answer_store(call, r, "failed to put two trees together");
	return r == 0;
}

/* Answers */

static void write_range(struct json_out *json, const struct query_range *r, const char *prefix)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%sfrom_ms", prefix);
	call_key_u64(json, str_of(name), r->from_ns / NSEC_PER_MSEC);
	(void)snprintf(name, sizeof(name), "%sto_ms", prefix);
	call_key_u64(json, str_of(name), r->to_ns / NSEC_PER_MSEC);
}

/* Which times of samples, if any, and what has none. */
static void write_within(struct json_out *json, const struct side *s, const char *prefix)
{
	const struct query_within *within = &s->range.within;
	char name[32];

	if (!within->to_ns)
		return;
	(void)snprintf(name, sizeof(name), "%swithin_ms", prefix);
	json_out_key(json, str_of(name));
	json_out_begin(json, '[');
	json_out_u64(json, within->from_ns / NSEC_PER_MSEC);
	json_out_u64(json, within->to_ns / NSEC_PER_MSEC);
	json_out_end(json, ']');
	(void)snprintf(name, sizeof(name), "%suntimed", prefix);
	call_key_u64(json, str_of(name), s->made ? s->made->facts.untimed : s->facts.untimed);
}

static void write_facts(struct json_out *json, const struct facts *facts)
{
	json_out_key(json, STR("facts"));
	json_out_begin(json, '{');
	call_key_u64(json, STR("whole"), facts->whole);
	call_key_u64(json, STR("guessed"), facts->guessed);
	call_key_u64(json, STR("cut"), facts->cut);
	call_key_u64(json, STR("unknown"), facts->unknown);
	json_out_end(json, '}');
}

/* What the tree leaves out, because it is below zero. */
static void write_negative(struct json_out *json, const struct side *s, const char *key)
{
	const struct tree_negative *negative = &s->made->facts.negative;

	json_out_key(json, str_of(key));
	json_out_begin(json, '{');
	call_key_u64(json, STR("samples"), negative->samples);
	call_key_u64(json, STR("value"), negative->value);
	json_out_end(json, '}');
}

static void write_kinds(struct json_out *json)
{
	json_out_key(json, STR("kinds"));
	json_out_begin(json, '[');
	for (unsigned int kind = 0; kind < TREE_KIND_COUNT; kind++)
		json_out_string(json, tree_kind_name(kind));
	json_out_end(json, ']');
}

static void write_meta(struct json_out *json, const struct flame *f, const struct sizes *sizes)
{
	const struct side *s = &f->main;
	struct str unit = buf_str(&s->made->unit);

	json_out_begin(json, '{');
	write_range(json, &s->range, "");
	write_within(json, s, "");
	call_key(json, STR("service"), s->range.service);
	call_key(json, STR("type"), s->range.type);
	call_key(json, STR("sample"), buf_str(&s->made->sample));
	call_key(json, STR("unit"), unit);
	call_key_u64(json, STR("scale"), 1);
	call_key_u64(json, STR("nanoseconds"), str_eq(unit, STR("nanoseconds")));
	call_key_u64(json, STR("total"), sizes->total);
	call_key_u64(json, STR("whole_total"), sizes->whole_total);
	call_key_u64(json, STR("nodes"), sizes->nodes);
	call_key_u64(json, STR("whole_nodes"), sizes->whole_nodes);
	call_key_u64(json, STR("path"), f->path.count);
	call_key_u64(json, STR("profiles"), s->made->profiles);
	if (f->compares) {
		write_range(json, &f->base.range, "base_");
		write_within(json, &f->base, "base_");
		call_key(json, STR("base_service"), f->base.range.service);
		call_key_u64(json, STR("base_total"), sizes->base_total);
		call_key_u64(json, STR("base_profiles"), f->base.made->profiles);
		write_negative(json, &f->base, "base_negative");
	}
	write_kinds(json);
	write_facts(json, &s->made->facts);
	write_negative(json, s, "negative");
	json_out_end(json, '}');
}

static struct sizes sizes_of(const struct flame *f, const struct tree *whole, const struct tree_cut *c)
{
	return (struct sizes){ .total = c->tree.total[0],
			       .nodes = c->tree.node_count,
			       .whole_total = whole->total[0],
			       .whole_nodes = whole->node_count,
			       .base_total = f->compares ? c->base_total[0] : 0 };
}

/* @columns: of a binary answer; @c: of another one */
static int write_answer(struct call *call, const struct flame *f, const struct sizes *sizes, struct str columns,
			const struct tree_cut *c)
{
	scoped(buf_release) struct buf meta = BUF_INIT(META_MAX);
	struct json_out json = { .out = &meta };
	struct buf *out = &call->rs->body;
	int r;

	write_meta(&json, f, sizes);
	if (meta.error)
		return meta.error;
	answer_empty(call->rs, 200);
	call->rs->content_type = f->is_binary ? "application/vnd.hearth.flame" : "application/json";
	if (f->is_binary)
		return flame_write_binary(buf_str(&meta), columns, out);
	json = (struct json_out){ .out = out };
	json_out_begin(&json, '{');
	json_out_key(&json, STR("meta"));
	json_out_raw(&json, buf_str(&meta));
	r = flame_write_json(&json, c);
	json_out_end(&json, '}');
	buf_addc(out, '\n');
	return r ? r : out->error;
}

static bool answer_key(struct call *call, const struct flame *f, struct recall_key *out)
{
	return f->is_binary && f->main.has_key && (!f->compares || f->base.has_key) &&
	       flame_answer_key(call, &f->main.key, f->compares ? &f->base.key : NULL, f->nodes, out);
}

static void keep_columns(struct call *call, const struct flame *f, const struct sizes *sizes, const struct buf *columns)
{
	struct packed *p = calloc(1, sizeof(*p));
	struct recall_key key;

	if (!p)
		return;
	p->item = (struct recalled){ .refs = 1, .free = packed_free };
	p->sizes = *sizes;
	p->columns = (struct buf)BUF_INIT(SIZE_MAX);
	buf_adds(&p->columns, buf_str(columns)); /* without room to grow */
	p->item.size = sizeof(*p) + p->columns.cap;
	if (!p->columns.error && answer_key(call, f, &key))
		recall_put(call->collector->recall, &key, &p->item);
	recall_done(call->collector->recall, &p->item);
}

/* Return: whether the very answer was there. */
static bool answer_again(struct call *call, struct flame *f)
{
	struct recall *recall = call->collector->recall;
	struct recall_key key;
	struct recalled *item;
	struct packed *p;
	int r;

	find_made(call, &f->main, "snapshot", f->sample);
	if (f->compares && f->main.made)
		find_made(call, &f->base, "base-snapshot", sample_of_base(f));
	if (!f->main.made || (f->compares && !f->base.made) || !answer_key(call, f, &key))
		return false;
	item = recall_get(recall, &key);
	if (!item)
		return false;
	p = (struct packed *)item;
	r = write_answer(call, f, &p->sizes, buf_str(&p->columns), NULL);
	recall_done(recall, item);
	if (r < 0)
		answer_store(call, r, "failed to write a flame graph");
	else
		tell_merged(call, &f->main);
	return true;
}

static int cut_and_write(struct call *call, const struct flame *f, const struct tree *whole, uint32_t root)
{
	scoped(tree_cut_release) struct tree_cut c = { 0 };
	scoped(buf_release) struct buf columns = BUF_INIT(GIB(1));
	struct sizes sizes;
	int r = tree_cut_make(whole, f->base_total, root, (uint32_t)f->nodes, &c);

	if (r < 0)
		return r;
	sizes = sizes_of(f, whole, &c);
	r = f->is_binary ? flame_pack(&c, &columns) : 0;
	r = r ? r : write_answer(call, f, &sizes, buf_str(&columns), &c);
	if (r == 0 && f->is_binary)
		keep_columns(call, f, &sizes, &columns);
	return r;
}

static void answer_flame(struct call *call, const struct flame *f)
{
	const struct tree *whole = f->compares ? &f->whole : &f->main.made->tree;
	uint32_t root = 0;
	int r = f->path.count ? tree_find(whole, f->path.steps, f->path.count, &root) : 0;

	if (r == -ENOENT) {
		answer_error(call->rs, 404, "the call path is not in these profiles any more");
		return;
	}
	r = r ? r : cut_and_write(call, f, whole, root);
	if (r < 0)
		answer_store(call, r, "failed to write a flame graph");
	else
		tell_merged(call, &f->main);
}

static void make_flame(struct call *call, bool compares)
{
	struct flame *f = calloc(1, sizeof(*f));

	if (!f) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	f->compares = compares;
	if (read_params(call, f) && !answer_again(call, f) &&
	    add_up(call, &f->main, "snapshot", f->sample, &f->groups) && add_base(call, f))
		answer_flame(call, f);
	flame_release(call, f);
	free(f);
}

void view_flame(struct call *call)
{
	make_flame(call, false);
}

void view_compare(struct call *call)
{
	make_flame(call, true);
}

/* The source lines of one function */

static void write_lines(struct call *call, const struct side *s, const struct source_lines *lines)
{
	const struct model *m = s->sum.model;
	struct json_out json;

	call_begin(call, &json);
	write_range(&json, &s->range, "");
	write_within(&json, s, "");
	call_key(&json, STR("sample"), model_string(m, m->value_types[s->column].type));
	call_key(&json, STR("unit"), model_string(m, m->value_types[s->column].unit));
	call_key_u64(&json, STR("self"), lines->self);
	call_key_u64(&json, STR("total"), lines->total);
	call_key_u64(&json, STR("count"), lines->count);
	json_out_key(&json, STR("lines"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < MIN(lines->count, LINES_MAX); i++) {
		const struct source_line *line = &lines->items[i];

		json_out_begin(&json, '{');
		call_key(&json, STR("file"), model_string(m, line->file));
		call_key_u64(&json, STR("line"), line->line > 0 ? (uint64_t)line->line : 0);
		call_key_u64(&json, STR("self"), line->self);
		call_key_u64(&json, STR("total"), line->total);
		json_out_end(&json, '}');
	}
	json_out_end(&json, ']');
	call_end(call, &json);
}

static void find_lines(struct call *call, struct side *s, const struct tree_step *frame)
{
	scoped(source_lines_release) struct source_lines lines = { 0 };
	int r;

	if (!sum_side(call, s, "snapshot") ||
	    !call_column(call, s->sum.model, http_query_get(&call->query, STR("sample")), &s->column))
		return;
	s->facts.untimed = call->untimed;
	r = source_lines_find(s->sum.model, s->column, frame, &lines);
	if (r == -ENOENT)
		answer_error(call->rs, 404, "the function is not in these profiles");
	else if (r < 0)
		answer_store(call, r, "failed to find source lines");
	else
		write_lines(call, s, &lines);
}

void view_lines(struct call *call)
{
	struct flame *f = calloc(1, sizeof(*f));

	if (!f) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	if (call_range(call, &query_range_view, &f->main.range) && read_path(call, f)) {
		if (f->path.count == 1)
			find_lines(call, &f->main, &f->path.steps[0]);
		else
			(void)bad(call, "the path of a function has one step");
	}
	flame_release(call, f);
	free(f);
}

/* Exports */

static void export(struct call *call, struct side *s, const struct codec *format)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(8)), sample = BUF_INIT(KIB(4));
	struct codec_options options = { 0 };

	buf_adds(&sample, http_query_get(&call->query, STR("sample")));
	if (!sum_side(call, s, "snapshot") || !call_column(call, s->sum.model, buf_str(&sample), &s->column))
		return;
	options.value = sample.len ? buf_cstr(&sample) : NULL;
	buf_addf(&name, STR_FMT "-" STR_FMT "%s", STR_ARG(s->range.service.len ? s->range.service : STR("all")),
		 STR_ARG(s->range.type), format->suffixes[0] ? format->suffixes[0] : "");
	if (format->begin)
		answer_pieces(call, &s->sum, format, &options, buf_str(&name));
	else
		answer_window(call, &s->sum, format, &options, buf_str(&name));
	tell_merged(call, s);
	if (s->range.within.to_ns)
		answer_count(call->rs, "X-Untimed", call->untimed);
}

void view_export(struct call *call)
{
	const struct codec *format = format_find(http_query_get(&call->query, STR("as")));
	struct side *side;

	if (!format) {
		(void)bad(call, "\"as\": no format that is written");
		return;
	}
	side = calloc(1, sizeof(*side));
	if (!side) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	if (call_range(call, &query_range_view, &side->range))
		export(call, side, format);
	side_release(side);
	free(side);
}
