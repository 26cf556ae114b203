/* SPDX-License-Identifier: Apache-2.0 */
/* What the unit tests share: cmocka, inputs against an unmapped page, failing allocations. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cur.h"

/* Ends this case as skipped and says why; scripts/count-tests shows the reason. */
#define skip_because(reason)                         \
	do {                                         \
		print_message("SKIP: " reason "\n"); \
		skip();                              \
	} while (0)

/**
 * guard_page - a copy of @bytes whose end touches an unmapped page: reading one byte too far traps, even without a
 * sanitizer. Stays until the program ends.
 */
struct cur guard_page(const void *bytes, size_t size);
struct cur guard_page_hex(const char *hex);

/**
 * fail_allocation - make the n-th allocation from now fail, once (0: none)
 *
 * Works on calls from code linked into the test program (linker --wrap). allocation_failed() tells whether it came to
 * it.
 */
void fail_allocation(unsigned long n);
bool allocation_failed(void);

/**
 * for_each_failing_allocation - run @body again and again with allocation 1, then 2, ... failing, until a run ends in
 * which none failed
 * @body: returns 0 or -ENOMEM and must leave nothing behind in either case
 */
void for_each_failing_allocation(int (*body)(void *ctx), void *ctx);

/** simulated_ns - for struct clock: @self is a uint64_t, the time in nanoseconds. */
uint64_t simulated_ns(void *self);
/** opens_map_files - may this program open what processes have mapped, /proc/PID/map_files? root without CAP_SYS_ADMIN
 * and CAP_CHECKPOINT_RESTORE may not. */
bool opens_map_files(void);

/** find_python - an interpreter of this version, "3.11": Debian's own, or one that pyenv has built. Return: whether
 * there is one. */
bool find_python(const char *version, char *path, size_t size);
