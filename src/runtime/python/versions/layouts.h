/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPython keeps things, per version, as data. tests/runtime/check_layouts.py recomputes the rows from the debug
 * information of installed interpreters; 3.5 is by recorded memory of its headers only and was never compared. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/python.h"
#include "base/base.h"

#define PYTHON_NEWEST_MINOR 14 /* of 3; what is newer is refused */

struct python_version {
	uint8_t major, minor, micro; /* from this patch level on, up to the next row */
	bool has_offsets;            /* the process says the rest itself: _Py_DebugOffsets */
	uint16_t thread_interp;      /* PyThreadState.interp */
	/* In _PyRuntime; 0: not there, or the process says it. */
	uint16_t runtime_interpreters, runtime_holder, runtime_key;
	struct abi_python_layout layout;
};

/** python_version_find - the row for a version; NULL: not known. */
const struct python_version *python_version_find(unsigned int major, unsigned int minor, unsigned int micro);
/** python_version_at - the rows one by one; NULL behind the last. */
const struct python_version *python_version_at(size_t index);
