/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows for the Python extension "greenlet", on which gevent and eventlet stand. It moves stacks in pieces: all
 * greenlets of a thread use one stack, and what the next one needs is copied to the heap and back. A greenlet's stack
 * begins where its function was called. What lies above that belongs to whoever ran there last, so a walk must not go
 * on. docs/python.md, "Greenlets", says what is proven how.
 *
 * Sources: greenlet 0.4.17, 1.1.3, 2.0.2, 3.0.3, 3.1.1, 3.5.6: platform/switch_amd64_unix.h and
 * switch_aarch64_gcc.h, greenlet.c or TGreenlet.cpp and TUserGreenlet.cpp. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_GREENLET_CODE_MAX MIB(4)     /* bytes of code: 100 KiB in greenlet 3.5 */
#define UNWIND_GREENLET_SYMBOLS_MAX 65536   /* 800 in greenlet 2.0 */
#define UNWIND_GREENLET_FUNCTIONS_MAX 65536 /* 600 in greenlet 2.0 */

/**
 * unwind_greenlet_read - append spans: where greenlets begin (STOP), and where a stack is being moved (MOVED)
 *
 * When the code that moves stacks is there and the place where they begin is not found, all of the file's code is MOVED
 * with ABI_MOVED_UNKNOWN. Return: as cfi_read(); 0 and nothing when the file is not greenlet's.
 */
int unwind_greenlet_read(const struct elf *elf, struct cfi *out) warn_unused;
