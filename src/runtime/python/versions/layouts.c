/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/versions/layouts.h"

#define NONE ABI_PYTHON_NONE

/* Thread and interpreter, up to 3.11. */
#define LISTS(next, frame, id, native, threads)                                                          \
	.thread_next = (next), .thread_frame = (frame), .thread_id = (id), .thread_native_id = (native), \
	.interp_next = 0, .interp_threads = (threads)

#define NO_CFRAME .cframe_frame = NONE, .cframe_previous = NONE

/* PyFrameObject up to 3.10: every frame is an activation of its own. */
#define OLD_FRAME(last, unit)                                                                             \
	.frame_back = 24, .frame_code = 32, .frame_last = (last), .frame_entry = NONE, .frame_size = 128, \
	.last_unit = (unit), .entry = ABI_PYTHON_ENTRY_EACH, .code_bytes = NONE, .code_qualname = NONE

#define CODE(file, name_at, first, table) \
	.code_filename = (file), .code_name = (name_at), .code_first_line = (first), .code_lines = (table)

/* str: PyASCIIObject and PyCompactUnicodeObject; from 3.12 on without wstr. bytes. */
#define TEXTS(ascii, compact)                                                                          \
	.string_length = 16, .string_state = 32, .string_ascii = (ascii), .string_compact = (compact), \
	.bytes_length = 16, .bytes_data = 32

#define NUMBER(a, b) .version_major = (a), .version_minor = (b)

static const struct python_version versions[] = {
	{ .major = 2,
	  .minor = 7,
	  .thread_interp = 8,
	  .layout = { LISTS(0, 16, 144, NONE, 8), NO_CFRAME, OLD_FRAME(120, 1), CODE(80, 88, 96, 104),
		      .string_length = 16, .string_state = NONE, .string_ascii = 36, .string_compact = NONE,
		      .bytes_length = 16, .bytes_data = 36, NUMBER(2, 7) } },
	{ .major = 3,
	  .minor = 5,
	  .thread_interp = 16,
	  .layout = { LISTS(8, 24, 152, NONE, 8), NO_CFRAME, OLD_FRAME(120, 1), CODE(96, 104, 112, 120), TEXTS(48, 72),
		      NUMBER(3, 5) } },
	{ .major = 3,
	  .minor = 6,
	  .thread_interp = 16,
	  .layout = { LISTS(8, 24, 152, NONE, 8), NO_CFRAME, OLD_FRAME(120, 1), CODE(96, 104, 36, 112), TEXTS(48, 72),
		      NUMBER(3, 6) } },
	{ .major = 3,
	  .minor = 7,
	  .thread_interp = 16,
	  .runtime_interpreters = 24,
	  .runtime_holder = 1392,
	  .runtime_key = 1416,
	  .layout = { LISTS(8, 24, 176, NONE, 8), NO_CFRAME, OLD_FRAME(104, 1), CODE(96, 104, 36, 112), TEXTS(48, 72),
		      NUMBER(3, 7) } },
	{ .major = 3,
	  .minor = 7,
	  .micro = 4,
	  .thread_interp = 16,
	  .runtime_interpreters = 24,
	  .runtime_holder = 1480,
	  .runtime_key = 1504,
	  .layout = { LISTS(8, 24, 176, NONE, 8), NO_CFRAME, OLD_FRAME(104, 1), CODE(96, 104, 36, 112), TEXTS(48, 72),
		      NUMBER(3, 7) } },
	{ .major = 3,
	  .minor = 8,
	  .thread_interp = 16,
	  .runtime_interpreters = 32,
	  .runtime_holder = 1368,
	  .runtime_key = 1392,
	  .layout = { LISTS(8, 24, 176, NONE, 8), NO_CFRAME, OLD_FRAME(104, 1), CODE(104, 112, 40, 120), TEXTS(48, 72),
		      NUMBER(3, 8) } },
	{ .major = 3,
	  .minor = 9,
	  .thread_interp = 16,
	  .runtime_interpreters = 32,
	  .runtime_holder = 568,
	  .runtime_key = 584,
	  .layout = { LISTS(8, 24, 176, NONE, 8), NO_CFRAME, OLD_FRAME(104, 1), CODE(104, 112, 40, 120), TEXTS(48, 72),
		      NUMBER(3, 9) } },
	{ .major = 3,
	  .minor = 10,
	  .thread_interp = 16,
	  .runtime_interpreters = 32,
	  .runtime_holder = 568,
	  .runtime_key = 584,
	  .layout = { LISTS(8, 24, 176, NONE, 8), NO_CFRAME, OLD_FRAME(96, 2), CODE(104, 112, 40, 120), TEXTS(48, 72),
		      NUMBER(3, 10) } },
	{ .major = 3,
	  .minor = 11,
	  .thread_interp = 16,
	  .runtime_interpreters = 40,
	  .runtime_holder = 576,
	  .runtime_key = 592,
	  .layout = { LISTS(8, 56, 152, 160, 16), .cframe_frame = 8, .cframe_previous = 16, .frame_back = 48,
		      .frame_code = 32, .frame_last = 56, .frame_entry = 68, .frame_size = 80, .last_unit = 1,
		      .entry = ABI_PYTHON_ENTRY_MARK, .code_bytes = 184, .code_qualname = 128, CODE(112, 120, 72, 136),
		      TEXTS(48, 72), NUMBER(3, 11) } },
	{ .major = 3,
	  .minor = 12,
	  .thread_interp = 16,
	  .runtime_interpreters = 40,
	  .runtime_key = 1544,
	  .layout = { LISTS(8, 56, 136, 144, 72), .cframe_frame = 0, .cframe_previous = 8, .frame_back = 8,
		      .frame_code = 0, .frame_last = 56, .frame_entry = 70, .frame_size = 80, .last_unit = 1,
		      .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3, .code_bytes = 192, .code_qualname = 128,
		      CODE(112, 120, 68, 136), TEXTS(40, 56), NUMBER(3, 12) } },
	/* What debug offsets lack. */
	{ .major = 3,
	  .minor = 13,
	  .has_offsets = true,
	  .runtime_key = 2160,
	  .layout = { NO_CFRAME, .frame_size = 80, .last_unit = 1, .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3,
		      NUMBER(3, 13) } },
	{ .major = 3,
	  .minor = 14,
	  .has_offsets = true,
	  .runtime_key = 2336,
	  .layout = { NO_CFRAME, .frame_size = 80, .last_unit = 1, .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3,
		      NUMBER(3, 14) } },
};

const struct python_version *python_version_at(size_t index)
{
	return index < ARRAY_SIZE(versions) ? &versions[index] : NULL;
}

const struct python_version *python_version_find(unsigned int major, unsigned int minor, unsigned int micro)
{
	const struct python_version *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major && versions[i].minor == minor && versions[i].micro <= micro)
			found = &versions[i];
	return found;
}
