/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed sections of ELF files (SHF_COMPRESSED: zlib, zstd), with an output limit. */
#pragma once

#include "base/buf.h"
#include "object/elf.h"

/**
 * unpack_section - append the bytes of a compressed @section; @out->max bounds them
 * Return: 0; -EBADMSG when malformed or of another size than it says; -E2BIG over @out->max; -ENOTSUP for another
 * method; -ENOMEM; or the reader's error. Source: gabi 4.1, "Section Compression"; ELFCOMPRESS_ZSTD: glibc 2.36, elf.h.
 */
int unpack_section(const struct elf *elf, const struct elf_section *section, struct buf *out) warn_unused;
