/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull_run.h"

#include "base/io.h"
#include "base/log.h"

int pull_load(const struct command *c, const char *path, struct pull_targets *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(PULL_FILE_MAX), why = BUF_INIT(KIB(4));
	int r = io_read_file(path, &bytes);

	if (r == 0)
		r = pull_targets_parse(buf_str(&bytes), &why, out);
	if (r == 0)
		return EXIT_DONE;
	return command_fail(c, "%s: %s", path, why.len ? buf_cstr(&why) : strerror(-r));
}

int pull_reload(const struct command *c, const char *path, struct pull *pull)
{
	scoped(pull_targets_release) struct pull_targets targets = { 0 };

	if (pull_load(c, path, &targets) != EXIT_DONE)
		return -EINVAL;
	return pull_replace(pull, &targets) < 0 ? -EINVAL : 0;
}

static int put(void *state, const struct pulled *p)
{
	const struct store_upload upload = { .service = str_of(p->target->service),
					     .type = p->type,
					     .labels = p->target->labels,
					     .label_count = p->target->label_count,
					     .created_ns = p->created_ns,
					     .window = p->window };
	struct store_id id;
	int r = store_sqlite.put(state, &upload, &id);

	return MIN(r, 0);
}

int pull_into_store(const struct command *c, const char *path, struct store_state *state, struct pull **out)
{
	scoped(pull_targets_release) struct pull_targets targets = { 0 };
	const struct pull_config cfg = { .deliver = put, .ctx = state };
	int r = pull_load(c, path, &targets);
	size_t count = targets.count;

	if (r != EXIT_DONE)
		return r;
	r = pull_open(&cfg, &targets, out);
	if (r < 0)
		return command_fail(c, "--targets: %s", strerror(-r));
	log_info("scraping", LOG_CSTR("targets", path), LOG_U64("count", count));
	return EXIT_DONE;
}
