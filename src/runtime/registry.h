/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes that there are: one line each, here and in registry.c. */
#pragma once

#include "runtime/runtime.h"

extern const struct runtime runtime_python;
