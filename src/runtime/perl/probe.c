/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file Perl? Its symbols say so: the executable has the interpreter inside, or libperl.so has it, or any
 * program that embeds it. Perl exports all that is asked for here, because its extensions need it. */
#include <elf.h>

#include "base/cur.h"
#include "runtime/perl/perl_int.h"

void perl_release(struct runtime_binary *binary)
{
	free(binary);
}

static const char *const names[] = {
#define X(id, name) [PERL_SYMBOL_##id] = (name),
	PERL_SYMBOLS(X)
#undef X
};

_Static_assert(ARRAY_SIZE(names) <= ELF_FIND_NAMES_MAX, "one pass finds them all");

static bool is_missing(int r)
{
	return r == -ENOENT || r == -EBADMSG || r == -ENODATA;
}

/* Return: 0 or an error that is nobody's fault but the reader's. */
static int find_dynamic(const struct elf *elf, struct elf_found out[PERL_SYMBOL_COUNT])
{
	struct elf_dynamic dynamic;
	int r = elf_dynamic_read(elf, &dynamic);

	for (size_t i = 0; r == 0 && i < PERL_SYMBOL_COUNT; i++) {
		r = elf_dynamic_find(elf, &dynamic, names[i], &out[i]);
		if (i == PERL_SYMBOL_RUNOPS && is_missing(r)) /* every file of the system comes here */
			return 0;
		r = is_missing(r) ? 0 : r;
	}
	return is_missing(r) ? 0 : r;
}

/* A build that exports nothing. */
static int find_static(const struct elf *elf, struct elf_found out[PERL_SYMBOL_COUNT])
{
	int r = elf_symtab_find(elf, names, ARRAY_SIZE(names), out);

	return r == -ENOMEM || r == -EIO ? r : 0;
}

static bool read_byte(const struct elf *elf, const struct elf_found *symbol, uint8_t *out)
{
	uint64_t offset;

	return symbol->info && elf_offset_of(elf, symbol->address, &offset) == 0 &&
	       reader_read(&elf->in, out, 1, offset) == 0;
}

static uint64_t address_of(const struct elf_found *symbol)
{
	return symbol->info ? symbol->address : 0;
}

static void add_loop(const struct elf *elf, const struct elf_found *symbol, struct runtime_binary *out)
{
	uint64_t offset;

	if (!symbol->info || !symbol->size || symbol->size > KIB(64) ||
	    elf_offset_of(elf, symbol->address, &offset) < 0 || offset > UINT64_MAX - symbol->size)
		return;
	out->loops[out->loop_count++] = (struct runtime_range){ offset, offset + symbol->size };
}

static void refuse(struct perl_binary *b, const char *why)
{
	snprintf(b->base.refused, sizeof(b->base.refused), "%s", why);
}

static void fill(const struct elf *elf, const struct elf_found s[PERL_SYMBOL_COUNT], struct perl_binary *b)
{
	uint8_t revision = 0;

	b->machine = elf->machine;
	b->thread_key = address_of(&s[PERL_SYMBOL_THREAD_KEY]);
	b->interpreter = address_of(&s[PERL_SYMBOL_INTERPRETER]);
	b->cop = address_of(&s[PERL_SYMBOL_COP]);
	b->info = address_of(&s[PERL_SYMBOL_INFO]);
	add_loop(elf, &s[PERL_SYMBOL_RUNOPS], &b->base);
	add_loop(elf, &s[PERL_SYMBOL_RUNOPS_DEBUG], &b->base);
	if (!read_byte(elf, &s[PERL_SYMBOL_REVISION], &revision) ||
	    !read_byte(elf, &s[PERL_SYMBOL_VERSION], &b->minor) ||
	    !read_byte(elf, &s[PERL_SYMBOL_SUBVERSION], &b->micro)) {
		refuse(b, "its version cannot be found");
		return;
	}
	snprintf(b->base.version, sizeof(b->base.version), "%u.%u.%u", revision, b->minor, b->micro);
	if (revision == 5)
		b->version = perl_version_find(b->minor);
	if (!b->version)
		snprintf(b->base.refused, sizeof(b->base.refused), "version %s is not known", b->base.version);
	else if (b->thread_key ? !b->interpreter : !b->cop || !b->info)
		refuse(b, "a build with several interpreters and without threads is not known");
	else if (b->thread_key && b->machine != EM_X86_64)
		refuse(b, "where a thread keeps its interpreter is known on x86-64 only");
}

int perl_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	struct elf_found symbols[PERL_SYMBOL_COUNT] = { 0 };
	struct perl_binary *b;
	bool may_be;
	int r;

	if (!file->elf->is_64 || (file->elf->machine != EM_X86_64 && file->elf->machine != EM_AARCH64))
		return 0;
	r = find_dynamic(file->elf, symbols);
	may_be = !symbols[PERL_SYMBOL_RUNOPS].info && str_search(str_base(file->path), STR("perl")) >= 0;
	if (r == 0 && file->be_quick && may_be)
		return -EAGAIN;
	if (r == 0 && may_be)
		r = find_static(file->elf, symbols);
	if (r < 0 || !symbols[PERL_SYMBOL_RUNOPS].info)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	fill(file->elf, symbols, b);
	*out = &b->base;
	return 1;
}
