/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded (LD_PRELOAD), it shifts the wall clock of a program by SHIFT_CLOCK_S seconds, so that a bench can have its
 * midnight when it wants; with SHIFT_CLOCK_AFTER_S only so many seconds after its start, as if somebody set the clock.
 * Only what hearth asks for the wall clock: clock_gettime(). */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int (*real_gettime)(clockid_t, struct timespec *);
static time_t shift_s, begin_s; /* begin_s: of the monotonic clock */

__attribute__((constructor)) static void find_real(void)
{
	const char *text = getenv("SHIFT_CLOCK_S"), *after = getenv("SHIFT_CLOCK_AFTER_S");
	struct timespec now;

	*(void **)(void *)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime"); /* as POSIX says to take a function */
	if (text)
		shift_s = strtol(text, NULL, 10);
	if (after && real_gettime(CLOCK_MONOTONIC, &now) == 0)
		begin_s = now.tv_sec + strtol(after, NULL, 10);
}

static int has_begun(void)
{
	struct timespec now;

	return !begin_s || (real_gettime(CLOCK_MONOTONIC, &now) == 0 && now.tv_sec >= begin_s);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
	int r;

	if (!real_gettime)
		find_real(); /* another constructor asks first */
	r = real_gettime(id, out);
	if (r == 0 && id == CLOCK_REALTIME && has_begun())
		out->tv_sec += shift_s;
	return r;
}
