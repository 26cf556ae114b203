/* SPDX-License-Identifier: Apache-2.0 */
/* Where the interpreter's loop is. Compilers put parts of it elsewhere: of Debian's 3.14 only 1,184 bytes bear its
 * name, the other 84,423 are a stretch of their own (runtime/code_parts.h). */
#include "runtime/code_parts.h"
#include "runtime/python/python_int.h"

int python_loops(const struct python_file *file, struct runtime_binary *out)
{
	bool is_new = file->symbols[PYTHON_SYMBOL_EVAL_DEFAULT].info != 0;
	const struct elf_found *loop = &file->symbols[is_new ? PYTHON_SYMBOL_EVAL_DEFAULT : PYTHON_SYMBOL_EVAL_EX];
	const struct elf_found *cold = &file->symbols[is_new ? PYTHON_SYMBOL_EVAL_COLD : PYTHON_SYMBOL_EVAL_EX_COLD];
	const struct elf_fde seeds[] = { { .start = loop->address, .size = loop->size },
					 { .start = cold->address, .size = cold->size } };

	return loop->info ? code_parts(file->elf, seeds, cold->info ? 2 : 1, out) : 0;
}
