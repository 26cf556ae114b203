/* SPDX-License-Identifier: Apache-2.0 */
/* The small texts of /proc: cgroup, stat, status, the machine's stat and meminfo. */
#include "fuzz.h"

#include "proc/container.h"
#include "proc/cpustat.h"
#include "proc/proc_read.h"
#include "proc/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_n((const char *)data, size);
	char id[CONTAINER_ID_SIZE + 1];
	struct proc_facts facts = { 0 };
	uint64_t total, used;
	struct workload_group group;
	struct cpustat stat;
	bool is_pod;

	if (container_id_parse(text, id)) {
		must(strlen(id) == CONTAINER_ID_SIZE);
		must(str_search(text, str_of(id)) >= 0);
	}
	workload_group_parse(text, &group);
	must(str_find(group.unit, '/') < 0 && str_find(group.unit, '\n') < 0);
	must(str_find(group.container, '/') < 0 && str_find(group.container, '\n') < 0);
	must(str_find(group.path, '\n') < 0);
	must(!group.unit.len || (!group.container.len && !group.container_id[0]));
	must(workload_container(text, &is_pod).len <= size);
	if (proc_stat_parse(text, &facts) == 0)
		must(memchr(facts.comm, 0, sizeof(facts.comm)));
	proc_status_parse(text, &facts);
	if (cpustat_parse(text, &stat) == 0)
		must(stat.busy_ns <= stat.total_ns && stat.steal_ns <= stat.total_ns);
	if (meminfo_parse(text, &total, &used) == 0)
		must(used <= total);
	return 0;
}
