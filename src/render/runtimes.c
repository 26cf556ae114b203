/* SPDX-License-Identifier: Apache-2.0 */
#include "render/runtimes.h"

static uint64_t counter(const struct window *w, const char *what, struct str name)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

	buf_addf(&text, "runtime_%s_" STR_FMT, what, STR_ARG(name));
	return text.error ? 0 : window_counter(w, buf_str(&text));
}

void runtime_shares_add(struct runtime_shares *shares, const struct window *w, struct str name)
{
	shares->samples += counter(w, "samples", name);
	shares->complete += counter(w, "complete", name);
	shares->frames += counter(w, "frames", name);
	shares->unnamed += counter(w, "unnamed_frames", name);
	shares->unlined += counter(w, "unlined_frames", name);
	shares->vague += counter(w, "vague_frames", name);
}

/* Of runtimes that have such lines, what they are and what makes them exact. */
static const struct {
	struct str name;
	const char *which, *remedy;
} vague[] = {
	{ STR("java"), "the next safepoint", "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints" },
};

void runtime_shares_add_vague(const struct runtime_shares *shares, struct str name, struct buf *out)
{
	const char *which = "the next place that is described", *remedy = NULL;

	if (!shares->vague)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(vague); i++) {
		if (!str_eq(name, vague[i].name))
			continue;
		which = vague[i].which;
		remedy = vague[i].remedy;
	}
	buf_addf(out, "%.1f %% of their lines are those of %s",
		 100.0 * (double)shares->vague / (double)MAX(shares->frames, 1ULL), which);
	if (remedy)
		buf_addf(out, " (exact with %s)", remedy);
}

bool runtime_shares_next(const struct window *w, size_t *at, struct str *name)
{
	const struct str prefix = STR("runtime_samples_");

	while (*at < w->counter_count) {
		struct str counted = str_of(w->counters[(*at)++].name);

		if (!str_starts(counted, prefix) || counted.len == prefix.len)
			continue;
		*name = str_skip(counted, prefix.len);
		return true;
	}
	return false;
}
