/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of a runtime are called, read at first sight from the running process. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "sampler/remote/proc.h"

struct remote_names;

int remote_names_new(struct remote_names **out) warn_unused;
void remote_names_free(struct remote_names *n); /* NULL is fine */
/**
 * remote_names_read - read the record that names a frame, unless it was sent before
 * Texts count only when the function's cookie held before and after they were read. Return: borrowed until the next
 * call; NULL: it was sent before, or another function lies there by now.
 */
const struct abi_name *remote_names_read(struct remote_names *n, struct remote_process *p,
					 const struct abi_frame *frame, uint64_t now_ns);
/** remote_names_sent - it need not be read again. */
void remote_names_sent(struct remote_names *n, const struct remote_process *p, const struct abi_frame *frame);
/** remote_names_forget - return all records again. */
void remote_names_forget(struct remote_names *n);
