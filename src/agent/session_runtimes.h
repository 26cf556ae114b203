/* SPDX-License-Identifier: Apache-2.0 */
/* What a session tells the runtimes of its processes, on the reader's thread. */
#pragma once

#include "agent/session_int.h"
#include "unwind/in_line.h"

/** session_choose_runtimes - s->wanted: all of the registry but those that are not wanted. */
void session_choose_runtimes(struct session *s);
/** session_open_runtimes - @sink: where they put what walkers must know; NULL: nowhere. Nothing when runtimes are not
 * wanted. */
int session_open_runtimes(struct session *s, const struct runtime_sink *sink) warn_unused;
/** session_in_line - what the unwinder asks of them; @out is good for as long as @s, and may be asked before they are
 * open. */
void session_in_line(struct session *s, struct in_line *out);
int session_close_runtimes(struct session *s); /* -ETIMEDOUT: see runtimes_close() */
void session_see(struct session *s, struct proc *p);
void session_forget(struct session *s, const struct program *program);
void session_drop(struct session *s, const struct proc *p);
void session_process(struct session *s, const struct abi_process *event);
void session_name(struct session *s, const struct abi_name *name);
