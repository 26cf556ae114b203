/* SPDX-License-Identifier: Apache-2.0 */
#include "render/page_colour.h"

#include <math.h>
#include <regex.h>

#include "base/utf8.h"

#define SHADES 8
#define LOOKED_AT 4096 /* bytes of a name that tell its language */

struct range { /* hue from, hue to; percent: saturation, lightness from, lightness to */
	double from, to, saturation, low, high;
};

/* KINDS and CLASSES of web/colour.js. */
static const struct range of_kind[TREE_KIND_COUNT] = {
	[MODEL_KIND_NATIVE] = { 6, 26, 88, 66, 71 },
	[MODEL_KIND_KERNEL] = { 30, 37, 92, 58, 66 },
	[MODEL_KIND_JIT] = { 92, 118, 50, 60, 68 },
	[MODEL_KIND_JAVA] = { 92, 118, 50, 60, 68 },
	[MODEL_KIND_JAVA_INLINED] = { 172, 184, 50, 60, 68 },
	[MODEL_KIND_JAVA_C1] = { 72, 84, 52, 58, 66 },
	[MODEL_KIND_JAVA_INTERPRETED] = { 128, 146, 34, 64, 72 },
	[MODEL_KIND_PYTHON] = { 200, 214, 70, 68, 75 },
	[MODEL_KIND_PYTHON_NATIVE] = { 218, 230, 55, 73, 79 },
	[MODEL_KIND_PYTHON_ERROR] = { 282, 292, 45, 72, 78 },
	[MODEL_KIND_RUBY] = { 336, 348, 72, 72, 78 },
	[MODEL_KIND_PHP] = { 250, 262, 58, 76, 82 },
	[MODEL_KIND_DOTNET] = { 268, 282, 55, 74, 80 },
	[MODEL_KIND_PERL] = { 142, 156, 46, 68, 74 },
	[MODEL_KIND_JAVASCRIPT] = { 304, 318, 50, 74, 80 },
	[TREE_KIND_PROCESS] = { 36, 42, 16, 76, 80 },
	[TREE_KIND_CONTAINER] = { 206, 214, 16, 76, 80 },
	[TREE_KIND_THREAD] = { 328, 336, 14, 78, 82 },
	[TREE_KIND_HOST] = { 158, 166, 16, 74, 78 },
	[TREE_KIND_LABEL] = { 264, 272, 14, 78, 82 },
};
static const struct range cpp = { 46, 55, 84, 60, 68 }, rust = { 14, 24, 42, 62, 70 }, unnamed = { 24, 36, 26, 70, 76 },
			  root = { 36, 40, 14, 80, 82 };

/* What only Rust's names have: closures, "<T as Trait>::f", paths of its standard library, the hash of the old
 * mangling.
 */
static const char rust_names[] =
	"::\\{\\{?closure|^<[^\n]* as [^\n]*>::|::h[0-9a-f]{16}$|\\$(LT|GT|RF|u20)\\$|"
	"(^|[<&( ])(core::(ops|fmt|iter|ptr|slice|str|option|result|num|panicking|hash|cell|mem|array|char|sync)|"
	"alloc::[A-Za-z0-9_]+|"
	"std::(rt|sys|sys_common|io|fmt|panicking|panic|collections|fs|env))::";

struct page_colours {
	regex_t rust_names;
	bool is_made;
	size_t module_count;
	bool has_rust[]; /* by module: some of its native names are Rust's */
};

static bool is_rust(const struct page_colours *c, struct str name)
{
	regmatch_t part = { .rm_so = 0, .rm_eo = (regoff_t)MIN(name.len, (size_t)LOOKED_AT) };

	return name.len && regexec(&c->rust_names, name.ptr, 1, &part, REG_STARTEND) == 0;
}

struct page_colours *page_colours_new(const struct tree *t)
{
	const size_t modules = intern_count(&t->modules) + 1;
	struct page_colours *c = calloc(1, sizeof(*c) + modules);

	if (!c)
		return NULL;
	c->module_count = modules;
	c->is_made = regcomp(&c->rust_names, rust_names, REG_EXTENDED) == 0;
	if (!c->is_made) {
		page_colours_free(c);
		return NULL;
	}
	for (uint32_t f = 0; f < t->frame_count; f++)
		if (t->frames[f].kind == MODEL_KIND_NATIVE && t->frames[f].module && !c->has_rust[t->frames[f].module])
			c->has_rust[t->frames[f].module] = is_rust(c, tree_frame_text(t, f));
	return c;
}

void page_colours_free(struct page_colours *c)
{
	if (c && c->is_made)
		regfree(&c->rust_names);
	free(c);
}

void page_colours_freep(struct page_colours **c)
{
	page_colours_free(*c);
}

/* FNV-1a over UTF-16, and a mix: hashText() of the page. */
static uint32_t hash_name(struct str name)
{
	uint32_t hash = 0x811c9dc5;

	while (name.len) {
		int32_t code = utf8_next(&name);

		if (code < 0)
			code = 0xfffd; /* as a decoder writes it */
		if (code >= 0x10000) {
			hash = (hash ^ (0xd800 + ((uint32_t)(code - 0x10000) >> 10))) * 0x01000193;
			code = 0xdc00 + ((code - 0x10000) & 0x3ff);
		}
		hash = (hash ^ (uint32_t)code) * 0x01000193;
	}
	hash ^= hash >> 15;
	return (hash * 0x2c1b3c6d) >> 16;
}

/* "[...", "0x1f" */
static bool is_unnamed(struct str name)
{
	uint64_t value;

	if (name.len && name.ptr[0] == '[')
		return true;
	for (size_t i = 2; i < name.len; i++)
		if (!(name.ptr[i] >= '0' && name.ptr[i] <= '9') && !(name.ptr[i] >= 'a' && name.ptr[i] <= 'f'))
			return false;
	return str_starts(name, STR("0x")) && name.len > 2 &&
	       (name.len > 18 || str_to_hex64(str_skip(name, 2), &value) == 0);
}

static const struct range *class_of(const struct page_colours *c, const struct tree *t, uint32_t frame)
{
	const struct tree_frame *f = &t->frames[frame];
	struct str name = tree_frame_text(t, frame);

	if (f->kind != MODEL_KIND_NATIVE)
		return &of_kind[f->kind < TREE_KIND_COUNT ? f->kind : MODEL_KIND_NATIVE];
	if (is_unnamed(name))
		return &unnamed;
	if (is_rust(c, name))
		return &rust;
	if (str_search(name, STR("::")) < 0)
		return &of_kind[MODEL_KIND_NATIVE];
	return f->module < c->module_count && c->has_rust[f->module] && str_find(name, '(') < 0 ? &rust : &cpp;
}

static uint8_t channel(double hue, double saturation, double lightness, double n)
{
	/* https://www.w3.org/TR/css-color-4/#hsl-to-rgb */
	const double k = fmod(n + hue / 30, 12), a = saturation * MIN(lightness, 1 - lightness);

	return (uint8_t)lrint(255 * (lightness - a * MAX(-1.0, MIN(MIN(k - 3, 9 - k), 1.0))));
}

struct page_colour page_colours_of(const struct page_colours *c, const struct tree *t, uint32_t frame)
{
	const struct range *r = frame < t->frame_count ? class_of(c, t, frame) : &root;
	const uint32_t shade = frame < t->frame_count ? hash_name(tree_frame_text(t, frame)) % SHADES : 0;
	const double share = (double)shade / (SHADES - 1), hue = r->from + (r->to - r->from) * share;
	const double lightness = (r->low + (r->high - r->low) * fmod(share * 5, 1)) / 100;

	return (struct page_colour){ channel(hue, r->saturation / 100, lightness, 0),
				     channel(hue, r->saturation / 100, lightness, 8),
				     channel(hue, r->saturation / 100, lightness, 4) };
}
