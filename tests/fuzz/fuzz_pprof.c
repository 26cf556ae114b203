/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_codec.h"

#include "codec/pprof.h"
#include "codec/window_codec.h"

/* Rows that may repeat, made distinct, are the rows that were looked up one by one. */
static void same_when_distinct(struct str bytes)
{
	scoped(window_release) struct window plain = { 0 }, loose = { 0 };
	scoped(buf_release) struct buf of_plain = BUF_INIT(MIB(64)), of_loose = BUF_INIT(MIB(64));
	const struct codec_limits keep = { .expanded_max = MIB(4) },
				  repeat = { .expanded_max = MIB(4), .may_repeat = true };
	struct codec_error error = { 0 };
	int r = pprof_decode_limited(bytes, &keep, &plain, &error);

	must(pprof_decode_limited(bytes, &repeat, &loose, &error) == r);
	if (r < 0)
		return;
	must(model_distinct(loose.model) == 0);
	r = codec_window.encode(&plain, &of_plain);
	must(codec_window.encode(&loose, &of_loose) == r);
	must(r < 0 || str_eq(buf_str(&of_plain), buf_str(&of_loose)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= KIB(64))
		same_when_distinct(str_n((const char *)data, size));
	return fuzz_codec("pprof", data, size);
}
