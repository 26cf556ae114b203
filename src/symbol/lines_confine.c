/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that the reader of debug information keeps. A crafted file may take libdw over; then it holds a process
 * without files, sockets, rights or children, which can lie about the lines of that file and no more. */
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rights.h"
#include "symbol/lines_child.h"

#define NOBODY 65534
#define ADDRESS_SPACE_MAX GIB(6) /* the mapped file, its shared part, and: */
#define DATA_MAX GIB(1)          /* what libdw makes of them */
#define CPU_SECONDS_MAX 300
#define FILES_MAX 16

static int limit(int what, rlim_t most)
{
	const struct rlimit l = { most, most };

	return setrlimit((__rlimit_resource_t)what, &l) < 0 ? -errno : 0;
}

static int set_limits(void)
{
	int r = LINES_SANITIZED ? 0 : limit(RLIMIT_AS, ADDRESS_SPACE_MAX);

	if (r == 0 && !LINES_SANITIZED)
		r = limit(RLIMIT_DATA, DATA_MAX);
	if (r == 0)
		r = limit(RLIMIT_CPU, CPU_SECONDS_MAX);
	if (r == 0)
		r = limit(RLIMIT_NOFILE, FILES_MAX);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, 0);
	return r < 0 ? r : limit(RLIMIT_CORE, 0);
}

/* In a container the right to change ids, or the user nobody, may be missing. Then the process stays root, with the
 * filter and without capabilities. */
static int become_nobody(void)
{
	bool done = setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		    setresuid(NOBODY, NOBODY, NOBODY) == 0;

	return done || errno == EPERM || errno == EINVAL ? 0 : -errno;
}

/* A program with file capabilities got them again when it was started anew. */
static int drop_rights(void)
{
	int r = geteuid() == 0 ? become_nobody() : 0;

	if (r == 0)
		r = rights_give_up();
	return r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : r;
}

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#define FOREIGN_NUMBERS 0x40000000u /* x32's */
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_NUMBERS UINT32_MAX
#endif

/* The system calls that are needed to read open files, use memory and one socket, and exit. */
static const int allowed[] = {
	SYS_brk,          SYS_clock_gettime, SYS_close,       SYS_exit,    SYS_exit_group, SYS_fstat,
	SYS_futex,        SYS_getpid,        SYS_getrandom,   SYS_gettid,  SYS_lseek,      SYS_madvise,
	SYS_mremap,       SYS_munmap,        SYS_pread64,     SYS_read,    SYS_recvmsg,    SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_sched_yield,   SYS_sigaltstack, SYS_sendmsg, SYS_write,
};

/* Not to make code: PROT_EXEC is refused. */
static const int without_exec[] = { SYS_mmap, SYS_mprotect };

#define CODE_MAX (24 + 2 * ARRAY_SIZE(allowed) + 5 * ARRAY_SIZE(without_exec))
#define AT(field) ((uint32_t)offsetof(struct seccomp_data, field))

struct code {
	struct sock_filter items[CODE_MAX];
	unsigned short count;
};

static void add(struct code *c, uint16_t operation, uint32_t value)
{
	must(c->count < CODE_MAX);
	c->items[c->count++] = (struct sock_filter)BPF_STMT(operation, value);
}

/* Goes on when the accumulator fits, else skips @skip instructions. */
static void add_test(struct code *c, uint16_t test, uint32_t value, uint8_t skip)
{
	must(c->count < CODE_MAX);
	c->items[c->count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_K | test, value, 0, skip);
}

/* A refused call fails instead of killing: libdw takes a file that it may not open for one that is not there. */
static int filter_calls(void)
{
	struct code c = { .count = 0 };
	struct sock_fprog program = { .filter = c.items };

	add(&c, BPF_LD | BPF_W | BPF_ABS, AT(arch));
	add_test(&c, BPF_JEQ, ARCH, 2);
	add(&c, BPF_LD | BPF_W | BPF_ABS, AT(nr));
	add_test(&c, BPF_JGE, FOREIGN_NUMBERS, 1);
	add(&c, BPF_RET, SECCOMP_RET_KILL_PROCESS); /* another architecture's numbers: no library of ours does that */
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		add_test(&c, BPF_JEQ, (uint32_t)allowed[i], 1);
		add(&c, BPF_RET, SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < ARRAY_SIZE(without_exec); i++) {
		add_test(&c, BPF_JEQ, (uint32_t)without_exec[i], 4);
		add(&c, BPF_LD | BPF_W | BPF_ABS, AT(args[2])); /* the protection; x86-64 and aarch64: low half first */
		add_test(&c, BPF_JSET, PROT_EXEC, 1);
		add(&c, BPF_RET, SECCOMP_RET_ERRNO | EPERM);
		add(&c, BPF_RET, SECCOMP_RET_ALLOW);
	}
	/* libelf asks whether a descriptor is open. Not F_SETOWN and F_SETSIG: they send signals to other processes. */
	add_test(&c, BPF_JEQ, SYS_fcntl, 4);
	add(&c, BPF_LD | BPF_W | BPF_ABS, AT(args[1]));
	add_test(&c, BPF_JEQ, F_GETFL, 1);
	add(&c, BPF_RET, SECCOMP_RET_ALLOW);
	add(&c, BPF_RET, SECCOMP_RET_ERRNO | EPERM);
#ifdef SYS_newfstatat
	/* fstat() of glibc 2.33 to 2.38. A path cannot be looked at by a filter: its owner and size could be asked. */
	add_test(&c, BPF_JEQ, SYS_newfstatat, 3);
	add(&c, BPF_LD | BPF_W | BPF_ABS, AT(args[3]));
	add_test(&c, BPF_JEQ, AT_EMPTY_PATH, 1);
	add(&c, BPF_RET, SECCOMP_RET_ALLOW);
#endif
	add(&c, BPF_RET, SECCOMP_RET_ERRNO | EPERM);
	program.len = c.count;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

int lines_confine(void)
{
	int r = set_limits();

	if (r == 0)
		r = drop_rights();
	/* After the change of ids, which clears it. Should the parent be gone already, the socket says so. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : filter_calls();
}
