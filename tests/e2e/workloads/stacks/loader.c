/* SPDX-License-Identifier: Apache-2.0 */
/* loader SECONDS LIBRARY: the stack goes through a library that dlopen brought, and back into the program. */
#include <dlfcn.h>
#include <stdio.h>

#include "stacks.h"

NOINLINE void called_back(void)
{
	leaf();
	STAY;
}

NOINLINE void user(void (*entry)(void (*)(void)))
{
	entry(called_back);
	STAY;
}

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
	void (*entry)(void (*)(void)) = NULL;

	if (library)
		*(void **)&entry = dlsym(library, "library_entry");
	if (!entry) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	deadline(argc, argv);
	for (;;)
		user(entry);
}
