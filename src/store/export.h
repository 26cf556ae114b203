/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of any store as files. */
#pragma once

#include "store/store.h"

/**
 * store_export - write every profile of @sel into the folder @path, which must exist
 * @count: how many were written, also on failure
 *
 * A profile becomes TYPE-YYYYMMDDTHHMMSS-ID.pb.gz, raw bytes become the same with .bin. Bytes of a type that do not
 * belong in a file name become '_'. Return: 0 or -errno.
 */
int store_export(const struct store *store, struct store_state *s, const struct store_selector *sel, const char *path,
		 uint64_t *count) warn_unused;
