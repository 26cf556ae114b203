/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/utf8.h"
#include "net/envelope.h"

static void check_text(const char *text, size_t size)
{
	must(memchr(text, 0, size));
	must(utf8_valid(str_of(text)));
	for (; *text; text++)
		must((unsigned char)*text >= 0x20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct envelope out;

	if (envelope_parse(str_n((const char *)data, size), &out) < 0)
		return 0;
	must(out.code == 0 || (out.code >= 100 && out.code <= 999));
	check_text(out.error, sizeof(out.error));
	check_text(out.id, sizeof(out.id));
	return 0;
}
