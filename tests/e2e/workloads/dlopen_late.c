/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen_late SECONDS LIBRARY [REPLACEMENT]: burns, loads LIBRARY, puts REPLACEMENT in its place on disk (or removes it
 * when that is "-"), and spends the rest in the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

NOINLINE void before_dlopen(double until)
{
	while (now_s() < until)
		burn(1000000);
	STAY;
}

int main(int argc, char **argv)
{
	const double half = seconds_of(argc, argv, 2) / 2;
	void (*entry)(double until);
	void *library;

	before_dlopen(now_s() + half);
	library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
	if (!library) {
		fprintf(stderr, "dlopen_late: %s\n", dlerror());
		return 1;
	}
	*(void **)&entry = dlsym(library, "late_entry");
	if (!entry)
		return 1;
	if (argc > 3 && (strcmp(argv[3], "-") ? rename(argv[3], argv[2]) : unlink(argv[2])) < 0) {
		perror("dlopen_late");
		return 1;
	}
	entry(now_s() + half);
	return 0;
}
