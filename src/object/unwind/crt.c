/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/crt.h"

#include <elf.h>

#define WINDOW_SIZE KIB(2) /* on the stack */
#define LONGEST 64         /* no pattern has more bytes */
#define ENDBR_SIZE 4
#define JUMP_SHORT 0xeb
#define JUMP_NEAR 0xe9

#define ANY 0x100 /* a byte of an address or a distance */
#define ANY4 ANY, ANY, ANY, ANY

/* sub $8,%rsp; mov __gmon_start__,%rax; test %rax,%rax; je 1f; call *%rax; 1: add $8,%rsp; ret */
static const uint16_t init[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, ANY4, 0x48, 0x85,
				 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
/* The same where the linker knows the address: mov $__gmon_start__,%rax */
static const uint16_t init_static[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0xc7, 0xc0, ANY4, 0x48, 0x85,
					0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
static const uint16_t fini[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3 };

/* cmpb $0,completed; jne 2f; push %rbp; cmpq $0,__cxa_finalize; mov %rsp,%rbp; je 1f; mov __dso_handle,%rdi;
 * call __cxa_finalize; 1: call deregister_tm_clones; movb $1,completed; pop %rbp; ret; nop; 2: ret */
static const uint16_t dtors_shared[] = { 0x80, 0x3d, ANY4, 0x00, 0x75, 0x2b, 0x55, 0x48, 0x83, 0x3d, ANY4, 0x00,
					 0x48, 0x89, 0xe5, 0x74, 0x0c, 0x48, 0x8b, 0x3d, ANY4, 0xe8, ANY4, 0xe8,
					 ANY4, 0xc6, 0x05, ANY4, 0x01, 0x5d, 0xc3, 0x0f, 0x1f, 0x00, 0xc3 };
/* Without __cxa_finalize: crtbegin.o */
static const uint16_t dtors[] = { 0x80, 0x3d, ANY4, 0x00, 0x75, 0x13, 0x55, 0x48, 0x89, 0xe5,
				  0xe8, ANY4, 0xc6, 0x05, ANY4, 0x01, 0x5d, 0xc3, 0x90, 0xc3 };
/* With __deregister_frame_info: crtbeginT.o */
static const uint16_t dtors_static[] = { 0x80, 0x3d, ANY4, 0x00, 0x75, 0x2b, 0x55, 0x48, 0x89, 0xe5, 0xe8, ANY4,
					 0xb8, ANY4, 0x48, 0x85, 0xc0, 0x74, 0x0a, 0xbf, ANY4, 0xe8, ANY4, 0xc6,
					 0x05, ANY4, 0x01, 0x5d, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3 };

/* lea, lea; cmp; je 1f; mov _ITM_deregisterTMCloneTable,%rax; test; je 1f; jmp *%rax; nop; 1: ret */
static const uint16_t deregister_shared[] = { 0x48, 0x8d, 0x3d, ANY4, 0x48, 0x8d, 0x05, ANY4, 0x48, 0x39, 0xf8,
					      0x74, 0x15, 0x48, 0x8b, 0x05, ANY4, 0x48, 0x85, 0xc0, 0x74, 0x09,
					      0xff, 0xe0, 0x0f, 0x1f, 0x80, 0,    0,    0,    0,    0xc3 };
static const uint16_t deregister[] = { 0xb8, ANY4, 0x48, 0x3d, ANY4, 0x74, 0x13, 0xb8, ANY4, 0x48, 0x85,
				       0xc0, 0x74, 0x09, 0xbf, ANY4, 0xff, 0xe0, 0x66, 0x90, 0xc3 };
static const uint16_t register_shared[] = { 0x48, 0x8d, 0x3d, ANY4, 0x48, 0x8d, 0x35, ANY4, 0x48, 0x29, 0xfe, 0x48,
					    0x89, 0xf0, 0x48, 0xc1, 0xee, 0x3f, 0x48, 0xc1, 0xf8, 0x03, 0x48, 0x01,
					    0xc6, 0x48, 0xd1, 0xfe, 0x74, 0x14, 0x48, 0x8b, 0x05, ANY4, 0x48, 0x85,
					    0xc0, 0x74, 0x08, 0xff, 0xe0, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3 };
static const uint16_t register_static[] = { 0xbe, ANY4, 0x48, 0x81, 0xee, ANY4, 0x48, 0x89, 0xf0, 0x48,
					    0xc1, 0xee, 0x3f, 0x48, 0xc1, 0xf8, 0x03, 0x48, 0x01, 0xc6,
					    0x48, 0xd1, 0xfe, 0x74, 0x11, 0xb8, ANY4, 0x48, 0x85, 0xc0,
					    0x74, 0x07, 0xbf, ANY4, 0xff, 0xe0, 0xc3 };

/* V8: push %rbp; mov %rsp,%rbp; push $0xcdcdcd; push %rbx, %r12 ... %r15; mov %rdx,%r8; mov %rsp,%rdx; call *%r8;
 * add $48,%rsp; pop %rbp; ret */
static const uint16_t push_registers[] = { 0x55, 0x48, 0x89, 0xe5, 0x68, 0xcd, 0xcd, 0xcd, 0x00, 0x53, 0x41,
					   0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x49, 0x89, 0xd0, 0x48,
					   0x89, 0xe2, 0x41, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3 };

/* In [from, to) there are 8 bytes more on the stack, from @framed on below the frame register; 0: never. */
static const struct pattern {
	const uint16_t *bytes;
	uint8_t size, from, to;
	bool saves_fp;
	uint8_t framed;
} patterns[] = {
	{ register_shared, ARRAY_SIZE(register_shared), 0, 0,
	  false }, /* the two that frame_dummy jumps to come first */
	{ register_static, ARRAY_SIZE(register_static), 0, 0, false },
	{ deregister_shared, ARRAY_SIZE(deregister_shared), 0, 0, false },
	{ deregister, ARRAY_SIZE(deregister), 0, 0, false },
	{ init, ARRAY_SIZE(init), 4, 22, false },
	{ init_static, ARRAY_SIZE(init_static), 4, 22, false },
	{ fini, ARRAY_SIZE(fini), 4, 8, false },
	{ dtors_shared, ARRAY_SIZE(dtors_shared), 10, 48, true },
	{ dtors, ARRAY_SIZE(dtors), 10, 26, true },
	{ dtors_static, ARRAY_SIZE(dtors_static), 10, 46, true },
	{ push_registers, ARRAY_SIZE(push_registers), 1, 32, true, .framed = 4 },
};
#define JUMPED_TO 2

static bool matches(const struct pattern *p, const uint8_t *code, size_t left)
{
	if (left < p->size)
		return false;
	for (size_t i = 0; i < p->size; i++)
		if (p->bytes[i] != ANY && p->bytes[i] != code[i])
			return false;
	return true;
}

/* frame_dummy is a jump to register_tm_clones. Return: bytes of the jump at @at, or 0. */
static size_t frame_dummy_size(const uint8_t *code, size_t size, size_t at)
{
	size_t length;
	int64_t target;

	if (code[at] == JUMP_SHORT && size - at >= 2) {
		length = 2;
		target = code[at + 1] < 0x80 ? code[at + 1] : code[at + 1] - 0x100;
	} else if (code[at] == JUMP_NEAR && size - at >= 5) {
		length = 5;
		target = (int32_t)((uint32_t)code[at + 1] | (uint32_t)code[at + 2] << 8 | (uint32_t)code[at + 3] << 16 |
				   (uint32_t)code[at + 4] << 24);
	} else {
		return 0;
	}
	target += (int64_t)(at + length);
	for (size_t i = 0; i < JUMPED_TO && target >= 0 && target < (int64_t)size; i++)
		if (matches(&patterns[i], code + target, size - (size_t)target))
			return length;
	return 0;
}

static int put(struct cfi *out, uint64_t address, size_t before, size_t size, const struct pattern *p)
{
	const struct abi_row bare = { .cfa = ABI_CFA_SP, .cfa_off = 1 };
	struct abi_row deeper = { .cfa = ABI_CFA_SP, .cfa_off = 2 };
	size_t first = out->row_count;
	int r = cfi_put_row(out, 0, bare);

	if (p && p->saves_fp) {
		deeper.saved = ABI_SAVED_AT;
		deeper.fp_off = -2;
	}
	if (r == 0 && p && p->to)
		r = cfi_put_row(out, (uint32_t)(before + p->from), deeper);
	deeper.cfa = ABI_CFA_FP;
	if (r == 0 && p && p->framed)
		r = cfi_put_row(out, (uint32_t)(before + p->framed), deeper);
	if (r == 0 && p && p->to)
		r = cfi_put_row(out, (uint32_t)(before + p->to), bare);
	return r < 0 ? r : cfi_put_span(out, address - before, (uint32_t)(before + size), first, false);
}

/* What begins at @at of @size bytes, which are at @address. */
static int judge(const uint8_t *code, size_t size, size_t at, uint64_t address, struct cfi *out)
{
	const struct pattern *found = NULL;
	size_t before =
		at >= ENDBR_SIZE && !memcmp(code + at - ENDBR_SIZE, "\xf3\x0f\x1e\xfa", ENDBR_SIZE) ? ENDBR_SIZE : 0;
	size_t length = 0;

	for (size_t i = 0; i < ARRAY_SIZE(patterns) && !found; i++)
		if (patterns[i].bytes[0] == code[at] && matches(&patterns[i], code + at, size - at))
			found = &patterns[i];
	length = found ? found->size : frame_dummy_size(code, size, at);
	return length ? put(out, address + at, before, length, found) : 0;
}

int unwind_crt_scan(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size, struct cfi *out)
{
	uint8_t code[WINDOW_SIZE];
	bool begins[256] = { [JUMP_SHORT] = true, [JUMP_NEAR] = true }; /* by first byte: nine of ten are none */
	struct reader in = reader_slice(&elf->in, offset, size);
	uint64_t at = 0;
	int r = 0;

	if (elf->machine != EM_X86_64)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		begins[patterns[i].bytes[0]] = true;
	/* Windows overlap: by the longest function behind a place, and by those before it that frame_dummy jumps to. */
	while (r == 0 && at < in.size) {
		size_t chunk = (size_t)MIN((uint64_t)sizeof(code), in.size - at), first = at ? 4 * (size_t)LONGEST : 0;
		bool is_last = at + chunk >= in.size;
		size_t end = is_last ? chunk : chunk - LONGEST;

		r = reader_read(&in, code, chunk, at);
		for (size_t i = first; r == 0 && i < end; i++)
			if (begins[code[i]])
				r = judge(code, chunk, i, address + at, out);
		if (is_last)
			break;
		at += end - 4 * (size_t)LONGEST;
	}
	return r;
}
