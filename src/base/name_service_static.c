/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_service.h"

#include <nss.h>

#include "base/base.h"

void name_service_confine(void)
{
	static const struct {
		const char *database, *services;
	} lookups[] = {
		{ "passwd", "files" },    { "group", "files" },    { "initgroups", "files" }, { "shadow", "files" },
		{ "hosts", "files dns" }, { "services", "files" }, { "protocols", "files" },  { "networks", "files" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++)
		(void)__nss_configure_lookup(lookups[i].database, lookups[i].services);
}
