/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests with the kernel share. */
#pragma once

#include "support.h"

/** bpf_tests_skip - ends the program with 77 and the reason where BPF cannot be used. */
void bpf_tests_skip(void);
