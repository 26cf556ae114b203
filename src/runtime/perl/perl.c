/* SPDX-License-Identifier: Apache-2.0 */
/* Perl 5.28 to 5.42. */
#include "runtime/perl/perl_int.h"
#include "runtime/registry.h"

_Static_assert(sizeof(struct abi_perl) <= RUNTIME_INFO_MAX, "attach() fills it");

const char *const runtime_modes_perl[] = { "auto", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_perl), "a way for each name");

/* The position of a frame is its line. */
static int32_t line_of(const struct runtime_function *function, uint32_t position)
{
	(void)function;
	return position > INT32_MAX ? 0 : (int32_t)position;
}

const struct runtime runtime_perl = {
	.name = "perl",
	.title = "Perl",
	.id = ABI_RUNTIME_PERL,
	.ways = ways,
	.outside_hz_max = 50, /* as of the first runtime that was read so */
	.kind = MODEL_KIND_PERL,
	.error_kind = MODEL_KIND_PERL,
	.begins_early = true,
	.probe = perl_probe,
	.release = perl_release,
	.attach = perl_attach,
	.decode_name = perl_decode_name,
	.line = line_of,
};
