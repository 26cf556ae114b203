/* SPDX-License-Identifier: Apache-2.0 */
/* What the page's worker calls (web/readers.js): one file, then the worker ends. Only in WebAssembly. */
#include "readers/readers.h"

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(name), visibility("default")))
#define IMPORT(name) __attribute__((import_module("page"), import_name(name)))
#else /* for tools that read the sources with the options of this machine */
#define EXPORT(name)
#define IMPORT(name)
#endif

IMPORT("progress") void page_progress(double done, double total);

EXPORT("room") char *readers_room(size_t size);
EXPORT("name_room") char *readers_name_room(size_t size);
EXPORT("read") int readers_run(size_t size, char *name, size_t name_len);
EXPORT("text") const char *readers_text(int which);
EXPORT("text_size") size_t readers_text_size(int which);
EXPORT("count") size_t readers_count(void);
EXPORT("columns") const char *readers_columns(size_t index);
EXPORT("columns_size") size_t readers_columns_size(size_t index);

static struct readers_file file = READERS_FILE_INIT;
static struct readers_input input;

/* Room for the file's bytes, which grows with what was put there; NULL: out of memory. */
char *readers_room(size_t size)
{
	char *grown = realloc(input.bytes, size ? size : 1);

	if (grown)
		input.bytes = grown;
	return grown;
}

char *readers_name_room(size_t size)
{
	return malloc(size ? size : 1); /* until the worker ends */
}

static void show(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	page_progress((double)done, (double)total);
}

int readers_run(size_t size, char *name, size_t name_len)
{
	const struct render_progress progress = { show, NULL };

	input.size = size;
	return readers_read(&input, str_n(name, name_len), &progress, &file);
}

/* 0: what is in the file, 1: words about it */
const char *readers_text(int which)
{
	return which ? file.words.ptr : file.meta.ptr;
}

size_t readers_text_size(int which)
{
	return which ? file.words.len : file.meta.len;
}

size_t readers_count(void)
{
	return file.count;
}

const char *readers_columns(size_t index)
{
	return file.columns[index].ptr;
}

size_t readers_columns_size(size_t index)
{
	return file.columns[index].len;
}
