/* SPDX-License-Identifier: Apache-2.0 */
/* A targets file, and the guard asked about any address. */
#include "fuzz.h"

#include <netinet/in.h>

#include "collector/pull_targets.h"

static void check_target(const struct pull_target *t, const uint8_t *data, size_t size)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };

	must(t->url && str_starts(str_of(t->url), STR("http")) && t->host && *t->host && t->service && *t->service);
	must(t->label_count >= 1 && t->label_count <= STORE_LABELS_MAX && t->kinds && t->interval_ns >= NSEC_PER_SEC);
	memcpy(&six.sin6_addr, data, MIN(size, sizeof(six.sin6_addr)));
	memcpy(&four.sin_addr, data, MIN(size, sizeof(four.sin_addr)));
	ignore(pull_address_allowed(t, (const struct sockaddr *)&six, sizeof(six)));
	four.sin_addr.s_addr = htonl(0xa9fea9feU); /* 169.254.169.254 */
	if (!t->allow_count)
		must(!pull_address_allowed(t, (const struct sockaddr *)&four, sizeof(four)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(pull_targets_release) struct pull_targets targets = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	if (size > KIB(16))
		return 0;
	if (pull_targets_parse(str_n((const char *)data, size), &why, &targets) < 0) {
		must(!targets.count);
		return 0;
	}
	for (size_t i = 0; i < targets.count; i++)
		check_target(&targets.items[i], data, size);
	return 0;
}
