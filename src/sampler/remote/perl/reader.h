/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's row of remote/readers.c. */
#pragma once

#include "sampler/remote/readers.h"

extern const struct remote_reader remote_perl_reader;
