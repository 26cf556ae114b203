/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot, as OpenJDK has it: the versions of layout.c. */
#include <linux/types.h>

#include "runtime/java/code.h"
#include "runtime/java/info.h"
#include "runtime/java/java_int.h"
#include "runtime/java/names.h"
#include "runtime/java/text.h"
#include "runtime/java/threads.h"
#include "runtime/registry.h"
#include "walk/walk_java.h"

_Static_assert(4 * JAVA_THREAD_UNITS_MAX <= RUNTIME_THREAD_NAME_MAX, "names have room");
_Static_assert(sizeof(struct abi_java) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's: ap, its profiler, is what auto means. */
const char *const runtime_modes_java[] = { "auto", "ap", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_KERNEL, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_java), "a way for each name");

static enum walk_next walk_step(struct walk *w, const void *info)
{
	uint32_t before = w->count;
	enum walk_next next = walk_java_step(w);

	(void)info; /* it is w->info */
	/* Where classes are redefined: what told the methods apart is read now, and another one may lie there by now.
	 * Where they were unloaded, the count at this moment is in the cookie: the name is right unless that was since
	 * the tick. */
	for (uint32_t i = before; w->world->is_late && walk_java_info(w)->epoch_at && i < w->count; i++)
		if (w->frames[i].b & ABI_JAVA_FULL && !(w->frames[i].flags & (ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL)))
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
