/* SPDX-License-Identifier: Apache-2.0 */
/* The engines, and what they share. */
#include "base/random.h"
#include "base/wire.h"
#include "store/store_int.h"

static const struct store *const stores[] = { &store_sqlite, &store_memory };

const struct store *store_at(size_t index)
{
	return index < ARRAY_SIZE(stores) ? stores[index] : NULL;
}

const struct store *store_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(stores); i++)
		if (str_eq(name, str_of(stores[i]->name)))
			return stores[i];
	return NULL;
}

void store_document_release(struct store_document *d)
{
	window_release(&d->window);
	buf_release(&d->raw);
}

/* Ids: base32hex of RFC 4648 in lower case without padding, five bits a character, the last four bits zero. */

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

void store_id_text(const struct store_id *id, char out[STORE_ID_TEXT + 1])
{
	uint32_t bits = 0, held = 0;
	size_t at = 0;

	for (size_t i = 0; i < STORE_ID_SIZE; i++) {
		bits = bits << 8 | id->bytes[i];
		for (held += 8; held >= 5; held -= 5)
			out[at++] = digits[bits >> (held - 5) & 31];
	}
	out[at++] = digits[bits << (5 - held) & 31];
	out[at] = 0;
	must(at == STORE_ID_TEXT);
}

int store_id_parse(struct str text, struct store_id *out)
{
	struct store_id id = { 0 };
	uint32_t bits = 0, held = 0;
	size_t at = 0;

	if (text.len != STORE_ID_TEXT)
		return -EBADMSG;
	for (size_t i = 0; i < text.len; i++) {
		const char *digit = memchr(digits, text.ptr[i], sizeof(digits) - 1);

		if (!digit)
			return -EBADMSG;
		bits = bits << 5 | (uint32_t)(digit - digits);
		held += 5;
		if (held < 8)
			continue;
		held -= 8;
		id.bytes[at++] = (uint8_t)(bits >> held);
	}
	if (bits & ((1U << held) - 1)) /* a second spelling of the same id */
		return -EBADMSG;
	*out = id;
	return 0;
}

void store_ids_init(struct store_ids *ids)
{
	ids->next = random_u64(); /* counts on from there: unique in the process, and unlikely to meet another's */
}

void store_id_make(struct store_ids *ids, uint64_t created_ns, struct store_id *out)
{
	uint64_t seconds = created_ns / NSEC_PER_SEC, rest = ids->next++;

	for (size_t i = 0; i < 4; i++)
		out->bytes[i] = (uint8_t)(seconds >> (24 - 8 * i));
	for (size_t i = 0; i < 8; i++)
		out->bytes[4 + i] = (uint8_t)(rest >> (56 - 8 * i));
}

static bool is_in_time(const struct store_config *config, const struct store_upload *upload)
{
	uint64_t now = clock_wall_ns(config->clock), at = upload->created_ns;

	if (upload->any_time)
		return true;
	if (at > now)
		return !config->ahead_max_ns || at - now <= config->ahead_max_ns;
	return !config->past_max_ns || now - at <= config->past_max_ns;
}

int store_upload_check(const struct store_config *config, const struct store_upload *upload)
{
	if (!upload->service.len || !upload->type.len)
		return -EINVAL;
	if (upload->service.len > STORE_NAME_MAX || upload->type.len > STORE_NAME_MAX ||
	    upload->label_count > STORE_LABELS_MAX || upload->request_key.len > STORE_REQUEST_KEY_MAX ||
	    upload->raw.len > STORE_RAW_MAX)
		return -E2BIG;
	for (size_t i = 0; i < upload->label_count; i++)
		if (upload->labels[i].key.len > STORE_LABEL_KEY_MAX ||
		    upload->labels[i].value.len > STORE_LABEL_VALUE_MAX)
			return -E2BIG;
	if (upload->created_ns / NSEC_PER_SEC > UINT32_MAX)
		return -ERANGE;
	return is_in_time(config, upload) ? 0 : -ETIME;
}

/* Labels */

void store_labels_sort(struct store_label *labels, size_t count)
{
	for (size_t i = 1; i < count; i++) { /* insertion: stable, and there are at most STORE_LABELS_MAX */
		struct store_label label = labels[i];
		size_t at = i;

		for (; at && str_cmp(labels[at - 1].key, label.key) > 0; at--)
			labels[at] = labels[at - 1];
		labels[at] = label;
	}
}

void store_labels_pack(const struct store_label *labels, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		wire_add_varint(out, labels[i].key.len);
		buf_adds(out, labels[i].key);
		wire_add_varint(out, labels[i].value.len);
		buf_adds(out, labels[i].value);
	}
}

static struct str unpack_text(struct cur *c)
{
	uint64_t size = wire_varint(c);
	struct cur text = cur_sub(c, size);

	return cur_rest(&text);
}

int store_labels_unpack(struct str bytes, struct store_label out[STORE_LABELS_MAX], size_t *count)
{
	struct cur c = cur_of(bytes.ptr, bytes.len);
	size_t found = 0;

	while (cur_left(&c)) {
		if (found == STORE_LABELS_MAX)
			return -EBADMSG;
		out[found].key = unpack_text(&c);
		out[found++].value = unpack_text(&c);
	}
	if (c.bad)
		return -EBADMSG;
	*count = found;
	return 0;
}

static bool has_label(const struct store_series *series, const struct store_label *wanted)
{
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].key, wanted->key) && str_eq(series->labels[i].value, wanted->value))
			return true;
	return false;
}

int store_series_order(const struct store_series *a, const struct store_series *b)
{
	int order = str_cmp(a->service, b->service);

	order = order ? order : str_cmp(a->type, b->type);
	for (size_t i = 0; !order && i < MIN(a->label_count, b->label_count); i++) {
		order = str_cmp(a->labels[i].key, b->labels[i].key);
		order = order ? order : str_cmp(a->labels[i].value, b->labels[i].value);
	}
	return order ? order : (a->label_count > b->label_count) - (a->label_count < b->label_count);
}

static int name_order(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int store_visit_names(const struct intern *names, store_service_fn *visit, void *ctx)
{
	size_t count = intern_count(names) - 1; /* without the empty text, which is none's */
	scoped(freep) struct str *all = calloc(count + 1, sizeof(*all));
	int r = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		all[i] = intern_get(names, (uint32_t)i + 1);
	qsort(all, count, sizeof(*all), name_order);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = visit(ctx, all[i]);
	return r;
}

bool store_selects(const struct store_selector *sel, const struct store_series *series)
{
	if ((sel->service.len && !str_eq(sel->service, series->service)) ||
	    (sel->type.len && !str_eq(sel->type, series->type)))
		return false;
	for (size_t i = 0; i < sel->label_count; i++)
		if (!has_label(series, &sel->labels[i]))
			return false;
	return !sel->fits || sel->fits(sel->fits_ctx, series);
}
