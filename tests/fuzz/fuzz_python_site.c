/* SPDX-License-Identifier: Apache-2.0 */
/* RECORD, METADATA, ini files and paths: what is found lies in the text, and reading ends. */
#include "fuzz.h"

#include "runtime/python/app.h"
#include "runtime/python/path.h"
#include "runtime/python/site.h"

static void must_lie_in(struct str text, struct str found)
{
	must(!found.len || (found.ptr >= text.ptr && found.ptr + found.len <= text.ptr + text.len));
}

static void try_path(struct str text)
{
	scoped(buf_release) struct buf module = BUF_INIT(KIB(64));
	struct python_path path;

	python_path_parse(text, &path);
	must_lie_in(text, path.root);
	must_lie_in(text, path.inside);
	must_lie_in(text, path.release);
	if (!python_path_module(path.inside, &module))
		must(!module.len || module.error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size), rest = text, found;
	size_t count = 0;

	while (python_record_next(&rest, &found)) {
		must(found.len);
		must_lie_in(text, found);
		count++;
	}
	must(count <= size);
	must_lie_in(text, python_header_find(text, STR("Name")));
	if (python_ini_find(text, STR("uwsgi"), STR("module"), &found) == 0)
		must_lie_in(text, found);
	try_path(text);
	return 0;
}
