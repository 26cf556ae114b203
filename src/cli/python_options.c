/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/python_options.h"

const char *const frame_style_names[] = {
	[FRAME_STYLE_PACKAGE] = "package",
	[FRAME_STYLE_PYSPY] = "pyspy",
	[FRAME_STYLE_AUTO] = "auto",
	NULL,
};

const char *const frame_line_names[] = {
	[FRAME_LINES_FIRST] = "first",
	[FRAME_LINES_EXECUTING] = "executing",
	NULL,
};

struct codec_options frame_options_get(const struct frame_options *o, bool from_outside)
{
	const bool is_pyspy = o->style == FRAME_STYLE_PYSPY || (o->style == FRAME_STYLE_AUTO && from_outside);
	struct codec_options out = { 0 };

	out.frames.names = is_pyspy ? FRAME_NAMES_PYSPY : FRAME_NAMES_PACKAGE;
	out.frames.lines = o->lines == FRAME_LINES_EXECUTING ? FRAME_LINES_EXECUTING : FRAME_LINES_FIRST;
	out.frames.no_versions = !o->versions;
	return out;
}
