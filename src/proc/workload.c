/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/workload.h"

#define SERVICE ".service"

/* From the innermost group upwards, the first one that systemd made decides. */
static struct str unit_of_path(struct str path)
{
	while (path.len) {
		struct str name = str_base(path);

		if (str_ends(name, STR(SERVICE)))
			return str_first(name, name.len - strlen(SERVICE));
		if (str_ends(name, STR(".scope")) || str_ends(name, STR(".slice")))
			break;
		path = str_first(path, path.len - name.len);
		while (str_ends(path, STR("/")))
			path = str_first(path, path.len - 1);
	}
	return STR("");
}

/* Lines are NUMBER:CONTROLLERS:PATH; systemd's own have no controllers (v2) or the name of its hierarchy (v1). */
struct str workload_unit_parse(struct str cgroup)
{
	struct str line, number, controllers;

	while (str_next(&cgroup, '\n', &line)) {
		if (!str_next(&line, ':', &number) || !str_next(&line, ':', &controllers))
			continue;
		if (controllers.len && !str_eq(controllers, STR("name=systemd")))
			continue;
		line = unit_of_path(line);
		if (line.len)
			return line;
	}
	return STR("");
}

struct str workload_container(struct str name)
{
	struct str rest = name, prefix, container, pod, namespace;

	if (!str_next(&rest, '_', &prefix) || !str_eq(prefix, STR("k8s")))
		return name;
	if (!str_next(&rest, '_', &container) || !str_next(&rest, '_', &pod) || !str_next(&rest, '_', &namespace))
		return name;
	return pod.len ? pod : name;
}

struct str workload_name(const struct proc *p, struct str comm)
{
	static const struct str deleted = STR(" (deleted)");
	struct str exe = str_of(p->exe);

	if (p->is_kernel)
		return STR("kernel");
	if (p->container && *p->container)
		return workload_container(str_of(p->container));
	if (p->unit && *p->unit)
		return str_of(p->unit);
	if (str_ends(exe, deleted))
		exe = str_first(exe, exe.len - deleted.len);
	exe = str_base(exe);
	return exe.len ? exe : comm;
}
