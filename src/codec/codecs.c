/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: one row per format. */
#include "codec/codec.h"

#include <stdarg.h>

#include "codec/col.h"
#include "codec/cpuprofile.h"
#include "codec/firefox.h"
#include "codec/folded.h"
#include "codec/gzip.h"
#include "codec/jfr.h"
#include "codec/otlp.h"
#include "codec/perf_data.h"
#include "codec/perf_script.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "codec/speedscope.h"
#include "codec/window_codec.h"

static const struct codec *const codecs[] = {
	&codec_window,     &codec_otlp,    &codec_pprof,     &codec_legacy,      &codec_jfr,    &codec_col,
	&codec_speedscope, &codec_firefox, &codec_perf_data, &codec_perf_script, &codec_folded, &codec_cpuprofile,
};

int codec_whole(const struct codec *c, const struct window *w, const struct codec_options *options, struct buf *out)
{
	void *state = NULL;
	int r = c->begin(w, options, &state);

	if (r < 0)
		return r;
	do
		r = c->next(state, SIZE_MAX, out);
	while (r > 0);
	c->end(state);
	return r;
}

int codec_encode(const struct codec *c, const struct window *w, const struct codec_options *options, struct buf *out)
{
	return c->encode_as ? c->encode_as(w, options, out) : c->encode(w, out);
}

size_t codec_value(const struct model *m, const struct codec_options *options, size_t usual)
{
	int named = options->value ? model_value_index(m, str_of(options->value)) : -1;

	return named < 0 ? usual : (size_t)named;
}

const struct codec *codec_at(size_t index)
{
	return index < ARRAY_SIZE(codecs) ? codecs[index] : NULL;
}

const struct codec *codec_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
		if (str_eq(str_of(codecs[i]->name), name))
			return codecs[i];
	return NULL;
}

struct str codec_suffix_of(const struct codec *c, struct str path)
{
	struct str best = str_skip(path, path.len);

	for (const char *const *suffix = c->suffixes; *suffix; suffix++)
		if (str_ends(path, str_of(*suffix)) && strlen(*suffix) > best.len)
			best = str_n(path.ptr + path.len - strlen(*suffix), strlen(*suffix));
	return best;
}

const struct codec *codec_for_path(struct str path)
{
	const struct codec *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
		size_t len = codec_suffix_of(codecs[i], path).len;

		if (len <= best_len)
			continue;
		best = codecs[i];
		best_len = len;
	}
	return best;
}

const struct codec *codec_sniff(struct str bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
		if (codecs[i]->sniff && codecs[i]->sniff(bytes))
			return codecs[i];
	return NULL;
}

bool codec_stopped(const struct codec_limits *limits, uint64_t done)
{
	if (limits->done)
		*limits->done = done;
	return limits->stop && limits->stop(limits->stop_ctx);
}

int codec_unpack(struct str bytes, const struct codec_limits *limits, size_t own_max, struct buf *room, struct str *out,
		 struct codec_error *error)
{
	size_t max = MIN(limits->expanded_max ? limits->expanded_max : own_max, own_max);
	int r;

	*room = (struct buf)BUF_INIT(max);
	*out = bytes;
	if (!gzip_is(bytes)) {
		if (bytes.len <= max)
			return 0;
		codec_fail(error, max, false, "larger than %zu bytes", max);
		return -E2BIG;
	}
	r = gzip_unpack(bytes, max, 0, room);
	*out = buf_str(room);
	if (r < 0)
		codec_fail(error, 0, false, "%s",
			   r == -EBADMSG ? "damaged gzip data"
			   : r == -E2BIG ? "gzip data expands too far"
					 : "out of memory");
	return r;
}

bool codec_next_line(struct str *rest, struct str *out)
{
	if (!rest->len || !str_next(rest, '\n', out))
		return false;
	if (out->len && out->ptr[out->len - 1] == '\r')
		out->len--;
	return true;
}

struct str codec_text(const struct codec_limits *limits, struct str text)
{
	size_t len = limits->text_max;

	if (!len || text.len <= len)
		return text;
	while (len && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
		len--;
	return str_first(text, len ? len : limits->text_max);
}

void codec_lose(struct codec_lost *lost, const char *format, ...)
{
	size_t len = lost ? strlen(lost->text) : 0, begin = len ? len + 2 : 0;
	va_list args;
	int n;

	if (!lost || begin + 1 >= sizeof(lost->text))
		return;
	va_start(args, format);
	n = vsnprintf(lost->text + begin, sizeof(lost->text) - begin, format, args);
	va_end(args);
	if (len && (n < 0 || (size_t)n >= sizeof(lost->text) - begin))
		lost->text[len] = 0; /* a whole one less, never a half one; the first is cut */
	else if (len)
		memcpy(lost->text + len, "; ", 2);
}

void codec_fail(struct codec_error *error, uint64_t position, bool is_line, const char *format, ...)
{
	va_list args;

	if (!error)
		return;
	error->position = position;
	error->is_line = is_line;
	va_start(args, format);
	(void)vsnprintf(error->reason, sizeof(error->reason), format, args); /* cut is fine */
	va_end(args);
}
