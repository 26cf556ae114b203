/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pull_run.h"

#include "base/io.h"
#include "base/log.h"

int pull_load(const char *path, struct buf *why, struct pull_targets *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(PULL_FILE_MAX), reason = BUF_INIT(KIB(4));
	int r = io_read_file(path, &bytes);

	r = r ? r : pull_targets_parse(buf_str(&bytes), &reason, out);
	if (r < 0)
		buf_addf(why, "%s: %s", path, reason.len ? buf_cstr(&reason) : strerror(-r));
	return r;
}

int pull_reload(const char *path, struct buf *why, struct pull *pull)
{
	scoped(pull_targets_release) struct pull_targets targets = { 0 };
	int r = pull_load(path, why, &targets);

	if (r < 0)
		return r;
	r = pull_replace(pull, &targets);
	if (r < 0)
		buf_addf(why, "%s: %s", path, strerror(-r));
	return r;
}

static int put(void *ctx, const struct pulled *p)
{
	const struct pull_store *to = ctx;
	const struct store_upload upload = { .service = str_of(p->target->service),
					     .type = p->type,
					     .labels = p->target->labels,
					     .label_count = p->target->label_count,
					     .created_ns = p->created_ns,
					     .window = p->window };
	struct store_id id;
	int r = to->store->put(to->state, &upload, &id);

	return MIN(r, 0);
}

int pull_into_store(const char *path, const struct pull_store *to, struct buf *why, struct pull **out)
{
	scoped(pull_targets_release) struct pull_targets targets = { 0 };
	const struct pull_config cfg = { .deliver = put, .ctx = (void *)(uintptr_t)to };
	int r = pull_load(path, why, &targets);
	size_t count = targets.count;

	if (r < 0)
		return r;
	r = pull_open(&cfg, &targets, out);
	if (r < 0) {
		buf_addf(why, "--targets: %s", strerror(-r));
		return r;
	}
	log_info("scraping", LOG_CSTR("targets", path), LOG_U64("count", count));
	return 0;
}
