/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby's objects in the memory of another process: strings, paths of iseqs, symbols. Sources:
 * include/ruby/internal/core (rstring.h, rarray.h) of 2.7 to 3.4, symbol.c. */
#pragma once

#include <linux/types.h>

#include "abi/ruby.h"
#include "base/buf.h"
#include "runtime/runtime.h"

/** ruby_string_read - append the bytes of a String, as many as fit *out; *is_cut says whether there are more. Return:
 * 0; -EBADMSG: it is none; -ENOMEM; -errno. */
int ruby_string_read(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value, struct buf *out,
		     bool *is_cut) warn_unused;
/** ruby_path_find - the String of a pathobj: the real path where there is one, otherwise what was given. */
int ruby_path_find(const struct runtime_target *t, const struct abi_ruby *info, uint64_t value,
		   uint64_t *out) warn_unused;
/**
 * ruby_class_read - append the name of the class or module at @owner; of a singleton class's that of the class or
 * module that it is of, and *is_singleton is set. Return: 0; -ENOENT: it has none, or where it lies is not known;
 * -EBADMSG; -ENOMEM; -errno.
 */
int ruby_class_read(const struct runtime_target *t, const struct abi_ruby *info, uint64_t owner, struct buf *out,
		    bool *is_singleton) warn_unused;
/** ruby_symbol_find - the String that is the name of an identifier (ID). Return: 0; -ENOENT: nobody knows; -EBADMSG;
 * -errno. */
int ruby_symbol_find(const struct runtime_target *t, const struct abi_ruby *info, uint64_t id,
		     uint64_t *out) warn_unused;
