/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: offsets of 7.4, 8.2 and 8.4 by Debian's headers and in running programs. Of the others filename, line_start,
 * last_var, vars, prev_execute_data and current_execute_data by the tables of phpspy; last and opcodes lie between
 * these, in the order that zend_op_array has in php-src, Zend/zend_compile.h, of the same version; bits of
 * Z_TYPE_INFO(EX(This)) by ZEND_CALL_INFO_SHIFT (24 up to 7.1, 16 later) and ZEND_CALL_TOP, _CODE, _GENERATOR there. */
#include "runtime/php/versions/layouts.h"

#define OLD_FLAGS .top = 1U << 25, .code = 1U << 24, .generator = 0
#define FLAGS .top = 1U << 17, .code = 1U << 16, .generator = 1U << 24
#define ROW(a, b, tried, flags, globals, prev, last, ops, file, line)                                                  \
	{                                                                                                              \
		(a), (b), (tried),                                                                                     \
		{                                                                                                      \
			flags, .current = (globals), .frame_prev = (prev), .func_last = (last), .func_opcodes = (ops), \
			       .func_file = (file), .func_line = (line), .version_major = (a), .version_minor = (b)    \
		}                                                                                                      \
	}

static const struct php_version versions[] = {
	ROW(7, 0, false, OLD_FLAGS, 480, 56, 60, 64, 120, 128), ROW(7, 1, false, OLD_FLAGS, 480, 48, 56, 64, 120, 128),
	ROW(7, 2, false, FLAGS, 480, 48, 56, 64, 120, 128),     ROW(7, 3, false, FLAGS, 488, 48, 60, 64, 128, 136),
	ROW(7, 4, true, FLAGS, 488, 48, 60, 64, 136, 144),      ROW(8, 0, false, FLAGS, 488, 48, 68, 72, 144, 152),
	ROW(8, 1, false, FLAGS, 488, 48, 68, 72, 144, 152),     ROW(8, 2, true, FLAGS, 488, 48, 80, 88, 152, 160),
	ROW(8, 3, false, FLAGS, 488, 48, 76, 80, 144, 152),     ROW(8, 4, true, FLAGS, 488, 48, 96, 104, 168, 176),
	ROW(8, 5, false, FLAGS, 512, 48, 96, 104, 168, 176),
};

const struct php_version *php_version_at(size_t index)
{
	return index < ARRAY_SIZE(versions) ? &versions[index] : NULL;
}

const struct php_version *php_version_find(unsigned int major, unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
