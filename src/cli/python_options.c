/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/python_options.h"

#include "base/log.h"
#include "sampler/samplers.h"

#define PYSPY_HZ_MAX 50U /* source: gProfiler, profilers/python.py, MAX_FREQUENCY */

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

/* gProfiler's names: two are aliases. */
const char *const python_mode_names[] = { "auto", "pyperf", "pyspy", "py-spy", "disabled", "none", NULL };

static const enum python_mode modes[] = {
	PYTHON_MODE_AUTO,  PYTHON_MODE_PYPERF,   PYTHON_MODE_PYSPY,
	PYTHON_MODE_PYSPY, PYTHON_MODE_DISABLED, PYTHON_MODE_DISABLED,
};

_Static_assert(ARRAY_SIZE(modes) + 1 == ARRAY_SIZE(python_mode_names), "a mode for each name");

struct codec_options frame_options_get(const struct frame_options *o)
{
	struct codec_options out = { 0 };

	out.frames.names = o->style == FRAME_STYLE_PYSPY ? FRAME_NAMES_PYSPY : FRAME_NAMES_PACKAGE;
	out.frames.lines = o->lines == FRAME_LINES_EXECUTING ? FRAME_LINES_EXECUTING : FRAME_LINES_FIRST;
	out.frames.no_versions = !o->versions;
	return out;
}

enum python_mode python_options_mode(const struct python_options *o)
{
	return o->on ? modes[o->name] : PYTHON_MODE_DISABLED;
}

struct codec_options python_options_get(const struct python_options *o)
{
	struct codec_options out = frame_options_get(&o->frames);

	if (o->frames.style == FRAME_STYLE_AUTO && python_options_mode(o) == PYTHON_MODE_PYSPY)
		out.frames.names = FRAME_NAMES_PYSPY;
	return out;
}

void python_options_apply(const struct python_options *o, struct session_config *session)
{
	session->no_runtimes = python_options_mode(o) == PYTHON_MODE_DISABLED;
	session->keep_interpreter = o->interpreter_frames;
	if (python_options_mode(o) == PYTHON_MODE_PYSPY) {
		session->beside_hz = MIN(session->sampling.frequency_hz, PYSPY_HZ_MAX);
		if (session->sampling.frequency_hz > PYSPY_HZ_MAX)
			log_warn("Python is read from outside at 50 samples a second: more is too much for that",
				 LOG_U64("asked", session->sampling.frequency_hz));
	}
	if (python_options_mode(o) == PYTHON_MODE_PYPERF && !session->sampler)
		session->sampler = sampler_find(STR("bpf"));
}
