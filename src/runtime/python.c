/* SPDX-License-Identifier: Apache-2.0 */
/* CPython, 2.7 and 3.5 to 3.14. */
#include "runtime/python_info.h"
#include "runtime/python_int.h"
#include "runtime/python_lines.h"
#include "runtime/python_names.h"
#include "runtime/registry.h"

_Static_assert(sizeof(struct abi_python) <= RUNTIME_INFO_MAX, "attach() fills it");

const struct runtime runtime_python = {
	.name = "python",
	.id = ABI_RUNTIME_PYTHON,
	.probe = python_probe,
	.release = python_release,
	.attach = python_attach,
	.walk_start = python_walk_start,
	.walk_step = python_walk_step,
	.decode_name = python_decode_name,
	.read_name = python_read_name,
	.line = python_line,
	.metadata = python_metadata,
	.application = python_application,
};
