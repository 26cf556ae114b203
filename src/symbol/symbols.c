/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/symbol_int.h"

#define MEMORY_DEFAULT MIB(24)
#define WORK_MAX MIB(512)   /* about a second of reading; the tables of a whole machine are a tenth of it */
#define WORK_NS_PER_BYTE 16 /* 60 MiB/s, a tenth of a CPU or so */

int symbols_open(const struct symbols_config *cfg, struct files *files, struct symbols **out)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->files = files;
	s->time = cfg->clock ? cfg->clock : &clock_system;
	s->raw_names = cfg->raw_names;
	s->table_max = SYMBOL_TABLES_MAX;
	if (cfg->descriptor_max)
		s->table_max = MAX(MIN(cfg->descriptor_max / 2, s->table_max), (size_t)1);
	s->work_left = WORK_MAX;
	s->work_ns = clock_monotonic_ns(s->time);
	s->memory_max = cfg->memory_max ? cfg->memory_max : MEMORY_DEFAULT;
	s->jit_memory_max = s->memory_max / 3; /* JIT code is on few machines, but then there is much of it */
	s->memory_max -= s->jit_memory_max;
	s->text = (struct buf)BUF_INIT(SYMBOL_TEXT_MAX + KIB(4));
	s->host_root = str_dup(str_of(cfg->host_root ? cfg->host_root : ""));
	s->raw = malloc(SYMBOL_NAME_MAX);
	kallsyms_init(&s->kernel.list);
	u64map_init(&s->coroutines, SYMBOL_COROUTINES_MAX);
	if (!s->host_root || !s->raw) {
		symbols_close(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void symbols_close(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->object_count; i++)
		symbol_object_free(s->objects[i]);
	for (size_t i = 0; i < SYMBOL_TABLES_MAX; i++)
		symbol_table_free(s->tables[i]);
	free(s->objects);
	symbol_kernel_release(&s->kernel);
	symbol_jits_release(s);
	free(s->host_root);
	free(s->raw);
	buf_release(&s->text);
	u64map_release(&s->coroutines);
	free(s);
}

bool symbol_work_take(struct symbols *s, uint64_t bytes)
{
	uint64_t now_ns = clock_monotonic_ns(s->time);

	s->work_left += MIN((now_ns - s->work_ns) / WORK_NS_PER_BYTE, WORK_MAX - s->work_left);
	s->work_ns = now_ns;
	if (bytes > s->work_left) {
		s->stats.refused++;
		return false;
	}
	s->work_left -= bytes;
	return true;
}

int symbol_answer(struct symbols *s, struct str raw, struct str prefix, uint64_t address, struct symbol *out)
{
	buf_clear(&s->text);
	s->stats.lookups++;
	if (!raw.len) {
		s->stats.unnamed++;
		buf_addf(&s->text, "[" STR_FMT "+0x%llx]", STR_ARG(str_first(prefix, KIB(1))),
			 (unsigned long long)address);
	} else if (s->raw_names) {
		buf_adds(&s->text, raw);
	} else {
		demangle_add(raw, &s->text);
	}
	if (s->text.error)
		return -ENOMEM; /* the buffer holds the longest possible name */
	out->has_name = raw.len > 0;
	out->system_name = raw;
	out->name = buf_str(&s->text);
	return 0;
}

static int read_name(struct symbols *s, const struct symbol_table *t, const struct elf_symbol_hit *hit, struct str *out)
{
	static const struct str plt = STR("@plt");
	int r = reader_text(&t->strings[hit->strings], hit->name, s->raw, SYMBOL_NAME_MAX - plt.len, out);

	if (r < 0 || !out->len)
		return r < 0 ? r : -ENOENT;
	if (hit->is_plt) {
		memcpy(s->raw + out->len, plt.ptr, plt.len);
		out->len += plt.len;
	}
	return 0;
}

/* Return: 0 with or without a name (empty), or -ENOMEM. */
int symbol_find_native(struct symbols *s, uint32_t file_id, struct symbol_object *m, uint64_t address, struct str *name,
		       uint64_t *start)
{
	struct elf_symbol_hit hit;
	struct symbol_table *t;
	int r = symbol_table_get(s, file_id, m, &t);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (elf_symbols_find(&t->symbols, address, &hit) < 0) {
		if (t->go.count && pclntab_find(&t->go, address, s->raw, SYMBOL_NAME_MAX, name, start) < 0)
			*name = STR("");
		return 0;
	}
	if (read_name(s, t, &hit, name) < 0) {
		s->stats.names_failed++;
		*name = STR("");
		return 0;
	}
	*start = hit.start;
	return 0;
}

int symbols_native(struct symbols *s, uint32_t file_id, uint64_t offset, bool is_return, struct symbol *out)
{
	struct symbol symbol = { .address = offset, .start = offset };
	struct symbol_object *m;
	struct str name = STR("");
	uint64_t address;
	int r = symbol_object_get(s, file_id, &m);

	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		symbol.module = str_of(m->path);
		/* The byte before a return address may lie in another segment: one is subtracted after the translation.
		 */
		if (m->is_elf && elf_address_of(&m->elf, offset, &address) == 0) {
			symbol.address = symbol.start = address;
			r = symbol_find_native(s, file_id, m, address - (is_return ? 1 : 0), &name, &symbol.start);
			if (r < 0)
				return r;
		}
	}
	r = symbol_answer(s, name, symbol.module.len ? str_base(symbol.module) : STR("unknown"), symbol.address,
			  &symbol);
	if (r == 0)
		*out = symbol;
	return r == 0 ? 0 : -ENOMEM;
}

int symbols_module(struct symbols *s, uint32_t file_id, struct symbol_module *out)
{
	struct symbol_object *m;

	if (symbol_object_get(s, file_id, &m) < 0 || !m->path)
		return -ENOENT;
	*out = (struct symbol_module){ .path = str_of(m->path), .build_id = m->build_id };
	return 0;
}

void symbols_stats(const struct symbols *s, struct symbols_stats *out)
{
	*out = s->stats;
	out->memory = s->tables_memory + kallsyms_size(&s->kernel.list) + symbol_jits_memory(s);
}
