/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby's row of remote/readers.c. */
#pragma once

#include "sampler/remote/readers.h"

extern const struct remote_reader remote_ruby_reader;
