/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int rights_bound(bool keep_user)
{
	for (unsigned long cap = 0; cap < 64; cap++) {
		bool kept = keep_user && (cap == CAP_SETUID || cap == CAP_SETGID || cap == CAP_SETPCAP);

		if (kept || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL || errno == EPERM) /* the kernel's last one is behind us; or we may not */
			return 0;
		return -errno;
	}
	return 0;
}

int rights_give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };
	int r = rights_bound(false);

	if (r < 0)
		return r;
	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	/* Old kernels have no ambient set. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}
