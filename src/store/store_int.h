/* SPDX-License-Identifier: Apache-2.0 */
/* What the engines share: checks, ids, labels in their stored order. */
#pragma once

#include "base/intern.h"
#include "store/store.h"

#define STORE_DAY_NS (UINT64_C(86400) * NSEC_PER_SEC)
#define STORE_HOUR_NS (UINT64_C(3600) * NSEC_PER_SEC)
#define STORE_REQUEST_NS STORE_DAY_NS /* how long an Idempotency-Key is known */

/* A source of ids; its owner's lock guards it. */
struct store_ids {
	uint64_t next;
};

void store_ids_init(struct store_ids *ids);
void store_id_make(struct store_ids *ids, uint64_t created_ns, struct store_id *out);

/** store_upload_check - Return: 0, -EINVAL, -E2BIG, -ERANGE or -ETIME. */
int store_upload_check(const struct store_config *config, const struct store_upload *upload) warn_unused;

/** store_labels_sort - by key, equal keys as they were. */
void store_labels_sort(struct store_label *labels, size_t count);

/** store_labels_pack - sorted labels as bytes: equal labels, equal bytes. Errors stick to @out. */
void store_labels_pack(const struct store_label *labels, size_t count, struct buf *out);
/** store_labels_unpack - borrowed from @bytes. Return: 0 or -EBADMSG; @count is at most STORE_LABELS_MAX. */
int store_labels_unpack(struct str bytes, struct store_label out[STORE_LABELS_MAX], size_t *count) warn_unused;

/** store_selects - whether a series is one of @sel, time left aside. */
bool store_selects(const struct store_selector *sel, const struct store_series *series);

/** store_series_order - bytewise by service, type, keys and values; as series() visits them. */
int store_series_order(const struct store_series *a, const struct store_series *b);

#define STORE_SERVICES_BYTES_MAX MIB(64) /* of the names that services() visits */

/** store_visit_names - each of @names once, bytewise. Return: 0, -ENOMEM or what @visit returned. */
int store_visit_names(const struct intern *names, store_service_fn *visit, void *ctx) warn_unused;

/** store_ended_before - whether a profile says that it ended before. One that does not say how long it took did not. */
static inline bool store_ended_before(const struct store_point *p, uint64_t since_ns)
{
	return p->duration_ns && p->created_ns < since_ns && p->duration_ns < since_ns - p->created_ns;
}

static inline bool store_stopped(const struct store_selector *sel)
{
	return sel->stop && sel->stop(sel->stop_ctx);
}
