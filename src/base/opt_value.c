/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options from text. */
#include <ctype.h>

#include "base/opt_int.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "", NSEC_PER_SEC },
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
	{ 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },         { "K", KIB(1) },   { "M", MIB(1) },   { "G", GIB(1) },
	{ "KiB", KIB(1) }, { "MiB", MIB(1) }, { "GiB", GIB(1) }, { 0 },
};

/* "1.5s": digits, an optional fraction of up to nine digits, a unit. Fixed point, so that 0.1s is exactly 100 ms. */
static int parse_with_unit(struct str text, const struct unit *units, uint64_t *out)
{
	size_t digits = 0, fraction_digits = 0;
	uint64_t whole, fraction = 0, scale = 1, value;
	struct str rest;

	while (digits < text.len && isdigit((unsigned char)text.ptr[digits]))
		digits++;
	if (str_to_u64(str_first(text, digits), 0, UINT64_MAX, &whole) < 0)
		return -EBADMSG;
	rest = str_skip(text, digits);
	if (rest.len && rest.ptr[0] == '.') {
		rest = str_skip(rest, 1);
		while (fraction_digits < rest.len && isdigit((unsigned char)rest.ptr[fraction_digits]))
			fraction_digits++;
		if (fraction_digits > 9 || str_to_u64(str_first(rest, fraction_digits), 0, UINT64_MAX, &fraction) < 0)
			return -EBADMSG;
		rest = str_skip(rest, fraction_digits);
	}
	for (size_t i = 0; i < fraction_digits; i++)
		scale *= 10;
	for (; units->suffix; units++) {
		if (!str_eq(rest, str_of(units->suffix)))
			continue;
		if (__builtin_mul_overflow(whole, units->factor, &value) ||
		    __builtin_add_overflow(value, (uint64_t)((__uint128_t)fraction * units->factor / scale), &value))
			return -ERANGE;
		*out = value;
		return 0;
	}
	return -EBADMSG;
}

int opt_parse_duration(struct str text, uint64_t *out_ns)
{
	return parse_with_unit(text, duration_units, out_ns);
}

int opt_parse_size(struct str text, uint64_t *out_bytes)
{
	return parse_with_unit(text, size_units, out_bytes);
}

static int put_number(const struct opt *o, struct str text, void *at, struct buf *why)
{
	uint64_t value = 0, max = o->max ? o->max : UINT64_MAX;
	int r;

	if (o->type == OPT_UINT)
		r = str_to_u64(text, 0, UINT64_MAX, &value);
	else
		r = o->type == OPT_DURATION ? opt_parse_duration(text, &value) : opt_parse_size(text, &value);
	if (r == 0 && value >= o->min && value <= max) {
		memcpy(at, &value, sizeof(value));
		return 0;
	}
	buf_addf(why, "--%s: ", o->name);
	if (r == 0 && o->type == OPT_UINT)
		buf_addf(why, "%llu is not from %llu to %llu", (unsigned long long)value, (unsigned long long)o->min,
			 (unsigned long long)max);
	else if (r == 0)
		buf_addf(why, "'" STR_FMT "' is too %s", STR_ARG(text), value < o->min ? "small" : "large");
	else
		buf_addf(why, "'" STR_FMT "' is not %s", STR_ARG(text),
			 o->type == OPT_UINT       ? "a whole number"
			 : o->type == OPT_DURATION ? "a time such as 10, 1.5s, 200ms or 2m"
						   : "a size such as 64K or 8M");
	return -EINVAL;
}

void opt_add_similar(const struct similar *like, const char *dashes, struct buf *out)
{
	if (like->best)
		buf_addf(out, "; did you mean '%s%s'?", dashes, like->best);
}

static int put_choice(const struct opt *o, struct str text, void *at, struct buf *why)
{
	struct similar like = similar_to(text);

	for (size_t i = 0; o->choices[i]; i++) {
		if (!str_eq(text, str_of(o->choices[i])))
			continue;
		memcpy(at, &i, sizeof(i));
		return 0;
	}
	buf_addf(why, "--%s: '" STR_FMT "' is not one of", o->name, STR_ARG(text));
	for (size_t i = 0; o->choices[i]; i++) {
		buf_addf(why, "%s %s", i ? "," : "", o->choices[i]);
		similar_offer(&like, o->choices[i]);
	}
	opt_add_similar(&like, "", why);
	return -EINVAL;
}

int opt_is_yes(const char *text, bool *out)
{
	static const char *const yes[] = { "true", "1", "yes" }, *const no[] = { "false", "0", "no" };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		*out = !strcasecmp(text, yes[i]);
		if (*out || !strcasecmp(text, no[i]))
			return 0;
	}
	return -EBADMSG;
}

static int put_flag(const struct opt *o, const char *text, void *at, struct buf *why)
{
	bool on;

	if (opt_is_yes(text, &on) < 0) {
		buf_addf(why, "--%s: '%s' is not true or false", o->name, text);
		return -EINVAL;
	}
	if (o->type == OPT_FLAG)
		memcpy(at, &on, sizeof(on));
	else
		*(uint8_t *)at = on ? OPT_SWITCH_ON : OPT_SWITCH_OFF;
	return 0;
}

static int put_list(const struct opt *o, const char *text, struct opt_list *list, struct buf *why)
{
	if (list->count == OPT_LIST_MAX) {
		buf_addf(why, "--%s: given more than %d times", o->name, OPT_LIST_MAX);
		return -EINVAL;
	}
	list->items[list->count++] = text;
	return 0;
}

int opt_put(const struct opt *o, const char *text, void *config, struct buf *why)
{
	void *at = (char *)config + o->at;

	switch (o->type) {
	case OPT_FLAG:
	case OPT_SWITCH:
		return put_flag(o, text, at, why);
	case OPT_SIZE:
		if (o->choices && !strcmp(text, o->choices[0])) {
			memcpy(at, &(uint64_t){ UINT64_MAX }, sizeof(uint64_t));
			return 0;
		}
		return put_number(o, str_of(text), at, why);
	case OPT_UINT:
	case OPT_DURATION:
		return put_number(o, str_of(text), at, why);
	case OPT_CHOICE:
		return put_choice(o, str_of(text), at, why);
	case OPT_LIST:
		return put_list(o, text, at, why);
	case OPT_TEXT:
	case OPT_PATH:
		memcpy(at, &text, sizeof(text));
		return 0;
	}
	return -EINVAL;
}
