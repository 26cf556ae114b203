/* SPDX-License-Identifier: Apache-2.0 */
/* What a site-packages or dist-packages folder holds: which file belongs to which installed distribution. By RECORD
 * (PEP 376, PEP 627) or installed-files.txt where there is one; otherwise by top_level.txt, as long as one distribution
 * alone has the name. Everything in there is a stranger's. */
#pragma once

#include "base/buf.h"
#include "base/intern.h"
#include "base/u64map.h"

#define PYTHON_SITE_ENTRIES_MAX 16384u     /* names of the folder that are looked at */
#define PYTHON_SITE_FILES_MAX (256u << 10) /* files remembered of one folder */
#define PYTHON_SITE_BYTES_MAX MIB(64)      /* read for one folder */
#define PYTHON_SITE_FILE_MAX MIB(16)       /* of one RECORD */
#define PYTHON_SITE_HEAD_MAX KIB(16)       /* of METADATA: name and version stand at its start */
#define PYTHON_SITE_NAME_MAX 256           /* "name==version" */

struct python_site {
	struct u64map files,
		tops; /* hash of the path in the folder, or of the first part of it -> string, 0: contested */
	uint64_t seed;
};

void python_site_release(struct python_site *site); /* a zeroed struct is fine */

/**
 * python_site_load - read what is installed in one folder
 * @folder: an absolute path below @root_fd, terminated
 * @names: where "requests==2.31.0" go
 * Return: 0, also when limits cut it short; -ENOMEM; -errno of the folder.
 */
int python_site_load(int root_fd, const char *folder, struct intern *names, struct python_site *out) warn_unused;

/** python_site_find - the string of the distribution that @path, inside the folder, belongs to; 0: none. */
uint32_t python_site_find(const struct python_site *site, struct str path);

/* The parsers; pure. */

/** python_record_next - the path of the next line of a RECORD, a CSV file. Return: false at the end. */
bool python_record_next(struct str *rest, struct str *path);
/** python_header_find - of "Name: value" lines up to the first empty one; empty: not there. */
struct str python_header_find(struct str text, struct str name);
