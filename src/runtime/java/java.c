/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot, as OpenJDK has it: the versions of layout.c. */
#include <linux/types.h>

#include "base/clock.h"
#include "runtime/java/code.h"
#include "runtime/java/info.h"
#include "runtime/java/java_int.h"
#include "runtime/java/names.h"
#include "runtime/java/text.h"
#include "runtime/java/threads.h"
#include "runtime/java/unloads.h"
#include "runtime/registry.h"
#include "walk/walk_java.h"

_Static_assert(4 * JAVA_THREAD_UNITS_MAX <= RUNTIME_THREAD_NAME_MAX, "names have room");
_Static_assert(sizeof(struct abi_java) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's: ap, its profiler, is what auto means. */
const char *const runtime_modes_java[] = { "auto", "ap", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_java), "a way for each name");

/* What told the methods apart is of now, and the stack is of an earlier moment: by now another one may lie there. */
static bool may_be_another(struct walk *w, const struct abi_frame *f)
{
	const struct abi_java *info = walk_java_info(w);
	const struct abi_sample *sample = walk_sample(w);
	const struct program program = { .pid = sample->pid,
					 .exec_id = sample->exec_id,
					 .start_ns = sample->process_start_ns };

	if (!info->epoch_at || f->kind != ABI_FRAME_RUNTIME || f->flags & (ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL))
		return false;
	/* FULL: where classes are redefined. Else only where they were unloaded since. */
	return f->b & ABI_JAVA_FULL || !java_unloads_none_since(&program, info->epoch, sample->header.time_ns,
								clock_monotonic_ns(&clock_system));
}

static enum walk_next walk_step(struct walk *w, const void *info)
{
	uint32_t before = w->count;
	enum walk_next next = walk_java_step(w);

	(void)info; /* it is w->info */
	for (uint32_t i = before; w->world->is_late && i < w->count; i++)
		if (may_be_another(w, &w->frames[i]))
			w->frames[i].b = 0;
	return next;
}

const struct runtime runtime_java = {
	.name = "java",
	.title = "Java",
	.id = ABI_RUNTIME_JAVA,
	.ways = ways,
	.kind = MODEL_KIND_JAVA,
	.error_kind = MODEL_KIND_JAVA,
	.in_line = true,
	.probe = java_probe,
	.release = java_release,
	.attach = java_attach,
	.learn_file = java_learn_file,
	.learn_process = java_learn_process,
	.unlearn = java_unlearn,
	.epoch = java_epoch,
	.sync = java_sync,
	.walk_step = walk_step,
	.decode_name = java_decode_name,
	.read_name = java_read_name,
	.lasting = java_lasting,
	.line = java_line,
	.read_code = java_read_code,
	.expand = java_expand,
	.readable = java_readable,
	.thread_names = java_thread_names,
	.metadata = java_metadata,
};
