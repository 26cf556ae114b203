/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nodejs/versions/versions.h"

#include "base/base.h"

static const struct nodejs_version versions[] = {
	{ .major = 10,
	  .minor = 2,
	  .node = 18,
	  .sfi_data = 8,
	  .bytecode_positions = 32,
	  .code_deopt = 16,
	  .code_positions = 24,
	  .code_size = 40,
	  .code_flags = 48,
	  .kind_baseline = 11,
	  .kind_turbofan = 13,
	  .deopt_inlined_count = 1,
	  .deopt_literals = 2,
	  .deopt_sfi = 6,
	  .deopt_inlining = 7 },
	{ .major = 11,
	  .minor = 3,
	  .node = 20,
	  .sfi_data = 8,
	  .bytecode_positions = 32,
	  .code_deopt = 16,
	  .code_positions = 24,
	  .code_start = 40,
	  .code_size = 56,
	  .code_flags = 48,
	  .stream_code = 8,
	  .kind_baseline = 11,
	  .kind_maglev = 12,
	  .kind_turbofan = 13,
	  .deopt_inlined_count = 1,
	  .deopt_literals = 2,
	  .deopt_sfi = 6,
	  .deopt_inlining = 7 },
	{ .major = 12,
	  .minor = 4,
	  .node = 22,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_size = 52,
	  .code_flags = 48,
	  .stream_code = 8,
	  .kind_baseline = 10,
	  .kind_maglev = 11,
	  .kind_turbofan = 12,
	  .deopt_inlined_count = 1,
	  .deopt_literals = 2,
	  .deopt_sfi = 6,
	  .deopt_inlining = 7 },
};

const struct nodejs_version *nodejs_version_find(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
