/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "base/clock.h"
#include "proc/proc_int.h"
#include "proc/program.h"

void entry_close_perf_map(struct proc_table *t, struct entry *e)
{
	if (e->perf_map_fd >= 0)
		t->perf_map_fds--;
	closep(&e->perf_map_fd);
}

void entry_count_maps(struct proc_table *t, struct entry *e)
{
	t->many -= e->many;
	e->many = e->maps.count - MIN(e->maps.count, (size_t)PROC_FEW);
	if (e->many > PROC_MANY_MAX - t->many) {
		mappings_cut(&e->maps, PROC_FEW);
		e->many = 0;
	}
	t->many += e->many;
}

void entry_free(struct proc_table *t, struct entry *e)
{
	entry_close_perf_map(t, e);
	t->many -= e->many;
	mappings_release(&e->maps);
	free(e->pub.container);
	free(e->pub.unit);
	free(e->pub.exe);
	free(e->pub.service);
	free(e->pub.pod);
	free(e->machine);
	free(e->cgroup);
	free(e->argv);
	free(e);
}

uint64_t proc_clock_ns(void)
{
	return clock_monotonic_ns(&clock_system);
}

void entry_exited(struct entry *e, uint64_t exit_ns)
{
	if (e->pub.exited)
		return;
	e->pub.exited = true;
	e->pub.exit_ns = exit_ns;
}

struct entry *entry_newest(const struct proc_table *t, uint32_t pid)
{
	uint32_t index;

	return u64map_get(&t->newest, pid, &index) < 0 ? NULL : t->items[index];
}

struct entry *entry_find(const struct proc_table *t, uint32_t pid, uint64_t start_ns)
{
	for (struct entry *e = entry_newest(t, pid); e; e = e->older)
		if (!start_ns || e->pub.start_ns == start_ns)
			return e;
	return NULL;
}

void entry_ended(const struct proc_table *t, const struct entry *e)
{
	if (t->ended)
		t->ended(t->ctx, &e->pub);
}

void entry_mapped(const struct proc_table *t, struct entry *e)
{
	if (t->mapped && e->maps.count)
		t->mapped(t->ctx, &e->pub);
}

/* Out of memory: as if it belonged to no unit. */
static void copy_text(char **to, const char *from)
{
	if (!*to && from)
		*to = str_dup(str_of(from));
}

void entry_copy_group(struct entry *e, const struct entry *from)
{
	if (!e->pub.container && from->pub.container) {
		memcpy(e->pub.container_id, from->pub.container_id, sizeof(e->pub.container_id));
		copy_text(&e->pub.container, from->pub.container);
		e->name_pending = from->name_pending;
		e->name_generation = from->name_generation;
	}
	copy_text(&e->pub.unit, from->pub.unit);
	copy_text(&e->pub.pod, from->pub.pod);
	copy_text(&e->machine, from->machine);
	copy_text(&e->cgroup, from->cgroup);
}

/* Did @a begin before @b? */
static bool is_before(const struct proc *a, const struct proc *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return exec_is_before(a->exec_id, b->exec_id);
}

/* Puts @e into the chain of its pid, which is sorted: latest first. A pid has one living program at a time. */
static int chain_insert(struct proc_table *t, struct entry *e)
{
	struct entry *head = entry_newest(t, e->pub.pid);

	if (!head || !is_before(&e->pub, &head->pub)) {
		int r = u64map_put(&t->newest, e->pub.pid, (uint32_t)e->index);

		if (r < 0)
			return r;
		e->older = head;
		if (head)
			entry_exited(head, t->event_ns ? t->event_ns : proc_clock_ns());
		return 0;
	}
	while (head->older && is_before(&e->pub, &head->older->pub))
		head = head->older;
	e->older = head->older;
	head->older = e;
	entry_exited(e, proc_clock_ns());
	e->was_read = e->pub.unreadable = true; /* /proc shows a later program */
	return 0;
}

void entry_set_comm(struct entry *e, const char comm[ABI_COMM_SIZE])
{
	memcpy(e->pub.comm, comm, ABI_COMM_SIZE);
	e->pub.comm[ABI_COMM_SIZE - 1] = '\0';
}

static struct entry *create(struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id)
{
	struct entry *e;

	if (array_grow(&t->items, &t->cap, t->count, PROCS_MAX) < 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->pub.pid = e->pub.inner_pid = pid;
	e->pub.start_ns = start_ns;
	e->pub.exec_id = exec_id;
	e->index = t->count;
	e->perf_map_fd = -1;
	e->met_ns = proc_clock_ns();
	t->items[t->count++] = e;
	if (chain_insert(t, e) < 0) {
		t->count--;
		free(e);
		return NULL;
	}
	return e;
}

/* The program with that exec id. A program whose id is not known yet matches every id. */
static struct entry *find_program(const struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id)
{
	for (struct entry *e = entry_find(t, pid, start_ns); e && e->pub.start_ns == start_ns; e = e->older)
		if (!exec_id || e->pub.exec_id == exec_id || !e->pub.exec_id)
			return e;
	return NULL;
}

struct entry *entry_get(struct proc_table *t, uint32_t pid, uint64_t start_ns, uint32_t exec_id)
{
	struct entry *e = find_program(t, pid, start_ns, exec_id), *before = e ? NULL : entry_find(t, pid, start_ns);

	if (e) {
		e->pub.exec_id = exec_id ? exec_id : e->pub.exec_id;
		return e;
	}
	e = create(t, pid, start_ns, exec_id);
	if (!e || !before)
		return e;
	e->pub.parent_pid = before->pub.parent_pid;
	entry_copy_group(e, before);
	e->pub.born_ns = t->event_ns ? t->event_ns : proc_clock_ns(); /* its exec record may be still to come */
	e->pub.generation = before->pub.generation + (is_before(&before->pub, &e->pub) ? 1 : 0);
	if (e->older == before)
		entry_ended(t, before);
	return e;
}

static void chain_remove(struct proc_table *t, struct entry *e)
{
	struct entry *head = entry_newest(t, e->pub.pid);

	if (head == e) {
		if (e->older)
			must(u64map_put(&t->newest, e->pub.pid, (uint32_t)e->older->index) == 0); /* replaces */
		else
			must(u64map_remove(&t->newest, e->pub.pid) == 0);
		return;
	}
	while (head->older != e)
		head = head->older;
	head->older = e->older;
}

void entry_drop(struct proc_table *t, struct entry *e)
{
	struct entry *last = t->items[t->count - 1];

	entry_ended(t, e);
	if (t->dropped)
		t->dropped(t->ctx, &e->pub);
	chain_remove(t, e);
	if (last != e) {
		if (entry_newest(t, last->pub.pid) == last)
			must(u64map_put(&t->newest, last->pub.pid, (uint32_t)e->index) ==
			     0); /* replaces: needs no room */
		t->items[e->index] = last;
		last->index = e->index;
	}
	t->count--;
	entry_free(t, e);
}
