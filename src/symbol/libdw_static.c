/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "symbol/libdw.h"

int libdw_load(struct libdw *out)
{
	*out = (struct libdw){
#define X(name) .name = name,
		LIBDW_FUNCTIONS(X)
#undef X
	};
	return out->elf_version(EV_CURRENT) == EV_NONE ? -ENOTSUP : 0;
}
