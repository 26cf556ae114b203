/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file Ruby? Its symbols say so: libruby, or a program that has it inside, exports them for its extensions.
 * What has no name from 3.3 on is read from the code of short exported functions:
 *
 *	rb_thread_current      the context: a variable up to 2.7, thread-local from 3.0 on; where it has its thread
 *	ruby_thread_has_gvl_p  up to 2.7: the pthread key of the thread's struct
 *	rb_during_gc           the VM, and where it has the collector's state
 *	rb_id2str              the last operator's identifier, the table of symbols
 *	rb_iseq_eval           its last jump leads to vm_exec(), one activation of the loop
 *
 * x86-64 only. A table that disagrees with the code is refused. */
#include <elf.h>

#include "object/elf_fde.h"
#include "object/x86.h"
#include "runtime/code_parts.h"
#include "runtime/ruby/ruby_int.h"

#define RUBY_SYMBOLS(X)                                  \
	X(VERSION, "ruby_version")                       \
	X(DESCRIPTION, "ruby_description")               \
	X(THREAD_CURRENT, "rb_thread_current")           \
	X(CURRENT, "ruby_current_execution_context_ptr") \
	X(HAS_GVL, "ruby_thread_has_gvl_p")              \
	X(VM, "ruby_current_vm_ptr")                     \
	X(DURING_GC, "rb_during_gc")                     \
	X(ID2STR, "rb_id2str")                           \
	X(VM_EXEC, "rb_vm_exec")                         \
	X(VM_EXEC_LOCAL, "vm_exec")                      \
	X(ISEQ_EVAL, "rb_iseq_eval")

#define X(id, name) SYMBOL_##id,
enum symbol { RUBY_SYMBOLS(X) SYMBOL_COUNT };
#undef X

static const char *const names[] = {
#define X(id, name) [SYMBOL_##id] = (name),
	RUBY_SYMBOLS(X)
#undef X
};

_Static_assert(ARRAY_SIZE(names) <= ELF_FIND_NAMES_MAX, "one pass finds them all");

#define FACTS_MAX 16
#define REG_AX 0
#define OP_LOAD 0x8b
#define OP_LEA 0x8d
#define OP_COMPARE 0x81        /* cmp $imm32, r: /7 */
#define OP_COMPARE_AX 0x3d     /* cmp $imm32, %rax */
#define LAST_OPERATOR_MIN 0x90 /* of 2.7 to 3.3: 0xa8 to 0xaa */
#define LAST_OPERATOR_MAX 0xff

struct facts {                         /* of a function's code, in its order */
	uint64_t variables[FACTS_MAX]; /* addresses relative to rip */
	uint8_t opcodes[FACTS_MAX];    /* of the instructions that have them */
	size_t variable_count;
	int64_t loads[FACTS_MAX]; /* displacements of loads by a register, but 0 */
	size_t load_count;
	uint64_t jump; /* the last one's target, outside of the function */
	uint32_t last_operator;
};

struct file {
	const struct elf *elf;
	struct elf_found symbols[SYMBOL_COUNT]; /* info 0: not found */
};

static bool has(const struct file *f, enum symbol id)
{
	return f->symbols[id].info != 0;
}

void ruby_release(struct runtime_binary *binary)
{
	free(binary);
}

/* ---- symbols ---- */

static own_frame int find_dynamic(struct file *f)
{
	struct elf_dynamic dynamic;
	int r = elf_dynamic_read(f->elf, &dynamic);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG || r == -ENODATA ? 0 : r;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		r = elf_dynamic_find(f->elf, &dynamic, names[i], &f->symbols[i]);
		if (r < 0 && r != -ENOENT && r != -EBADMSG && r != -ENODATA)
			return r;
		if (i == SYMBOL_THREAD_CURRENT && !has(f, SYMBOL_VERSION))
			return 0; /* every file of the system comes here */
	}
	return 0;
}

static own_frame int find_static(struct file *f)
{
	struct elf_found more[ARRAY_SIZE(names)] = { 0 };
	int r = elf_symtab_find(f->elf, names, ARRAY_SIZE(names), more);

	if (r < 0)
		return r == -ENOMEM || r == -EIO ? r : 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!has(f, (enum symbol)i))
			f->symbols[i] = more[i];
	return 0;
}

static bool is_ruby(const struct file *f)
{
	return has(f, SYMBOL_VERSION) && has(f, SYMBOL_THREAD_CURRENT);
}

/* ---- code ---- */

static void note(const struct x86 *i, const struct accessor_code *code, struct facts *out)
{
	bool is_plain = !i->map && !i->is_vector;

	if (i->memory == X86_MEMORY_RELATIVE && !i->is_fs && out->variable_count < FACTS_MAX) {
		out->opcodes[out->variable_count] = is_plain ? i->opcode : 0;
		out->variables[out->variable_count++] = i->address;
	}
	if (is_plain && i->opcode == OP_LOAD && i->memory == X86_MEMORY_BASE && i->displacement &&
	    out->load_count < FACTS_MAX)
		out->loads[out->load_count++] = i->displacement;
	if (is_plain && (i->opcode == OP_COMPARE || i->opcode == OP_COMPARE_AX) && !out->last_operator &&
	    i->immediate >= LAST_OPERATOR_MIN && i->immediate <= LAST_OPERATOR_MAX)
		out->last_operator = (uint32_t)i->immediate;
	if (i->flow == X86_FLOW_JUMP && i->target && i->target - code->address >= code->size)
		out->jump = i->target;
}

/* @size: of the function; 0: not known. What is found is a guess. */
static void look(const struct file *f, uint64_t address, uint64_t size, struct facts *out)
{
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code = { 0 };

	*out = (struct facts){ 0 };
	accessor_read(f->elf, address, size, room, &code);
	for (size_t at = 0; at < code.size;) {
		struct x86 i;

		if (x86_decode(code.bytes + at, code.size - at, code.address + at, &i) < 0)
			return;
		at += i.length;
		note(&i, &code, out);
	}
}

static void look_at(const struct file *f, enum symbol id, struct facts *out)
{
	*out = (struct facts){ 0 };
	if (has(f, id))
		look(f, f->symbols[id].address, f->symbols[id].size, out);
}

/* A variable that is loaded itself (lea, or by its symbol), or by way of the global offset table. */
static uint64_t variable_of(const struct file *f, enum symbol id, const struct facts *facts, bool *is_slot)
{
	*is_slot = false;
	if (has(f, id))
		return f->symbols[id].address;
	if (!facts->variable_count)
		return 0;
	*is_slot = facts->opcodes[0] != OP_LEA;
	return facts->variables[0];
}

/* rb_symbols_t: last_id at 0, ids at 16 (symbol.c). The code compares with the one and loads the other. */
static uint64_t symbols_among(const struct facts *a, const struct facts *b)
{
	const struct facts *both[] = { a, b };

	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		for (size_t k = 0; k < both[i]->variable_count; k++)
			for (size_t n = 0; n < b->variable_count; n++)
				if (b->variables[n] == both[i]->variables[k] + 16 && b->opcodes[n] == OP_LOAD)
					return both[i]->variables[k];
	return 0;
}

static void find_symbols(const struct file *f, struct ruby_binary *b)
{
	struct facts facts, inner;

	look_at(f, SYMBOL_ID2STR, &facts);
	if (!facts.last_operator || !b->version->has_symbols)
		return;
	inner = facts;
	if (facts.jump)
		look(f, facts.jump, 0, &inner);
	b->last_operator = facts.last_operator;
	b->symbols = symbols_among(&facts, &inner);
}

static void find_gc(const struct file *f, struct ruby_binary *b)
{
	struct facts facts;

	look_at(f, SYMBOL_DURING_GC, &facts);
	if (!facts.load_count || facts.loads[0] <= 0 || facts.loads[0] > (int64_t)KIB(64))
		return;
	b->vm = variable_of(f, SYMBOL_VM, &facts, &b->vm_is_slot);
	b->vm_objspace = (uint32_t)facts.loads[0];
}

/* Return: whether the code knows the context's thread where the table has it. */
static bool find_context(const struct file *f, struct ruby_binary *b)
{
	uint8_t room[ACCESSOR_BYTES_MAX];
	const struct elf_found *s = &f->symbols[SYMBOL_THREAD_CURRENT];
	struct accessor_code code = { 0 };
	struct facts facts;

	look_at(f, SYMBOL_THREAD_CURRENT, &facts);
	if (b->version->major >= 3) {
		accessor_read(f->elf, s->address, s->size, room, &code);
		if (!accessor_thread_local(&code, &b->tls))
			return false;
	} else {
		b->current = variable_of(f, SYMBOL_CURRENT, &facts, &b->current_is_slot);
		s = &f->symbols[SYMBOL_HAS_GVL];
		if (!has(f, SYMBOL_HAS_GVL) || !b->current)
			return false;
		accessor_read(f->elf, s->address, s->size, room, &code);
		if (!accessor_int_argument(&code, &b->key))
			return false;
	}
	return facts.load_count && facts.loads[0] == b->version->layout.ec_thread;
}

/* The segment that has the loop's code. */
static void find_code(const struct file *f, struct ruby_binary *b)
{
	uint64_t at = f->symbols[SYMBOL_THREAD_CURRENT].address;

	for (size_t i = 0; i < f->elf->segment_count; i++) {
		const struct elf_segment *s = &f->elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && at - s->address < s->memory_size) {
			b->code_low = s->address;
			b->code_size = s->memory_size;
		}
	}
}

/* ---- the loop ---- */

static int find_loops(const struct file *f, struct runtime_binary *out)
{
	struct elf_fde seed = { 0 };
	struct elf_fdes fdes;
	struct facts facts;

	if (has(f, SYMBOL_VM_EXEC)) {
		seed = (struct elf_fde){ .start = f->symbols[SYMBOL_VM_EXEC].address,
					 .size = f->symbols[SYMBOL_VM_EXEC].size };
	} else if (has(f, SYMBOL_VM_EXEC_LOCAL)) {
		seed = (struct elf_fde){ .start = f->symbols[SYMBOL_VM_EXEC_LOCAL].address,
					 .size = f->symbols[SYMBOL_VM_EXEC_LOCAL].size };
	} else {
		look_at(f, SYMBOL_ISEQ_EVAL, &facts);
		if (!facts.jump || elf_fdes_open(f->elf, &fdes) < 0 ||
		    elf_fde_find(f->elf, &fdes, facts.jump, &seed) < 0 || seed.start != facts.jump)
			return 0;
	}
	return code_parts(f->elf, &seed, 1, out);
}

/* ---- the file ---- */

/* "3.1.2" */
static bool find_version(const struct file *f, unsigned int number[2], char out[32])
{
	char text[16];
	struct str found;
	uint64_t offset;
	size_t at = 0;

	if (elf_offset_of(f->elf, f->symbols[SYMBOL_VERSION].address, &offset) < 0 ||
	    reader_text(&f->elf->in, offset, text, sizeof(text), &found) < 0)
		return false;
	for (size_t i = 0; i < 2; i++) {
		size_t start = at;

		number[i] = 0;
		while (at < found.len && at - start < 2 && found.ptr[at] >= '0' && found.ptr[at] <= '9')
			number[i] = number[i] * 10 + (unsigned int)(found.ptr[at++] - '0');
		if (at == start || at >= found.len || found.ptr[at++] != '.')
			return false;
	}
	for (size_t i = 0; i < found.len; i++)
		if (found.ptr[i] != '.' && (found.ptr[i] < '0' || found.ptr[i] > '9'))
			return false;
	snprintf(out, 32, STR_FMT, STR_ARG(found));
	return true;
}

/* "ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]" */
static void find_description(const struct file *f, struct ruby_binary *b)
{
	char text[sizeof(b->description)];
	struct str found;
	uint64_t offset;

	if (!has(f, SYMBOL_DESCRIPTION) || elf_offset_of(f->elf, f->symbols[SYMBOL_DESCRIPTION].address, &offset) < 0 ||
	    reader_text(&f->elf->in, offset, text, sizeof(text), &found) < 0 || !str_starts(found, STR("ruby ")))
		return;
	for (size_t i = 0; i < found.len; i++)
		if (found.ptr[i] < ' ' || found.ptr[i] > '~')
			return;
	snprintf(b->description, sizeof(b->description), STR_FMT, STR_ARG(found));
}

static own_frame int fill(const struct file *f, struct ruby_binary *b)
{
	unsigned int number[2];
	int r = find_loops(f, &b->base);

	if (r < 0)
		return r;
	if (!find_version(f, number, b->base.version)) {
		snprintf(b->base.refused, sizeof(b->base.refused), "its version cannot be found");
		return 0;
	}
	find_description(f, b);
	b->version = ruby_version_find(number[0], number[1]);
	if (!b->version) {
		snprintf(b->base.refused, sizeof(b->base.refused), "version %s is not known, 2.5 to 4.0 are",
			 b->base.version);
		return 0;
	}
	if (f->elf->machine != EM_X86_64 || !find_context(f, b)) {
		b->version = NULL;
		snprintf(b->base.refused, sizeof(b->base.refused),
			 "rb_thread_current() is not that of version %u.%u on x86-64", number[0], number[1]);
		return 0;
	}
	find_gc(f, b);
	find_symbols(f, b);
	find_code(f, b);
	return 0;
}

static void binary_release(struct ruby_binary **b)
{
	free(*b);
}

int ruby_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	scoped(binary_release) struct ruby_binary *b = NULL;
	struct file f = { .elf = file->elf };
	bool may_be;
	int r;

	if (!file->elf->is_64 || (file->elf->machine != EM_X86_64 && file->elf->machine != EM_AARCH64))
		return 0;
	r = find_dynamic(&f);
	may_be = is_ruby(&f) || str_search(str_base(file->path), STR("ruby")) >= 0;
	if (r == 0 && file->be_quick && may_be)
		return -EAGAIN;
	if (r == 0 && may_be)
		r = find_static(&f);
	if (r < 0 || !is_ruby(&f))
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	r = fill(&f, b);
	if (r < 0)
		return r;
	*out = &b->base;
	b = NULL;
	return 1;
}
