/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/workload.h"

#include "base/safe.h"
#include "proc/application.h"

#define SERVICE ".service"
#define KEY_TEXT_MAX KIB(16)

struct str workload_kind_name(enum workload_kind kind)
{
#define X(id, name) [WORKLOAD_##id] = STR(name),
	static const struct str names[WORKLOAD_KIND_COUNT] = { WORKLOAD_KINDS(X) };
#undef X

	return names[kind];
}

bool workload_may_be_short(enum workload_kind kind)
{
	return kind == WORKLOAD_APPLICATION || kind == WORKLOAD_EXECUTABLE;
}

/* ---- cgroups ---- */

/* A number or hexadecimal digits behind @prefix: what systemd-run calls a unit that nobody named. */
static bool is_unnamed(struct str name)
{
	struct str rest = str_skip(name, 4);

	if (!str_starts(name, STR("run-")) || rest.len < 2 || !strchr("urp", rest.ptr[0]))
		return false;
	for (size_t i = 1; i < rest.len; i++)
		if (!strchr("0123456789abcdef-i", rest.ptr[i]))
			return false;
	return true;
}

/* From the innermost group upwards, the first one that systemd made decides. */
static struct str unit_of_path(struct str path)
{
	while (path.len) {
		struct str name = str_base(path);

		if (str_ends(name, STR(SERVICE))) {
			name = str_first(name, name.len - strlen(SERVICE));
			return is_unnamed(name) ? STR("") : name;
		}
		if (str_ends(name, STR(".scope")) || str_ends(name, STR(".slice")))
			break;
		path = str_first(path, path.len - str_base(path).len);
		while (str_ends(path, STR("/")))
			path = str_first(path, path.len - 1);
	}
	return STR("");
}

/* "/lxc/web/...", "/lxc.payload/web", "/lxc.payload.web", "/machine.slice/machine-web.scope", and
 * "/machine.slice/systemd-nspawn@web.service/payload". */
static struct str machine_of_path(struct str path)
{
	struct str piece, before = STR(""), found = STR("");

	while (str_next(&path, '/', &piece)) {
		if (str_starts(piece, STR("lxc.payload.")))
			found = str_skip(piece, 12);
		else if (str_eq(before, STR("lxc")) || str_eq(before, STR("lxc.payload")))
			found = piece;
		else if (str_eq(before, STR("machine.slice")) && str_starts(piece, STR("machine-")) &&
			 str_ends(piece, STR(".scope")) && str_search(piece, STR("qemu")) < 0)
			found = str_n(piece.ptr + 8, piece.len - 8 - strlen(".scope"));
		else if (str_starts(piece, STR("systemd-nspawn@")) && str_ends(piece, STR(SERVICE)))
			found = str_n(piece.ptr + 15, piece.len - 15 - strlen(SERVICE));
		if (piece.len)
			before = piece;
	}
	return found;
}

/* A group that is removed has this behind its path. */
static struct str without_deleted(struct str path)
{
	static const struct str deleted = STR(" (deleted)");

	return str_ends(path, deleted) ? str_first(path, path.len - deleted.len) : path;
}

/* Lines are NUMBER:CONTROLLERS:PATH; systemd's own have no controllers (v2) or the name of its hierarchy (v1). */
void workload_group_parse(struct str cgroup, struct workload_group *out)
{
	struct str rest = cgroup, line, number, controllers;

	*out = (struct workload_group){ 0 };
	ignore(container_id_parse(cgroup, out->container_id)); /* none: it stays empty */
	while (str_next(&rest, '\n', &line)) {
		bool is_systemd;

		if (!str_next(&line, ':', &number) || !str_next(&line, ':', &controllers))
			continue;
		line = without_deleted(line);
		out->is_pod |= out->container_id[0] && str_search(line, STR("kubepods")) >= 0;
		if (!out->container.len)
			out->container = machine_of_path(line);
		is_systemd = !controllers.len || str_eq(controllers, STR("name=systemd"));
		if (is_systemd && out->path.len <= 1)
			out->path = line;
		if (is_systemd && !out->unit.len)
			out->unit = unit_of_path(line);
	}
	if (out->container_id[0] || out->container.len)
		out->unit = STR("");
}

struct str workload_container(struct str name, bool *is_pod)
{
	struct str rest = name, prefix, container, pod, namespace;

	*is_pod = false;
	if (!str_next(&rest, '_', &prefix) || !str_eq(prefix, STR("k8s")))
		return name;
	if (!str_next(&rest, '_', &container) || !str_next(&rest, '_', &pod) || !str_next(&rest, '_', &namespace))
		return name;
	*is_pod = pod.len != 0;
	return pod.len ? pod : name;
}

struct str workload_hostname(struct str environ)
{
	static const struct str key = STR("HOSTNAME=");
	struct str piece;

	while (environ.len && str_next(&environ, 0, &piece))
		if (str_starts(piece, key))
			return str_skip(piece, key.len);
	return STR("");
}

/* ---- names ---- */

/* Escaped, and cut between characters. Return: false when it is empty. */
static bool add_clean(struct buf *out, struct str name)
{
	static const struct str dots = STR("...");
	size_t end = out->len + WORKLOAD_NAME_MAX, cut = out->len, before = out->len;

	name = str_trim(name);
	while (name.len) {
		struct safe_piece piece = safe_next(&name);

		if (out->len + piece.size > end) {
			out->len = cut;
			buf_adds(out, dots);
			break;
		}
		buf_add(out, piece.text, piece.size);
		if (out->len + dots.len <= end)
			cut = out->len;
	}
	return out->len > before;
}

static struct str program_name(const struct workload_facts *facts)
{
	struct str exe = without_deleted(facts->exe);

	if (str_starts(exe, STR("/memfd:"))) { /* "/memfd:NAME": it has no file, and the name may be a path */
		exe = str_skip(exe, 7);
		return str_first(exe, str_find(exe, ':') < 0 ? exe.len : (size_t)str_find(exe, ':'));
	}
	return str_base(exe);
}

/* @command: room for the command line. */
static struct str rule_name(const struct workload_facts *facts, const struct service_rules *rules, struct buf *command)
{
	struct str fields[SERVICE_RULE_FIELD_COUNT] = { [SERVICE_RULE_EXE] = without_deleted(facts->exe),
							[SERVICE_RULE_COMM] = facts->comm,
							[SERVICE_RULE_CGROUP] = facts->cgroup,
							[SERVICE_RULE_UNIT] = facts->unit,
							[SERVICE_RULE_CONTAINER] = facts->container };
	struct str argv = str_first(facts->argv, SERVICE_RULE_TEXT_MAX);

	while (str_ends(argv, STR("\0")))
		argv.len--;
	for (size_t i = 0; i < argv.len; i++)
		buf_addc(command, (char)(argv.ptr[i] ? argv.ptr[i] : ' '));
	fields[SERVICE_RULE_COMMAND] = buf_str(command);
	return service_rules_find(rules, fields);
}

/* A container says more than what runs in it, and so does a unit. */
static enum workload_kind owner(const struct workload_facts *facts, struct str *name)
{
	bool is_pod;

	*name = facts->pod;
	if (name->len)
		return WORKLOAD_POD;
	*name = workload_container(facts->container, &is_pod);
	if (name->len)
		return is_pod ? WORKLOAD_POD : WORKLOAD_CONTAINER;
	*name = facts->unit;
	return WORKLOAD_UNIT;
}

enum workload_kind workload_name(const struct workload_facts *facts, const struct service_rules *rules, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KEY_TEXT_MAX);
	enum application_kind found;
	enum workload_kind kind;
	struct str name;

	if (facts->is_kernel) {
		buf_adds(out, STR("kernel"));
		return WORKLOAD_KERNEL;
	}
	if (rules && add_clean(out, rule_name(facts, rules, &text)))
		return WORKLOAD_RULE;
	buf_clear(&text);
	kind = owner(facts, &name);
	if (add_clean(out, name))
		return kind;
	found = application_of(facts->exe, facts->argv, &text);
	if (found != APPLICATION_NONE && add_clean(out, buf_str(&text)))
		return found == APPLICATION_NAMED ? WORKLOAD_APPLICATION : WORKLOAD_EXECUTABLE;
	if (!add_clean(out, program_name(facts)) && !add_clean(out, facts->comm))
		buf_adds(out, STR("unknown"));
	return WORKLOAD_EXECUTABLE;
}
