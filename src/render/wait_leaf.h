/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost frames of a wait are the kernel's scheduler, always the same: tables and pages show what waited. */
#pragma once

#include "model/model.h"

/** wait_leaf_value - does column @value count waits (off_cpu, waits)? */
bool wait_leaf_value(const struct model *m, size_t value);
/** wait_leaf_stack - @stack without the scheduler's frames at its leaf; with them when there are no others. */
uint32_t wait_leaf_stack(const struct model *m, uint32_t stack);
