/* SPDX-License-Identifier: Apache-2.0 */
/* Which application a program is that many share: an interpreter, a virtual machine. docs/services.md has the rules. */
#pragma once

#include "base/buf.h"

#define APPLICATION_ARGV_MAX KIB(4) /* bytes of a command line that are looked at */

enum application_kind {
	APPLICATION_NONE,   /* the program's own name says it all, or nobody can tell */
	APPLICATION_NAMED,  /* "gunicorn: shop:app", "java: com.acme.Main", "server.js" */
	APPLICATION_SCRIPT, /* a shell's script, of which there are many in every build */
};

/** application_is_launcher - is its command line worth reading? @exe: a path. */
bool application_is_launcher(struct str exe);

/**
 * application_of - append what the launcher @exe runs
 * @argv: as /proc/PID/cmdline, each argument with a NUL behind it; programs may have written over it
 *
 * Return: what was found; nothing is appended with APPLICATION_NONE. Names are foreign bytes. Pure.
 */
enum application_kind application_of(struct str exe, struct str argv, struct buf *out);
