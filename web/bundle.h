/* SPDX-License-Identifier: Apache-2.0 */
/* One module of all that a module imports. A page that asks for 46 files waits for the slowest of many answers. */
#pragma once

#include "web/embed_text.h"

/**
 * bundle - the text of the module @path and of those that it imports, from the same folder, each once
 *
 * Each but @path's becomes a function that is called once and returns what it exports; names stay its own.
 * import.meta.url is the bundle's. The forms that the modules of web/ use are known, `import { a, b } from './x.js';`
 * in one line, and `export` before const, function, async function and class; another one ends the program, as do
 * modules that import each other. Return: for the caller to free.
 */
struct text bundle(const char *path);
