/* SPDX-License-Identifier: Apache-2.0 */
/* Node.js: V8's frames, walked in line. */
#include <fcntl.h>

#include "runtime/launched.h"
#include "runtime/nodejs/nodejs_int.h"
#include "runtime/process_info.h"
#include "runtime/registry.h"
#include "walk/walk_nodejs.h"

_Static_assert(sizeof(struct abi_nodejs) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's names. perf and attach-maps say how perf maps are had, which the walk does not need. */
const char *const runtime_modes_nodejs[] = { "auto", "perf", "attach-maps", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_AUTO, RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF,
					 RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_nodejs), "a way for each name");

static enum walk_next walk_step(struct walk *w, const void *info)
{
	return walk_nodejs_step(w, info);
}

static int application(const struct runtime_target *target, struct buf *out)
{
	scoped(buf_release) struct buf argv = BUF_INIT(LAUNCHED_ARGV_MAX);
	scoped(closep) int root = openat(target->proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped(freep) char *exe = process_info_link(target->proc_dir, "exe");
	scoped(freep) char *cwd = process_info_link(target->proc_dir, "cwd");
	const struct target_files files = target_files_below(&root);
	struct launched l = { .exe = str_of(exe),
			      .cwd = str_of(cwd),
			      .files = &files,
			      .environment = process_info_environment,
			      .proc_dir = target->proc_dir };
	int r = process_info_argv(target->proc_dir, LAUNCHED_ARGV_MAX, &argv);

	l.argv = buf_str(&argv);
	return r < 0 ? r : launched_app_id(&l, out);
}

const struct runtime runtime_nodejs = {
	.name = "nodejs",
	.title = "Node.js",
	.id = ABI_RUNTIME_NODEJS,
	.ways = ways,
	.kind = MODEL_KIND_JAVASCRIPT,
	.error_kind = MODEL_KIND_JAVASCRIPT,
	.in_line = true,
	.phases = nodejs_phases,
	.probe = nodejs_probe,
	.release = nodejs_release,
	.attach = nodejs_attach,
	.learn_file = nodejs_learn_file,
	.learn_process = nodejs_learn_process,
	.unlearn = nodejs_unlearn,
	.sync = nodejs_sync,
	.code_moves = true,
	.walk_step = walk_step,
	.read_name = nodejs_read_name,
	.line = nodejs_line,
	.column = nodejs_column,
	.read_code = nodejs_read_code,
	.expand = nodejs_expand,
	.metadata = nodejs_metadata,
	.application = application,
};
