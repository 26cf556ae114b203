// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/access.h"

#include <sys/uio.h>

#include "base/io.h"

static int scope_of_ptrace(const char *host_root)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);
	uint64_t scope;

	if (io_read_below(host_root, "/proc/sys/kernel/yama/ptrace_scope", &text) < 0 ||
	    str_to_u64(str_trim(buf_str(&text)), 0, 9, &scope) < 0)
		return 0;
	return (int)scope;
}

int remote_access(const char *host_root, pid_t pid, struct buf *why)
{
	char byte = 0;
	struct iovec to = { &byte, 1 }, from = { (void *)1, 1 }; /* nothing is mapped there: EFAULT proves that we may
								  * read */
	int scope;

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) == 1 || errno == EFAULT)
		return 0;
	if (errno == ESRCH)
		return -ESRCH;
	if (errno != EPERM)
		return -errno;
	scope = scope_of_ptrace(host_root);
	if (scope)
		buf_addf(why,
			 "memory of process %d may not be read (kernel.yama.ptrace_scope is %d): run as root, or: "
			 "sudo sysctl kernel.yama.ptrace_scope=0",
			 (int)pid, scope);
	else
		buf_addf(why,
			 "memory of process %d may not be read: run as its user or as root, or give the right "
			 "CAP_SYS_PTRACE",
			 (int)pid);
	return -EPERM;
}
