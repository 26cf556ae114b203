/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metadata.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/clock.h"
#include "base/io.h"
#include "base/utf8.h"
#include "codec/json.h"
#include "proc/cpustat.h"
#include "sampler/sampler.h"

#define UNKNOWN STR("unknown")
#define LIBC_BYTES_MAX MIB(8)

/* All of it lives as long as one call. Errors stick to the buffer behind json. */
struct writer {
	struct json_out json;
	const char *host_root;
};

static void set_text(struct writer *w, const char *key, struct str s)
{
	scoped(buf_release) struct buf clean = BUF_INIT(MIB(1));

	utf8_clean(&clean, s.len ? s : UNKNOWN, 0);
	if (clean.error && !w->json.out->error)
		w->json.out->error = clean.error;
	json_out_key(&w->json, str_of(key));
	json_out_string(&w->json, buf_str(&clean));
}

static void set_u64(struct writer *w, const char *key, uint64_t value)
{
	json_out_key(&w->json, str_of(key));
	json_out_u64(&w->json, value);
}

static void set_time(struct writer *w, const char *key, uint64_t wall_ns)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);

	clock_add_iso(&text, wall_ns);
	set_text(w, key, buf_str(&text));
}

/* A file of the host: as pid 1 sees it, or below the host root when pid 1's root cannot be read. */
static int read_host_file(const char *host_root, const char *path, struct buf *out)
{
	scoped(buf_release) struct buf below = BUF_INIT(KIB(8));
	int r;

	buf_addf(&below, "/proc/1/root%s", path);
	r = below.error ? below.error : io_read_below(host_root, buf_cstr(&below), out);
	if (r == 0)
		return 0;
	buf_clear(out);
	return io_read_below(host_root, path, out);
}

static void set_identity(struct writer *w, const struct metadata_config *cfg)
{
	const char *mode = cfg->run_mode;

	if (!mode)
		mode = getenv("GPROFILER_IN_K8S")         ? "k8s"
		       : getenv("GPROFILER_IN_CONTAINER") ? "container"
							  : "standalone_executable";
	set_text(w, "cloud_provider", cfg->cloud_provider ? str_of(cfg->cloud_provider) : UNKNOWN);
	set_text(w, "agent_version", STR(HEARTH_VERSION));
	set_time(w, "spawn_time", cfg->spawn_wall_ns);
	set_text(w, "python_version", STR("none"));
	set_text(w, "run_mode", str_of(mode));
	if (!strcmp(mode, "k8s"))
		set_text(w, "deployment_type", STR("k8s"));
	else
		set_text(w, "deployment_type", !strcmp(mode, "container") ? STR("containers") : STR("instances"));
}

static void set_kernel(struct writer *w)
{
	struct utsname uts;

	if (uname(&uts) < 0)
		memset(&uts, 0, sizeof(uts));
	set_text(w, "kernel_release", str_of(uts.release));
	set_text(w, "kernel_version", str_of(uts.version));
	set_text(w, "system_name", str_of(uts.sysname));
}

static void set_hypervisor(struct writer *w)
{
#if defined(__x86_64__)
	unsigned a, b = 0, c = 0, d = 0;
	char vendor[13] = "";

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1U << 31)) {
		set_text(w, "hypervisor", STR("NONE"));
		return;
	}
	__cpuid(0x40000000, a, b, c, d); /* Intel SDM leaves this range to hypervisors: their name in 12 bytes */
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &c, 4);
	memcpy(vendor + 8, &d, 4);
	set_text(w, "hypervisor", vendor[0] ? str_of(vendor) : STR("VM-UNKNOWN"));
#else
	set_text(w, "hypervisor", STR("VM-UNKNOWN"));
#endif
}

/* "model name\t: Xeon": the value behind the first line with that key. */
static struct str cpuinfo_value(struct str text, struct str key)
{
	struct str line;

	while (str_next(&text, '\n', &line)) {
		ptrdiff_t colon = str_find(line, ':');

		if (colon >= 0 && str_eq(str_trim(str_first(line, (size_t)colon)), key))
			return str_trim(str_skip(line, (size_t)colon + 1));
	}
	return STR("");
}

/* Intel's family 6 model numbers: linux, arch/x86/include/asm/intel-family.h. */
static struct str codename(struct str cpuinfo)
{
	static const struct {
		const char *model, *name;
	} models[] = {
		{ "106", "ICX" }, { "108", "ICX" }, { "143", "SPR" },
		{ "207", "EMR" }, { "173", "GNR" }, { "174", "GNR" },
	};
	struct str model = cpuinfo_value(cpuinfo, STR("model"));

	if (!str_eq(cpuinfo_value(cpuinfo, STR("vendor_id")), STR("GenuineIntel")) ||
	    !str_eq(cpuinfo_value(cpuinfo, STR("cpu family")), STR("6")))
		return STR("UNKNOWN");
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (str_eq(model, str_of(models[i].model)))
			return str_of(models[i].name);
	return STR("UNKNOWN");
}

static void set_cpu(struct writer *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(8));
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t total = 0, used = 0;
	struct str flags;

	ignore(io_read_below(w->host_root, "/proc/cpuinfo", &text)); /* unreadable: everything is unknown */
	flags = cpuinfo_value(buf_str(&text), STR("flags"));
	set_u64(w, "processors", processors > 0 ? (uint64_t)processors : 1);
	set_text(w, "cpu_model_name", cpuinfo_value(buf_str(&text), STR("model name")));
	set_text(w, "cpu_flags", flags.len ? flags : cpuinfo_value(buf_str(&text), STR("Features")));
	set_text(w, "cpu_arch_codename", codename(buf_str(&text)));
	ignore(meminfo_read(w->host_root, &total, &used)); /* unreadable: 0 */
	set_u64(w, "memory_capacity_mb", total >> 20);
}

/* Ours is the host's unless we run in a UTS namespace of our own. */
static void set_hostname(struct writer *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4)), path = BUF_INIT(KIB(8));
	char own[64] = "", first[64] = "";
	ssize_t r;

	buf_addf(&path, "%s/proc/1/ns/uts", w->host_root);
	r = readlink("/proc/self/ns/uts", own, sizeof(own) - 1);
	if (r > 0 && readlink(buf_cstr(&path), first, sizeof(first) - 1) > 0 && strcmp(own, first))
		ignore(read_host_file(w->host_root, "/etc/hostname", &text)); /* else our own has to do */
	if (!str_trim(buf_str(&text)).len)
		ignore(io_read_file("/proc/sys/kernel/hostname", &text)); /* else it is unknown */
	set_text(w, "hostname", str_trim(buf_str(&text)).len ? str_trim(buf_str(&text)) : STR("<unknown>"));
}

struct str metadata_os_release(struct str text, struct str key)
{
	struct str line;

	while (str_next(&text, '\n', &line)) {
		struct str value;

		line = str_trim(line);
		if (!str_starts(line, key) || line.len == key.len || line.ptr[key.len] != '=')
			continue;
		value = str_skip(line, key.len + 1);
		if (value.len >= 2 && (value.ptr[0] == '"' || value.ptr[0] == '\'') &&
		    value.ptr[value.len - 1] == value.ptr[0])
			value = str_n(value.ptr + 1, value.len - 2);
		return value;
	}
	return STR("");
}

/* VERSION="22.04 LTS (Jammy Jellyfish)": what stands in parentheses, else VERSION_CODENAME. */
static struct str os_codename(struct str text)
{
	struct str version = metadata_os_release(text, STR("VERSION"));
	ptrdiff_t open = str_find(version, '('), close = str_rfind(version, ')');

	if (open >= 0 && close > open + 1)
		return str_n(version.ptr + open + 1, (size_t)(close - open - 1));
	return metadata_os_release(text, STR("VERSION_CODENAME"));
}

static void set_os(struct writer *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));

	if (read_host_file(w->host_root, "/etc/os-release", &text) < 0) {
		buf_clear(&text);
		ignore(read_host_file(w->host_root, "/usr/lib/os-release", &text)); /* neither: unknown */
	}
	set_text(w, "system", STR("Linux"));
	set_text(w, "os_name", metadata_os_release(buf_str(&text), STR("NAME")));
	set_text(w, "os_release", metadata_os_release(buf_str(&text), STR("VERSION_ID")));
	set_text(w, "os_codename", os_codename(buf_str(&text)));
}

/* glibc tells its version in a sentence among its strings. */
static struct str glibc_version(struct str bytes)
{
	ptrdiff_t at = str_search(bytes, STR("release version "));
	struct str found;
	size_t size = 0;

	if (at < 0)
		return STR("");
	found = str_skip(bytes, (size_t)at + sizeof("release version ") - 1);
	while (size < found.len && size < 16 &&
	       ((found.ptr[size] >= '0' && found.ptr[size] <= '9') || found.ptr[size] == '.'))
		size++;
	while (size && found.ptr[size - 1] == '.')
		size--;
	return str_first(found, size);
}

static void set_libc(struct writer *w)
{
	static const char *const glibc_paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
						   "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
						   "/usr/lib/libc.so.6" };
	static const char *const musl_paths[] = { "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1" };
	scoped(buf_release) struct buf bytes = BUF_INIT(LIBC_BYTES_MAX), musl = BUF_INIT(LIBC_BYTES_MAX);
	struct str type = STR("unknown"), version = STR("");

	for (size_t i = 0; i < ARRAY_SIZE(glibc_paths) && !version.len; i++) {
		buf_clear(&bytes);
		if (read_host_file(w->host_root, glibc_paths[i], &bytes) == 0)
			version = glibc_version(buf_str(&bytes));
	}
	if (version.len)
		type = STR("glibc");
	for (size_t i = 0; i < ARRAY_SIZE(musl_paths) && !version.len; i++) {
		buf_clear(&musl);
		if (read_host_file(w->host_root, musl_paths[i], &musl) == 0)
			type = STR("musl"); /* which does not tell its version in the file */
	}
	set_text(w, "libc_type", type);
	set_text(w, "libc_version", version);
}

/* "02:42:ac:11:00:02" of the interface with the lowest index that is no loopback. */
static void find_mac(const char *host_root, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), text = BUF_INIT(KIB(4));
	uint64_t lowest = UINT64_MAX, index;
	DIR *dir;

	buf_addf(&path, "%s/sys/class/net", host_root);
	dir = opendir(buf_cstr(&path));
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char name[300];

		buf_clear(&text);
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lo"))
			continue;
		(void)snprintf(name, sizeof(name), "%s/ifindex", entry->d_name);
		if (io_read_file_at(dirfd(dir), name, &text) < 0 ||
		    str_to_u64(str_trim(buf_str(&text)), 0, UINT32_MAX, &index) < 0 || index >= lowest)
			continue;
		buf_clear(&text);
		(void)snprintf(name, sizeof(name), "%s/address", entry->d_name);
		if (io_read_file_at(dirfd(dir), name, &text) < 0 || str_trim(buf_str(&text)).len != 17)
			continue;
		lowest = index;
		buf_clear(out);
		buf_adds(out, str_trim(buf_str(&text)));
	}
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < out->len; i++)
		if (out->ptr[i] >= 'a' && out->ptr[i] <= 'f')
			out->ptr[i] = (char)(out->ptr[i] - 'a' + 'A');
}

/* The address we would speak from: connecting a datagram socket sends nothing. */
static void find_address(char *out, size_t size)
{
	scoped(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t own_size = sizeof(struct sockaddr_in);
	union {
		struct sockaddr_in in;
		struct sockaddr any;
	} remote = { .in = { .sin_family = AF_INET, .sin_port = htons(53) } }, local;

	remote.in.sin_addr.s_addr = htonl(0x08080808);
	if (fd < 0 || connect(fd, &remote.any, sizeof(remote.in)) < 0)
		return;
	if (getsockname(fd, &local.any, &own_size) == 0 && local.in.sin_family == AF_INET)
		ignore(!inet_ntop(AF_INET, &local.in.sin_addr, out, (socklen_t)size)); /* failing leaves it unknown */
}

static void set_network(struct writer *w)
{
	scoped(buf_release) struct buf mac = BUF_INIT(64);
	char address[INET_ADDRSTRLEN] = "";

	find_mac(w->host_root, &mac);
	find_address(address, sizeof(address));
	set_text(w, "mac_address",
		 mac.len ? buf_str(&mac) : STR("00:00:00:00:00:00")); /* readers want one that parses */
	set_text(w, "private_ip", str_of(address));
}

static void set_external(struct writer *w, const char *json)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	json_out_key(&w->json, STR("external_metadata"));
	json_out_raw(&w->json, json && json_reformat(str_of(json), &text) == 0 ? buf_str(&text) : STR("{}"));
}

static void set_sampling(struct writer *w, const struct metadata_config *cfg)
{
	const struct sampler_event *event = cfg->event;
	static const char precise[] = ":ppp";
	size_t level = event ? MIN((size_t)event->precise, sizeof(precise) - 2) : 0;

	set_text(w, "sampling_event", event && !event->is_clock ? str_of(event->name) : STR("cpu-time"));
	if (event && event->period) {
		set_text(w, "sampling_mode", STR("period"));
		set_u64(w, "sampling_period", event->period);
	} else {
		set_text(w, "sampling_mode", STR("frequency"));
		set_u64(w, "sampling_frequency", cfg->frequency_hz);
	}
	json_out_key(&w->json, STR("precise_modifier"));
	json_out_string(&w->json, str_n(precise, level ? level + 1 : 0));
}

static void set_arguments(struct writer *w, const struct metadata_config *cfg)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	json_out_key(&w->json, STR("run_arguments"));
	if (cfg->arguments && json_reformat(str_of(cfg->arguments), &text) == 0) {
		json_out_raw(&w->json, buf_str(&text));
		return;
	}
	json_out_begin(&w->json, '{');
	set_u64(w, "frequency", cfg->frequency_hz);
	set_text(w, "profiling_mode", STR("cpu"));
	json_out_end(&w->json, '}');
}

/* The value behind the first "KEY=" of a file of lines. */
static struct str line_value(struct str text, struct str key)
{
	struct str line;

	while (str_next(&text, '\n', &line))
		if (str_starts(str_trim(line), key))
			return str_trim(str_skip(str_trim(line), key.len));
	return STR("");
}

/* Which platform for big data the machine is part of, and the file that tells its version. Source: gProfiler 1.57,
 * big_data.py. */
static struct str find_big_data(const struct writer *w, struct buf *text, struct buf *version)
{
	struct str rest, object, key, value;

	if (read_host_file(w->host_root, "/mnt/var/lib/info/extraInstanceData.json", text) == 0) {
		rest = buf_str(text);
		object = STR("");
		ignore(json_value(&rest, &object)); /* no JSON: nothing is in it */
		while (json_member(&object, &key, &value))
			if (str_eq(key, STR("\"releaseLabel\"")) && json_text(value, version) == 0)
				return STR("emr");
	}
	buf_clear(text);
	if (read_host_file(w->host_root, "/databricks/DBR_VERSION", version) == 0)
		return STR("databricks");
	buf_clear(version);
	if (read_host_file(w->host_root, "/databricks/spark/conf/metrics.properties", text) == 0)
		return STR("databricks"); /* of an unknown version */
	buf_clear(text);
	if (read_host_file(w->host_root, "/etc/environment", text) == 0)
		buf_adds(version, line_value(buf_str(text), STR("DATAPROC_IMAGE_VERSION=")));
	if (version->len)
		return STR("dataproc");
	buf_clear(text);
	if (read_host_file(w->host_root, "/opt/cloudera/cm-agent/cm_version.properties", text) == 0)
		buf_adds(version, line_value(buf_str(text), STR("version=")));
	return version->len ? STR("cloudera") : STR("");
}

static void set_big_data(struct writer *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1)), version = BUF_INIT(KIB(64));
	struct str provider = find_big_data(w, &text, &version);

	json_out_key(&w->json, STR("big_data"));
	json_out_begin(&w->json, '{');
	if (provider.len) {
		set_text(w, "provider", provider);
		set_text(w, "provider_version", str_trim(buf_str(&version)));
	}
	json_out_end(&w->json, '}');
}

static void set_run(struct writer *w, const struct metadata_config *cfg)
{
	uint64_t age_ns = cfg->now_wall_ns > cfg->spawn_wall_ns ? cfg->now_wall_ns - cfg->spawn_wall_ns : 0;
	struct timespec boot = { 0 };
	double spawn_ms;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	spawn_ms = (double)boot.tv_sec * 1e3 + (double)boot.tv_nsec / 1e6 - (double)age_ns / 1e6;
	json_out_key(&w->json, STR("spawn_uptime_ms"));
	json_out_number(&w->json, spawn_ms > 0 ? spawn_ms : 0);
	if (cfg->cloud_info) {
		json_out_key(&w->json, STR("cloud_info"));
		json_out_raw(&w->json, str_of(cfg->cloud_info));
	}
	set_arguments(w, cfg);
	set_big_data(w);
	set_external(w, cfg->external);
	set_time(w, "current_time", cfg->now_wall_ns);
	set_text(w, "profiling_mode", STR("cpu"));
	set_sampling(w, cfg);
}

static void fill(struct writer *w, const struct metadata_config *cfg)
{
	struct utsname uts = { 0 };

	set_identity(w, cfg);
	set_kernel(w);
	set_hypervisor(w);
	set_cpu(w);
	set_hostname(w);
	set_os(w);
	set_libc(w);
	set_text(w, "hardware_type", uname(&uts) == 0 ? str_of(uts.machine) : UNKNOWN);
	set_u64(w, "pid", (uint64_t)getpid());
	set_network(w);
	set_run(w, cfg);
}

int metadata_json(const struct metadata_config *cfg, struct buf *out)
{
	struct writer w = { .json.out = out, .host_root = cfg->host_root ? cfg->host_root : "" };

	json_out_begin(&w.json, '{');
	fill(&w, cfg);
	json_out_end(&w.json, '}');
	return out->error;
}
