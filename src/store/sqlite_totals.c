/* SPDX-License-Identifier: Apache-2.0 */
/* Totals: of a profile only its header is read. */
#include "store/sqlite_int.h"

#define LONG_RANGE_NS (2 * STORE_DAY_NS) /* longer ones load no dictionary of a closed file */

void point_names_release(struct point_names *n)
{
	header_release(&n->last);
	buf_release(&n->texts);
}

static struct str text_of(const struct header_texts *texts, uint32_t row)
{
	return texts->dictionary ? model_string(&texts->dictionary->m, row)
				 : dictionary_strings_get(texts->strings, row);
}

/* There is room in n->texts. */
static struct store_label name_type(struct point_names *n, const struct header_texts *texts,
				    struct model_value_type type)
{
	struct str names[2] = { text_of(texts, type.type), text_of(texts, type.unit) };

	for (size_t i = 0; i < 2; i++) {
		size_t at = n->texts.len;

		buf_adds(&n->texts, names[i]);
		names[i] = str_n(n->texts.ptr + at, names[i].len);
	}
	return (struct store_label){ names[0], names[1] };
}

static size_t type_size(const struct header_texts *texts, struct model_value_type type)
{
	return text_of(texts, type.type).len + text_of(texts, type.unit).len;
}

int point_names_take(struct point_names *n, const struct header_texts *texts, const struct header *h)
{
	size_t size = type_size(texts, h->period_type) + 1;

	if (n->texts.len && header_same_types(h, &n->last))
		return 0;
	buf_clear(&n->texts);
	for (size_t i = 0; i < h->value_type_count; i++)
		size += type_size(texts, h->value_types[i]);
	if (!buf_reserve(&n->texts, size))
		return n->texts.error;
	for (size_t i = 0; i < h->value_type_count; i++)
		n->columns[i] = name_type(n, texts, h->value_types[i]);
	n->period = name_type(n, texts, h->period_type);
	n->last.value_type_count = h->value_type_count;
	n->last.period_type = h->period_type;
	memcpy(n->last.value_types, h->value_types, sizeof(h->value_types));
	return n->texts.error;
}

/* As model_default_value() has it. */
static size_t default_column(const struct header *h)
{
	for (size_t i = 0; h->default_type && i < h->value_type_count; i++)
		if (h->value_types[i].type == h->default_type)
			return i;
	for (size_t i = 0; i + 1 < h->value_type_count; i++)
		if (h->value_types[i].type == h->value_types[h->value_type_count - 1].type &&
		    h->value_types[i].unit == h->value_types[h->value_type_count - 1].unit)
			return i;
	return h->value_type_count ? h->value_type_count - 1 : 0;
}

/* As window_duration_ns() has it. */
static uint64_t duration(const struct header *h)
{
	if (h->duration_ns > 0)
		return (uint64_t)h->duration_ns;
	return h->end_ns > h->start_ns ? h->end_ns - h->start_ns : 0;
}

struct store_point point_of(const struct point_names *n, const struct header *h, const struct store_series *series,
			    uint64_t created_ns)
{
	return (struct store_point){ .created_ns = created_ns,
				     .series = series,
				     .columns = n->columns,
				     .values = h->totals,
				     .value_count = h->value_type_count,
				     .default_column = default_column(h),
				     .period = n->period,
				     .profiles = h->profiles,
				     .duration_ns = duration(h) };
}

/* As header_decode(). */
static int read_header(const struct header_texts *texts, struct str bytes, struct header *h)
{
	const struct dictionary *d = texts->dictionary;

	return d ? header_decode(bytes, intern_count(&d->m.strings), d->m.mappings_count, h)
		 : header_decode(bytes, texts->strings->count, texts->strings->mappings, h);
}

struct totals {
	store_point_fn *visit;
	void *ctx;
	bool is_long; /* the range */
	struct header header;
	struct point_names names;
	/* Of the partition that is read */
	struct partition *p;
	sqlite3 *db;
	sqlite3_stmt *stmt;
	/* Of its service that is read */
	struct str name;         /* empty: none is */
	struct service *service; /* NULL: its strings alone */
	struct dictionary_strings strings;
	struct buf plain;
};

static void leave_service(struct totals *t)
{
	if (t->service)
		service_put(t->p, t->service);
	t->service = NULL;
	t->name = STR("");
	buf_clear(&t->names.texts); /* rows of another dictionary mean something else */
}

/* The dictionaries of a few days are loaded: they stay, and the graph that is asked for next needs them. Those of many
 * days would put all others out of memory, and of closed files strings will do. An open file's come in many pieces, and
 * the next put needs them. */
static int take_service(struct totals *t, struct str name)
{
	int r = 0;

	if (t->name.len && str_eq(t->name, name))
		return 0;
	leave_service(t);
	if (!t->p->compacted || !t->is_long)
		r = service_get(t->p, name, &t->service);
	else
		t->service = service_peek(t->p, name);
	if (r == 0 && !t->service)
		r = service_strings(t->db, name, &t->plain, &t->strings);
	if (r == 0)
		t->name = name;
	return r;
}

static void totals_release(struct totals *t)
{
	header_release(&t->header);
	point_names_release(&t->names);
	dictionary_strings_release(&t->strings);
	buf_release(&t->plain);
}

static int read_row(struct totals *t, struct str bytes)
{
	const struct header_texts texts = { t->service ? &t->service->dictionary : NULL, &t->strings };
	int r;

	if (t->service)
		(void)pthread_mutex_lock(&t->service->lock);
	r = read_header(&texts, bytes, &t->header);
	r = r ? r : point_names_take(&t->names, &texts, &t->header);
	if (t->service)
		(void)pthread_mutex_unlock(&t->service->lock);
	return r;
}

static int visit_row(struct totals *t, const struct store_series *series)
{
	struct store_point point;
	int r = read_row(t, db_column(t->stmt, 1));

	if (r < 0)
		return r == -EBADMSG ? 0 : r; /* a damaged row has no point */
	point = point_of(&t->names, &t->header, series, (uint64_t)sqlite3_column_int64(t->stmt, 0));
	return t->visit(t->ctx, &point);
}

/* The dictionary is looked at behind the first row: what the rows refer to was in it before they were. */
static int total_series(struct totals *t, const struct series_row *series, const struct store_selector *sel)
{
	int r;

	bind_series_range(t->stmt, series->id, sel);
	while ((r = db_step(t->stmt)) == 1) {
		r = take_service(t, series->series.service);
		r = r ? r : visit_row(t, &series->series);
		if (r)
			break;
	}
	(void)sqlite3_reset(t->stmt);
	return r;
}

static int total_partition(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx)
{
	scoped(series_list_release) struct series_list list = { 0 };
	struct totals *t = ctx;
	int r = read_series(reader->db, sel, &list);

	t->p = p;
	t->db = reader->db;
	r = r ? r
	      : db_prepare(reader->db,
			   "SELECT t, header FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3 AND form = 0"
			   " ORDER BY t",
			   &t->stmt);
	for (size_t i = 0; r == 0 && i < list.count; i++)
		r = total_series(t, &list.items[i], sel);
	db_finalizep(&t->stmt);
	leave_service(t);
	return r;
}

int sqlite_totals(struct store_state *state, const struct store_selector *sel, store_point_fn *visit, void *ctx)
{
	scoped(totals_release) struct totals t = { .visit = visit,
						   .ctx = ctx,
						   .is_long = sel->to_ns - sel->from_ns > LONG_RANGE_NS,
						   .names.texts = BUF_INIT(DICTIONARY_BYTES_MAX),
						   .plain = BUF_INIT(DICTIONARY_CHUNK_MAX) };

	dictionary_strings_init(&t.strings);
	return partition_each((struct sqlite_state *)state, sel, total_partition, &t);
}
