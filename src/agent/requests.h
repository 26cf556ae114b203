/* SPDX-License-Identifier: Apache-2.0 */
/* What workers of web servers were busy with, by the number that their samples have (struct abi_request), until the
 * samples have come. The texts are those of strangers: they are made safe to show here. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/buf.h"
#include "proc/program.h"

#define REQUESTS_HALF 8192 /* of so many the ones used last are kept; at most twice as many */

struct requests;

int requests_new(struct requests **out) warn_unused;
void requests_free(struct requests *r); /* NULL is fine */

/** requests_put - learn what a number stands for. Return: 0 or -ENOMEM. */
int requests_put(struct requests *r, const struct abi_request *request) warn_unused;
/**
 * requests_find - what a program was busy with
 * @path: of the URI; empty: it has none. Both are borrowed until the next call.
 * Return: false: it is not known.
 */
bool requests_find(struct requests *r, const struct program *program, uint64_t key, struct str *script,
		   struct str *path);
/** requests_want_recall - was one asked for that is not known (any more)? True once. */
bool requests_want_recall(struct requests *r);

/** requests_script, requests_path - append what is shown of a record's text. Pure. */
void requests_script(const char text[ABI_REQUEST_TEXT_SIZE], struct buf *out);
void requests_path(const char text[ABI_REQUEST_TEXT_SIZE], struct buf *out);
