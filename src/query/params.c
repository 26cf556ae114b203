/* SPDX-License-Identifier: Apache-2.0 */
#include "query/params.h"

#include <ctype.h>
#include <time.h>

#include "base/opt.h"
#include "net/http_parse.h"
#include "store/store_int.h"

/* Times */

static bool takes_digits(struct str *text, size_t count, int *out)
{
	uint64_t value;

	if (text->len < count || str_to_u64(str_first(*text, count), 0, 9999, &value) < 0)
		return false;
	*out = (int)value;
	*text = str_skip(*text, count);
	return true;
}

static bool takes(struct str *text, char c)
{
	if (!text->len || text->ptr[0] != c)
		return false;
	*text = str_skip(*text, 1);
	return true;
}

static bool takes_date(struct str *text, struct tm *tm)
{
	bool fits = takes_digits(text, 4, &tm->tm_year) && takes(text, '-') && takes_digits(text, 2, &tm->tm_mon) &&
		    takes(text, '-') && takes_digits(text, 2, &tm->tm_mday) && takes(text, 'T') &&
		    takes_digits(text, 2, &tm->tm_hour) && takes(text, ':') && takes_digits(text, 2, &tm->tm_min) &&
		    takes(text, ':') && takes_digits(text, 2, &tm->tm_sec);

	return fits && tm->tm_mon >= 1 && tm->tm_mon <= 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31 &&
	       tm->tm_hour <= 23 && tm->tm_min <= 59 && tm->tm_sec <= 59;
}

/* Digits behind a point, as nanoseconds; what is finer is dropped. */
static bool takes_fraction(struct str *text, uint64_t *ns)
{
	uint64_t scale = NSEC_PER_SEC / 10;

	*ns = 0;
	if (!takes(text, '.'))
		return true;
	if (!text->len || !isdigit((unsigned char)text->ptr[0]))
		return false;
	for (; text->len && isdigit((unsigned char)text->ptr[0]); *text = str_skip(*text, 1), scale /= 10)
		*ns += scale * (uint64_t)(text->ptr[0] - '0');
	return true;
}

/* "Z", "+hh:mm", "-hh:mm" or nothing. A '+' that was not escaped has become a blank on the way. */
static bool takes_zone(struct str *text, int64_t *seconds)
{
	int hours, minutes, sign;

	*seconds = 0;
	if (!text->len || takes(text, 'Z'))
		return true;
	sign = text->ptr[0] == '-' ? -1 : 1;
	if (!takes(text, '+') && !takes(text, '-') && !takes(text, ' '))
		return false;
	if (!takes_digits(text, 2, &hours) || !takes(text, ':') || !takes_digits(text, 2, &minutes) || hours > 23 ||
	    minutes > 59)
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

static int calendar_time(struct str text, uint64_t *out)
{
	struct tm tm = { 0 }, check;
	uint64_t fraction;
	int64_t zone, seconds;

	if (!takes_date(&text, &tm) || !takes_fraction(&text, &fraction) || !takes_zone(&text, &zone) || text.len)
		return -EBADMSG;
	if (tm.tm_year == 1)
		return -EBADMSG;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	check = tm;
	seconds = timegm(&check);
	if (check.tm_mday != tm.tm_mday) /* a 31st of April */
		return -EBADMSG;
	seconds -= zone;
	if (seconds < 0)
		*out = 0;
	else if ((uint64_t)seconds >= (uint64_t)INT64_MAX / NSEC_PER_SEC)
		*out = (uint64_t)INT64_MAX;
	else
		*out = (uint64_t)seconds * NSEC_PER_SEC + fraction;
	return 0;
}

static int unix_time(struct str text, uint64_t *out)
{
	uint64_t value, factor = text.len <= 11   ? NSEC_PER_SEC
				 : text.len <= 14 ? NSEC_PER_MSEC
				 : text.len <= 17 ? NSEC_PER_USEC
						  : 1;

	if (str_to_u64(text, 0, UINT64_MAX, &value) < 0)
		return -EBADMSG;
	if (__builtin_mul_overflow(value, factor, &value) || value > (uint64_t)INT64_MAX)
		value = (uint64_t)INT64_MAX;
	*out = value;
	return 0;
}

int query_time(struct str text, uint64_t now_ns, uint64_t *out)
{
	bool negative;
	uint64_t span;

	if (text.len && isdigit((unsigned char)text.ptr[0]))
		return str_find(text, '-') >= 0 ? calendar_time(text, out) : unix_time(text, out);
	if (str_starts(text, STR("now")))
		text = str_skip(text, 3);
	else if (!text.len || text.ptr[0] != '-')
		return -EBADMSG;
	if (!text.len) {
		*out = now_ns;
		return 0;
	}
	negative = text.ptr[0] == '-';
	if ((!negative && text.ptr[0] != '+' && text.ptr[0] != ' ') || opt_parse_duration(str_skip(text, 1), &span) < 0)
		return -EBADMSG;
	if (negative)
		*out = now_ns > span ? now_ns - span : 0;
	else
		*out = span > (uint64_t)INT64_MAX - MIN(now_ns, (uint64_t)INT64_MAX) ? (uint64_t)INT64_MAX
										     : now_ns + span;
	return 0;
}

/* Labels */

void query_labels_release(struct query_labels *l)
{
	buf_release(&l->bytes);
	l->count = 0;
}

/* Decoding never grows: the room for all of the text was made before, so views stay where they are. */
static int decode_piece(struct query_labels *l, struct str text, bool escaped, struct str *out)
{
	size_t at = l->bytes.len;
	int r = 0;

	text = str_trim(text);
	if (escaped)
		r = http_decode(text, true, &l->bytes);
	else
		buf_adds(&l->bytes, text);
	*out = str_n(l->bytes.ptr + at, l->bytes.len - at);
	return r ? r : l->bytes.error;
}

static int add_pair(struct query_labels *l, struct str piece, bool escaped)
{
	ptrdiff_t equals = str_find(piece, '=');
	struct store_label label;
	int r = decode_piece(l, equals < 0 ? piece : str_first(piece, (size_t)equals), escaped, &label.key);

	r = r ? r : decode_piece(l, equals < 0 ? STR("") : str_skip(piece, (size_t)equals + 1), escaped, &label.value);
	if (r < 0 || !label.key.len)
		return r;
	if (l->count == STORE_LABELS_MAX || label.key.len > STORE_LABEL_KEY_MAX ||
	    label.value.len > STORE_LABEL_VALUE_MAX)
		return -E2BIG;
	l->items[l->count++] = label;
	return 0;
}

static int parse_pairs(struct str text, bool escaped, struct query_labels *out)
{
	struct query_labels l = { .bytes = BUF_INIT(text.len + 1) };
	struct str rest = text, piece;
	int r = buf_reserve(&l.bytes, text.len + 1) ? 0 : l.bytes.error;

	while (r == 0 && str_next(&rest, ',', &piece))
		r = add_pair(&l, piece, escaped);
	if (r < 0) {
		query_labels_release(&l);
		return r;
	}
	store_labels_sort(l.items, l.count);
	*out = l;
	return 0;
}

int query_labels_parse(struct str text, struct query_labels *out)
{
	return parse_pairs(text, true, out);
}

int query_name_parse(struct str text, struct str *name, struct query_labels *out)
{
	ptrdiff_t open = str_find(text, '{'), end;
	struct str pairs = open < 0 ? STR("") : str_skip(text, (size_t)open + 1);
	int r;

	end = str_find(pairs, '}');
	r = parse_pairs(end < 0 ? pairs : str_first(pairs, (size_t)end), false, out);
	if (r == 0)
		*name = str_trim(open < 0 ? text : str_first(text, (size_t)open));
	return r;
}

/* Types */

static const char *const types[] = { "cpu",   "heap",  "block",  "mutex", "goroutine", "threadcreate",
				     "other", "trace", "allocs", "wall",  "offcpu",    "exceptions" };

bool query_type_known(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (str_eq(name, str_of(types[i])))
			return true;
	return false;
}

struct str query_type_detect(const struct model *m)
{
	if (model_value_index(m, STR("cpu")) >= 0)
		return STR("cpu");
	if (model_value_index(m, STR("wall")) >= 0)
		return STR("wall");
	if (model_value_index(m, STR("off_cpu")) >= 0)
		return STR("offcpu");
	if (model_value_index(m, STR("inuse_space")) >= 0 || model_value_index(m, STR("alloc_space")) >= 0 ||
	    model_value_index(m, STR("space")) >= 0)
		return str_eq(model_string(m, m->default_type), STR("alloc_space")) ? STR("allocs") : STR("heap");
	if (model_value_index(m, STR("goroutine")) >= 0)
		return STR("goroutine");
	if (model_value_index(m, STR("threadcreate")) >= 0)
		return STR("threadcreate");
	return STR("other");
}

/* "go 1.22 trace" and NULs up to 16 bytes. Source: go, internal/trace, the header of an execution trace. */
bool query_is_trace(struct str bytes)
{
	struct str head = str_first(bytes, 16);

	return bytes.len >= 16 && str_starts(head, STR("go 1.")) && str_search(head, STR(" trace")) > 0;
}
