/* SPDX-License-Identifier: Apache-2.0 */
/* Computed from the headers of 5.28.3, 5.30.3, 5.32.1, 5.34.3, 5.36.0, 5.38.2, 5.40.1 and 5.42.3: intrpvar.h, cop.h,
 * hv.h. The same with and without threads. */
#include "runtime/perl/versions/layouts.h"

static const struct perl_version versions[] = {
	{ .first = 28, .last = 30, .layout = { .interp_cop = 224, .context = 96, .context_cv = 64, .info_type = 40 } },
	{ .first = 32, .last = 32, .layout = { .interp_cop = 224, .context = 104, .context_cv = 72, .info_type = 44 } },
	{ .first = 34, .last = 34, .layout = { .interp_cop = 208, .context = 104, .context_cv = 72, .info_type = 44 } },
	{ .first = 36,
	  .last = 42,
	  .aux_in_body = true,
	  .layout = { .interp_cop = 208, .context = 104, .context_cv = 72, .info_type = 44 } },
};

const struct perl_version *perl_version_at(size_t index)
{
	return index < ARRAY_SIZE(versions) ? &versions[index] : NULL;
}

const struct perl_version *perl_version_find(unsigned int version)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (version >= versions[i].first && version <= versions[i].last && version % 2 == 0)
			return &versions[i];
	return NULL;
}
