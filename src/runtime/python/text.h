/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's text and bytes objects as they lie in the memory of a running process: where their characters are, a copy
 * of their beginning, and what that is in UTF-8. The one reader of user space; bpf/python.h does the same in the
 * kernel, where nothing of src/ can be used. */
#pragma once

#include <linux/types.h>

#include "abi/python.h"
#include "base/buf.h"
#include "base/cur.h"

#define PYTHON_OBJECT_SIZE_MAX (INT32_MAX / 4) /* characters or bytes; an object that says more is none */

struct python_memory { /* of the process */
	/* Return: 0 when all @size bytes were read, -errno. */
	int (*read)(void *self, void *dst, uint32_t size, uint64_t at);
	void *self;
};

struct python_text {
	uint64_t at;   /* of the first byte */
	uint32_t size; /* bytes */
	uint8_t form;  /* enum abi_python_text */
};

/**
 * python_text_find - where the characters of the text object at @object lie (2.7: of a byte string)
 * Return: 0; -EBADMSG: it is none, or its text lies elsewhere, as that of names of code never does; the reader's error.
 */
int python_text_find(const struct python_memory *m, const struct abi_python *info, uint64_t object,
		     struct python_text *out) warn_unused;
/** python_bytes_find - the same of a bytes object. */
int python_bytes_find(const struct python_memory *m, const struct abi_python_layout *l, uint64_t object,
		      struct python_text *out) warn_unused;
/**
 * python_text_copy - the first bytes of it, whole characters, at most @max
 * @to: room for @max bytes. Return: how many; the reader's error.
 */
int64_t python_text_copy(const struct python_memory *m, const struct python_text *text, uint32_t max,
			 uint8_t *to) warn_unused;
/**
 * python_text_add - append @bytes of the form @form as UTF-8
 *
 * Byte strings of 2.7 are in an encoding that nobody tells: what is no UTF-8 is taken as Latin-1. @is_cut: the text
 * goes on, so a character may be cut. Pure. Return: false when there is no such form.
 */
bool python_text_add(struct buf *out, uint8_t form, struct cur bytes, bool is_cut) warn_unused;
