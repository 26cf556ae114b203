/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process has code that its runtime's compiler made: what runtime.sync() says of those whose code lies in
 * mappings that can be told by their lines in /proc/PID/maps. */
#pragma once

#include <linux/types.h>

#include "abi/runtimes.h"
#include "runtime/runtime.h"

/** code_ranges_fn - @maps: the file's text. @ranges: ABI_CODE_RANGES. Pure. Return: how many, or -errno, as sync(). */
typedef int code_ranges_fn(struct str maps, struct abi_code_range *ranges);

/** code_ranges_read - Return: as @find, or -errno: the file cannot be read. */
int code_ranges_read(const struct runtime_target *target, code_ranges_fn *find,
		     struct abi_code_range *ranges) warn_unused;
