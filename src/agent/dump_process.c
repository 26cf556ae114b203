/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dump_int.h"

#include <unistd.h>

#include "base/clock.h"
#include "proc/proc_read.h"
#include "sampler/remote/access.h"

#define DESCRIPTORS_MAX 512
#define UNWIND_BYTES MIB(512)
#define MAPPINGS_MAX 65536
#define THREADS_MAX 65536

void dump_release(struct dump *d)
{
	intern_release(&d->strings);
	free(d->threads);
	free(d->frames);
	*d = (struct dump){ 0 };
}

static void dumper_release(struct dumper *d)
{
	dump_stop_release(&d->stop);
	dump_release_runtimes(d);
	symbols_close(d->symbols);
	full_walk_free(d->full);
	rows_close(d->rows);
	table_memory_free(d->memory);
	if (d->outside)
		d->outside->close(d->walker);
	free(d->walk);
	if (d->reader_is_open)
		mapping_reader_release(&d->reader);
	mappings_release(&d->maps);
	files_close(d->files);
	remote_procs_release(&d->procs);
	buf_release(&d->scratch);
	buf_release(&d->kernel);
	free(d->before);
	free(d->unnamed);
	u64map_release(&d->before_index);
	u64map_release(&d->probed);
}

static void dumper_freep(struct dumper **d)
{
	if (*d)
		dumper_release(*d);
	free(*d);
}

static int tables_file(void *self, uint32_t file_id, struct abi_map *out)
{
	return rows_describe(self, file_id, true, out);
}

static const void *tables_table(void *self, uint32_t number)
{
	return rows_table(self, number);
}

static const union abi_element *tables_element(void *self, const void *table, uint32_t index)
{
	(void)self;
	return rows_element(table, index);
}

static int open_native(struct dumper *d)
{
	const struct symbols_config symbols = { .host_root = d->cfg->host_root, .descriptor_max = DESCRIPTORS_MAX };
	int r = files_open(DESCRIPTORS_MAX, &d->files);

	if (r == 0)
		r = files_set_host_root(d->files, d->cfg->host_root);
	if (r < 0)
		return r;
	mapping_reader_init(&d->reader, d->files, &d->scratch, MAPPINGS_MAX);
	d->reader_is_open = true;
	r = table_memory_new(&d->memory);
	if (r < 0)
		return r;
	d->sink = table_memory_sink(d->memory);
	d->source_files = (struct rows_files){ .files = d->files, .host_root = d->cfg->host_root };
	d->source = rows_files_source(&d->source_files);
	r = rows_open(
		&(struct rows_config){
			.budget_bytes = UNWIND_BYTES, .sink = &d->sink, .source = &d->source, .clock = &clock_system },
		&d->rows);
	d->tables = (struct world_tables){
		.file = tables_file, .table = tables_table, .element = tables_element, .self = d->rows
	};
	if (r == 0)
		r = full_walk_new(d->files, &d->full);
	return r < 0 ? r : symbols_open(&symbols, d->files, &d->symbols);
}

/* A process whose first thread has ended has its memory, its files and its mappings by another one. */
static uint32_t find_thread(struct dumper *d)
{
	scoped(closep) int dir = proc_dir_open(d->cfg->host_root, d->cfg->pid), living = -1;
	uint32_t tid = d->cfg->pid;
	struct proc_facts facts;

	if (dir >= 0 && proc_facts_read(dir, 0, &d->scratch, &facts) == 0 && facts.is_zombie)
		living = proc_living_dir(d->cfg->host_root, dir, d->cfg->pid, &tid);
	return tid;
}

static int open_process(struct dumper *d, struct buf *why)
{
	int r;

	d->tid = find_thread(d);
	r = remote_access(d->cfg->host_root, (pid_t)d->tid, why);
	if (r == 0)
		r = remote_procs_add(&d->procs, d->tid, &d->process);
	if (r == -ESRCH)
		buf_addf(why, "there is no process %u, or it is a kernel thread", d->cfg->pid);
	else if (r < 0 && !why->len)
		buf_addf(why, "process %u cannot be read: %s", d->cfg->pid, strerror(-r));
	return r;
}

static int describe(struct dumper *d)
{
	scoped(freep) char *exe = proc_link_read(d->process->dir, "exe");
	int r = intern_add(&d->out->strings, str_of(d->process->comm), &d->out->comm);

	return r < 0 ? r : intern_add(&d->out->strings, str_of(exe), &d->out->exe);
}

static int stop(struct dumper *d, struct buf *why)
{
	int r;

	if (!d->cfg->freeze)
		return 0;
	/* What takes long is done before: the rows of its files. */
	for (size_t i = 0; i < d->maps.count; i++) {
		struct abi_map map;

		if (d->maps.items[i].file_id)
			ignore(rows_describe(d->rows, d->maps.items[i].file_id, true, &map));
	}
	remote_process_list(&d->procs, d->process, clock_monotonic_ns(&clock_system));
	r = dump_look_before(d);
	if (r < 0)
		return r;
	r = dump_stop_all(&d->stop, (pid_t)d->cfg->pid, d->process->task_dir);
	if (r == -EPERM)
		buf_addf(why,
			 "process %u may not be stopped: a debugger has it, or the right to ptrace is missing; "
			 "leave out --freeze",
			 d->cfg->pid);
	else if (r < 0)
		buf_addf(why, "process %u cannot be stopped: %s", d->cfg->pid, strerror(-r));
	return r;
}

/* The process runs again. */
static void go_on(struct dumper *d)
{
	uint64_t since_ns = d->stop.since_ns;

	dump_stop_release(&d->stop);
	if (since_ns)
		d->out->stopped_ns = clock_monotonic_ns(&clock_system) - since_ns;
}

static int read_threads(struct dumper *d)
{
	int r = 0;

	remote_process_list(&d->procs, d->process, clock_monotonic_ns(&clock_system));
	for (size_t i = 0; i < d->process->thread_count && r == 0; i++) {
		if (d->stop.since_ns && clock_monotonic_ns(&clock_system) - d->stop.since_ns > DUMP_STOPPED_NS)
			go_on(d);
		r = dump_add_thread(d, &d->process->threads[i]);
	}
	go_on(d);
	return r < 0 ? r : dump_name_frames(d);
}

int dump_process(const struct dump_config *cfg, struct buf *why, struct dump *out)
{
	scoped(dumper_freep) struct dumper *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->cfg = cfg;
	d->out = out;
	d->scratch = (struct buf)BUF_INIT(MIB(16));
	d->kernel = (struct buf)BUF_INIT(MIB(256));
	u64map_init(&d->before_index, THREADS_MAX);
	u64map_init(&d->probed, MAPPINGS_MAX);
	u64map_init(&d->thread_names, THREADS_MAX);
	u64map_init(&d->code_index, DUMP_CODES_MAX);
	out->pid = cfg->pid;
	intern_init(&out->strings, DUMP_STRING_BYTES);
	remote_procs_init(&d->procs, cfg->host_root, DESCRIPTORS_MAX);
	d->walk = calloc(1, sizeof(*d->walk));
	r = d->walk ? open_process(d, why) : -ENOMEM;
	if (r == 0)
		r = open_native(d);
	if (r == 0)
		r = describe(d);
	if (r == 0)
		r = mappings_read(&d->reader, d->process->dir, cfg->pid, &d->maps);
	if (r == 0)
		r = dump_find_runtime(d);
	if (r == 0)
		r = dump_learn_names(d);
	if (r == 0)
		r = stop(d, why);
	if (r == 0)
		r = read_threads(d);
	if (r < 0 && !why->len)
		buf_addf(why, "process %u: %s", cfg->pid, r == -ESRCH ? "it has ended" : strerror(-r));
	return r;
}
