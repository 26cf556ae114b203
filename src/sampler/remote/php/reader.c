/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/php/reader.h"

#include "sampler/remote/steps.h"
#include "walk/walk_php.h"

/* Without threads of PHP's own, whatever the others do is not PHP's. */
static void start(struct walk *w, const void *info, uint64_t process)
{
	const struct abi_sample *sample = walk_sample(w);

	walk_php_start(w, info, process);
	if (!(walk_php_info(w)->flags & ABI_PHP_THREADS) && sample->tid != sample->pid)
		walk_php_state(w)->phase = 1; /* at no frame: the walk is done */
}

static enum remote_kind kind_of(const struct walk *w, uint32_t size)
{
	const struct walk_php *p = (const struct walk_php *)w->state[ABI_RUNTIME_PHP];

	if (!p->mark && p->left == p->span) /* no frame was met: it is the place of the first one */
		return REMOTE_HEAD;
	return size == ABI_PHP_FRAME_BYTES ? REMOTE_FRAME : REMOTE_LATE;
}

static bool needs_pointer(const void *info)
{
	return ((const struct abi_php *)info)->flags & ABI_PHP_THREADS;
}

/* The loop writes down where it is only before what may fail: in one of three cases another operation runs by now. */
static void settle(struct walk *w)
{
	if (w->runtime_count && w->frames[0].kind == ABI_FRAME_RUNTIME)
		w->frames[0].extra = 0;
}

/* The texts as people see them, class and name in one: what decode_name() makes of them is the same. */
static int record(const void *info, const struct abi_frame *frame, const struct runtime_function *f, struct buf *out)
{
	struct abi_php_name head = { .first_line = (uint32_t)f->first_line,
				     .name_size = (uint32_t)f->name.len,
				     .file_size = (uint32_t)f->file.len,
				     .type = ABI_PHP_USER };
	size_t at = out->len;

	(void)info;
	(void)frame;
	buf_add(out, &head, sizeof(head));
	head.name_sent = remote_name_text(out, f->name.ptr, f->name.len, REMOTE_TEXT_MAX);
	head.file_sent = remote_name_text(out, f->file.ptr, f->file.len, REMOTE_TEXT_MAX);
	if (out->error)
		return out->error;
	memcpy(out->ptr + at, &head, sizeof(head));
	return 0;
}

static const struct remote_steps steps = {
	.runtime = ABI_RUNTIME_PHP,
	.start = start,
	.step = walk_php_step,
	.kind_of = kind_of,
	.needs_pointer = needs_pointer,
	.settle = settle,
	.record = record,
};

static int open_reader(struct remote_walker **out)
{
	return remote_steps_open(&steps, out);
}

const struct remote_reader remote_php_reader = { .runtime = ABI_RUNTIME_PHP, .open = open_reader, REMOTE_STEPS_READER };
