/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/speedscope.h"

#define BOM "\xef\xbb\xbf"

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return speedscope_encode(w, &usual, out);
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return speedscope_decode(bytes, &(struct codec_limits){ 0 }, out, error);
}

/* An object that names its schema. Some writers escape the slashes of that address. */
static int sniff(struct str bytes)
{
	struct str head = str_first(bytes, KIB(4)), text;

	if (str_starts(head, STR(BOM)))
		head = str_skip(head, strlen(BOM));
	text = str_trim(head);
	return str_starts(text, STR("{")) && str_search(text, STR("\"$schema\"")) >= 0 &&
	       str_search(text, STR("www.speedscope.app")) >= 0;
}

static const char *const suffixes[] = { ".speedscope.json", ".speedscope", NULL };

const struct codec codec_speedscope = {
	.name = "speedscope",
	.suffixes = suffixes,
	.help = "JSON as www.speedscope.app and its npm package read it",
	.encode = encode,
	.encode_as = speedscope_encode,
	.sniff = sniff,
	.decode = decode,
	.decode_limited = speedscope_decode,
};
