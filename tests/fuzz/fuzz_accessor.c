/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a short function, of which addresses are believed. */
#include "fuzz.h"

#include "object/accessor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct accessor_code code = { .bytes = data, .size = size, .address = 0x400000 };
	struct accessor_place place = { 0 };
	struct accessor_value value = { 0 };
	struct accessor_tls tls = { 0 };
	uint64_t at[8];
	size_t count = accessor_addresses(&code, at, ARRAY_SIZE(at));

	must(count <= ARRAY_SIZE(at));
	ignore(!accessor_load(&code, at));
	ignore(!accessor_int_argument(&code, at));
	must(accessor_argument(&code, &place) == (place.kind != ACCESSOR_NONE));
	must(accessor_thread_local(&code, &tls) == (tls.kind != ACCESSOR_TLS_NONE));
	ignore(!accessor_value(&code, &value));
	return 0;
}
