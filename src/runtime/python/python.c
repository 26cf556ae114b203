/* SPDX-License-Identifier: Apache-2.0 */
/* CPython, 2.7 and 3.5 to 3.14. */
#include "runtime/python/info.h"
#include "runtime/python/lines.h"
#include "runtime/python/names.h"
#include "runtime/python/python_int.h"
#include "runtime/python/source.h"
#include "runtime/registry.h"

_Static_assert(sizeof(struct abi_python) <= RUNTIME_INFO_MAX, "attach() fills it");

/* gProfiler's names: two are aliases. */
const char *const runtime_modes_python[] = { "auto", "pyperf", "pyspy", "py-spy", "disabled", "none", NULL };

static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO,    RUNTIME_WAY_KERNEL, RUNTIME_WAY_OUTSIDE,
					 RUNTIME_WAY_OUTSIDE, RUNTIME_WAY_OFF,    RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_python), "a way for each name");

static int sources_new(void **out)
{
	struct python_sources *sources;
	int r = python_sources_new(&sources);

	if (r == 0)
		*out = sources;
	return r;
}

static void sources_free(void *sources)
{
	python_sources_free(sources);
}

static void sources_find(void *sources, const struct runtime_source_file *file, struct runtime_source *out)
{
	struct python_source found;

	python_sources_find(sources, file->origin, file->root_fd, file->path, file->version, &found);
	out->package = found.package;
	out->distribution = found.distribution;
}

const struct runtime runtime_python = {
	.name = "python",
	.title = "Python",
	.id = ABI_RUNTIME_PYTHON,
	.ways = ways,
	.outside_hz_max = 50, /* source: gProfiler, profilers/python.py, MAX_FREQUENCY */
	.kind = MODEL_KIND_PYTHON,
	.error_kind = MODEL_KIND_PYTHON_ERROR,
	.probe = python_probe,
	.release = python_release,
	.attach = python_attach,
	.decode_name = python_decode_name,
	.read_name = python_read_name,
	.line = python_line,
	.sources_new = sources_new,
	.sources_free = sources_free,
	.sources_find = sources_find,
	.metadata = python_metadata,
	.application = python_application,
};
