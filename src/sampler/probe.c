// SPDX-License-Identifier: Apache-2.0
#include "sampler/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/bpf_load.h"
#include "sampler/bpf_probe.h"

#define FIRST_PID_NAMESPACE 0xeffffffcu /* its inode, PROC_PID_INIT_INO */

struct probe {
	const struct probe_config *cfg;
	const char *root;
	char program[200]; /* cut when longer: remedies are short */
	struct probe_fact *facts;
	size_t count;
};

/* ---- the kernel's version ---- */

/* "5.10.0-28-amd64", "6.1.164-1", "6.8": three numbers at most, then anything. */
static int parse_version(struct str text, struct probe_kernel *out)
{
	unsigned int parts[3] = { 0 };
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t digits = 0;
		uint64_t value;

		while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
			digits++;
		if (!digits || str_to_u64(str_first(text, digits), 0, 65535, &value) < 0)
			break;
		parts[used++] = (unsigned int)value;
		text = str_skip(text, digits);
		if (!text.len || text.ptr[0] != '.')
			break;
		text = str_skip(text, 1);
	}
	if (used < 2)
		return -EBADMSG;
	*out = (struct probe_kernel){ parts[0], parts[1], parts[2] };
	return 0;
}

int probe_kernel_parse(struct str release, struct str version, struct str signature, struct probe_kernel *out)
{
	ptrdiff_t at;

	/* Ubuntu: "Ubuntu 5.15.0-100.110-generic 5.15.143" */
	signature = str_trim(signature);
	at = str_rfind(signature, ' ');
	if (at >= 0 && !parse_version(str_skip(signature, (size_t)at + 1), out))
		return 0;
	/* Debian: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.164-1 (2026-01-01)" */
	at = str_search(version, STR("Debian "));
	if (at >= 0 && !parse_version(str_skip(version, (size_t)at + 7), out))
		return 0;
	return parse_version(release, out);
}

int probe_kernel_verdict(const struct probe_kernel *k)
{
	unsigned int v = k->major * 1000 + MIN(k->minor, 999U);

	if (v < 5010)
		return -ENOTSUP;
	/* copy_from_user_nofault() could sleep on a lock here: mended in 6.4 and in the stable releases named below. */
	if (v == 5019 || v == 6000 || v == 6002 || (v == 6001 && k->patch < 36) || (v == 6003 && k->patch < 10))
		return -EDEADLK;
	return 0;
}

int probe_kernel_running(const char *host_root, struct probe_kernel *out)
{
	scoped(buf_release) struct buf signature = BUF_INIT(KIB(4));
	struct utsname name;

	if (uname(&name) < 0)
		return -EBADMSG;
	ignore(io_read_below(host_root, "/proc/version_signature", &signature)); /* only Ubuntu has it */
	return probe_kernel_parse(str_of(name.release), str_of(name.version), buf_str(&signature), out);
}

/* ---- facts ---- */

printf_like(3, 0) static void put_text(char *out, size_t size, const char *format, va_list args)
{
	vsnprintf(out, size, format, args);
	for (; *out; out++) {
		if (*out < ' ' || *out > '~')
			*out = '?';
	}
}

static struct probe_fact *fact(struct probe *p, const char *name, enum probe_need need, bool ok)
{
	struct probe_fact *f = &p->facts[p->count++];

	must(p->count <= PROBE_FACT_MAX);
	*f = (struct probe_fact){ .name = name, .need = need, .ok = ok };
	return f;
}

printf_like(2, 3) static void value(struct probe_fact *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_text(f->value, sizeof(f->value), format, args);
	va_end(args);
}

printf_like(2, 3) static void remedy(struct probe_fact *f, const char *format, ...)
{
	va_list args;

	if (f->ok)
		return;
	va_start(args, format);
	put_text(f->remedy, sizeof(f->remedy), format, args);
	va_end(args);
}

static void remedy_rights(struct probe *p, struct probe_fact *f, int error)
{
	if (error != -EPERM && error != -EACCES)
		remedy(f, "needs a kernel with this built in");
	else if (geteuid() == 0)
		remedy(f, "root lacks the right here (container?): docker run --privileged --pid=host");
	else
		remedy(f, SAMPLER_SETCAP " %.70s", p->program);
	if ((error == -EPERM || error == -EACCES) && geteuid() && !f->ok)
		f->mend = PROBE_MEND_RIGHTS;
}

/* A trial that gives 0 or -errno. */
static void trial(struct probe *p, const char *name, enum probe_need need, int result)
{
	struct probe_fact *f = fact(p, name, need, result >= 0);

	value(f, "%s", result < 0 ? strerror(-result) : "works");
	remedy_rights(p, f, result);
}

static void probe_kernel_fact(struct probe *p)
{
	struct probe_kernel k = { 0 };
	int r = probe_kernel_running(p->root, &k), verdict = r < 0 ? 0 : probe_kernel_verdict(&k);
	struct probe_fact *f = fact(p, "kernel", PROBE_NEED_SAMPLER,
				    verdict == 0 || (verdict == -EDEADLK && p->cfg->allow_dangerous_kernel));

	if (r < 0) {
		value(f, "unknown version");
		return;
	}
	value(f, "%u.%u.%u%s", k.major, k.minor, k.patch,
	      verdict == -EDEADLK ? ", can freeze when BPF reads user memory" : "");
	remedy(f, "%s",
	       verdict == -ENOTSUP ? "update to 5.10 or newer"
				   : "update to 6.1.36, 6.3.10, 6.4 or newer; or --allow-dangerous-kernel");
}

static bool holds(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[capability / 32].effective >> capability % 32 & 1;
}

static void probe_btf(struct probe *p)
{
	/* libbpf looks there, even with --host-root */
	int r = access("/sys/kernel/btf/vmlinux", R_OK) < 0 ? -errno : 0;
	struct probe_fact *f = fact(p, "btf", PROBE_NEED_SAMPLER, r == 0);

	value(f, "%s", r ? strerror(-r) : "/sys/kernel/btf/vmlinux");
	remedy(f, "needs a kernel built with CONFIG_DEBUG_INFO_BTF");
}

static void probe_registers(struct probe *p)
{
	int r = bpf_probe_entry_registers();
	struct probe_fact *f = fact(p, "kernel-mode-registers", PROBE_NEED_NOTHING, true);

	if (r < 0)
		value(f, "not tried: %s", strerror(-r));
	else
		value(f, "%s", r ? "bpf_task_pt_regs" : "by hand (before 5.15)");
}

static void probe_find_vma(struct probe *p)
{
	int r = bpf_probe_find_vma();
	struct probe_fact *f = fact(p, "new-mappings", PROBE_NEED_NOTHING, true);

	if (r < 0)
		value(f, "not tried: %s", strerror(-r));
	else
		value(f, "%s",
		      r ? "told from wild addresses by bpf_find_vma" : "looked for at any address (before 5.17)");
}

/* A number in /proc that is worth knowing but decides nothing. */
static void probe_number(struct probe *p, const char *name, const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);
	struct probe_fact *f = fact(p, name, PROBE_NEED_NOTHING, true);
	int r = io_read_below(p->root, path, &text);
	struct str s = str_trim(buf_str(&text));

	if (r < 0)
		value(f, "%s", strerror(-r));
	else
		value(f, STR_FMT, STR_ARG(s));
}

/* Hidden addresses are all zeros. The first symbols may be per-CPU offsets, which are small for everybody. */
static bool kernel_address_in(struct str text)
{
	struct str line;
	uint64_t address;

	while (str_next(&text, '\n', &line)) {
		if (line.len > 16 && !str_to_hex64(str_first(line, 16), &address) && address >> 63)
			return true;
	}
	return false;
}

static void probe_kernel_symbols(struct probe *p)
{
	char bytes[2048];
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), number = BUF_INIT(64);
	scoped(closep) int fd = -1;
	ssize_t got = -1;
	bool some = false;
	struct probe_fact *f;

	buf_addf(&path, "%s/proc/kallsyms", p->root);
	fd = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC);
	for (int turn = 0; fd >= 0 && turn < 256 && !some; turn++) { /* 512 KiB: beyond every per-CPU section */
		got = read(fd, bytes, sizeof(bytes));
		if (got <= 0)
			break;
		some = kernel_address_in(str_n(bytes, (size_t)got));
	}
	f = fact(p, "kernel-symbols", PROBE_NEED_DETAIL, some);
	value(f, "%s", some ? "addresses readable" : fd < 0 ? "no /proc/kallsyms" : "addresses hidden");
	remedy(f, "kernel frames stay without names: sudo sysctl kernel.kptr_restrict=0, or run with CAP_SYSLOG");
	/* 0 and 1 hide them from those without CAP_SYSLOG, 2 from all. Source: linux 6.1, kernel/ksyms_common.c. */
	if (!some && io_read_below(p->root, "/proc/sys/kernel/kptr_restrict", &number) == 0)
		f->mend = str_starts(buf_str(&number), STR("2")) ? PROBE_MEND_KPTR : 0;
	if (!some && !holds(CAP_SYSLOG))
		f->mend = geteuid() ? f->mend | PROBE_MEND_RIGHTS : 0;
}

/* The memory and files of the processes of others, asked of all that live: a single one may be protected on purpose. */
static void probe_other_processes(struct probe *p)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	unsigned int total = 0, refused = 0;
	struct probe_fact *f;
	DIR *dir;

	buf_addf(&path, "%s/proc", p->root);
	dir = opendir(buf_cstr(&path));
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char link[300], target[16];
		uint64_t pid;

		if (str_to_u64(str_of(entry->d_name), 1, UINT32_MAX, &pid) < 0)
			continue;
		snprintf(link, sizeof(link), "%s/exe", entry->d_name);
		if (readlinkat(dirfd(dir), link, target, sizeof(target)) >= 0)
			total++;
		else if (errno == EACCES || errno == EPERM) /* ENOENT: a kernel thread, or gone */
			total++, refused++;
	}
	if (dir)
		closedir(dir);
	f = fact(p, "other-processes", PROBE_NEED_DETAIL,
		 total && (!refused || (holds(CAP_SYS_PTRACE) && refused * 2 < total)));
	value(f, "%u of %u readable", total - refused, total);
	remedy_rights(p, f, -EPERM);
}

/* Through /proc/PID/map_files a deleted or replaced library can still be read. */
bool probe_pid_namespace(const char *host_root)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), comm = BUF_INIT(KIB(1));
	struct stat st;

	if (!host_root || !*host_root)
		return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == FIRST_PID_NAMESPACE;
	buf_addf(&path, "%s/proc/2/comm", host_root); /* the kernel's own threads have the first numbers */
	return io_read_file(buf_cstr(&path), &comm) == 0 && str_eq(str_trim(buf_str(&comm)), STR("kthreadd"));
}

static void probe_namespace(struct probe *p)
{
	const bool first = probe_pid_namespace(p->root);
	struct probe_fact *f = fact(p, "pid-namespace", PROBE_NEED_DETAIL, first);

	value(f, "%s", first ? "the machine's" : "its own: only its processes are seen, and without BPF");
	if (!first)
		remedy(f, "run it in the machine's: docker run --pid=host, or hostPID: true in the Pod");
}

static void probe_mapped_files(struct probe *p)
{
	scoped(buf_release) struct buf maps = BUF_INIT(MIB(1)), path = BUF_INIT(256);
	struct str rest, range = str_of("");
	scoped(closep) int fd = -1;

	ignore(io_read_file("/proc/self/maps", &maps)); /* the program itself comes first */
	rest = buf_str(&maps);
	ignore(str_next(&rest, ' ', &range));
	buf_addf(&path, "/proc/self/map_files/" STR_FMT, STR_ARG(range));
	fd = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC);
	trial(p, "mapped-files", PROBE_NEED_DETAIL, fd < 0 ? -errno : 0);
}

static void probe_lockdown(struct probe *p)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	bool absent = io_read_below(p->root, "/sys/kernel/security/lockdown", &text) < 0;
	bool locked = str_search(buf_str(&text), STR("[confidentiality]")) >= 0;
	struct probe_fact *f = fact(p, "lockdown", PROBE_NEED_SAMPLER, !locked);
	struct str s = str_trim(buf_str(&text));

	value(f, STR_FMT, STR_ARG(absent ? STR("none") : s));
	remedy(f, "boot with lockdown=integrity or lockdown=none: confidentiality forbids reading kernel memory");
}

static void probe_memlock(struct probe *p)
{
	struct rlimit limit = { 0 };
	struct probe_fact *f = fact(p, "memlock", PROBE_NEED_NOTHING, true);

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		value(f, "unlimited");
	else
		value(f, "%llu KiB (only kernels before 5.11 count BPF memory here)",
		      (unsigned long long)limit.rlim_cur / 1024);
}

static void probe_tracefs(struct probe *p)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	struct probe_fact *f = fact(p, "tracefs", PROBE_NEED_NOTHING, true);

	buf_addf(&path, "%s/sys/kernel/tracing/events", p->root);
	value(f, "%s", access(buf_cstr(&path), F_OK) < 0 ? "not mounted (not needed)" : "mounted (not needed)");
}

size_t probe_run(const struct probe_config *cfg, struct probe_fact *out)
{
	struct probe p = { .cfg = cfg, .root = cfg->host_root ? cfg->host_root : "", .facts = out };
	ssize_t len;

	if (cfg->program) {
		snprintf(p.program, sizeof(p.program), "%s", cfg->program);
	} else {
		len = readlink("/proc/self/exe", p.program, sizeof(p.program) - 1);
		p.program[MAX(len, 0)] = 0;
	}
	probe_kernel_fact(&p);
	trial(&p, "perf-events", PROBE_NEED_SAMPLER, bpf_probe_perf_event());
	trial(&p, "bpf", PROBE_NEED_SAMPLER, bpf_probe_program());
	trial(&p, "ring-buffer", PROBE_NEED_SAMPLER, bpf_probe_ring());
	probe_btf(&p);
	trial(&p, "process-events", PROBE_NEED_SAMPLER, bpf_probe_process_event());
	probe_registers(&p);
	probe_find_vma(&p);
	probe_number(&p, "perf-event-paranoid", "/proc/sys/kernel/perf_event_paranoid");
	probe_kernel_symbols(&p);
	probe_number(&p, "kptr-restrict", "/proc/sys/kernel/kptr_restrict");
	probe_other_processes(&p);
	probe_namespace(&p);
	probe_mapped_files(&p);
	probe_lockdown(&p);
	probe_memlock(&p);
	probe_tracefs(&p);
	return p.count;
}

const struct probe_fact *probe_find(const struct probe_fact *facts, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(facts[i].name, name))
			return &facts[i];
	}
	return NULL;
}
