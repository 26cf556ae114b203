/* SPDX-License-Identifier: Apache-2.0 */
/* The one function of a fuzz target, called by libFuzzer or by replay.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
