/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a file in application metadata: spec/agent.md section 8. */
#pragma once

#include "base/buf.h"
#include "object/elf.h"

#define ELF_ID_FILE_MAX MIB(64) /* without a build id: more is not read for its hash */

/** elf_id - append "buildid:HEX", or "sha1:HEX" of the whole file. Return: 0; -E2BIG; -EBADMSG: no ELF; the reader's.
 */
int elf_id(const struct reader *in, struct buf *out) warn_unused;
