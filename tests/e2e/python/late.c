/* SPDX-License-Identifier: Apache-2.0 */
/* late SECONDS LIBPYTHON CODE: burns for SECONDS, then loads Python and runs CODE. */
#include <dlfcn.h>
#include <stdio.h>

#include "../workloads/work.h"

int main(int argc, char **argv)
{
	const double until = now_s() + seconds_of(argc, argv, 0);
	int (*run)(const char *code);
	void (*initialize)(void);
	void *library;

	while (now_s() < until)
		burn(1000000);
	library = argc > 3 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!library) {
		fprintf(stderr, "late: %s\n", argc > 3 ? dlerror() : "SECONDS LIBPYTHON CODE");
		return 1;
	}
	*(void **)&initialize = dlsym(library, "Py_Initialize");
	*(void **)&run = dlsym(library, "PyRun_SimpleString");
	if (!initialize || !run)
		return 1;
	initialize();
	return run(argv[3]) != 0;
}
