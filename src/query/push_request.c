/* SPDX-License-Identifier: Apache-2.0 */
#include "query/push_request.h"

#include "base/array.h"
#include "base/wire.h"
#include "codec/json.h"
#include "net/http_parse.h"

void push_request_release(struct push_request *p)
{
	free(p->series);
	free(p->labels);
	free(p->profiles);
	buf_release(&p->text);
	*p = (struct push_request){ 0 };
}

static int begin_series(struct push_request *p)
{
	int r = array_grow(&p->series, &p->series_cap, p->series_count, PUSH_PROFILES_MAX);

	if (r == 0)
		p->series[p->series_count++] = (struct push_series){ .first_label = (uint32_t)p->labels_count };
	return r;
}

/* To the last series. */
static int add_label(struct push_request *p, struct store_label label)
{
	struct push_series *series = &p->series[p->series_count - 1];
	int r = series->label_count == PUSH_LABELS_MAX ? -E2BIG : 0;

	r = r ? r
	      : array_grow(&p->labels, &p->labels_cap, p->labels_count, (size_t)PUSH_PROFILES_MAX * PUSH_LABELS_MAX);
	if (r < 0)
		return r;
	p->labels[p->labels_count++] = label;
	series->label_count++;
	return 0;
}

static int add_profile(struct push_request *p, struct push_profile profile)
{
	int r = array_grow(&p->profiles, &p->profiles_cap, p->profiles_count, PUSH_PROFILES_MAX);

	profile.series = (uint32_t)p->series_count - 1;
	if (r == 0)
		p->profiles[p->profiles_count++] = profile;
	return r;
}

static int finish(struct push_request *p, int r, struct push_request *out)
{
	if (r < 0)
		push_request_release(p);
	else
		*out = *p;
	return r;
}

/* Protobuf. The numbers are those of push.proto. */

enum { REQUEST_SERIES = 1, SERIES_LABELS = 1, SERIES_SAMPLES = 2, PAIR_FIRST = 1, PAIR_SECOND = 2 };

/* LabelPair and RawSample are both two texts under 1 and 2. */
static int read_pair(struct cur c, struct str *first, struct str *second)
{
	struct wire_field f;

	*first = *second = STR("");
	while (wire_next(&c, &f)) {
		if ((f.number != PAIR_FIRST && f.number != PAIR_SECOND) || !wire_fits(&c, &f, WIRE_BYTES))
			continue;
		*(f.number == PAIR_FIRST ? first : second) = wire_str(&f);
	}
	return c.bad ? -EBADMSG : 0;
}

static int read_series(struct push_request *p, struct cur c)
{
	struct push_profile profile = { 0 };
	struct store_label label;
	struct wire_field f;
	int r = begin_series(p);

	while (r == 0 && wire_next(&c, &f)) {
		if ((f.number != SERIES_LABELS && f.number != SERIES_SAMPLES) || !wire_fits(&c, &f, WIRE_BYTES))
			continue;
		if (f.number == SERIES_LABELS) {
			r = read_pair(f.bytes, &label.key, &label.value);
			r = r ? r : add_label(p, label);
		} else {
			r = read_pair(f.bytes, &profile.bytes, &profile.id);
			r = r ? r : add_profile(p, profile);
		}
	}
	return r ? r : c.bad ? -EBADMSG : 0;
}

int push_request_proto(struct str body, struct push_request *out)
{
	struct push_request p = { 0 };
	struct cur c = cur_of(body.ptr, body.len);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f))
		if (f.number == REQUEST_SERIES && wire_fits(&c, &f, WIRE_BYTES))
			r = read_series(&p, f.bytes);
	return finish(&p, r ? r : c.bad ? -EBADMSG : 0, out);
}

/* JSON */

static bool is_null(struct str value)
{
	return str_eq(value, STR("null"));
}

static bool has_name(struct str key, const char *name)
{
	return key.len >= 2 && str_eq(str_n(key.ptr + 1, key.len - 2), str_of(name));
}

/* The room for all of it was made before: views of what was decoded earlier stay where they are. */
static int take_text(struct push_request *p, struct str value, struct str *out)
{
	size_t at = p->text.len;
	int r = is_null(value) ? 0 : json_text(value, &p->text);

	*out = str_n(p->text.ptr + at, p->text.len - at);
	return r == -E2BIG ? -EBADMSG : r; /* only text that is no UTF-8 grows */
}

/* base64, also in the alphabet for URLs. */
static int take_bytes(struct push_request *p, struct str value, struct str *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(value.len + 1);
	size_t at = p->text.len;
	int r = is_null(value) ? 0 : json_text(value, &text);

	for (size_t i = 0; i < text.len; i++)
		text.ptr[i] = text.ptr[i] == '-' ? '+' : text.ptr[i] == '_' ? '/' : text.ptr[i];
	r = r ? r : http_base64(buf_str(&text), &p->text);
	*out = str_n(p->text.ptr + at, p->text.len - at);
	return r == -E2BIG ? -EBADMSG : r;
}

static int json_label(struct push_request *p, struct str object)
{
	struct store_label label = { STR(""), STR("") };
	struct str key, value;
	int r = 0;

	while (r == 0 && json_member(&object, &key, &value)) {
		if (has_name(key, "name"))
			r = take_text(p, value, &label.key);
		else if (has_name(key, "value"))
			r = take_text(p, value, &label.value);
	}
	return r ? r : add_label(p, label);
}

static int json_sample(struct push_request *p, struct str object)
{
	struct push_profile profile = { .bytes = STR(""), .id = STR("") };
	struct str key, value;
	int r = 0;

	while (r == 0 && json_member(&object, &key, &value)) {
		if (has_name(key, "rawProfile") || has_name(key, "raw_profile"))
			r = take_bytes(p, value, &profile.bytes);
		else if (has_name(key, "ID"))
			r = take_text(p, value, &profile.id);
	}
	return r ? r : add_profile(p, profile);
}

/* Elements of an array of objects. */
static int json_each(struct push_request *p, struct str array, int (*read)(struct push_request *, struct str))
{
	struct str key, value;
	int r = is_null(array) || (array.len && array.ptr[0] == '[') ? 0 : -EBADMSG;

	while (r == 0 && json_member(&array, &key, &value))
		r = value.len && value.ptr[0] == '{' ? read(p, value) : -EBADMSG;
	return r;
}

static int json_series(struct push_request *p, struct str object)
{
	struct str key, value;
	int r = begin_series(p);

	while (r == 0 && json_member(&object, &key, &value)) {
		if (has_name(key, "labels"))
			r = json_each(p, value, json_label);
		else if (has_name(key, "samples"))
			r = json_each(p, value, json_sample);
	}
	return r;
}

int push_request_json(struct str body, size_t text_max, struct push_request *out)
{
	struct push_request p = { .text = BUF_INIT(body.len + 1) };
	struct str rest = body, object, key, value;
	int r = json_value(&rest, &object);

	if (r < 0 || str_trim(rest).len || !object.len || object.ptr[0] != '{')
		return -EBADMSG;
	if (body.len > text_max)
		return -EFBIG;
	r = buf_reserve(&p.text, body.len + 1) ? 0 : p.text.error;
	while (r == 0 && json_member(&object, &key, &value))
		if (has_name(key, "series"))
			r = json_each(&p, value, json_series);
	return finish(&p, r, out);
}
