/* SPDX-License-Identifier: Apache-2.0 */
#include "object/kallsyms.h"

#include "base/array.h"

#define HALF_RANGE (UINT64_C(1) << 31)
#define FUNCTION_MAX MIB(1)
#define IN_MODULE (1u << 31)

void kallsyms_init(struct kallsyms *k)
{
	*k = (struct kallsyms){
		.names = BUF_INIT(KALLSYMS_NAMES_MAX),
		.modules = BUF_INIT(KALLSYMS_MODULES_MAX * 64),
		.lines = LINES_INIT(KALLSYMS_LINE_MAX),
	};
}

void kallsyms_release(struct kallsyms *k)
{
	free(k->items);
	free(k->module_starts);
	buf_release(&k->names);
	buf_release(&k->modules);
	lines_release(&k->lines);
	kallsyms_init(k);
}

static struct str module_name(const struct kallsyms *k, size_t index)
{
	return str_of(k->modules.ptr + k->module_starts[index]);
}

/* Modules come one after the other, so the last one is asked first; a module that returns (bpf, __builtin__kprobes)
 * gets another number. */
static int add_module(struct kallsyms *k, struct str name, size_t *out)
{
	int r;

	if (!k->module_count || !str_eq(module_name(k, k->module_count - 1), name)) {
		r = array_grow(&k->module_starts, &k->module_cap, k->module_count, KALLSYMS_MODULES_MAX);
		if (r < 0)
			return r;
		k->module_starts[k->module_count] = (uint32_t)k->modules.len;
		buf_adds(&k->modules, name);
		buf_addc(&k->modules, 0);
		if (k->modules.error)
			return k->modules.error;
		k->module_count++;
	}
	*out = k->module_count - 1;
	return 0;
}

/* Padding before a function (__pfx_), local labels, mapping symbols of aarch64, and compiler marks: no functions. */
static bool is_noise(struct str name)
{
	return str_starts(name, STR("__pfx_")) || str_starts(name, STR(".L")) || str_starts(name, STR("$")) ||
	       str_starts(name, STR("__cfi_")) || str_starts(name, STR("__kstrtab")) ||
	       str_starts(name, STR("__ksymtab"));
}

static int add_symbol(struct kallsyms *k, uint64_t address, struct str name, struct str module)
{
	size_t module_index = 0;
	int r;

	if (!k->base)
		k->base = address - HALF_RANGE;
	if (address - k->base > UINT32_MAX) {
		k->far_lines++;
		return 0;
	}
	r = array_grow(&k->items, &k->cap, k->count, KALLSYMS_SYMBOLS_MAX);
	if (r == 0 && module.len) {
		r = add_module(k, module, &module_index);
		buf_addc(&k->names, (char)(module_index & 0xff));
		buf_addc(&k->names, (char)(module_index >> 8));
	}
	if (r < 0)
		return r;
	k->items[k->count] = (struct kallsyms_item){
		.start = (uint32_t)(address - k->base),
		.name = (uint32_t)k->names.len | (module.len ? IN_MODULE : 0),
	};
	buf_adds(&k->names, name);
	buf_addc(&k->names, 0);
	if (k->names.error)
		return k->names.error;
	k->count++;
	return 0;
}

static int add_line(void *ctx, struct str line)
{
	struct str address_text, type, name;
	struct kallsyms *k = ctx;
	uint64_t address;

	if (!str_next(&line, ' ', &address_text) || !str_next(&line, ' ', &type) || !str_next(&line, '\t', &name) ||
	    type.len != 1 || !name.len || memchr(name.ptr, 0, name.len) || str_to_hex64(address_text, &address) < 0) {
		k->bad_lines++;
		return 0;
	}
	if (!strchr("tTwW", type.ptr[0]) || is_noise(name))
		return 0;
	if (!address) {
		k->zero_lines++;
		return 0;
	}
	line = str_trim(line); /* what is left is "[module]" or nothing */
	if (line.len && (line.ptr[0] != '[' || memchr(line.ptr, 0, line.len))) {
		k->bad_lines++;
		return 0;
	}
	return add_symbol(k, address, name, line);
}

static void note(struct kallsyms *k, int fed)
{
	if (fed < 0)
		k->error = fed;
	else
		k->bad_lines += (size_t)fed; /* overlong ones */
}

void kallsyms_feed(struct kallsyms *k, const void *bytes, size_t size)
{
	if (!k->error)
		note(k, lines_feed(&k->lines, bytes, size, add_line, k));
}

static int compare_items(const void *a, const void *b)
{
	const struct kallsyms_item *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name & ~IN_MODULE) < (y->name & ~IN_MODULE) ? -1 : 1;
}

static struct str item_name(const struct kallsyms *k, const struct kallsyms_item *item)
{
	return str_of(k->names.ptr + (item->name & ~IN_MODULE));
}

/* perf's order without the bindings the list does not have: fewer leading underscores, then the longer name, but not
 * the aliases of system calls (linux 6.1, tools/perf/util/symbol.c, choose_best_symbol). */
static bool is_better(struct str a, struct str b)
{
	size_t under_a = 0, under_b = 0;

	while (under_a < a.len && a.ptr[under_a] == '_')
		under_a++;
	while (under_b < b.len && b.ptr[under_b] == '_')
		under_b++;
	if (under_a != under_b)
		return under_a < under_b;
	if (a.len != b.len)
		return a.len > b.len;
	return !str_starts(a, STR("SyS")) && str_starts(b, STR("SyS"));
}

static void drop_aliases(struct kallsyms *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->count; i++) {
		if (!kept || k->items[kept - 1].start != k->items[i].start)
			k->items[kept++] = k->items[i];
		else if (is_better(item_name(k, &k->items[i]), item_name(k, &k->items[kept - 1])))
			k->items[kept - 1] = k->items[i];
	}
	k->count = kept;
}

/* Names of dropped aliases go, in the order of the table: neighbours in the kernel become neighbours in memory. */
static int pack(struct kallsyms *k)
{
	scoped(buf_release) struct buf packed = BUF_INIT(KALLSYMS_NAMES_MAX);
	size_t size = 0;
	struct kallsyms_item *fitted;

	for (size_t i = 0; i < k->count; i++)
		size += item_name(k, &k->items[i]).len + 1 + (k->items[i].name & IN_MODULE ? 2 : 0);
	if (!buf_reserve(&packed, size))
		return packed.error;
	for (size_t i = 0; i < k->count; i++) {
		struct kallsyms_item *item = &k->items[i];
		struct str name = item_name(k, item);
		uint32_t flag = item->name & IN_MODULE;

		if (flag)
			buf_adds(&packed, str_n(name.ptr - 2, 2));
		item->name = (uint32_t)packed.len | flag;
		buf_add(&packed, name.ptr, name.len + 1);
	}
	must(!packed.error && packed.len == size);
	buf_release(&k->names);
	k->names = packed;
	packed = (struct buf){ 0 };
	fitted = realloc(k->items, k->count * sizeof(*k->items));
	if (fitted) {
		k->items = fitted;
		k->cap = k->count;
	}
	return 0;
}

int kallsyms_finish(struct kallsyms *k)
{
	if (!k->error)
		note(k, lines_end(&k->lines, add_line, k));
	lines_release(&k->lines);
	if (k->error)
		return k->error;
	if (!k->count)
		return k->zero_lines ? -EACCES : -ENOENT;
	qsort(k->items, k->count, sizeof(*k->items), compare_items);
	drop_aliases(k);
	return pack(k);
}

int kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_hit *out)
{
	size_t low = 0, high = k->count;
	uint64_t at = address - k->base;
	const struct kallsyms_item *item;
	struct str name, module = STR("");

	if (at > UINT32_MAX)
		return -ENOENT;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->items[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at - k->items[low - 1].start >= FUNCTION_MAX)
		return -ENOENT;
	item = &k->items[low - 1];
	name = item_name(k, item);
	if (item->name & IN_MODULE)
		module = module_name(k, (size_t)(uint8_t)name.ptr[-2] | (size_t)(uint8_t)name.ptr[-1] << 8);
	*out = (struct kallsyms_hit){ .start = k->base + item->start, .name = name, .module = module };
	return 0;
}

size_t kallsyms_size(const struct kallsyms *k)
{
	return k->cap * sizeof(*k->items) + k->names.cap + k->modules.cap + k->module_cap * sizeof(*k->module_starts);
}
