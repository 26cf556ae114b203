/* SPDX-License-Identifier: Apache-2.0 */
/* How each version of PHP lays out what the walker reads. */
#pragma once

#include <linux/types.h>

#include "abi/php.h"
#include "base/base.h"

struct php_version {
	uint8_t major, minor;
	/* Stacks of this version were compared with the program's own. Those of others are walked only without threads,
	 * and in a process whose memory agrees with the table. */
	bool is_tried;
	struct abi_php_layout layout;
};

/** php_version_find - NULL: not known. */
const struct php_version *php_version_find(unsigned int major, unsigned int minor);
/** php_version_at - one by one; NULL behind the last. */
const struct php_version *php_version_at(size_t index);
