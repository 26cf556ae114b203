/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby (MRI), 2.5 to 4.0. */
#include "runtime/registry.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"
#include "runtime/ruby/ruby_int.h"
#include "walk/walk_ruby.h"

_Static_assert(sizeof(struct abi_ruby) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's names: rbspy is its way. */
const char *const runtime_modes_ruby[] = { "auto", "rbspy", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_ruby), "a way for each name");

static enum walk_next walk_step(struct walk *w, const void *info)
{
	return walk_ruby_compiled_step(w, info);
}

const struct runtime runtime_ruby = {
	.name = "ruby",
	.title = "Ruby",
	.id = ABI_RUNTIME_RUBY,
	.ways = ways,
	.outside_hz_max = 50, /* as of the first runtime that was read so */
	.kind = MODEL_KIND_RUBY,
	.error_kind = MODEL_KIND_RUBY,
	.begins_early = true,
	.is_vague_compiled = true,
	.probe = ruby_probe,
	.release = ruby_release,
	.attach = ruby_attach,
	.sync = ruby_sync,
	.code_moves = true,
	.walk_step = walk_step,
	.decode_name = ruby_decode_name,
	.read_name = ruby_read_name,
	.line = ruby_line,
	.plain = ruby_plain,
	.metadata = ruby_metadata,
};
