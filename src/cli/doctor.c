/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <linux/capability.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/doctor_debug.h"
#include "codec/json.h"
#include "sampler/bpf_load.h"
#include "sampler/sampler.h"
#include "symbol/libdw.h"

#define DISK_MIN_BYTES MIB(256)
#define BIT(capability) (UINT64_C(1) << (capability))

static void set(char *field, size_t size, const char *format, ...) printf_like(3, 4);

/* Cut to the field's size; bytes that are no printable ASCII become '?'. */
static void set(char *field, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(field, size, format, args);
	va_end(args);
	for (; *field; field++)
		if (*field < ' ' || *field > '~')
			*field = '?';
}

static struct probe_fact fact_of(const char *name, enum probe_need need, bool ok)
{
	return (struct probe_fact){ .name = name, .need = need, .ok = ok };
}

#define SET_VALUE(fact, ...) set((fact)->value, sizeof((fact)->value), __VA_ARGS__)
#define SET_REMEDY(fact, ...) set((fact)->remedy, sizeof((fact)->remedy), __VA_ARGS__)

static const struct {
	const char *name, *flag;
	uint64_t any; /* one of these is enough */
	enum probe_need need;
	const char *lost;
} capabilities[] = {
	/* Whether BPF and perf work is told by trying them; these two only explain it. */
	{ "cap-bpf", "cap_bpf", BIT(CAP_BPF) | BIT(CAP_SYS_ADMIN), PROBE_NEED_DETAIL, "BPF programs cannot be loaded" },
	{ "cap-perfmon", "cap_perfmon", BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN), PROBE_NEED_DETAIL,
	  "CPUs cannot be sampled, stacks cannot be read" },
	{ "cap-sys-ptrace", "cap_sys_ptrace", BIT(CAP_SYS_PTRACE), PROBE_NEED_DETAIL,
	  "code of other users' processes has no names" },
	{ "cap-syslog", "cap_syslog", BIT(CAP_SYSLOG), PROBE_NEED_DETAIL,
	  "kernel frames may have no names (see kernel-symbols)" },
	{ "cap-checkpoint-restore", "cap_checkpoint_restore", BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_ADMIN),
	  PROBE_NEED_DETAIL, "libraries that were deleted or replaced have no names" },
	{ "cap-dac-read-search", "cap_dac_read_search", BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE),
	  PROBE_NEED_DETAIL, "programs and perf maps that only their owner can read have no names" },
};

size_t doctor_capabilities(uint64_t held, const char *program, struct probe_fact *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		struct probe_fact *f = &out[i];

		*f = fact_of(capabilities[i].name, capabilities[i].need, held & capabilities[i].any);
		SET_VALUE(f, "%s", f->ok ? "held" : capabilities[i].lost);
		if (f->ok)
			continue;
		if (geteuid() == 0)
			SET_REMEDY(f, "root lacks it here: in a container add --cap-add %s", capabilities[i].flag + 4);
		else
			SET_REMEDY(f, "run as root, or: " SAMPLER_SETCAP " %.60s",
				   program); /* setcap replaces: all at once */
		f->mend = geteuid() ? PROBE_MEND_RIGHTS : 0;
	}
	return ARRAY_SIZE(capabilities);
}

static uint64_t held_capabilities(void)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	struct str rest, line;
	uint64_t held = 0;

	if (io_read_file("/proc/self/status", &text) < 0)
		return 0;
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line))
		if (str_starts(line, STR("CapEff:\t")))
			ignore(str_to_hex64(str_skip(line, 8), &held)); /* malformed: none */
	return held;
}

static own_frame void add_sampler(const struct doctor_config *cfg, struct probe_fact *f)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	struct sampler_config sampling = { .frequency_hz = 99,
					   .poll_interval_ms = 250,
					   .host_root = cfg->host_root,
					   .allow_dangerous_kernel = cfg->allow_dangerous_kernel };
	const struct sampler *chosen = NULL;
	int r = sampler_choose(&sampling, &why, &chosen);

	*f = fact_of("sampler", PROBE_NEED_SAMPLER, r == 0 && !chosen->only_runtimes);
	if (r == 0 && chosen->only_runtimes) {
		SET_VALUE(f, "no native stacks; %s: %s", chosen->name, chosen->help);
		SET_REMEDY(f, "%s", buf_cstr(&why));
		return;
	}
	if (r == 0) {
		SET_VALUE(f, "%s: %s", chosen->name, chosen->help);
		return;
	}
	SET_VALUE(f, "none can be used here");
	SET_REMEDY(f, "%s", buf_cstr(&why));
	f->mend = r == -EPERM && geteuid() ? PROBE_MEND_RIGHTS : 0;
}

#define OUTSIDE_PROGRAMS "Python, Ruby, PHP and Perl programs" /* src/sampler/remote/readers.c */

/* Without any right on perf or BPF: programs of these whose memory may be read. Yama's scope 1 allows that of one's own
 * children only, 2 with CAP_SYS_PTRACE, 3 never. Source: linux 6.1, Documentation/admin-guide/LSM/Yama.rst. */
static own_frame void add_own_python(const struct doctor_config *cfg, uint64_t held, struct probe_fact *f)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16)), scope = BUF_INIT(64);
	pid_t self = getpid();
	struct sampler_config sampling = {
		.frequency_hz = 99, .poll_interval_ms = 250, .pids = &self, .pid_count = 1, .host_root = cfg->host_root
	};
	const struct sampler *remote = sampler_find(STR("remote"));
	int r = remote ? remote->probe(&sampling, &why) : -ENOTSUP;
	char level = '0';

	if (io_read_below(cfg->host_root, "/proc/sys/kernel/yama/ptrace_scope", &scope) == 0 && scope.len)
		level = scope.ptr[0];
	if ((held & BIT(CAP_SYS_PTRACE)) && level < '3')
		level = '0';
	*f = fact_of("own-python", PROBE_NEED_NOTHING, r == 0 && level < '2');
	if (r < 0)
		SET_VALUE(f, "cannot be read from outside");
	else if (level >= '2')
		SET_VALUE(f, "cannot be read from outside: kernel.yama.ptrace_scope is %c", level);
	else if (level == '1')
		SET_VALUE(f, OUTSIDE_PROGRAMS " that it starts can be sampled from outside: hearth record -- COMMAND");
	else
		SET_VALUE(f, OUTSIDE_PROGRAMS " of your own can be sampled from outside: hearth record -p PID");
	if (!f->ok)
		SET_REMEDY(f, "%s", r < 0 ? buf_cstr(&why) : "run as root");
}

/* Without any right: processes of the same user, where kernel.perf_event_paranoid is 2 or less. */
static own_frame void add_own_processes(const struct doctor_config *cfg, struct probe_fact *f)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	pid_t self = getpid();
	struct sampler_config sampling = {
		.frequency_hz = 99, .poll_interval_ms = 250, .pids = &self, .pid_count = 1, .host_root = cfg->host_root
	};
	const struct sampler *perf = sampler_find(STR("perf"));
	int r = perf ? perf->probe(&sampling, &why) : -ENOTSUP;

	*f = fact_of("own-processes", PROBE_NEED_NOTHING, r == 0);
	SET_VALUE(f, "%s",
		  r ? "cannot be sampled by perf" : "can be sampled by perf: hearth record --sampler perf -p PID");
	if (!f->ok)
		SET_REMEDY(f, "%s", buf_cstr(&why));
}

/* Return: 0 when somebody listens there, -errno. */
static int try_socket(const char *root, const char *path)
{
	union {
		struct sockaddr_un un;
		struct sockaddr any;
	} address = { .un = { .sun_family = AF_UNIX } };
	scoped(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int size = snprintf(address.un.sun_path, sizeof(address.un.sun_path), "%s%s", root, path);

	if (size < 0 || (size_t)size >= sizeof(address.un.sun_path))
		return -ENAMETOOLONG;
	return fd < 0 || connect(fd, &address.any, sizeof(address.un)) < 0 ? -errno : 0;
}

static own_frame void add_engine(const struct doctor_config *cfg, struct probe_fact *f)
{
	const char *path = cfg->container_socket ? cfg->container_socket : "/run/docker.sock";
	int r = try_socket(cfg->host_root, path);

	*f = fact_of("container-engine", PROBE_NEED_NOTHING, true);
	if (r == 0) {
		SET_VALUE(f, "%s%s answers: containers have names", cfg->host_root, path);
	} else if (r == -ENOENT && !cfg->container_socket) {
		SET_VALUE(f, "none at %s%s: containers are shown by their short id", cfg->host_root, path);
	} else {
		*f = fact_of("container-engine", PROBE_NEED_DETAIL, false);
		SET_VALUE(f, "%s%s: %s", cfg->host_root, path, strerror(-r));
		SET_REMEDY(f, "containers are shown by their short id: %s",
			   r == -EACCES || r == -EPERM
				   ? "run as root or as a member of the group docker"
				   : "start the engine, or name its socket with --container-socket");
	}
}

static own_frame void add_debug_files(const struct doctor_config *cfg, struct probe_fact *f)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));

	buf_addf(&path, "%s/usr/lib/debug", cfg->host_root);
	*f = fact_of("debug-symbols", PROBE_NEED_NOTHING, true);
	if (access(buf_cstr(&path), R_OK | X_OK) == 0)
		SET_VALUE(f, "%.120s", buf_cstr(&path));
	else
		SET_VALUE(f, "no %.60s: stripped programs show exported names only", buf_cstr(&path));
}

static void add_libdw(struct probe_fact *f)
{
	struct libdw libdw;
	bool is_there = libdw_load(&libdw) == 0;

	*f = fact_of("libdw", PROBE_NEED_NOTHING, is_there);
	SET_VALUE(f, "%s", is_there ? "inlined functions and lines with record --lines" : "no record --lines");
	if (!is_there)
		SET_REMEDY(f, "install libdw1 (Debian) or elfutils-libs");
	f->mend = !is_there && access("/var/lib/dpkg/info", X_OK) == 0 ? PROBE_MEND_LIBDW : 0;
}

static void default_data_dir(struct buf *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		buf_adds(out, STR("/var/lib/hearth"));
	else if (state && state[0] == '/')
		buf_addf(out, "%s/hearth", state);
	else
		buf_addf(out, "%s/.local/state/hearth", home ? home : "");
}

/* What does not exist yet is made where its nearest existing parent is. */
static int find_disk(struct buf *path, struct statvfs *out)
{
	while (statvfs(buf_cstr(path), out) < 0) {
		ptrdiff_t slash = str_rfind(buf_str(path), '/');

		if (errno != ENOENT || slash < 0)
			return -errno;
		path->len = slash ? (size_t)slash : 1;
		if (path->len == 1 && path->ptr[0] == '/' && !slash && statvfs("/", out) < 0)
			return -errno;
	}
	return 0;
}

static own_frame void add_disk(const struct doctor_config *cfg, struct probe_fact *f)
{
	scoped(buf_release) struct buf dir = BUF_INIT(KIB(8)), parent = BUF_INIT(KIB(8));
	struct statvfs disk = { 0 };
	uint64_t free_bytes;
	int r;

	if (cfg->data_dir)
		buf_adds(&dir, str_of(cfg->data_dir));
	else
		default_data_dir(&dir);
	buf_adds(&parent, buf_str(&dir));
	r = find_disk(&parent, &disk);
	free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	*f = fact_of("disk", PROBE_NEED_DETAIL,
		     r == 0 && free_bytes >= DISK_MIN_BYTES && access(buf_cstr(&parent), W_OK) == 0);
	if (r < 0)
		SET_VALUE(f, "%s: %s", buf_cstr(&dir), strerror(-r));
	else
		SET_VALUE(f, "%.1f GiB free for %.100s%s", (double)free_bytes / (double)GIB(1), buf_cstr(&dir),
			  f->ok || free_bytes < DISK_MIN_BYTES ? "" : ", not writable");
	if (!f->ok)
		SET_REMEDY(f, "profiles cannot be kept there: make room, or choose another place with --data-dir");
}

size_t doctor_collect(const struct doctor_config *cfg, struct probe_fact *out)
{
	struct doctor_config c = *cfg;
	struct probe_config probing;
	char program[256] = "hearth"; /* cut when longer: remedies are short */
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	size_t count = 0;

	if (!c.host_root)
		c.host_root = "";
	program[size > 0 ? size : (ssize_t)strlen("hearth")] = '\0';
	probing = (struct probe_config){ .host_root = c.host_root,
					 .program = program,
					 .allow_dangerous_kernel = c.allow_dangerous_kernel };
	add_sampler(&c, &out[count++]);
	add_own_processes(&c, &out[count++]);
	add_own_python(&c, held_capabilities(), &out[count++]);
	count += probe_run(&probing, out + count);
	count += doctor_capabilities(held_capabilities(), program, out + count);
	add_engine(&c, &out[count++]);
	add_debug_files(&c, &out[count++]);
	doctor_debug_packages(c.host_root, &out[count++]);
	add_libdw(&out[count++]);
	add_disk(&c, &out[count++]);
	must(count <= DOCTOR_FACT_MAX);
	for (size_t i = 1; i < count; i++) /* rights do not help where the kernel refuses */
		if (out[i].need == PROBE_NEED_SAMPLER && !out[i].ok && !out[i].mend)
			out[0].mend = 0;
	return count;
}

bool doctor_usable(const struct probe_fact *facts, size_t count)
{
	const struct probe_fact *sampler = probe_find(facts, count, "sampler");

	return sampler && sampler->ok;
}

/* For a shell: as it is, or in single quotes. Return: false for what does not stand in one line. */
static bool add_word(struct buf *out, struct str word)
{
	static const char plain[] = "/._+-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	bool is_plain = word.len > 0;

	for (size_t i = 0; i < word.len; i++) {
		unsigned char c = (unsigned char)word.ptr[i];

		if (c < ' ' || c > '~')
			return false;
		is_plain &= strchr(plain, c) != NULL;
	}
	if (is_plain) {
		buf_adds(out, word);
		return true;
	}
	buf_addc(out, '\'');
	for (size_t i = 0; i < word.len; i++)
		if (word.ptr[i] == '\'')
			buf_adds(out, STR("'\\''"));
		else
			buf_addc(out, word.ptr[i]);
	buf_addc(out, '\'');
	return true;
}

static void add_command(struct buf *out, bool root, const char *command)
{
	buf_addf(out, "%s%s%s", out->len ? " && " : "", root ? "" : "sudo ", command);
}

/* The PROBE_MEND_ bits that doctor_remedy() can give. */
static unsigned int mendable(const char *program, bool root)
{
	scoped(buf_release) struct buf word = BUF_INIT(KIB(32));
	bool is_there = *program && !str_ends(str_of(program), STR(" (deleted)"));

	return PROBE_MEND_KPTR | PROBE_MEND_LIBDW |
	       (!root && is_there && add_word(&word, str_of(program)) ? PROBE_MEND_RIGHTS : 0);
}

static bool is_mended(const struct probe_fact *f, unsigned int can)
{
	return !f->ok && f->mend && !(f->mend & ~can);
}

size_t doctor_remedy(const struct probe_fact *facts, size_t count, const char *program, bool root, struct buf *out)
{
	scoped(buf_release) struct buf commands = BUF_INIT(KIB(64));
	unsigned int can = mendable(program, root), all = 0;
	size_t mended = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_mended(&facts[i], can))
			continue;
		all |= facts[i].mend;
		mended++;
	}
	if (all & PROBE_MEND_RIGHTS) {
		buf_adds(&commands, STR(SAMPLER_SETCAP " "));
		(void)add_word(&commands, str_of(program)); /* mendable() has tried */
	}
	if (all & PROBE_MEND_KPTR)
		add_command(&commands, root, "sysctl -w kernel.kptr_restrict=1");
	if (all & PROBE_MEND_LIBDW)
		add_command(&commands, root, "apt-get install -y libdw1");
	buf_adds(out, buf_str(&commands));
	return mended;
}

static void add_verdict(const struct probe_fact *facts, size_t count, size_t missing, struct buf *out)
{
	const struct probe_fact *own = probe_find(facts, count, "own-python");

	if (!doctor_usable(facts, count) && own && own->ok)
		buf_addf(out, "\nThe whole machine cannot be sampled here. %s\n", own->value);
	else if (!doctor_usable(facts, count))
		buf_adds(out, STR("\nNothing can be sampled here.\n"));
	else if (missing)
		buf_addf(out, "\nSampling works; %zu of %zu facts above make profiles less complete.\n", missing,
			 count);
	else
		buf_adds(out, STR("\nEverything works here.\n"));
}

void doctor_text(const struct probe_fact *facts, size_t count, const char *program, bool root, struct buf *out)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(64));
	unsigned int can = mendable(program, root);
	size_t missing = 0, wrong = 0, mended = doctor_remedy(facts, count, program, root, &command);

	for (size_t i = 0; i < count; i++) {
		const struct probe_fact *f = &facts[i];
		const char *mark = f->ok ? "ok" : f->need == PROBE_NEED_NOTHING ? "note" : "missing";

		missing += !f->ok && f->need != PROBE_NEED_NOTHING;
		wrong += !f->ok;
		buf_addf(out, "%-8s %-22s %s\n", mark, f->name, f->value);
		if (is_mended(f, can))
			buf_addf(out, "%-8s %-22s -> see the last line\n", "", "");
		else if (!f->ok && f->remedy[0])
			buf_addf(out, "%-8s %-22s -> %s\n", "", "", f->remedy);
	}
	add_verdict(facts, count, missing, out);
	if (mended)
		buf_addf(out, "This mends %zu of the %zu that are not ok: %s\n", mended, wrong, buf_cstr(&command));
}

static void add_member(struct json_out *j, const char *key, const char *value)
{
	json_out_key(j, str_of(key));
	json_out_string(j, str_of(value));
}

static void add_bool(struct json_out *j, const char *key, bool value)
{
	json_out_key(j, str_of(key));
	json_out_raw(j, value ? STR("true") : STR("false"));
}

static void add_json(struct json_out *j, const struct probe_fact *f)
{
	static const char *const needs[] = {
		[PROBE_NEED_SAMPLER] = "sampler",
		[PROBE_NEED_DETAIL] = "detail",
		[PROBE_NEED_NOTHING] = "nothing",
	};

	json_out_begin(j, '{');
	add_member(j, "name", f->name);
	add_member(j, "need", needs[f->need]);
	add_bool(j, "ok", f->ok);
	add_member(j, "value", f->value);
	add_member(j, "remedy", f->ok ? "" : f->remedy);
	json_out_end(j, '}');
}

int doctor_json(const struct probe_fact *facts, size_t count, const char *program, bool root, struct buf *out)
{
	scoped(buf_release) struct buf command = BUF_INIT(KIB(64));
	struct json_out j = { .out = out };

	json_out_begin(&j, '{');
	add_member(&j, "version", HEARTH_VERSION);
	add_bool(&j, "usable", doctor_usable(facts, count));
	ignore(doctor_remedy(facts, count, program, root, &command));
	add_member(&j, "remedy", buf_cstr(&command));
	json_out_key(&j, STR("facts"));
	json_out_begin(&j, '[');
	for (size_t i = 0; i < count; i++)
		add_json(&j, &facts[i]);
	json_out_end(&j, ']');
	json_out_end(&j, '}');
	buf_addc(out, '\n');
	return out->error;
}
