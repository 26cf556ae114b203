/* SPDX-License-Identifier: Apache-2.0 */
#include "render/classes.h"

#include <inttypes.h>

void classes_add_shares(const struct window_classes *classes, int decimals, struct buf *out)
{
	const struct {
		uint64_t part;
		const char *before, *name;
		bool always;
	} parts[] = {
		{ classes->whole, "", "whole", true },
		{ classes->guessed, ", ", "guessed", true },
		{ classes->lost, ", ", "lost", false },
		{ classes->cut, ", ", "cut", true },
	};
	const double all = (double)classes->user + (double)classes->lost;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].always || parts[i].part)
			buf_addf(out, "%s%.*f %% %s", parts[i].before, decimals,
				 all > 0 ? 100 * (double)parts[i].part / all : 0, parts[i].name);
}

void classes_add_jit(uint64_t samples, enum jit_kind kind, struct buf *out)
{
	buf_addf(out, "%" PRIu64 " sample%s of %s ha%s JIT code without names: %s", samples, samples == 1 ? "" : "s",
		 jit_kind_name(kind), samples == 1 ? "s" : "ve", jit_kind_advice(kind));
}
