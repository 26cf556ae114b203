/* SPDX-License-Identifier: Apache-2.0 */
/* The form of compiled code that expand() reads. Texts lie within it. */
#include "fuzz.h"

#include "runtime/java/scopes.h"

static void check(struct cur form, const struct java_shown *shown, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct str texts[] = { shown[i].name, shown[i].file };

		for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
			must(!texts[t].len || ((const uint8_t *)texts[t].ptr >= form.pos &&
					       (const uint8_t *)texts[t].ptr + texts[t].len <= form.end));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur form = cur_of(data, size);
	struct java_shown shown[RUNTIME_EXPAND_MAX];

	for (uint32_t at = 0; at < 4096; at += 13) {
		size_t count = java_scopes_expand(form, at, at & 1, RUNTIME_EXPAND_MAX, shown);

		if (count == JAVA_SHOWN_LOST)
			continue;
		must(count <= RUNTIME_EXPAND_MAX);
		check(form, shown, count);
	}
	must(java_scopes_expand(form, UINT32_MAX, false, 1, shown) == 0 || size);
	return 0;
}
