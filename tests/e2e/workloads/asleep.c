/* SPDX-License-Identifier: Apache-2.0 */
/* asleep SECONDS COUNT: that many processes that are alive and do nothing. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char **argv)
{
	const unsigned int seconds = (unsigned int)seconds_of(argc, argv, 2);
	const unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;

	for (unsigned long i = 0; i < count && i < 4096; i++) {
		if (fork() == 0) {
			sleep(seconds);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
