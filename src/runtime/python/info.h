/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a Python process: struct runtime's application() and metadata(); see runtime.h. */
#pragma once

#include "runtime/runtime.h"

/** python_application - by command line and working directory (app.h). */
int python_application(const struct runtime_target *target, struct buf *out) warn_unused;

/**
 * python_metadata - append a JSON object: python_version, exe_elfid,
 * libpython_elfid, sys_maxunicode (2.7 only), exe, execfn, arch (source: gProfiler, profilers/python.py).
 * A member that cannot be read is "error: CLASS". Nothing of the process is run. Return: 0; -ESRCH: the process is
 * gone; -ENOMEM, -E2BIG.
 */
int python_metadata(const struct runtime_binary *binary, const struct runtime_target *target,
		    struct buf *json) warn_unused;
