/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the kernel tells of in files: tracepoints in tracefs, those of units below /sys/bus/event_source. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/event_int.h"

#define UNITS "/sys/bus/event_source/devices"
#define ALIAS_DEPTH_MAX 2
#define TERMS_MAX 32

/* One part of a path: what has a slash, or is the way up, could lead anywhere. */
static bool is_part(struct str name)
{
	return name.len && name.len < SAMPLER_EVENT_NAME_SIZE && str_find(name, '/') < 0 && name.ptr[0] != '.' &&
	       !memchr(name.ptr, 0, name.len);
}

/* ---- tracepoints ---- */

/* tracefs mounted for this process alone, at no place: nothing of the machine changes, and it goes with the
 * descriptor. Source: fsopen(2), since linux 5.2. Return: a descriptor or -errno. */
static int open_own_tracefs(void)
{
	scoped(closep) int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int mount;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return mount < 0 ? -errno : mount;
}

static int open_folder(const char *host_root, const char *path)
{
	scoped(buf_release) struct buf full = BUF_INIT(KIB(8));
	int fd;

	buf_addf(&full, "%s%s", host_root ? host_root : "", path);
	fd = open(buf_cstr(&full), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return: the folder of all tracepoints, or -errno. */
static int open_tracefs(const char *host_root)
{
	scoped(closep) int own = -1;
	int fd = open_folder(host_root, "/sys/kernel/tracing/events");
	int r = fd;

	if (fd < 0)
		fd = open_folder(host_root, "/sys/kernel/debug/tracing/events");
	if (fd >= 0)
		return fd;
	if (r != -ENOENT && r != -ENOTDIR)
		return r;
	own = open_own_tracefs();
	if (own < 0)
		return -ENOENT;
	fd = openat(own, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int event_tracepoint(const char *host_root, struct str group, struct str name, struct sampler_event *out,
		     struct buf *why)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(1)), text = BUF_INIT(64);
	scoped(closep) int events = -1;
	int r;

	if (!is_part(group) || !is_part(name)) {
		buf_addf(why, "'" STR_FMT ":" STR_FMT "' is no tracepoint: GROUP:NAME, as sched:sched_switch",
			 STR_ARG(group), STR_ARG(name));
		return -EBADMSG;
	}
	events = open_tracefs(host_root);
	if (events < 0) {
		r = events;
		events = -1;
		buf_addf(why, "tracepoints cannot be looked up: %s",
			 r == -ENOENT ? "tracefs is not mounted; as root: mount -t tracefs tracefs /sys/kernel/tracing"
				      : "/sys/kernel/tracing is for root alone");
		return r == -ENOENT ? -ENOTSUP : -EPERM;
	}
	buf_addf(&path, STR_FMT "/" STR_FMT "/id", STR_ARG(group), STR_ARG(name));
	r = io_read_file_at(events, buf_cstr(&path), &text);
	if (r == -EACCES || r == -EPERM) {
		buf_adds(why, STR("tracepoints cannot be looked up: /sys/kernel/tracing is for root alone"));
		return -EPERM;
	}
	if (r == 0)
		r = str_to_u64(str_trim(buf_str(&text)), 1, UINT32_MAX, &out->config);
	out->type = PERF_TYPE_TRACEPOINT;
	if (r < 0)
		buf_addf(why, "'" STR_FMT ":" STR_FMT "' is no event and no tracepoint of this kernel", STR_ARG(group),
			 STR_ARG(name));
	return r < 0 ? -ENOENT : 0;
}

/* ---- units ---- */

static int read_of_unit(const char *host_root, struct str pmu, const char *folder, struct str file, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(1));

	buf_addf(&path, UNITS "/" STR_FMT "/%s%s" STR_FMT, STR_ARG(pmu), folder, folder[0] ? "/" : "", STR_ARG(file));
	return io_read_below(host_root, buf_cstr(&path), out);
}

/* The lowest bits of @value go where @ranges say: "0-7,32-35". Return: 0 or -EBADMSG. */
static int spread(struct str ranges, uint64_t value, uint64_t *field)
{
	struct str range, first;
	uint64_t low, high;

	while (str_next(&ranges, ',', &range)) {
		if (!str_next(&range, '-', &first) || str_to_u64(first, 0, 63, &low) < 0)
			return -EBADMSG;
		high = low;
		if (range.ptr && str_to_u64(range, low, 63, &high) < 0)
			return -EBADMSG;
		for (uint64_t bit = low; bit <= high; bit++, value >>= 1)
			*field |= (value & 1) << bit;
	}
	return value ? -EBADMSG : 0;
}

/* What the unit's own file says of a term: "config1:0-15". */
static int set_by_format(const char *host_root, struct str pmu, struct str key, uint64_t value,
			 struct sampler_event *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(256);
	struct str rest, field;
	int r = read_of_unit(host_root, pmu, "format", key, &text);

	if (r < 0)
		return -ENOENT;
	rest = str_trim(buf_str(&text));
	if (!str_next(&rest, ':', &field) || !rest.ptr)
		return -EBADMSG;
	if (str_eq(field, STR("config")))
		return spread(rest, value, &out->config);
	if (str_eq(field, STR("config1")))
		return spread(rest, value, &out->config1);
	return str_eq(field, STR("config2")) ? spread(rest, value, &out->config2) : -EBADMSG;
}

static int parse_value(struct str text, uint64_t *out)
{
	if (str_starts(text, STR("0x")))
		return str_to_hex64(str_skip(text, 2), out);
	return str_to_u64(text, 0, UINT64_MAX, out);
}

static int add_terms(const char *host_root, struct str pmu, struct str terms, int depth, struct sampler_event *out);

/* @value empty: the name of an event of the unit, or a term that is set to 1. */
static int add_term(const char *host_root, struct str pmu, struct str key, struct str value, int depth,
		    struct sampler_event *out)
{
	scoped(buf_release) struct buf alias = BUF_INIT(KIB(1));
	uint64_t number = 1;

	if (!is_part(key) || (value.len && parse_value(value, &number) < 0))
		return -EBADMSG;
	if (!value.len && depth < ALIAS_DEPTH_MAX && read_of_unit(host_root, pmu, "events", key, &alias) == 0)
		return add_terms(host_root, pmu, str_trim(buf_str(&alias)), depth + 1, out);
	if (str_eq(key, STR("config")))
		out->config = number;
	else if (str_eq(key, STR("config1")))
		out->config1 = number;
	else if (str_eq(key, STR("config2")))
		out->config2 = number;
	else
		return set_by_format(host_root, pmu, key, number, out);
	return 0;
}

static int add_terms(const char *host_root, struct str pmu, struct str terms, int depth, struct sampler_event *out)
{
	struct str term, key;
	int r = 0;

	for (size_t i = 0; r == 0 && str_next(&terms, ',', &term); i++) {
		if (i == TERMS_MAX || !str_next(&term, '=', &key))
			return -EBADMSG;
		r = add_term(host_root, pmu, str_trim(key), str_trim(term), depth, out);
	}
	return r;
}

static int unit_type(const char *host_root, struct str pmu, uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);
	uint64_t type;

	if (!is_part(pmu) || read_of_unit(host_root, pmu, "", STR("type"), &text) < 0 ||
	    str_to_u64(str_trim(buf_str(&text)), 0, UINT32_MAX, &type) < 0)
		return -ENOENT;
	*out = (uint32_t)type;
	return 0;
}

int event_of_pmu(const char *host_root, struct str pmu, struct str terms, struct sampler_event *out, struct buf *why)
{
	int r = unit_type(host_root, pmu, &out->type);

	if (r < 0) {
		buf_addf(why, "'" STR_FMT "': this machine has no such unit (" UNITS ")", STR_ARG(pmu));
		return r;
	}
	r = add_terms(host_root, pmu, terms, 0, out);
	if (r < 0)
		buf_addf(why, "'" STR_FMT "': the unit " STR_FMT " has no such event or term", STR_ARG(terms),
			 STR_ARG(pmu));
	return r;
}

int event_of_any_pmu(const char *host_root, struct str name, struct sampler_event *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	struct dirent *entry;
	int r = -ENOENT;
	DIR *dir;

	if (!is_part(name))
		return -ENOENT;
	buf_addf(&path, "%s" UNITS, host_root ? host_root : "");
	dir = opendir(buf_cstr(&path));
	while (dir && r == -ENOENT && (entry = readdir(dir))) {
		scoped(buf_release) struct buf alias = BUF_INIT(KIB(1)), ignored = BUF_INIT(KIB(4));
		struct str pmu = str_of(entry->d_name);

		if (is_part(pmu) && read_of_unit(host_root, pmu, "events", name, &alias) == 0)
			r = event_of_pmu(host_root, pmu, name, out, &ignored);
	}
	if (dir)
		closedir(dir);
	return r;
}
