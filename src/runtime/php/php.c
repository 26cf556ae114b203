/* SPDX-License-Identifier: Apache-2.0 */
/* PHP, 7.0 to 8.5. */
#include "runtime/php/names.h"
#include "runtime/php/php_int.h"
#include "runtime/registry.h"
#include "walk/walk_php.h"

_Static_assert(sizeof(struct abi_php) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's phpspy is not there by default; hearth's walk is. */
const char *const runtime_modes_php[] = { "auto", "phpspy", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_php), "a way for each name");

static enum walk_next walk_step(struct walk *w, const void *info)
{
	return walk_php_compiled_step(w, info);
}

const struct runtime runtime_php = {
	.name = "php",
	.title = "PHP",
	.id = ABI_RUNTIME_PHP,
	.ways = ways,
	.outside_hz_max = 50, /* as of the first runtime that was read so */
	.kind = MODEL_KIND_PHP,
	.error_kind = MODEL_KIND_PHP,
	.begins_early = true,
	.probe = php_probe,
	.release = php_release,
	.attach = php_attach,
	.sync = php_sync,
	.code_moves = true,
	.walk_step = walk_step,
	.decode_name = php_decode_name,
	.read_name = php_read_name,
	.line = php_line,
	.metadata = php_metadata,
	.application = php_application,
};
