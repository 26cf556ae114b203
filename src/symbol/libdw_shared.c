/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "symbol/libdw.h"

int libdw_load(struct libdw *out)
{
	static const char *const names[] = {
#define X(name) #name,
		LIBDW_FUNCTIONS(X)
#undef X
	};
	void *found[ARRAY_SIZE(names)];
	void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL); /* never closed */

	static_assert(sizeof(found) == sizeof(*out), "a function pointer has the size of a data pointer");
	if (!library)
		return -ENOTSUP;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		found[i] = dlsym(library, names[i]); /* libelf is looked through as well */
		if (!found[i])
			return -ENOTSUP;
	}
	memcpy(out, found, sizeof(found));
	return out->elf_version(EV_CURRENT) == EV_NONE ? -ENOTSUP : 0;
}
