/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker must know of one JVM: where its code heaps are, what its interpreter looks like, which offsets hold.
 * Each JVM tells its own offsets. All that is read here is hostile. */
#include <elf.h>
#include <linux/types.h>

#include "abi/java.h"
#include "base/cur.h"
#include "runtime/java/flags.h"
#include "runtime/java/java_int.h"
#include "runtime/java/perf.h"
#include "runtime/java/threads.h"

#define CODELETS_MAX 2048 /* 271 in JDK 17 */
#define INTERPRETER_MAX MIB(4)
#define DESCRIPTION_MAX 40
#define ENTRY_TEXT "method entry point (kind = "
#define ENTRIES_MIN 4
#define ENTRY_MAX 512 /* bytes of a method's entry that are looked at */
#define HEAP_SIZE_MAX (UINT64_C(1) << 36)

int java_layout_of(const struct java_binary *binary, const struct runtime_target *target, struct java_layout *out)
{
	const struct java_memory memory = { target->read, target->self };
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	char why[RUNTIME_WHY_MAX] = "";
	int r = java_tables_read(&memory, binary->symbols, target->bias, &tables);

	if (r == 0)
		r = java_layout_fill(&memory, tables, target->bias, out, why);
	if (r < 0 && target->why)
		memcpy(target->why, why, sizeof(why));
	return r;
}

int java_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out)
{
	struct java_binary *copy = malloc(sizeof(*copy));

	(void)target;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, binary, sizeof(*copy));
	*out = copy;
	return 0;
}

/* What cannot be told stays as if it was not. */
static void learn(const struct runtime_target *target, struct java_layout *l)
{
	const struct java_process p = { { target->read, target->self }, l, target->bias, 0 };

	ignore(java_threads_learn(&p, l) < 0); /* java_thread_names() tries again */
	java_flags_learn(&p, l);
	if (l->by_jvmci && target->remark)
		snprintf(target->remark, RUNTIME_WHY_MAX,
			 "is compiled by Graal (JVMCI); walking such code has been tested little");
}

int java_learn_process(const struct runtime_target *target, const void *info, void **out)
{
	struct java_layout *l = target->of_file ? calloc(1, sizeof(*l)) : NULL;
	int r = l ? java_layout_of(target->of_file, target, l) : -ENOMEM;

	(void)info;
	if (r < 0 && r != -ENOTSUP && r != -EBADMSG) { /* it may be read the next time */
		free(l);
		return r;
	}
	if (r < 0) /* kept without: not tried for each name */
		*l = (struct java_layout){ 0 };
	else
		learn(target, l);
	*out = l;
	return 0;
}

void java_unlearn(void *learnt)
{
	free(learnt);
}

struct attaching {
	const struct java_binary *binary;
	const struct java_layout *layout;
	struct java_memory memory;
	uint64_t bias;
	struct abi_java *info;
};

/* @out: of the abi, or a uint64_t. */
static int read_word(const struct attaching *a, uint64_t at, void *out)
{
	return java_read(&a->memory, out, sizeof(uint64_t), at);
}

static int read_static(const struct attaching *a, uint64_t address, __u64 *out)
{
	int r = address ? read_word(a, address + a->bias, out) : -ENOTSUP;

	return r < 0 ? r : *out ? 0 : -EAGAIN;
}

/* ---- heaps of code ---- */

static int attach_heap(const struct attaching *a, uint64_t at, struct abi_java_heap *out)
{
	const struct java_layout *l = a->layout;
	uint64_t memory = at + l->heap_memory, map = at + l->heap_segments;
	uint32_t shift;
	int r = read_word(a, memory + l->space_low_bound, &out->low);

	if (r == 0)
		r = read_word(a, memory + l->space_high_bound, &out->high);
	if (r == 0)
		r = read_word(a, map + l->space_low, &out->map);
	if (r == 0)
		r = java_read(&a->memory, &shift, sizeof(shift), at + l->heap_shift);
	if (r < 0)
		return r;
	if (!out->low || !out->map)
		return -EAGAIN;
	if (out->high <= out->low || out->high - out->low > HEAP_SIZE_MAX || shift > 16 ||
	    (a->info->shift && a->info->shift != shift))
		return -EBADMSG;
	a->info->shift = (uint8_t)shift;
	return 0;
}

static int attach_heaps(const struct attaching *a)
{
	const struct java_layout *l = a->layout;
	__u64 array, data, heap;
	uint32_t count;
	int r = read_static(a, l->code_heaps, &array);

	if (r == 0 && l->flags & JAVA_LAYOUT_ONE_HEAP) {
		r = attach_heap(a, array, &a->info->heaps[0]);
		a->info->low = a->info->heaps[0].low;
		a->info->high = a->info->heaps[0].high;
		return r;
	}
	if (r == 0)
		r = java_read(&a->memory, &count, sizeof(count), array + l->array_length);
	if (r == 0)
		r = read_word(a, array + l->array_data, &data);
	if (r < 0)
		return r;
	if (!count || !data)
		return -EAGAIN;
	if (count > ABI_JAVA_HEAPS)
		return -EBADMSG;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = read_word(a, data + i * sizeof(heap), &heap);
		if (r == 0)
			r = attach_heap(a, heap, &a->info->heaps[i]);
	}
	if (r == 0)
		r = read_static(a, l->code_low, &a->info->low);
	if (r == 0)
		r = read_static(a, l->code_high, &a->info->high);
	if (r == 0 && (a->info->high <= a->info->low || a->info->high - a->info->low > HEAP_SIZE_MAX))
		r = -EBADMSG;
	return r;
}

/* ---- the interpreter ---- */

static const uint8_t *find(const uint8_t *code, size_t size, const char *what, size_t length)
{
	return memmem(code, size, what, length);
}

/* Where a method's frame is being made. Source: OpenJDK 17, templateInterpreterGenerator_x86.cpp,
 * generate_normal_entry() and generate_fixed_frame():
 *
 *	pop %rax; lea -8(%rsp,%rcx,8),%r14; ... push %rax; push %rbp; mov %rsp,%rbp; ... push %rbx;
 *	mov n(%rbx or %rax),%rdx
 *
 * Return: whether it looks so. */
static bool find_entry_x86_64(const uint8_t *code, size_t size, struct abi_java_entry *out)
{
	const uint8_t *pop = find(code, size, "\x58\x4c\x8d\x74\xcc\xf8", 6), *push, *filled, *end = code + size;

	if (!pop)
		return false;
	push = find(pop, (size_t)(end - pop), "\x50\x55\x48\x8b\xec", 5);
	filled = push ? find(push + 5, MIN((size_t)(end - push - 5), (size_t)64), "\x53\x48\x8b", 3) : NULL;
	if (!filled)
		return false;
	out->pop = (uint16_t)(pop - code);
	out->push = (uint16_t)(push - code);
	out->filled = (uint16_t)(filled + 1 - code);
	return true;
}

static uint32_t instruction(const uint8_t *code, size_t at)
{
	uint32_t word;

	memcpy(&word, code + at, sizeof(word));
	return word;
}

/* Where among the instructions of [@from, @to) the first one is that is @value under @mask. SIZE_MAX: nowhere. */
static size_t find_instruction(const uint8_t *code, size_t from, size_t to, uint32_t mask, uint32_t value)
{
	for (size_t at = from; at + 4 <= to; at += 4)
		if ((instruction(code, at) & mask) == value)
			return at;
	return SIZE_MAX;
}

/* stp x, x, [sp, #@offset], the first register or the second one left open by a mask */
static uint32_t store_pair(uint32_t first, uint32_t second, uint32_t offset)
{
	return 0xa90003e0 | (offset / 8 & 0x7f) << 15 | second << 10 | first;
}

/* Likewise. Source: OpenJDK 17, templateInterpreterGenerator_aarch64.cpp, generate_fixed_frame():
 *
 *	stp x20, x22, [sp, #-n]!; ... stp x, x12, [sp, #m - 32]; ... stp x29, x30, [sp, #m]; add x29, sp, #m; ...
 *	stp xzr, x13, [sp, #m - 16]
 *
 * where x13, from 21 on x19, is the caller's sp. In a native method's there is xzr in place of x22. @bcp_slot: where
 * x22 is, in words below x29. */
static bool find_entry_aarch64(const uint8_t *code, size_t size, struct abi_java_entry *out, uint16_t *bcp_slot)
{
	size_t room = find_instruction(code, 0, size, 0xffc003ff, 0xa98003f4), record, filled;
	uint32_t offset, sender;

	record = room == SIZE_MAX ? room : find_instruction(code, room, size, 0xffc07fff, 0xa9007bfd);
	if (record == SIZE_MAX)
		return false;
	offset = (instruction(code, record) >> 15 & 0x7f) * 8;
	if (offset < 64 || offset > 80 ||
	    find_instruction(code, record, MIN(record + 8, size), ~0U, 0x910003fd | offset << 10) == SIZE_MAX ||
	    find_instruction(code, room, size, 0xffffffe0, store_pair(0, 12, offset - 32)) == SIZE_MAX)
		return false;
	filled = find_instruction(code, record, size, 0xffff83ff, store_pair(31, 0, offset - 16));
	sender = filled == SIZE_MAX ? 0 : instruction(code, filled) >> 10 & 31;
	if (sender != 13 && sender != 19)
		return false;
	out->push = (uint16_t)(record + 4);
	out->filled = (uint16_t)(filled + 4);
	out->sender = (uint16_t)sender;
	*bcp_slot = (uint16_t)(offset / 8 - 1);
	return true;
}

static bool find_entry(const struct attaching *a, const uint8_t *code, size_t size, struct abi_java_entry *out)
{
	return a->binary->machine == EM_AARCH64 ? find_entry_aarch64(code, size, out, &a->info->bcp_slot)
						: find_entry_x86_64(code, size, out);
}

static void widen(uint32_t *low, uint32_t *high, uint32_t from, uint32_t to)
{
	if (!*high || from < *low)
		*low = from;
	if (to > *high)
		*high = to;
}

/* A piece of the interpreter at @at, whose description begins with @text. */
static int attach_codelet(const struct attaching *a, const char text[DESCRIPTION_MAX], uint64_t at, uint32_t size)
{
	struct abi_java *info = a->info;
	uint32_t from = (uint32_t)(at - info->interpreter_low);
	struct str name = str_n(text, strnlen(text, DESCRIPTION_MAX)), kind;
	struct abi_java_entry entry = { .low = from, .high = from + size };
	uint8_t code[ENTRY_MAX] = { 0 };
	int r;

	if (str_starts(name, STR("return entry")) || str_starts(name, STR("invoke return entry")))
		widen(&info->returns_low, &info->returns_high, from, from + size);
	if (str_starts(name, STR("native ")))
		name = str_n(name.ptr + 7, name.len - 7);
	if (!str_starts(name, STR(ENTRY_TEXT)))
		return 0;
	kind = str_n(name.ptr + strlen(ENTRY_TEXT), name.len - strlen(ENTRY_TEXT));
	widen(&info->entries_low, &info->entries_high, from, from + size);
	if (!str_starts(kind, STR("zerolocals")) && !str_starts(kind, STR("native")) &&
	    !str_starts(kind, STR("empty")) && !str_starts(kind, STR("accessor")))
		return 0; /* others have frames where they are as slow as these */
	r = java_read(&a->memory, code, MIN(size, (uint32_t)ENTRY_MAX), at);
	if (r < 0)
		return r;
	for (size_t i = 0; find_entry(a, code, MIN(size, (uint32_t)ENTRY_MAX), &entry) && i < ABI_JAVA_ENTRIES; i++) {
		if (info->entries[i].high)
			continue;
		info->entries[i] = entry;
		break;
	}
	return 0;
}

static int attach_codelets(const struct attaching *a, uint64_t at, uint64_t end)
{
	const struct java_layout *l = a->layout;

	for (size_t i = 0; at < end && i < CODELETS_MAX; i++) {
		char text[DESCRIPTION_MAX] = "";
		uint64_t description;
		uint32_t size;
		int r = java_read(&a->memory, &size, sizeof(size), at + l->codelet_size);

		if (r == 0)
			r = read_word(a, at + l->codelet_description, &description);
		if (r == 0 && (!size || size > end - at))
			r = -EBADMSG;
		if (r == 0 && description)
			r = java_read(&a->memory, text, sizeof(text), description);
		if (r == 0)
			r = attach_codelet(a, text, at, size);
		if (r < 0)
			return r;
		at += size;
	}
	return a->info->returns_high && a->info->entries[ENTRIES_MIN - 1].high ? 0 : -EBADMSG;
}

/* While it is being made its room is larger than what it has. That of 8 stays so: there threads come later. Source:
 * OpenJDK 8, src/share/vm/runtime/thread.cpp, Threads::create_vm(). */
static int check_made(const struct attaching *a, uint32_t limit, uint32_t end)
{
	__u64 threads;

	if (a->layout->flags & JAVA_LAYOUT_ONE_HEAP)
		return read_static(a, a->layout->threads, &threads);
	return limit == end ? 0 : -EAGAIN;
}

static int attach_interpreter(const struct attaching *a)
{
	const struct java_layout *l = a->layout;
	uint32_t limit, begin, end;
	__u64 queue, buffer;
	int r = read_static(a, l->interpreter, &queue);

	if (r == 0)
		r = read_word(a, queue + l->queue_buffer, &buffer);
	if (r == 0)
		r = java_read(&a->memory, &limit, sizeof(limit), queue + l->queue_limit);
	if (r == 0)
		r = java_read(&a->memory, &begin, sizeof(begin), queue + l->queue_begin);
	if (r == 0)
		r = java_read(&a->memory, &end, sizeof(end), queue + l->queue_end);
	if (r == 0)
		r = !buffer || !end ? -EAGAIN : check_made(a, limit, end);
	if (r < 0)
		return r;
	if (begin || end > INTERPRETER_MAX || buffer < a->info->low || buffer >= a->info->high ||
	    end > a->info->high - buffer)
		return -EBADMSG;
	a->info->interpreter_low = buffer;
	a->info->interpreter_high = buffer + end;
	return attach_codelets(a, buffer, buffer + end);
}

/* ---- the rest ---- */

static void attach_offsets(const struct attaching *a)
{
	const struct java_layout *l = a->layout;
	struct abi_java *info = a->info;

	info->flags = l->flags & JAVA_LAYOUT_RELATIVE ? ABI_JAVA_RELATIVE : 0;
	if (!(l->flags & JAVA_LAYOUT_IMMUTABLE))
		info->flags |= ABI_JAVA_ENTRY_ADDRESS;
	if (l->flags & JAVA_LAYOUT_SHORT_COMPLETE)
		info->flags |= ABI_JAVA_SHORT_COMPLETE;
	if (l->blob_kind != JAVA_NONE)
		info->flags |= ABI_JAVA_KINDS;
	info->block_header = l->heap_block_size;
	info->name = l->blob_name;
	info->kind = l->blob_kind;
	info->frame_size = l->blob_frame_size;
	info->frame_complete = l->blob_frame_complete;
	info->code_begin = l->blob_code_begin;
	info->code_end = l->blob_code_end;
	info->method = l->nm_method;
	info->compile_id = l->nm_compile_id;
	info->orig_pc = l->nm_orig_pc;
	info->deopt = l->nm_deopt;
	info->deopt_mh = l->nm_deopt_mh;
	info->level = l->nm_level;
	info->entry = l->nm_verified_entry;
	info->method_const = l->method_const;
	info->const_size = l->const_header;
	info->const_pool = l->const_pool;
	info->const_name = l->const_name;
	info->const_signature = l->const_signature;
	info->pool_holder = l->pool_holder;
	info->pool_size = l->pool_header;
	info->class_name = l->class_name;
	info->symbol_hash = l->symbol_hash;
	info->symbol_length = (__u8)l->symbol_length;
	info->symbol_body = (__u8)l->symbol_body;
	info->bcp_slot = l->flags & JAVA_LAYOUT_ONE_HEAP ? 7 : 8; /* with a slot for the class: JDK 9 and later */
}

/* Return: 0; -ENOTSUP: compiled code could not be told from stubs, or a Symbol is no Symbol. */
static int attach_names(const struct attaching *a)
{
	const uint64_t *literals = a->binary->literals;
	struct abi_java *info = a->info;

	if (a->layout->symbol_length > UINT8_MAX || a->layout->symbol_body > UINT8_MAX)
		return -ENOTSUP;
	if (info->flags & ABI_JAVA_KINDS)
		return 0;
	if (!literals[JAVA_LITERAL_NATIVE] || (a->binary->machine == EM_AARCH64 && !literals[JAVA_LITERAL_COMPILED]))
		return -ENOTSUP;
	info->names[1] = literals[JAVA_LITERAL_NATIVE] + a->bias;
	info->names[0] = literals[JAVA_LITERAL_COMPILED] ? literals[JAVA_LITERAL_COMPILED] + a->bias
							 : info->names[1] + strlen("native ");
	info->names[2] = literals[JAVA_LITERAL_ADAPTER] ? literals[JAVA_LITERAL_ADAPTER] + a->bias : 0;
	return 0;
}

#define STUB_REACH UINT8_MAX /* bytes in front of call_stub_return that are looked at, and from it on */

/* Where a piece of code ends: up to three ways to store a result, each of which ends in a jump back of @size bytes
 * within @most bytes of the end of the one before. */
static const uint8_t *behind_jumps(const uint8_t *end, const uint8_t *limit, size_t most, size_t size,
				   bool (*is_jump)(const uint8_t *code))
{
	for (int i = 0; i < 3; i++) {
		size_t room = (size_t)(limit - end), at = 0, step = size == 4 ? 4 : 1;

		while (at < most && at + size <= room && !is_jump(end + at))
			at += step;
		if (at >= most || at + size > room)
			break;
		end += at + size;
	}
	return end;
}

static bool is_jump_x86_64(const uint8_t *code)
{
	return *code == 0xeb;
}

/* b.al */
static bool is_jump_aarch64(const uint8_t *code)
{
	return (instruction(code, 0) & 0xff00001f) == 0x5400000e;
}

/* Where the stub of call_stub_return begins and ends: push %rbp; mov %rsp,%rbp; sub n,%rsp; ... its call; ... pop %rbp;
 * ret, and ways to store a result; on aarch64 stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, x29; ... ldp x29, x30,
 * [sp], #16; ret. What is not found is walked as any stub. Source: OpenJDK 8 to 26, stubGenerator_x86_64.cpp and
 * stubGenerator_aarch64.cpp, generate_call_stub(). */
static void attach_call_stub(const struct attaching *a)
{
	const bool is_x86_64 = a->binary->machine != EM_AARCH64;
	const struct str head = is_x86_64 ? STR("\x55\x48\x8b\xec\x48") : STR("\xfd\x7b\xbf\xa9\xfd\x03\0\x91"),
			 tail = is_x86_64 ? STR("\x5d\xc3") : STR("\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6");
	const uint8_t *begin = NULL, *ret, *end;
	struct abi_java *info = a->info;
	uint8_t code[2 * STUB_REACH];
	const uint8_t *middle = code + STUB_REACH, *limit = code + sizeof(code);

	if (java_read(&a->memory, code, sizeof(code), info->call_stub_return - STUB_REACH) < 0)
		return;
	for (const uint8_t *at = code; (at = find(at, (size_t)(middle - at), head.ptr, head.len)) != NULL; at++)
		begin = at;
	ret = find(middle, STUB_REACH, tail.ptr, tail.len);
	if (!begin || !ret)
		return;
	ret += is_x86_64 ? 1 : 4;
	end = is_x86_64 ? behind_jumps(ret + 1, limit, 6, 2, is_jump_x86_64)
			: behind_jumps(ret + 4, limit, 8, 4, is_jump_aarch64);
	info->call_stub_before = (uint8_t)(middle - begin);
	info->call_stub_ret = (uint8_t)(ret - middle);
	info->call_stub_after = (uint8_t)(end - middle);
}

/* Frames of virtual threads in the heap: without them, as on aarch64, stacks end where those on the stack do. */
static void attach_references(const struct attaching *a)
{
	const struct java_layout *l = a->layout;
	__u64 base;
	uint32_t shift;

	if (a->binary->machine == EM_AARCH64 || l->version < 21 || !l->oop_base || !l->oop_shift ||
	    read_word(a, l->oop_base + a->bias, &base) < 0 ||
	    java_read(&a->memory, &shift, sizeof(shift), l->oop_shift + a->bias) < 0 || shift > 7)
		return;
	if (l->continuation_return) /* the JVM writes it when it starts its first virtual thread */
		a->info->continuation_return_at = l->continuation_return + a->bias;
	a->info->oop_base = base;
	a->info->oop_shift = (__u16)shift;
	a->info->flags |= ABI_JAVA_CHUNKS;
}

int java_attach_with(const struct runtime_binary *binary, const struct runtime_target *target,
		     const struct java_layout *layout, void *out)
{
	struct abi_java info = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	const struct java_binary *b = (const struct java_binary *)(const void *)binary;
	struct attaching a = { b, layout, { target->read, target->self }, target->bias, &info };
	uint64_t epoch_at;
	int r;

	attach_offsets(&a);
	r = attach_names(&a);
	if (r == 0)
		r = attach_heaps(&a);
	if (r == 0)
		r = attach_interpreter(&a);
	if (r == 0)
		r = read_static(&a, a.layout->call_stub_return, &info.call_stub_return);
	if (r < 0)
		return r;
	attach_call_stub(&a);
	attach_references(&a);
	if (java_epoch_find(&a.memory, a.layout, a.bias, &epoch_at) == 0 && read_word(&a, epoch_at, &info.epoch) == 0)
		info.epoch_at = epoch_at;
	else
		info.flags |= ABI_JAVA_NAMED;
	if (layout->can_redefine)
		info.redefines_at = layout->can_redefine + a.bias;
	memcpy(out, &info, sizeof(info));
	return (int)sizeof(info);
}

int java_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	struct java_layout layout;
	int r = java_layout_of((const struct java_binary *)(const void *)binary, target, &layout);

	return r < 0 ? r : java_attach_with(binary, target, &layout, info);
}

int java_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	      struct abi_code_range *ranges)
{
	const struct abi_java *java = info;

	(void)binary;
	(void)target;
	ranges[0] = (struct abi_code_range){ .low = java->low, .size = java->high - java->low };
	return 1;
}
