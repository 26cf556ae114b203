/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a file in application metadata, as gProfiler's application_metadata.py writes it. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "object/elf.h"

#define ELF_ID_FILE_MAX MIB(64) /* without a build id: more is not read for its hash */

/** elf_id - append "buildid:HEX", or "sha1:HEX" of the whole file. Return: 0; -E2BIG; -EBADMSG: no ELF; the reader's.
 */
int elf_id(const struct reader *in, struct buf *out) warn_unused;

#define ELF_IDS_MAX 64
#define ELF_ID_TEXT_MAX (sizeof("buildid:") + 2 * ELF_BUILD_ID_MAX)

struct elf_id_key { /* what changes when a file does; the last two cannot be set back */
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
};

struct elf_ids { /* of the files asked for last; all zero: of none */
	struct {
		struct elf_id_key key;
		char text[ELF_ID_TEXT_MAX]; /* "": free */
	} items[ELF_IDS_MAX];
	uint32_t next; /* the place that is taken next */
};

/** elf_ids_get - as elf_id(), of a file fstat(2) said @st of before; it is read once as long as nothing of @st changes.
 */
int elf_ids_get(struct elf_ids *ids, const struct stat *st, const struct reader *in, struct buf *out) warn_unused;
