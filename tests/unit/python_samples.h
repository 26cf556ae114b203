/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of Python code, as the agent makes it. */
#pragma once

#include "model/window.h"

struct python_frame {
	const char *name, *qualified, *file;
	int64_t first, line;
	enum model_kind kind;
	const char *mapping;
};

/** python_location - the location of one frame. */
int python_location(struct model *m, const struct python_frame *frame, uint32_t *out) warn_unused;

/**
 * python_window - two processes, one of Python: a thread that runs json code through native frames into the kernel, one
 * whose name was lost; and a stack without Python in the same process
 */
int python_window(struct window *out) warn_unused;
