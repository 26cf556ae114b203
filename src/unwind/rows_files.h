/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the ELF files that processes map. */
#pragma once

#include "proc/files.h"
#include "unwind/rows.h"

struct rows_files {
	struct files *files;
	const char *host_root;
};

/** rows_files_source - borrows @f. */
struct rows_source rows_files_source(struct rows_files *f);
