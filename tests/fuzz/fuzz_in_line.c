/* SPDX-License-Identifier: Apache-2.0 */
/* A raw sample finished on the host in a process with a runtime in line, whose ranges, whose data, whose copied stack
 * and whose living memory are the input: it ends within bounds, gives a record that is well formed, and keeps what had
 * come with it. Layout: control, range count, frames of the kernel, frames behind, flags of the walk (a byte each);
 * four ranges (low, size, 8 bytes each; runtime, one byte); where the code lies, pc, sp, fp (8 bytes each); the stack,
 * whose bytes are the code's, too. */
#include "fuzz.h"

#include <linux/types.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cur.h"
#include "sampler/sampler.h"
#include "tests/walk/walk_fake.h"
#include "unwind/raw_walk.h"
#include "unwind/table_memory.h"
#include "unwind/unwind.h"

#define LIVING UINT64_C(0x6a0000000000) /* memory of this process that a step may read */
#define LIVING_SIZE 4096
#define JIT UINT64_C(0x7ff000000000) /* mapped in the sample's process, no file behind it */
#define JIT_SIZE 0x100000

enum control { CONTROL_FAULT = 3, CONTROL_LIVES = 4, CONTROL_HEAD = 8, CONTROL_INFO = 16, CONTROL_DIES = 32 };

struct process {
	struct abi_runtimes head;
	struct abi_fake info;
	uint8_t control;
	uint32_t asked;
};

static int head_of(void *self, const struct program *program, struct abi_runtimes *out)
{
	const struct process *p = self;

	(void)program;
	if (!(p->control & CONTROL_HEAD))
		return -ENOENT;
	*out = p->head;
	return 0;
}

static int info_of(void *self, const struct program *program, enum abi_runtime runtime, void *out)
{
	const struct process *p = self;

	(void)program;
	if (!(p->control & CONTROL_INFO) || runtime != FAKE_IN_LINE)
		return -ENOENT;
	memcpy(out, &p->info, sizeof(p->info));
	return 0;
}

static enum walk_next step(void *self, struct walk *w)
{
	const struct abi_fake *info = (const struct abi_fake *)w->info;
	uint8_t first;

	(void)self;
	return walk_read(w, &first, 1, info->low) ? WALK_SWITCH : walk_fake_step(w, info);
}

static bool lives(void *self, const struct program *program)
{
	struct process *p = self;

	(void)program;
	if ((p->control & CONTROL_DIES) && p->asked++)
		return false;
	return p->control & CONTROL_LIVES;
}

/* ---- files: there are none ---- */

static int no_span(void *self, uint32_t file_id, struct unwind_span *out)
{
	(void)self;
	(void)file_id;
	(void)out;
	return -ENOENT;
}

static int no_rows(void *self, uint32_t file_id, struct unwind_table *out)
{
	(void)self;
	(void)file_id;
	(void)out;
	return -ENOENT;
}

struct place {
	struct files *files;
	struct table_memory *memory;
	struct table_sink sink;
	struct rows_source source;
	struct rows *rows;
	uint8_t *living;
};

static struct place *the_place(void)
{
	static struct place p;
	struct rows_config cfg = {
		.budget_bytes = MIB(1), .clock = &clock_system, .sink = &p.sink, .source = &p.source
	};

	if (p.rows)
		return &p;
	must(files_open(16, &p.files) == 0);
	must(table_memory_new(&p.memory) == 0);
	p.sink = table_memory_sink(p.memory);
	p.source = (struct rows_source){ .span = no_span, .build = no_rows };
	p.living = mmap((void *)LIVING, LIVING_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	must(p.living == (uint8_t *)LIVING);
	must(rows_open(&cfg, &p.rows) == 0);
	return &p;
}

/* ---- the sample ---- */

static void take_ranges(struct cur *in, struct process *p, uint8_t count)
{
	p->head.range_count = count;
	for (size_t i = 0; i < ABI_CODE_RANGES; i++) {
		p->head.ranges[i].low = cur_le64(in);
		p->head.ranges[i].size = cur_le64(in);
		p->head.ranges[i].runtime = cur_u8(in);
	}
	p->info.low = cur_le64(in);
	p->info.fault = p->control & CONTROL_FAULT;
}

static struct abi_sample *make_sample(struct cur *in, uint8_t kernel, uint8_t behind, uint8_t flags)
{
	struct abi_raw raw = { .is_return = flags & 1,
			       .is_leaf = flags >> 1 & 1,
			       .guessed = flags >> 2 & 1,
			       .at_signal = flags >> 3 & 1 };
	size_t frames = (size_t)kernel + behind, size;
	struct abi_sample *sample;
	uint8_t *to;

	raw.pc = raw.regs[WALK_REG_PC] = cur_le64(in);
	raw.sp = raw.regs[WALK_REG_SP] = cur_le64(in);
	raw.fp = raw.regs[WALK_REG_FP] = cur_le64(in);
	raw.stack_size = (uint32_t)MIN(cur_left(in), (size_t)ABI_STACK_LONG_MAX) / 8 * 8;
	size = sizeof(*sample) + frames * sizeof(struct abi_frame) + sizeof(raw) + raw.stack_size;
	sample = calloc(1, size);
	must(sample);
	*sample = (struct abi_sample){
		.header = { .type = ABI_RECORD_SAMPLE, .version = ABI_VERSION, .size = (uint32_t)size },
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)getpid(),
		.exec_id = 1,
		.stack_pointer = raw.sp,
		.flags = ABI_SAMPLE_RAW,
		.user_end = ABI_END_NO_TABLE,
		.frame_count = kernel,
		.kernel_count = kernel,
		.runtime_count = behind,
		.runtime_end = behind ? ABI_RUNTIME_END_WHOLE : ABI_RUNTIME_END_NONE
	};
	for (size_t i = 0; i < frames; i++)
		sample->frames[i] = (struct abi_frame){ .kind = i < kernel ? ABI_FRAME_KERNEL : ABI_FRAME_RUNTIME,
							.runtime = i < kernel ? 0 : ABI_RUNTIME_PYTHON,
							.a = i + 1 };
	to = (uint8_t *)(sample->frames + frames);
	memcpy(to, &raw, sizeof(raw));
	if (raw.stack_size)
		memcpy(to + sizeof(raw), in->pos, raw.stack_size);
	return sample;
}

static void fill_living(uint8_t *to, struct cur from)
{
	size_t left = cur_left(&from);

	for (size_t i = 0; i < LIVING_SIZE; i++)
		to[i] = left ? from.pos[i % left] : 0;
}

/* What came with the sample is still there, and no frame is one that nobody told of. */
static void check(const struct abi_sample *before, struct abi_sample *after, const struct process *p)
{
	must(abi_record_check(after, after->header.size) == (int)after->header.size);
	must(after->frame_count + after->runtime_count <= ABI_FRAMES_MAX);
	must(after->kernel_count == before->kernel_count && after->runtime_count == before->runtime_count);
	must(after->frame_count >= before->frame_count);
	must(!memcmp(after->frames, before->frames, before->kernel_count * sizeof(struct abi_frame)));
	must(!memcmp(after->frames + after->frame_count, before->frames + before->frame_count,
		     before->runtime_count * sizeof(struct abi_frame)));
	for (size_t i = after->kernel_count; i < after->frame_count; i++)
		must(after->frames[i].kind != ABI_FRAME_RUNTIME ||
		     ((p->control & CONTROL_HEAD) && (p->control & CONTROL_INFO) && (p->control & CONTROL_LIVES)));
	unwind_strip(after);
	must(abi_record_check(after, after->header.size) == (int)after->header.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct place *place = the_place();
	struct mapping mapped = { .start = JIT, .end = JIT + JIT_SIZE };
	struct mappings maps = { .items = &mapped, .count = 1 };
	struct process p = { .control = cur_u8(&in) };
	const struct in_line runtimes = { .head = head_of, .info = info_of, .step = step, .lives = lives, .self = &p };
	uint8_t count = cur_u8(&in), kernel = cur_u8(&in) % 64, behind = cur_u8(&in) % 64, flags = cur_u8(&in);
	struct abi_sample *before, *after;
	struct raw_walk *walk;

	take_ranges(&in, &p, count);
	before = make_sample(&in, kernel, behind, flags);
	fill_living(place->living, in);
	must(abi_record_check(before, before->header.size) == (int)before->header.size);
	must(raw_walk_new(place->rows, place->files, WALK_AUTO, &runtimes, &walk) == 0);
	must(raw_walk_finish(walk, before, &maps, &after) == 0);
	check(before, after, &p);
	raw_walk_free(walk);
	free(after);
	free(before);
	return 0;
}
