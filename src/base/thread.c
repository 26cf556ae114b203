/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <time.h>

int thread_join(pthread_t thread, uint64_t patience_ns)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_REALTIME, &until); /* the clock of pthread_timedjoin_np(3) */
	patience_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(patience_ns / NSEC_PER_SEC);
	until.tv_nsec = (long)(patience_ns % NSEC_PER_SEC);
	r = pthread_timedjoin_np(thread, NULL, &until);
	if (r == ETIMEDOUT)
		(void)pthread_detach(thread); /* nobody asks again */
	return -r;
}
