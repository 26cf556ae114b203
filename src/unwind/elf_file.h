/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file of the file table, opened for reading, and its separate debug file. */
#pragma once

#include "object/elf.h"
#include "proc/files.h"

struct elf_file {
	struct reader in;
	struct file_view view;
	struct elf elf; /* reads through in */
};

#define ELF_FILE_INIT         \
	{                     \
		.view.fd = -1 \
	}

/** elf_file_open - Return: 0; -errno when it cannot be read or is no ELF file, *out is untouched then. */
int elf_file_open(struct files *files, uint32_t file_id, struct elf_file *out) warn_unused;
/**
 * elf_file_open_debug - the separate debug file that belongs to @file, as gdb looks for it, below @host_root
 *
 * A path may come from a container: what is opened is a regular file whose build id or CRC-32 fits. Return: 0, -ENOENT
 * or -ENOMEM. Source: gdb 13 manual, "Debugging Information in Separate Files".
 */
int elf_file_open_debug(const char *host_root, const struct elf_file *file, struct elf_file *out) warn_unused;
void elf_file_release(struct elf_file *file);
