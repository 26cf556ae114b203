/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is fake_inline, as libjvm is HotSpot: for programs that have another runtime. */
#include "fake_runtime.h"

struct fake_inline_state fake_inline_state = { .ready = 1, .version = 1 };
