// SPDX-License-Identifier: Apache-2.0
#include "python_image.h"

#include <sys/mman.h>

#define NONE ABI_PYTHON_NONE
#define GUARD MIB(1)
#define THREAD_SIZE 304
#define FRAME_UNITS 100
#define CODE_SIZE 512
#define TAG 1

/* Numbers as in tests/walk/python_target.py. */
#define TEXTS(ascii, compact)                                                                          \
	.string_length = 16, .string_state = 32, .string_ascii = (ascii), .string_compact = (compact), \
	.bytes_length = 16, .bytes_data = 32
#define THREADS(next, frame, id, native, interp_at, threads)                                             \
	.thread_next = (next), .thread_frame = (frame), .thread_id = (id), .thread_native_id = (native), \
	.interp_next = (interp_at), .interp_threads = (threads)
#define OLD(last, unit, file, name, first, lines)                                                                    \
	.cframe_frame = NONE, .cframe_previous = NONE, .frame_back = 24, .frame_code = 32, .frame_last = (last),     \
	.frame_entry = NONE, .frame_size = 128, .code_filename = (file), .code_name = (name), .code_qualname = NONE, \
	.code_first_line = (first), .code_lines = (lines), .code_bytes = NONE, .last_unit = (unit),                  \
	.entry = ABI_PYTHON_ENTRY_EACH
#define NEW(back, code, entry_at, name_first, bytes)                                                               \
	.frame_back = (back), .frame_code = (code), .frame_last = 56, .frame_entry = (entry_at), .frame_size = 80, \
	.code_filename = 112, .code_name = 120, .code_qualname = 128, .code_first_line = (name_first),             \
	.code_lines = 136, .code_bytes = (bytes), .last_unit = 1

static const struct python_layout_case layouts[] = {
	{ "2.7",
	  { THREADS(0, 16, 144, NONE, 0, 8), OLD(120, 1, 80, 88, 96, 104), .string_length = 16, .string_state = NONE,
	    .string_ascii = 36, .bytes_length = 16, .bytes_data = 36, .version_major = 2, .version_minor = 7 },
	  false },
	{ "3.5",
	  { THREADS(8, 24, 152, NONE, 0, 8), OLD(120, 1, 96, 104, 112, 120), TEXTS(48, 72), .version_major = 3,
	    .version_minor = 5 },
	  false },
	{ "3.6",
	  { THREADS(8, 24, 152, NONE, 0, 8), OLD(120, 1, 96, 104, 36, 112), TEXTS(48, 72), .version_major = 3,
	    .version_minor = 6 },
	  false },
	{ "3.7",
	  { THREADS(8, 24, 176, NONE, 0, 8), OLD(104, 1, 96, 104, 36, 112), TEXTS(48, 72), .version_major = 3,
	    .version_minor = 7 },
	  false },
	{ "3.8",
	  { THREADS(8, 24, 176, NONE, 0, 8), OLD(104, 1, 104, 112, 40, 120), TEXTS(48, 72), .version_major = 3,
	    .version_minor = 8 },
	  false },
	{ "3.10",
	  { THREADS(8, 24, 176, NONE, 0, 8), OLD(96, 2, 104, 112, 40, 120), TEXTS(48, 72), .version_major = 3,
	    .version_minor = 10 },
	  false },
	{ "3.11",
	  { THREADS(8, 56, 152, 160, 0, 16), .cframe_frame = 8, .cframe_previous = 16, NEW(48, 32, 68, 72, 184),
	    TEXTS(48, 72), .entry = ABI_PYTHON_ENTRY_MARK, .version_major = 3, .version_minor = 11 },
	  false },
	{ "3.12",
	  { THREADS(8, 56, 136, 144, 0, 72), .cframe_frame = 0, .cframe_previous = 8, NEW(8, 0, 70, 68, 192),
	    TEXTS(40, 56), .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3, .version_major = 3, .version_minor = 12 },
	  false },
	{ "3.13",
	  { THREADS(8, 72, 152, 160, 1264, 1344), .cframe_frame = NONE, .cframe_previous = NONE, NEW(8, 0, 70, 68, 200),
	    TEXTS(40, 56), .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3, .version_major = 3, .version_minor = 13 },
	  false },
	{ "3.14",
	  { THREADS(8, 72, 152, 160, 1264, 1344), .cframe_frame = NONE, .cframe_previous = NONE, NEW(8, 0, 74, 68, 208),
	    TEXTS(40, 56), .entry = ABI_PYTHON_ENTRY_SHIM, .entry_value = 3, .version_major = 3, .version_minor = 14 },
	  true },
};

const struct python_layout_case *python_layout_at(size_t index)
{
	return index < ARRAY_SIZE(layouts) ? &layouts[index] : NULL;
}

uint64_t image_alloc(struct python_image *im, size_t size)
{
	size_t at = align_up(im->used, 16);

	must(size <= im->size && at <= im->size - size);
	im->used = at + size;
	return (uint64_t)(uintptr_t)im->memory + at;
}

void image_put(struct python_image *im, uint64_t at, size_t size, uint64_t value)
{
	uint64_t offset = at - (uint64_t)(uintptr_t)im->memory;

	must(offset <= im->size && size <= im->size - offset);
	memcpy(im->memory + offset, &value, size);
}

uint64_t image_get(const struct python_image *im, uint64_t at)
{
	uint64_t offset = at - (uint64_t)(uintptr_t)im->memory, value;

	must(offset <= im->size - sizeof(value));
	memcpy(&value, im->memory + offset, sizeof(value));
	return value;
}

uint64_t image_thread(struct python_image *im, uint64_t interpreter, uint64_t thread_id)
{
	const struct abi_python_layout *l = &im->info.layout;
	uint64_t at = image_alloc(im, THREAD_SIZE), head = interpreter + l->interp_threads;

	image_put(im, at + l->thread_id, 8, thread_id);
	image_put(im, at + l->thread_next, 8, image_get(im, head));
	if (l->thread_native_id != NONE)
		image_put(im, at + l->thread_native_id, 8, thread_id >> 4 & 0xffff);
	image_put(im, head, 8, at);
	return at;
}

uint64_t image_interpreter(struct python_image *im)
{
	uint64_t at = image_alloc(im, im->info.layout.interp_threads + 8U);

	image_put(im, at + im->info.layout.interp_next, 8, image_get(im, im->info.interpreters));
	image_put(im, im->info.interpreters, 8, at);
	return at;
}

void image_open(struct python_image *im, const struct python_layout_case *of, size_t size)
{
	uint8_t *at = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED);
	must(mprotect(at + GUARD, size, PROT_READ | PROT_WRITE) == 0);
	memset(at + GUARD, 0, size); /* the kernel does not fault pages in */
	*im = (struct python_image){ .memory = at + GUARD, .size = size };
	im->info.layout = of->layout;
	im->info.flags = (uint8_t)((of->tagged ? ABI_PYTHON_TAGGED : 0) |
				   (of->layout.version_major == 2 ? ABI_PYTHON_BYTE_STRINGS : 0));
	im->tp = image_alloc(im, KIB(4)) + KIB(2);
	im->info.interpreters = image_alloc(im, 8);
	im->interpreter = image_interpreter(im);
	im->thread = image_thread(im, im->interpreter, im->tp);
	im->none = image_alloc(im, 32);
	if (of->layout.version_major == 3 && of->layout.version_minor >= 13) {
		im->info.none = im->none;
		im->cleanup = im->info.cleanup = image_alloc(im, CODE_SIZE);
	}
}

void image_close(struct python_image *im)
{
	munmap(im->memory - GUARD, im->size + 2 * GUARD);
}

static uint64_t put_str(struct python_image *im, const char *text, size_t length)
{
	const struct abi_python_layout *l = &im->info.layout;
	uint64_t at = image_alloc(im, l->string_ascii + length + 1);

	image_put(im, at + l->string_length, 8, length);
	if (l->string_state != NONE)
		image_put(im, at + l->string_state, 4, 1 << 2 | 1 << 5 | 1 << 6);
	for (size_t i = 0; i < length; i++)
		image_put(im, at + l->string_ascii + i, 1, (uint8_t)text[i]);
	return at;
}

uint64_t image_code(struct python_image *im, const char *file, char letter)
{
	const struct abi_python_layout *l = &im->info.layout;
	uint64_t at = image_alloc(im, CODE_SIZE), lines = image_alloc(im, 64), name = put_str(im, &letter, 1);

	image_put(im, lines + l->bytes_length, 8, 3);
	image_put(im, lines + l->bytes_data, 4, 0x040201);
	image_put(im, at + l->code_filename, 8, put_str(im, file, strlen(file)));
	image_put(im, at + l->code_name, 8, name);
	if (l->code_qualname != NONE)
		image_put(im, at + l->code_qualname, 8, name);
	image_put(im, at + l->code_lines, 8, lines);
	image_put(im, at + l->code_first_line, 4, (uint8_t)letter);
	return at;
}

uint64_t image_frame(struct python_image *im, uint64_t code, uint64_t back, uint32_t unit)
{
	const struct abi_python_layout *l = &im->info.layout;
	uint64_t at = image_alloc(im, l->frame_size);

	image_put(im, at + l->frame_code, 8, code | (im->info.flags & ABI_PYTHON_TAGGED ? TAG : 0));
	image_put(im, at + l->frame_back, 8, back);
	if (l->code_bytes == NONE)
		image_put(im, at + l->frame_last, 4, unit);
	else
		image_put(im, at + l->frame_last, 8, code + l->code_bytes + unit);
	return at;
}

void image_mark(struct python_image *im, uint64_t frame, bool entry)
{
	const struct abi_python_layout *l = &im->info.layout;

	if (l->entry != ABI_PYTHON_ENTRY_EACH)
		image_put(im, frame + l->frame_entry, 1,
			  !entry                              ? 0
			  : l->entry == ABI_PYTHON_ENTRY_MARK ? 1
							      : l->entry_value);
}

/* What the native loop keeps on its stack. */
static void begin_activation(struct python_image *im, uint64_t *back)
{
	const struct abi_python_layout *l = &im->info.layout;
	size_t n = im->activation_count++;

	must(n < IMAGE_ACTIVATIONS);
	if (l->cframe_frame != NONE) {
		im->cframes[n] = image_alloc(im, 32);
		image_put(im, im->cframes[n] + l->cframe_previous, 8,
			  n ? im->cframes[n - 1] : im->thread + THREAD_SIZE - 32);
	}
	if (l->entry == ABI_PYTHON_ENTRY_SHIM) {
		im->shims[n] = image_frame(im, im->none, *back, 0);
		image_mark(im, im->shims[n], true);
		*back = im->shims[n];
	}
}

static void want_frames(struct python_image *im)
{
	const struct abi_python_layout *l = &im->info.layout;

	for (size_t i = im->frame_count; i > 0; i--) {
		size_t activation = im->activation_of[i - 1];
		bool first = i == 1 || im->activation_of[i - 2] != activation;
		struct abi_frame *frame = &im->want[im->want_count++];

		*frame = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME,
					     .runtime = ABI_RUNTIME_PYTHON,
					     .extra = (uint32_t)(FRAME_UNITS + i - 1) * l->last_unit,
					     .a = im->codes[i - 1] };
		if (l->entry == ABI_PYTHON_ENTRY_EACH || (l->entry == ABI_PYTHON_ENTRY_MARK && first))
			frame->flags = ABI_FRAME_ENTRY;
		if (first && l->entry == ABI_PYTHON_ENTRY_MARK && activation == im->activation_count - 1)
			im->want[im->want_count++] = (struct abi_frame){ .kind = ABI_FRAME_ACTIVATION,
									 .runtime = ABI_RUNTIME_PYTHON,
									 .a = im->cframes[activation] };
		if (first && l->entry == ABI_PYTHON_ENTRY_SHIM)
			im->want[im->want_count++] = (struct abi_frame){ .kind = ABI_FRAME_ACTIVATION,
									 .runtime = ABI_RUNTIME_PYTHON,
									 .a = im->shims[activation] };
	}
}

void image_stack(struct python_image *im, const char *shape)
{
	const struct abi_python_layout *l = &im->info.layout;
	uint64_t back = 0;
	bool first = true;

	begin_activation(im, &back);
	for (; *shape; shape++) {
		size_t n = im->frame_count;

		if (*shape == '|') {
			begin_activation(im, &back);
			first = true;
			continue;
		}
		must(n < IMAGE_FRAMES);
		im->codes[n] = image_code(im, "/srv/app.py", *shape);
		back = image_frame(im, im->codes[n], back, (uint32_t)(FRAME_UNITS + n));
		if (first && l->entry == ABI_PYTHON_ENTRY_MARK)
			image_mark(im, back, true);
		im->frames[n] = back;
		im->activation_of[n] = (uint8_t)(im->activation_count - 1);
		im->frame_count++;
		first = false;
		if (l->cframe_frame != NONE)
			image_put(im, im->cframes[im->activation_count - 1] + l->cframe_frame, 8, back);
	}
	image_put(im, im->thread + l->thread_frame, 8,
		  l->cframe_frame != NONE ? im->cframes[im->activation_count - 1] : back);
	want_frames(im);
}
