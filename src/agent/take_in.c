/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/take_in.h"

#include <fcntl.h>

#include "base/clock.h"

/* The frames of one sample with what their addresses mean. */
struct placed {
	struct aggregate_frame frames[ABI_FRAMES_MAX];
	size_t count;
	uint8_t user_end;
	bool has_jit;
};

struct take_in {
	const struct clock *clock;
	struct proc_table *processes;
	struct files *files;
	struct unwind *unwind; /* or NULL */
	size_t file_count;     /* as far as asked */
	struct placed placed;  /* of the sample being taken in */
};

int take_in_new(const struct clock *clock, struct proc_table *processes, struct files *files, struct unwind *unwind,
		struct take_in **out)
{
	struct take_in *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->clock = clock;
	t->processes = processes;
	t->files = files;
	t->unwind = unwind;
	*out = t;
	return 0;
}

void take_in_free(struct take_in *t)
{
	free(t);
}

static int add_process_row(struct take_in *t, struct aggregate *a, struct proc *p, const char *comm, uint32_t *out)
{
	struct aggregate_process row = { .pid = p->pid,
					 .generation = p->generation,
					 .start_ns = p->start_ns,
					 .perf_map_fd = -1,
					 .is_kernel = p->is_kernel };
	int r = intern_add(&a->strings, str_n(comm, strnlen(comm, ABI_COMM_SIZE)), &row.comm);

	if (r == 0)
		r = intern_add(&a->strings, str_of(p->container), &row.container);
	if (r == 0)
		r = aggregate_add_process(a, &row, out);
	if (r == 0 && t->placed.has_jit && a->processes[*out].perf_map_fd < 0) {
		int fd = proc_perf_map_fd(t->processes, p);

		if (fd >= 0)
			a->processes[*out].perf_map_fd =
				fcntl(fd, F_DUPFD_CLOEXEC, 0); /* -1: frames stay without names */
	}
	return r;
}

/* Placed where it was walked. The id is only believed when there is such a file. */
static struct aggregate_frame native_frame(struct take_in *t, const struct abi_frame *f)
{
	if (!f->a || f->a > t->file_count) {
		t->file_count = files_count(t->files);
		if (!f->a || f->a > t->file_count)
			return (struct aggregate_frame){ .kind = ABI_FRAME_USER, .flags = f->flags, .at = f->b };
	}
	if (t->unwind)
		unwind_touch(t->unwind, (uint32_t)f->a);
	return (struct aggregate_frame){
		.kind = ABI_FRAME_NATIVE, .flags = f->flags, .owner = (uint32_t)f->a, .at = f->b
	};
}

/* What an address of the process means is decided here, while the process lives. */
static struct aggregate_frame place_frame(struct take_in *t, struct proc *p, const struct abi_frame *f, uint64_t now_ns)
{
	struct aggregate_frame out = { .kind = f->kind, .flags = f->flags, .at = f->a };
	struct proc_place place = { 0 };

	if (f->kind == ABI_FRAME_NATIVE)
		return native_frame(t, f);
	if (f->kind != ABI_FRAME_USER)
		return out;
	proc_find_place(t->processes, p, f->a - (f->flags & ABI_FRAME_RETURN ? 1 : 0), now_ns, &place);
	if (place.kind == PROC_PLACE_FILE || place.kind == PROC_PLACE_VDSO) {
		out.kind = ABI_FRAME_NATIVE;
		out.owner = place.file_id;
		out.at = place.offset + (f->flags & ABI_FRAME_RETURN ? 1 : 0);
	} else if (place.kind == PROC_PLACE_ANONYMOUS) {
		out.kind = ABI_FRAME_JIT;
	}
	return out;
}

/* A frame that was found by guessing and lies in no code we know of is no frame: the stack is cut there. */
static void place_frames(struct take_in *t, struct proc *p, const struct abi_sample *sample)
{
	struct placed *out = &t->placed;
	uint64_t now_ns = clock_monotonic_ns(t->clock);

	out->has_jit = false;
	out->user_end = sample->user_end;
	for (out->count = 0; out->count < sample->frame_count; out->count++) {
		struct aggregate_frame *f = &out->frames[out->count];

		*f = place_frame(t, p, &sample->frames[out->count], now_ns);
		if (f->kind == ABI_FRAME_USER && f->flags & ABI_FRAME_GUESSED) {
			out->user_end = ABI_END_NO_FRAME_POINTER;
			return;
		}
		out->has_jit |= f->kind == ABI_FRAME_JIT;
	}
}

/* From the root (last) to the leaf (first). */
static int add_frames(struct take_in *t, struct aggregate *a, const struct abi_sample *sample,
		      struct aggregate_sample *row)
{
	row->root_frame = AGGREGATE_NO_FRAME;
	row->user_end = t->placed.user_end;
	for (size_t i = t->placed.count; i-- > 0;) {
		struct aggregate_frame *f = &t->placed.frames[i];
		uint32_t frame;
		int r;

		if (f->kind == ABI_FRAME_JIT || f->kind == ABI_FRAME_USER)
			f->owner = row->process;
		r = aggregate_add_frame(a, f, &frame);
		if (r == 0 && i + 1 == t->placed.count && i >= sample->kernel_count)
			row->root_frame = frame;
		if (r == 0)
			r = aggregate_add_stack(a, row->stack, frame, &row->stack);
		if (r < 0)
			return r;
	}
	return 0;
}

int take_in_sample(struct take_in *t, struct proc *p, const struct abi_sample *sample, uint64_t wait_ns,
		   struct aggregate *a)
{
	struct aggregate_sample row = { .tid = sample->tid,
					.has_user = !(sample->flags & ABI_SAMPLE_KERNEL_THREAD),
					.is_wait = sample->trigger == ABI_TRIGGER_SWITCH,
					.wait_ns = wait_ns,
					.kernel_cut = (sample->flags & ABI_SAMPLE_KERNEL_CUT) != 0 };
	int r;

	place_frames(t, p, sample);
	r = add_process_row(t, a, p, sample->comm, &row.process);
	if (r == 0)
		r = intern_add(&a->strings, str_n(sample->thread_name, strnlen(sample->thread_name, ABI_COMM_SIZE)),
			       &row.thread_name);
	if (r == 0)
		r = add_frames(t, a, sample, &row);
	return r < 0 ? r : aggregate_add_sample(a, &row);
}
