/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a recording's code from the files of this machine, as far as they are what was recorded. */
#pragma once

#include "codec/code_names.h"

#define LOCAL_NAMES_NOTE 300 /* bytes, for local_names_note() */

struct local_names;

/**
 * local_names_open - nothing is read before the first question
 *
 * Files are believed when their build id is the recorded one: at the recorded path, or below ~/.debug, where perf keeps
 * copies. The kernel's list is, when the kernel's build id is the recorded one and _text lies where it lay. Jitdumps
 * are read when the pid in their name is the one in them. Return: 0 or -ENOMEM.
 */
int local_names_open(struct local_names **out) warn_unused;
void local_names_close(struct local_names *n); /* NULL is fine */
const struct code_names *local_names_get(const struct local_names *n);
/** local_names_note - one line on what could not be named and why; empty: all could. @room holds it. */
const char *local_names_note(const struct local_names *n, char room[LOCAL_NAMES_NOTE]);
