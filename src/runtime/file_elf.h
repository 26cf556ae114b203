/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the file table, opened and parsed as ELF: what a runtime's probe is given. */
#pragma once

#include "object/elf.h"
#include "proc/files.h"

struct file_elf {
	struct file_view view; /* view.fd is -1 before file_elf_open() */
	struct elf elf;
};

/** file_elf_open - release @out after failures, too. Return: as files_view() and elf_parse(). */
int file_elf_open(struct files *files, uint32_t file_id, struct file_elf *out) warn_unused;
void file_elf_release(struct file_elf *f);
