/* SPDX-License-Identifier: Apache-2.0 */
/* Where Ruby keeps things, per version, as data: compiled from the headers of each tag. 2.7, 3.1 and 3.3 were run; the
 * others agree with their headers only. */
#pragma once

#include <linux/types.h>

#include "abi/ruby.h"
#include "base/base.h"

struct ruby_version {
	uint8_t major, minor;
	bool has_symbols; /* the table of symbols is an array of arrays */
	struct abi_ruby_layout layout;
};

/** ruby_version_find - the row for a version; NULL: not known. */
const struct ruby_version *ruby_version_find(unsigned int major, unsigned int minor);
/** ruby_version_at - the rows one by one; NULL behind the last. */
const struct ruby_version *ruby_version_at(size_t index);
