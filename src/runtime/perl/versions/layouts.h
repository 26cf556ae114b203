/* SPDX-License-Identifier: Apache-2.0 */
/* Where Perl keeps things, per version, as data. tests/runtime/check_perl_layouts.py recomputes the rows from the
 * headers of installed interpreters. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/perl.h"
#include "base/base.h"

struct perl_version {
	uint8_t first, last; /* minor versions of Perl 5; odd ones are for Perl's developers and not in here */
	bool aux_in_body;    /* ABI_PERL_AUX_IN_BODY */
	struct abi_perl_layout layout; /* but its version */
};

/** perl_version_find - the row of 5.@version; NULL: not known. */
const struct perl_version *perl_version_find(unsigned int version);
/** perl_version_at - the rows one by one; NULL behind the last. */
const struct perl_version *perl_version_at(size_t index);
