/* SPDX-License-Identifier: Apache-2.0 */
/* The second pass over perf.data: its records by time. What was mapped and called how, and then the samples. */
#include "base/array.h"
#include "codec/perf_data_int.h"

#define RECORD_HEADER 8
#define RECORDS_STEP 1024
#define NO_PID UINT32_MAX /* of records about the kernel */
#define PROT_EXEC_BIT 4
#define KSYMBOL_UNREGISTER 1
#define CONTEXT_DEFERRED                                                                                         \
	UINT64_C(-640)              /* PERF_CONTEXT_USER_DEFERRED: a number follows, by which a later record has \
				       the user frames */
#define CONTEXT_MAX UINT64_C(-4095) /* PERF_CONTEXT_MAX: words from here on say what the next ones are */

static uint16_t misc_of(const struct perf_record *record)
{
	return (uint16_t)(record->bytes[4] | record->bytes[5] << 8);
}

static struct cur body_of(const struct perf_record *record)
{
	size_t size = (size_t)(record->bytes[6] | record->bytes[7] << 8);

	return cur_of(record->bytes + RECORD_HEADER, size - RECORD_HEADER);
}

void perf_data_release(struct perf_data *d)
{
	for (size_t i = 0; i < d->row_count; i++)
		perf_space_unref(d, d->rows[i].space);
	for (size_t i = 0; i < d->file_count; i++) {
		if (d->files[i].found)
			u64map_release(d->files[i].found);
		free(d->files[i].found);
	}
	perf_space_unref(d, d->kernel);
	perf_events_release(&d->events);
	intern_release(&d->names);
	intern_release(&d->file_keys);
	intern_release(&d->build_id_names);
	u64map_release(&d->attr_of);
	u64map_release(&d->processes);
	u64map_release(&d->comms);
	buf_release(&d->expanded);
	free(d->attrs);
	free(d->records);
	free(d->build_ids);
	free(d->files);
	free(d->rows);
	free(d->stack);
}

/* The row of a process, made at its first record. */
static int get_process(struct perf_data *d, uint32_t pid, struct perf_process **out)
{
	uint32_t row = 0;
	int r = 0;

	if (u64map_get(&d->processes, pid, &row) < 0) {
		row = (uint32_t)d->row_count;
		r = array_grow(&d->rows, &d->row_cap, d->row_count, UINT32_MAX);
		if (r == 0) {
			d->rows[row].space = perf_space_new();
			r = d->rows[row].space ? 0 : -ENOMEM;
		}
		d->row_count += r == 0;
		r = r ? r : u64map_put(&d->processes, pid, row);
	}
	if (r == 0)
		*out = &d->rows[row];
	return r;
}

static struct str text_of(struct cur *c)
{
	struct str rest = cur_rest(c);
	ptrdiff_t end = rest.len ? str_find(rest, '\0') : -1;

	return end < 0 ? rest : str_first(rest, (size_t)end);
}

/* "/tmp/jit-123.dump", "/home/a/.debug/jit/.../jit-123.dump" */
static bool is_jitdump(struct str path)
{
	struct str base = str_base(path);

	return str_starts(base, STR("jit-")) && str_ends(base, STR(".dump"));
}

static void find_build_id(const struct perf_data *d, struct perf_file_key *key)
{
	uint32_t id;

	if (!key->build_id.size && key->name.len && intern_find(&d->build_id_names, key->name, &id) == 0)
		key->build_id = d->build_ids[id - 1];
}

struct mapped {
	uint32_t pid, prot;
	struct perf_area area;
	struct perf_file_key key;
};

/* What both forms of the record say. Return: false when it is damaged. */
static bool read_map(const struct perf_record *record, struct mapped *out)
{
	struct cur c = body_of(record);
	uint32_t type = record->bytes[0];
	const uint8_t *id;
	uint64_t size;

	*out = (struct mapped){ .pid = cur_le32(&c), .prot = PROT_EXEC_BIT };
	ignore(cur_le32(&c) != 0);
	out->area.start = cur_le64(&c);
	size = cur_le64(&c);
	out->area.offset = cur_le64(&c);
	if (__builtin_add_overflow(out->area.start, size, &out->area.end))
		out->area.end = UINT64_MAX;
	if (type == PERF_MMAP2) {
		id = cur_bytes(&c, 24); /* device, inode and generation; or size, padding and a build id */
		if (id && misc_of(record) & PERF_MISC_MMAP_BUILD_ID) {
			out->key.build_id.size = (uint8_t)MIN(id[0], PERF_BUILD_ID_MAX);
			memcpy(out->key.build_id.bytes, id + 4, out->key.build_id.size);
		}
		out->prot = cur_le32(&c);
		ignore(cur_le32(&c) != 0);
	}
	out->key.name = text_of(&c);
	out->key.is_kernel = (misc_of(record) & PERF_MISC_CPUMODE) == MODE_KERNEL || out->pid == NO_PID;
	return !c.bad;
}

static int take_map(struct perf_data *d, const struct perf_record *record)
{
	struct perf_process *process = NULL;
	struct mapped m;
	int r;

	if (!read_map(record, &m))
		return perf_data_fail(d, record->bytes, -EBADMSG, "a record of a mapping is too short");
	find_build_id(d, &m.key);
	r = perf_data_file(d, &m.key, &m.area.file);
	if (r == 0 && m.key.is_kernel) {
		if (str_starts(m.key.name, STR("[kernel.kallsyms]"))) {
			d->kernel_text = m.area.offset;
			if (!d->kernel_build_id.size) /* perf record --buildid-mmap says it here alone */
				d->kernel_build_id = m.key.build_id;
		}
		return perf_space_add(d, &d->kernel, &m.area);
	}
	r = r ? r : get_process(d, m.pid, &process);
	if (r == 0 && m.prot & PROT_EXEC_BIT)
		r = perf_space_add(d, &process->space, &m.area);
	if (r == 0 && is_jitdump(m.key.name)) {
		/* What is mapped is a mark. A child of fork has the parent's code. */
		process->space->jitdump = m.area.file + 1;
	}
	return r;
}

static int take_comm(struct perf_data *d, const struct perf_record *record)
{
	struct cur c = body_of(record);
	uint32_t pid = cur_le32(&c), tid = cur_le32(&c), name = 0;
	struct perf_process *process = NULL;
	int r;

	if (c.bad)
		return perf_data_fail(d, record->bytes, -EBADMSG, "a record of a name is too short");
	r = model_add_string(d->m, codec_text(d->limits, text_of(&c)), &name);
	r = r ? r : u64map_put(&d->comms, tid, name);
	if (r < 0 || !(misc_of(record) & PERF_MISC_COMM_EXEC))
		return r;
	r = get_process(d, pid, &process);
	if (r == 0 &&
	    (process->space->count || process->space->jitdump)) { /* another program: what was mapped is gone */
		struct perf_space *fresh = perf_space_new();

		if (!fresh)
			return -ENOMEM;
		perf_space_unref(d, process->space);
		process->space = fresh;
	}
	return r;
}

static int take_fork(struct perf_data *d, const struct perf_record *record)
{
	struct cur c = body_of(record);
	uint32_t pid = cur_le32(&c), parent_pid = cur_le32(&c), tid = cur_le32(&c), parent_tid = cur_le32(&c), name;
	struct perf_process *parent = NULL, *child = NULL;
	struct perf_space *space;
	int r = 0;

	if (c.bad)
		return perf_data_fail(d, record->bytes, -EBADMSG, "a record of a fork is too short");
	if (u64map_get(&d->comms, parent_tid, &name) == 0)
		r = u64map_put(&d->comms, tid, name);
	/* Records that perf makes of processes that were there before: their mappings follow. */
	if (r < 0 || pid == parent_pid || misc_of(record) & PERF_MISC_FORK_EXEC)
		return r;
	r = get_process(d, parent_pid, &parent);
	if (r)
		return r;
	space = parent->space;
	r = get_process(d, pid, &child); /* may move the rows */
	if (r || child->space == space)
		return r;
	perf_space_unref(d, child->space);
	child->space = space;
	space->refs++;
	return 0;
}

/* A BPF program came or went. */
static int take_symbol(struct perf_data *d, const struct perf_record *record)
{
	struct cur c = body_of(record);
	struct perf_area area = { .start = cur_le64(&c) };
	struct perf_file_key key = { .is_kernel = true, .is_symbol = true };
	uint32_t size = cur_le32(&c);
	uint16_t flags;
	int r;

	ignore(cur_le16(&c) != 0); /* kind of symbol */
	flags = cur_le16(&c);
	key.name = text_of(&c);
	if (c.bad)
		return perf_data_fail(d, record->bytes, -EBADMSG, "a record of a symbol is too short");
	if (flags & KSYMBOL_UNREGISTER || !key.name.len || !size)
		return 0;
	if (__builtin_add_overflow(area.start, size, &area.end))
		area.end = UINT64_MAX;
	r = perf_data_file(d, &key, &area.file);
	return r ? r : perf_space_add(d, &d->kernel, &area);
}

/* Samples */

static uint32_t comm_of(const struct perf_data *d, uint32_t tid)
{
	uint32_t name = 0;

	ignore(u64map_get(&d->comms, tid, &name)); /* nobody told: no name */
	return name;
}

static int add_process(struct perf_data *d, const struct perf_sample_fields *f, struct model_sample *sample)
{
	struct model_process process = { .pid = f->pid, .comm = comm_of(d, f->pid) };
	struct model_thread thread = { .tid = f->tid, .name = comm_of(d, f->tid) };
	int r = 0;

	if (f->pid == NO_PID) /* it had ended already */
		process.pid = thread.tid = 0;
	if (!process.comm)
		process.comm = thread.name;
	if (!process.comm && !process.pid && !thread.tid && f->pid == 0) /* nobody names the idle tasks */
		r = model_add_string(d->m, STR("swapper"), &process.comm);
	r = r ? r : model_add_process(d->m, &process, &sample->process);
	if (r < 0 || !thread.tid)
		return r;
	thread.process = sample->process;
	return model_add_thread(d->m, &thread, &sample->thread);
}

static int add_cpu(struct perf_data *d, const struct perf_sample_fields *f, struct model_sample *sample)
{
	struct model_label label = { .is_number = true, .number = (int64_t)f->cpu };
	int r;

	if (f->cpu == UINT64_MAX)
		return 0;
	r = model_add_string(d->m, STR("cpu"), &label.key);
	return r ? r : model_add_label_set(d->m, &label, 1, &sample->label_set);
}

/* PERF_CONTEXT_*: what the following addresses are. */
static unsigned int mode_of(uint64_t word, unsigned int mode)
{
	switch ((int64_t)word) {
	case -32:
		return MODE_HYPERVISOR;
	case -128:
		return MODE_KERNEL;
	case -512:
		return MODE_USER;
	case -2176:
		return MODE_GUEST_KERNEL;
	case -2560:
		return MODE_GUEST_USER;
	default:
		return mode;
	}
}

/* The first address behind each mark is where it was interrupted or entered, the others are return addresses. */
static int add_frames(struct perf_data *d, const struct perf_sample_fields *f, const struct perf_frame_at *leaf,
		      const struct perf_space *space, struct model_sample *sample)
{
	struct perf_frame_at at = *leaf;
	struct cur chain = f->chain;
	size_t count = 0;
	int r = 0;

	while (r == 0 && cur_left(&chain)) {
		uint64_t word = cur_le64(&chain);

		if (++count % RECORDS_STEP == 0 && codec_stopped(d->limits, d->bytes.len / 2))
			return -ECANCELED;
		if (word == CONTEXT_DEFERRED) {
			d->deferred++;
			ignore(cur_le64(&chain) != 0);
			continue;
		}
		if (word >= CONTEXT_MAX) {
			at.mode = mode_of(word, at.mode);
			at.is_return = false;
			continue;
		}
		if (d->limits->depth_max && d->stack_count >= d->limits->depth_max)
			return model_add_string(d->m, STR(CODEC_STACK_CUT), &sample->end);
		at.address = word;
		r = perf_data_frame(d, space, &at);
		at.is_return = true;
	}
	return r == 0 && !d->stack_count && f->ip ? perf_data_frame(d, space, leaf) : r;
}

/* Only where the recording's clock is the one that jitdumps are written by. */
static uint64_t jit_time(const struct perf_attr *a, const struct perf_sample_fields *f)
{
	return a->flags & ATTR_USE_CLOCKID && a->clockid == PERF_CLOCK_MONOTONIC ? f->time_ns : PERF_NO_TIME;
}

static int take_sample(struct perf_data *d, const struct perf_record *record)
{
	const struct perf_attr *a = &d->attrs[record->attr];
	struct model_sample sample = { 0 };
	int64_t values[MODEL_VALUE_TYPES_MAX];
	struct perf_process *process = NULL;
	struct perf_sample_fields f;
	struct perf_frame_at leaf;
	int r = perf_sample_parse(a, body_of(record), &f);

	r = r ? r : get_process(d, f.pid, &process);
	if (r < 0)
		return r;
	leaf = (struct perf_frame_at){ .address = f.ip,
				       .time_ns = jit_time(a, &f),
				       .mode = misc_of(record) & PERF_MISC_CPUMODE };
	d->stack_count = 0;
	r = add_process(d, &f, &sample);
	r = r ? r : add_cpu(d, &f, &sample);
	r = r ? r : add_frames(d, &f, &leaf, process->space, &sample);
	for (size_t i = d->stack_count; r == 0 && i-- > 0;)
		r = model_add_stack(d->m, sample.stack, d->stack[i], &sample.stack);
	if (r < 0)
		return r;
	d->not_unwound += (a->sample_type & SAMPLE_STACK_USER) != 0;
	sample.time_offset_ns =
		f.time_ns == PERF_NO_TIME || f.time_ns < d->first_ns ? MODEL_NO_TIME : f.time_ns - d->first_ns;
	perf_events_values(&d->events, a->column, f.period, values);
	return model_add_sample(d->m, &sample, values);
}

static int take_record(struct perf_data *d, const struct perf_record *record)
{
	switch (record->bytes[0]) { /* types are small, and only these were kept */
	case PERF_SAMPLE:
		return take_sample(d, record);
	case PERF_MMAP:
	case PERF_MMAP2:
		return take_map(d, record);
	case PERF_COMM:
		return take_comm(d, record);
	case PERF_FORK:
		return take_fork(d, record);
	default:
		return take_symbol(d, record);
	}
}

/* Events without samples ("dummy", which perf adds for its records of mappings) have no column. */
static int add_columns(struct perf_data *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->attr_count; i++) {
		struct perf_attr *a = &d->attrs[i];
		bool has_period = a->sample_type & SAMPLE_PERIOD || !(a->flags & ATTR_FREQ);

		if (a->samples)
			r = perf_events_add(&d->events,
					    codec_text(d->limits, a->name.len ? a->name : str_of(a->own_name)),
					    has_period, &a->column);
		if (a->samples && !d->w->frequency_hz && a->flags & ATTR_FREQ && a->sample_period <= UINT32_MAX)
			d->w->frequency_hz = (uint32_t)a->sample_period;
	}
	return r ? r : perf_events_columns(&d->events, d->m);
}

/* Records are by time: the first and the last sample's. */
static void find_times(struct perf_data *d)
{
	bool any = false;

	for (size_t i = 0; i < d->record_count; i++) {
		const struct perf_record *record = &d->records[i];

		if (record->bytes[0] != PERF_SAMPLE || !record->time_ns)
			continue;
		if (!any)
			d->first_ns = record->time_ns;
		d->last_ns = record->time_ns;
		any = true;
	}
	d->m->duration_ns = (int64_t)MIN(d->last_ns - d->first_ns, (uint64_t)INT64_MAX);
	if (!any || !d->wall_ns || d->first_ns < d->wall_clock_ns || d->wall_ns > INT64_MAX ||
	    d->last_ns - d->wall_clock_ns > INT64_MAX - d->wall_ns)
		return;
	d->w->start_ns = d->wall_ns + (d->first_ns - d->wall_clock_ns);
	d->w->end_ns = d->wall_ns + (d->last_ns - d->wall_clock_ns);
	d->m->time_ns = (int64_t)d->w->start_ns;
}

static int close_window(struct perf_data *d)
{
	uint64_t lost = MAX(d->lost, d->lost_samples); /* perf counts the same ones in both */
	int r = lost ? window_set_counter(d->w, STR("lost_by_perf"), lost) : 0;

	if (r == 0 && d->not_unwound)
		r = window_set_counter(d->w, STR("stacks_not_unwound"), d->not_unwound);
	if (r == 0 && d->deferred)
		r = window_set_counter(d->w, STR("stacks_deferred"), d->deferred);
	if (r == 0 && d->is_cut_off)
		r = window_set_counter(d->w, STR("recording_cut_off"), 1);
	return r ? r : perf_events_close(&d->events, d->w, d->error);
}

int perf_data_apply(struct perf_data *d)
{
	int r = add_columns(d);

	d->kernel = perf_space_new();
	if (!d->kernel)
		r = -ENOMEM;
	find_times(d);
	for (size_t i = 0; r == 0 && i < d->record_count; i++) {
		if (i % RECORDS_STEP == 0 &&
		    codec_stopped(d->limits, d->bytes.len / 2 + (uint64_t)d->bytes.len / 2 * i / d->record_count))
			return -ECANCELED;
		r = take_record(d, &d->records[i]);
	}
	r = r ? r : close_window(d);
	if (r == 0 && !d->m->samples_count)
		return perf_data_fail(d, NULL, -EBADMSG, "no samples in it");
	if (r < 0 && r != -ECANCELED && r != -EBADMSG)
		return perf_data_fail(d, NULL, r, r == -ENOMEM ? "out of memory" : "too large");
	return r;
}
