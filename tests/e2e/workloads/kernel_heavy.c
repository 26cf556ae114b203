/* SPDX-License-Identifier: Apache-2.0 */
/* Most of the time in the kernel: system calls that do little, and reads of a page. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

NOINLINE void call_kernel(int fd)
{
	char page[4096];

	for (int i = 0; i < 1000; i++) {
		syscall(SYS_getpid);
		if (pread(fd, page, sizeof(page), 0) < 0)
			_exit(1);
	}
	STAY;
}

int main(int argc, char **argv)
{
	const double deadline = now_s() + seconds_of(argc, argv, 2);
	const int fd = open("/proc/self/exe", O_RDONLY);

	while (now_s() < deadline)
		call_kernel(fd);
	return 0;
}
