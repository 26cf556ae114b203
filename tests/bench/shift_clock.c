/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded (LD_PRELOAD), it shifts the wall clock of a program by SHIFT_CLOCK_S seconds, so that a bench can have its
 * midnight when it wants. Only what hearth asks for the wall clock: clock_gettime(). */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int (*real_gettime)(clockid_t, struct timespec *);
static time_t shift_s;

__attribute__((constructor)) static void find_real(void)
{
	const char *text = getenv("SHIFT_CLOCK_S");

	*(void **)(void *)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime"); /* as POSIX says to take a function */
	if (text)
		shift_s = strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
	int r;

	if (!real_gettime)
		find_real(); /* another constructor asks first */
	r = real_gettime(id, out);
	if (r == 0 && id == CLOCK_REALTIME)
		out->tv_sec += shift_s;
	return r;
}
