/* SPDX-License-Identifier: Apache-2.0 */
/* Build step: the modules of web/ as one classic script, the style sheet and the page, written as C arrays.
 *
 *   embed OUT.c PAGE.html STYLE.css MODULE.js...
 *   embed --files OUT.c MODULE.js... -- FILE...
 *   embed --script OUT.c NAME FILE.js
 *
 * The second form writes what the collector serves, as gzip: modules with all that they import (bundle.h), and files as
 * they are. The third writes one classic script, as web_NAME, without indentation and comments. The first makes the
 * page that is one file:
 *
 * Modules are joined in the order given: `import` lines go, the word `export` goes, and so do indentation and lines
 * that are only a comment (no module has a template literal of several lines). The page's policy names the hash of each
 * script and style, as "sha256-" and base64 (CSP level 3, section 2.3.1). SHA-256 is FIPS 180-4. */
#include "web/bundle.h"
#include "web/embed_text.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_source(struct text *out, const char *path, bool is_module)
{
	struct text in = read_file(path);
	bool in_comment = false;
	const char *line;
	size_t len, at = 0;

	while (next_line(&in, &at, &in_comment, &line, &len)) {
		if (is_module && starts(line, len, "import "))
			continue;
		if (is_module && starts(line, len, "export ")) {
			line += 7;
			len -= 7;
		}
		text_add(out, line, len);
		text_add(out, "\n", 1);
	}
	free(in.ptr);
}

static uint32_t rotate(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void sha256_block(uint32_t state[8], const uint8_t *block, const uint32_t k[64])
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t a = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
			     ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		uint32_t b = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
			     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += a;
		v[0] = a + b;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

/* The first 32 bits of the fractional part of the n-th root of @prime, exactly, by bisection on integers. */
static uint32_t root_fraction(uint32_t prime, int degree)
{
	unsigned __int128 target = (unsigned __int128)prime << 32 * degree;
	uint64_t low = 0, high = UINT64_C(1) << 38;

	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		unsigned __int128 power = (unsigned __int128)middle * middle;

		if (degree == 3)
			power = power * middle;
		if (power <= target)
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)low;
}

static void sha256(const char *bytes, size_t size, uint8_t digest[32])
{
	uint32_t state[8], k[64], prime = 2;
	uint8_t last[128] = { 0 };
	size_t tail = size % 64, padded = tail < 56 ? 64 : 128;

	for (int i = 0; i < 64; prime++) {
		bool is_prime = true;

		for (uint32_t d = 2; d * d <= prime; d++)
			is_prime = is_prime && prime % d;
		if (!is_prime)
			continue;
		if (i < 8)
			state[i] = root_fraction(prime, 2);
		k[i++] = root_fraction(prime, 3);
	}
	for (size_t at = 0; at + 64 <= size; at += 64)
		sha256_block(state, (const uint8_t *)bytes + at, k);
	memcpy(last, bytes + size - tail, tail);
	last[tail] = 0x80;
	for (int i = 0; i < 8; i++)
		last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	for (size_t at = 0; at < padded; at += 64)
		sha256_block(state, last + at, k);
	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static void print_hash(FILE *out, const struct text *t)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t d[33] = { 0 };

	sha256(t->ptr, t->len, d);
	for (int i = 0; i < 33; i += 3) {
		uint32_t v = (uint32_t)d[i] << 16 | (uint32_t)d[i + 1] << 8 | d[i + 2];

		fprintf(out, "%c%c%c%c", digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63],
			i == 30 ? '=' : digits[v & 63]);
	}
}

static void write_hash(FILE *out, const char *name, const struct text *t)
{
	fprintf(out, "const char web_%s_hash[] = \"sha256-", name);
	print_hash(out, t);
	fprintf(out, "\";\n");
}

static void write_bytes(FILE *out, const char *name, const struct text *t)
{
	fprintf(out, "const unsigned char web_%s[] = {", name);
	for (size_t i = 0; i < t->len; i++)
		fprintf(out, "%s%u,", i % 24 ? "" : "\n", (unsigned char)t->ptr[i]);
	fprintf(out, "\n};\nconst size_t web_%s_size = sizeof(web_%s);\n", name, name);
}

/* As one member of gzip, the smallest. */
static struct text packed(const struct text *t)
{
	struct libdeflate_compressor *how = libdeflate_alloc_compressor(12);
	size_t room = how ? libdeflate_gzip_compress_bound(how, t->len) : 0;
	struct text out = { malloc(room), 0 };

	if (how && out.ptr)
		out.len = libdeflate_gzip_compress(how, t->ptr ? t->ptr : "", t->len, out.ptr, room);
	if (!out.len)
		die("cannot pack", "a file");
	libdeflate_free_compressor(how);
	return out;
}

static void write_file(FILE *out, int index, const struct text *t)
{
	struct text small = packed(t);

	fprintf(out, "static const unsigned char file_%d[] = {", index);
	for (size_t k = 0; k < small.len; k++)
		fprintf(out, "%s%u,", k % 24 ? "" : "\n", (unsigned char)small.ptr[k]);
	free(small.ptr);
	fprintf(out, "\n};\nstatic const char etag_%d[] = \"\\\"", index);
	print_hash(out, t);
	fprintf(out, "\\\"\";\n");
}

static int embed_files(const char *path, char **files, int count)
{
	FILE *out = fopen(path, "wb");
	bool is_bundle = true;

	if (!out)
		die("cannot open", path);
	fprintf(out, "#include \"web/assets.h\"\n\n");
	for (int i = 0; i < count; i++) {
		struct text t;

		if (!strcmp(files[i], "--")) {
			is_bundle = false;
			continue;
		}
		t = is_bundle ? bundle(files[i]) : read_file(files[i]);
		write_file(out, i, &t);
		free(t.ptr);
	}
	fprintf(out, "\nconst struct web_file web_files[] = {\n");
	for (int i = 0; i < count; i++)
		if (strcmp(files[i], "--"))
			fprintf(out, "\t{ \"%s\", file_%d, sizeof(file_%d), etag_%d },\n", base_name(files[i]), i, i,
				i);
	fprintf(out, "\t{ 0 },\n};\n");
	if (fclose(out))
		die("cannot write", path);
	return 0;
}

static int embed_script(const char *path, const char *name, const char *file)
{
	struct text script = { NULL, 0 };
	FILE *out = fopen(path, "wb");

	if (!out)
		die("cannot open", path);
	text_add(&script, "", 0);
	add_source(&script, file, false);
	fprintf(out, "#include \"web/assets.h\"\n\n");
	write_bytes(out, name, &script);
	if (fclose(out))
		die("cannot write", path);
	free(script.ptr);
	return 0;
}

int main(int argc, char **argv)
{
	struct text page, style = { NULL, 0 }, script = { NULL, 0 };
	FILE *out;

	if (argc > 3 && !strcmp(argv[1], "--files"))
		return embed_files(argv[2], argv + 3, argc - 3);
	if (argc == 5 && !strcmp(argv[1], "--script"))
		return embed_script(argv[2], argv[3], argv[4]);
	if (argc < 5) {
		fprintf(stderr, "usage: embed OUT.c PAGE.html STYLE.css MODULE.js...\n");
		return 2;
	}
	page = read_file(argv[2]);
	add_source(&style, argv[3], false);
	text_add(&script, "(async()=>{\"use strict\";\n", 25);
	for (int i = 4; i < argc; i++)
		add_source(&script, argv[i], true);
	text_add(&script, "})();\n", 6);
	out = fopen(argv[1], "wb");
	if (!out)
		die("cannot open", argv[1]);
	fprintf(out, "#include \"web/assets.h\"\n\n");
	write_bytes(out, "page", &page);
	write_bytes(out, "style", &style);
	write_bytes(out, "script", &script);
	write_hash(out, "style", &style);
	write_hash(out, "script", &script);
	if (fclose(out))
		die("cannot write", argv[1]);
	free(page.ptr);
	free(style.ptr);
	free(script.ptr);
	return 0;
}
