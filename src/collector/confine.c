/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/confine.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* By name: those that an architecture has not are left out. */
static const char *const allowed[] = {
	/* descriptors */
	"read",
	"write",
	"readv",
	"writev",
	"pread64",
	"pwrite64",
	"preadv",
	"pwritev",
	"close",
	"lseek",
	"_llseek",
	"fcntl",
	"fcntl64",
	"dup",
	"dup3",
	"ioctl",
	"poll",
	"ppoll",
	"select",
	"pselect6",
	"epoll_create1",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"eventfd2",
	"pipe2",
	"signalfd4",
	"timerfd_create",
	"timerfd_settime",
	"sendfile",
	/* files of the data directory */
	"open",
	"openat",
	"creat",
	"stat",
	"fstat",
	"lstat",
	"newfstatat",
	"fstatat64",
	"stat64",
	"fstat64",
	"lstat64",
	"statx",
	"statfs",
	"fstatfs",
	"access",
	"faccessat",
	"faccessat2",
	"unlink",
	"unlinkat",
	"rename",
	"renameat",
	"renameat2",
	"mkdir",
	"mkdirat",
	"rmdir",
	"getdents64",
	"getdents",
	"fsync",
	"fdatasync",
	"ftruncate",
	"ftruncate64",
	"fallocate",
	"flock",
	"fchmod",
	"chmod",
	"fchown",
	"utimensat",
	"readlink",
	"readlinkat",
	"getcwd",
	"umask",
	"sync_file_range",
	"fadvise64",
	/* sockets that are there, and connections to them */
	"accept",
	"accept4",
	"recvfrom",
	"sendto",
	"recvmsg",
	"sendmsg",
	"shutdown",
	"getsockname",
	"getpeername",
	"getsockopt",
	"setsockopt",
	/* memory, threads, time */
	"mmap",
	"mmap2",
	"munmap",
	"mprotect",
	"mremap",
	"madvise",
	"brk",
	"set_robust_list",
	"rseq",
	"set_tid_address",
	"futex",
	"futex_time64",
	"sched_yield",
	"sched_getaffinity",
	"sched_getparam",
	"sched_getscheduler",
	"sched_setscheduler",
	"setpriority",
	"getrlimit",
	"prlimit64",
	"getrusage",
	"clock_gettime",
	"clock_gettime64",
	"clock_nanosleep",
	"clock_getres",
	"nanosleep",
	"gettimeofday",
	"time",
	"restart_syscall",
	"getrandom",
	"membarrier",
	"sysinfo",
	"uname",
	"getcpu",
	/* signals and the end */
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sigaltstack",
	"tgkill",
	"exit",
	"exit_group",
	"prctl",
	"arch_prctl",
	"getpid",
	"gettid",
	"getppid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getuid32",
	"geteuid32",
	"getgid32",
	"getegid32",
};

/* To connect, and what the C library does to find names. */
static const char *const connecting[] = { "connect", "bind", "socketpair", "sendmmsg", "recvmmsg" };
static const unsigned int families[] = { AF_INET, AF_INET6, AF_NETLINK, AF_UNIX };

static void releasep(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

static int allow(scmp_filter_ctx filter, const char *const *names, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		if (number == __NR_SCMP_ERROR || number < 0)
			continue;
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return r;
}

static int allow_sockets(scmp_filter_ctx filter)
{
	int r = allow(filter, connecting, ARRAY_SIZE(connecting));

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i]));
	return r;
}

/* clone3 has its flags in memory, where a filter cannot look: glibc takes clone when there is no clone3. */
static int allow_threads(scmp_filter_ctx filter)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	return r ? r
		 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				    SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
}

static int load(bool connects)
{
	scoped(releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? allow(filter, allowed, ARRAY_SIZE(allowed)) : -ENOMEM;

	if (r == 0 && connects)
		r = allow_sockets(filter);
	r = r ? r : allow_threads(filter);
	return r ? r : seccomp_load(filter);
}

int confine_server(bool connects, struct buf *why)
{
	const struct rlimit none = { 0, 0 };
	int r;

	ignore(setrlimit(RLIMIT_CORE, &none)); /* lowering is always allowed */
	if (SANITIZED)
		return 0;
	r = load(connects);
	if (r < 0)
		buf_addf(why, "cannot confine the server: %s", strerror(-r));
	return r;
}
