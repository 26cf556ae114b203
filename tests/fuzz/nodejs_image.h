/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a small process with V8's objects, made up: a page of maps, then heap pages with functions, scripts,
 * bytecode and tables of positions. What the constants of a file would say is the same for all versions here; struct
 * nodejs_version is the true one. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define IMAGE_MAPS 0x10000000ULL /* of V8's types */
#define IMAGE_HEAP 0x20000000ULL /* 256 KiB */
#define IMAGE_HEAP_SIZE KIB(256)
#define IMAGE_CODE 0x30000000ULL     /* an isolate's range */
#define IMAGE_BUILTINS 0x40000000ULL /* of the file */
#define IMAGE_FUNCTIONS 80
#define IMAGE_EACH \
	1024 /* bytes that a function has: its SharedFunctionInfo, name, bytecode, table, script, JSFunction */

enum {
	IMAGE_SFI = 0,
	IMAGE_NAME = 128,
	IMAGE_BYTECODE = 192,
	IMAGE_TABLE = 320,
	IMAGE_SCRIPT = 384,
	IMAGE_FUNCTION = 512,
	IMAGE_SOURCE = 640
};

static const char image_proc_maps[] = "10000000-10001000 r--p 00000000 00:00 0\n"
				      "20000000-20040000 rw-p 00000000 00:00 0\n"
				      "30000000-30010000 rwxp 00000000 00:00 0\n"
				      "40000000-40100000 r-xp 00000000 fe:00 7 /usr/bin/node\n";

struct nodejs_image {
	uint8_t maps[KIB(4)], heap[IMAGE_HEAP_SIZE];
	struct nodejs_binary binary;
	size_t reads, read_bytes;
};

static inline int image_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct nodejs_image *m = self;

	m->reads++;
	m->read_bytes += size;
	if (at >= IMAGE_MAPS && at - IMAGE_MAPS <= sizeof(m->maps) && size <= sizeof(m->maps) - (at - IMAGE_MAPS))
		memcpy(dst, m->maps + (at - IMAGE_MAPS), size);
	else if (at >= IMAGE_HEAP && at - IMAGE_HEAP <= sizeof(m->heap) && size <= sizeof(m->heap) - (at - IMAGE_HEAP))
		memcpy(dst, m->heap + (at - IMAGE_HEAP), size);
	else
		return -EFAULT;
	return 0;
}

static inline void image_layout(struct nodejs_layout *l, const struct nodejs_version *version)
{
	*l = (struct nodejs_layout){ .fp_marker = -8,
				     .fp_function = -16,
				     .fp_bytecode_array = -24,
				     .fp_bytecode_offset = -32,
				     .function_shared = 24,
				     .sfi_name = 16,
				     .sfi_script = 32,
				     .script_source = 8,
				     .script_name = 16,
				     .script_id = 64,
				     .string_length = 12,
				     .string_chars = 16,
				     .string_first = 16,
				     .string_second = 24,
				     .string_parent = 16,
				     .string_offset = 24,
				     .string_actual = 16,
				     .string_resource = 16,
				     .first_nonstring = 128,
				     .representation_mask = 7,
				     .encoding_mask = 8,
				     .one_byte = 8,
				     .tag_cons = 1,
				     .tag_external = 2,
				     .tag_sliced = 3,
				     .tag_thin = 5,
				     .map_type = 12,
				     .bytecode_data = 54,
				     .array_length = 8,
				     .array_data = 16,
				     .scope_locals = 2,
				     .scope_first = 3,
				     .stream_start = 32,
				     .type_sfi = 262,
				     .type_scope = 261,
				     .type_map = 250,
				     .type_script = 167,
				     .type_bytecode = 191,
				     .type_interpreter_data = 159,
				     .type_code = 245,
				     .type_stream = 252,
				     .type_bytes = 190,
				     .type_array = 175,
				     .type_function = 2066,
				     .frame_builtin_exit = 20,
				     .bytecode_count = 4,
				     .bytecode_sizes = { { 1, 1, 1, 2 } },
				     .version = *version };
	if (version->major >= 12) {
		l->type_sfi_wrapper = 160;
		l->type_trusted_bytes = 192;
	}
}

static inline void image_put(uint8_t *bytes, size_t at, uint64_t word)
{
	memcpy(bytes + at, &word, sizeof(word));
}

/* The map of a type, tagged. They lie one behind the other; the first one is the map of maps. */
static inline uint64_t image_map(struct nodejs_image *m, size_t index, int type)
{
	image_put(m->maps, index * 64, IMAGE_MAPS + ABI_NODEJS_TAG);
	image_put(m->maps, index * 64 + 8, (uint64_t)type << 32);
	return IMAGE_MAPS + index * 64 + ABI_NODEJS_TAG;
}

static inline void image_text(struct nodejs_image *m, size_t at, uint64_t map, const char *text)
{
	image_put(m->heap, at, map);
	image_put(m->heap, at + 8, (uint64_t)strlen(text) << 32);
	memcpy(m->heap + at + 16, text, strlen(text));
}

/* Bytecodes at 0, 2 and 4, and their places. Bits of a position: character + 1 from bit 1. */
static inline void image_bytecode(struct nodejs_image *m, size_t at, const uint64_t maps[7])
{
	const struct nodejs_version *v = &m->binary.layout.version;
	static const uint8_t bytecode[] = { 3, 9, 3, 9, 2 };
	const uint8_t two = (uint8_t)(2 * 2 << v->positions_shift);
	const uint8_t table[] = {
		(uint8_t)((0 - v->positions_from) * 2 << v->positions_shift), 2 * 2, two, 4 * 2, two, 4 * 2
	};

	image_put(m->heap, at + IMAGE_BYTECODE, maps[2]);
	image_put(m->heap, at + IMAGE_BYTECODE + 8, (uint64_t)sizeof(bytecode) << 32);
	image_put(m->heap, at + IMAGE_BYTECODE + v->bytecode_positions, IMAGE_HEAP + at + IMAGE_TABLE + ABI_NODEJS_TAG);
	memcpy(m->heap + at + IMAGE_BYTECODE + 54, bytecode, sizeof(bytecode));
	image_put(m->heap, at + IMAGE_TABLE, maps[3]);
	image_put(m->heap, at + IMAGE_TABLE + 8, (uint64_t)sizeof(table) << 32);
	memcpy(m->heap + at + IMAGE_TABLE + 16, table, sizeof(table));
}

static inline void image_make(struct nodejs_image *m, const struct nodejs_version *version)
{
	struct nodejs_layout *l = &m->binary.layout;
	uint64_t maps[7];

	memset(m, 0, sizeof(*m));
	image_layout(l, version);
	m->binary.builtins = m->binary.here = IMAGE_BUILTINS;
	m->binary.builtins_size = KIB(64);
	image_map(m, 0, l->type_map);
	maps[0] = image_map(m, 1, l->type_sfi);
	maps[1] = image_map(m, 2, 8); /* of strings of one byte each */
	maps[2] = image_map(m, 3, l->type_bytecode);
	maps[3] = image_map(m, 4, l->type_bytes);
	maps[4] = image_map(m, 5, l->type_script);
	maps[5] = image_map(m, 6, l->type_function);
	image_map(m, 7, l->type_code);
	image_map(m, 8, l->type_stream);
	for (size_t i = 0; i < IMAGE_FUNCTIONS; i++) {
		size_t at = KIB(4) + i * IMAGE_EACH;
		uint64_t tagged = IMAGE_HEAP + at + ABI_NODEJS_TAG;

		image_put(m->heap, at + IMAGE_SFI, maps[0]);
		image_put(m->heap, at + version->sfi_data, tagged + IMAGE_BYTECODE);
		image_put(m->heap, at + (size_t)l->sfi_name, tagged + IMAGE_NAME);
		image_put(m->heap, at + (size_t)l->sfi_script, tagged + IMAGE_SCRIPT);
		image_put(m->heap, at + 24, tagged + IMAGE_TABLE); /* what the table says of it is no matter here */
		image_text(m, at + IMAGE_NAME, maps[1], "work");
		image_bytecode(m, at, maps);
		image_put(m->heap, at + IMAGE_SCRIPT, maps[4]);
		image_put(m->heap, at + IMAGE_SCRIPT + 8, tagged + IMAGE_SOURCE);
		image_put(m->heap, at + IMAGE_SCRIPT + 16, tagged + IMAGE_NAME);
		image_put(m->heap, at + IMAGE_SCRIPT + 64, (i + 1) << 32);
		image_text(m, at + IMAGE_SOURCE, maps[1], "a\nb\nc\nd");
		image_put(m->heap, at + IMAGE_FUNCTION, maps[5]);
		image_put(m->heap, at + IMAGE_FUNCTION + 24, tagged + IMAGE_SFI);
	}
}

/* A folder with a file "maps", in memory as far as the system has such a place. Return: its descriptor, or -1. */
static inline int image_folder(const char *text, size_t size)
{
	char path[] = "/dev/shm/nodejs_image.XXXXXX", spare[] = "/tmp/nodejs_image.XXXXXX", *made = mkdtemp(path);
	int dir, fd;

	made = made ? made : mkdtemp(spare);
	dir = made ? open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	fd = dir < 0 ? -1 : openat(dir, "maps", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size)
		return -1;
	close(fd);
	return dir;
}

/* What image_folder() made goes. */
static inline void image_folder_close(int dir)
{
	char link[32], path[64] = "";

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	if (dir < 0)
		return;
	(void)unlinkat(dir, "maps", 0);
	if (readlink(link, path, sizeof(path) - 1) > 0)
		(void)rmdir(path);
	close(dir);
}
