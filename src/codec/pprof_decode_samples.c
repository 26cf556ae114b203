/* SPDX-License-Identifier: Apache-2.0 */
/* The second pass over a pprof file: its samples. */
#include "codec/pprof_in.h"

#define FRAMES_BATCH 65536 /* fewer samples when stacks are deep */

static int read_label(struct pprof_in *in, struct cur c, uint64_t at)
{
	uint64_t field[LABEL_NUM_UNIT + 1] = { 0 };
	struct model_label row = { 0 };
	struct wire_field f;
	int r;

	while (wire_next(&c, &f))
		if (f.number >= LABEL_KEY && f.number <= LABEL_NUM_UNIT && wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	if (c.bad)
		return bad(in, at, "malformed label");
	row.is_number = !field[LABEL_STR];
	row.number = (int64_t)field[LABEL_NUM];
	r = pprof_string(in, field[LABEL_KEY], at, &row.key);
	r = r ? r : pprof_string(in, field[LABEL_STR], at, &row.text);
	r = r ? r : pprof_string(in, field[LABEL_NUM_UNIT], at, &row.unit);
	if (r < 0)
		return r;
	if (!row.is_number && !row.text)
		row.is_number = true; /* an empty text under another index */
	if (row.is_number && !row.number && !row.unit)
		return 0; /* says nothing: dropped, as the reference does */
	if (!row.is_number)
		row = (struct model_label){ .key = row.key, .text = row.text };
	if (in->label_count == MODEL_LABELS_MAX)
		return too_big(in, at, "too many labels in one sample");
	in->labels[in->label_count++] = row;
	return 0;
}

/* Takes the first label of @which out of the sample when it has the form that we write. */
static bool take_label(struct pprof_in *in, enum pprof_label which, uint64_t max, uint64_t *out)
{
	bool is_number = which >= PPROF_LABEL_FIRST_NUMBER;

	for (size_t i = 0; i < in->label_count; i++) {
		const struct model_label *label = &in->labels[i];
		uint64_t value = is_number ? (uint64_t)label->number : label->text;

		if (label->key != in->label_keys[which] || label->is_number != is_number)
			continue;
		if (label->unit || value > max || !value)
			return false;
		*out = value;
		memmove(&in->labels[i], &in->labels[i + 1], (in->label_count - i - 1) * sizeof(*label));
		in->label_count--;
		return true;
	}
	return false;
}

static int lift_labels(struct pprof_in *in, struct model_sample *sample)
{
	uint64_t got[PPROF_LABEL_COUNT] = { 0 };
	struct model_process process;
	struct model_thread thread;
	bool has_process = false;
	int r = 0;

	for (int i = 0; i < PPROF_LABEL_COUNT && in->label_count; i++)
		has_process |= take_label(in, (enum pprof_label)i, UINT32_MAX, &got[i]) && i != PPROF_LABEL_THREAD &&
			       i != PPROF_LABEL_TID && i != PPROF_LABEL_STACK_END;
	sample->end = (uint32_t)got[PPROF_LABEL_STACK_END];
	process = (struct model_process){ .pid = (uint32_t)got[PPROF_LABEL_PID],
					  .comm = (uint32_t)got[PPROF_LABEL_COMM],
					  .container = (uint32_t)got[PPROF_LABEL_CONTAINER],
					  .app_id = (uint32_t)got[PPROF_LABEL_APP_ID] };
	if (has_process)
		r = model_add_process(in->m, &process, &sample->process);
	thread = (struct model_thread){ .process = sample->process,
					.tid = (uint32_t)got[PPROF_LABEL_TID],
					.name = (uint32_t)got[PPROF_LABEL_THREAD] };
	if (r == 0 && (thread.tid || thread.name))
		r = model_add_thread(in->m, &thread, &sample->thread);
	return r;
}

static int room_for_frames(struct pprof_in *in, size_t extra)
{
	int r = 0;

	while (r == 0 && in->frames_cap - in->frames_count < extra)
		r = array_grow(&in->frames, &in->frames_cap, in->frames_cap, ROWS_MAX);
	return r;
}

/* There is room. Leaf first: what comes behind depth_max frames is nearest the root, and left out. */
static int add_frame(struct pprof_in *in, uint64_t id, uint64_t at)
{
	uint32_t row = pprof_id_find(&in->location_ids, id);

	if (!row) {
		codec_fail(in->error, at, false, "a sample's location %llu is missing", (unsigned long long)id);
		return -EBADMSG;
	}
	if (in->frames_count - in->sample_first == in->limits->depth_max && in->limits->depth_max)
		in->is_cut = true;
	else
		in->frames[in->frames_count++] = row;
	return pprof_step(in);
}

/* There is room for @count. Eats ids of one and two bytes that are numbers of rows; add_frame() takes the others, and
 * those that are too many. Return: how many. */
static size_t add_usual_frames(struct pprof_in *in, struct cur *c, size_t count)
{
	const uint8_t *pos = c->pos, *end = c->end;
	uint32_t *frames = in->frames + in->frames_count;
	size_t done = 0;

	for (; done < count && end - pos >= 2; done++) {
		bool is_short = pos[0] < 0x80;
		size_t id = is_short ? pos[0] : (size_t)(pos[0] & 0x7f) | (size_t)pos[1] << 7;

		if ((!is_short && pos[1] >= 0x80) || id >= in->location_ids.dense_count || !in->location_ids.dense[id])
			break;
		frames[done] = in->location_ids.dense[id];
		pos += is_short ? 1 : 2;
	}
	c->pos = pos;
	in->frames_count += done;
	return done;
}

static int add_packed_frames(struct pprof_in *in, struct cur c, uint64_t at)
{
	size_t depth_max = in->limits->depth_max ? in->limits->depth_max : SIZE_MAX;
	size_t room = MIN(cur_left(&c), depth_max); /* each takes at least a byte */
	int r = failed(in, at, room_for_frames(in, room));

	while (r == 0 && cur_left(&c)) {
		size_t have = in->frames_count - in->sample_first, most = MIN(depth_max - have, cur_left(&c));
		uint64_t id;

		r = pprof_steps(in, add_usual_frames(in, &c, MIN(most, (size_t)PPROF_STEPS)));
		if (r < 0 || !cur_left(&c))
			return r;
		id = wire_varint(&c);
		r = c.bad ? bad(in, at, "malformed number") : add_frame(in, id, at);
	}
	return r;
}

/* The stacks of the samples that wait for theirs. */
static int flush_batch(struct pprof_in *in)
{
	struct model_path paths[SAMPLES_BATCH];
	struct model_sample *samples;
	int r = room_for_frames(in, 1); /* so that neither array is NULL */

	while (r == 0 && in->nodes_cap < in->frames_cap)
		r = array_grow(&in->nodes, &in->nodes_cap, in->nodes_cap, ROWS_MAX);
	for (size_t i = 0, at = 0; r == 0 && i < in->batch_count; at = in->batch_ends[i++])
		paths[i] = (struct model_path){ in->frames + at, in->nodes + at, in->batch_ends[i] - at };
	r = r ? r : model_add_paths(in->m, paths, in->batch_count);
	if (r < 0)
		return r;
	samples = in->batch_count ? &in->m->samples[in->m->samples_count - in->batch_count] : NULL;
	for (size_t i = 0; i < in->batch_count; i++)
		samples[i].stack = paths[i].count ? paths[i].nodes[paths[i].count - 1] : 0;
	in->batch_count = in->frames_count = in->sample_first = 0;
	return 0;
}

static int end_sample(struct pprof_in *in)
{
	in->batch_ends[in->batch_count++] = in->sample_first = in->frames_count;
	return in->batch_count < SAMPLES_BATCH && in->frames_count < FRAMES_BATCH ? 0 : flush_batch(in);
}

struct sample_in {
	int64_t values[MODEL_VALUE_TYPES_MAX];
	size_t count; /* may exceed the array: then only counted */
};

static void add_value(struct sample_in *s, uint64_t value)
{
	if (s->count < MODEL_VALUE_TYPES_MAX)
		s->values[s->count] = (int64_t)value;
	s->count++;
}

/* Packed or not, also mixed. */
static int read_location_ids(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	int r;

	if (f->type == WIRE_BYTES)
		return add_packed_frames(in, f->bytes, at);
	if (f->type != WIRE_VARINT)
		return bad(in, at, "known field of a wrong wire type");
	r = failed(in, at, room_for_frames(in, 1));
	return r ? r : add_frame(in, f->value, at);
}

static int read_values(struct pprof_in *in, struct sample_in *s, struct wire_field *f, uint64_t at)
{
	if (f->type == WIRE_VARINT)
		add_value(s, f->value);
	else if (f->type != WIRE_BYTES)
		return bad(in, at, "known field of a wrong wire type");
	while (f->type == WIRE_BYTES && cur_left(&f->bytes)) {
		uint64_t value = wire_varint(&f->bytes);

		if (f->bytes.bad)
			return bad(in, at, "malformed number");
		add_value(s, value);
	}
	return 0;
}

static int read_sample(struct pprof_in *in, struct cur c, uint64_t at)
{
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	struct sample_in s = { .count = 0 };
	struct wire_field f;
	int r = 0;

	in->label_count = 0;
	in->is_cut = false;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == SAMPLE_LOCATION_ID)
			r = read_location_ids(in, &f, at);
		else if (f.number == SAMPLE_VALUE)
			r = read_values(in, &s, &f, at);
		else if (f.number == SAMPLE_LABEL && wire_fits(&c, &f, WIRE_BYTES))
			r = read_label(in, f.bytes, at);
	}
	if (r < 0)
		return r;
	if (c.bad)
		return bad(in, at, "malformed sample");
	if (!in->m->value_type_count)
		return bad(in, at, "samples but no sample types");
	if (s.count != in->m->value_type_count)
		return bad(in, at, "a sample's values do not match the sample types");
	r = lift_labels(in, &row);
	if (in->is_cut)
		row.end = in->cut;
	r = r ? r : model_add_label_set(in->m, in->labels, in->label_count, &row.label_set);
	r = r ? r : model_add_sample(in->m, &row, s.values);
	return failed(in, at, r ? r : end_sample(in));
}

int pprof_read_samples(struct pprof_in *in)
{
	struct cur c = cur_of(in->bytes.ptr + in->samples_from, (size_t)(in->samples_to - in->samples_from));
	struct wire_field f;
	int r = 0;

	in->labels = calloc(MODEL_LABELS_MAX, sizeof(*in->labels));
	if (!in->labels)
		return failed(in, 0, -ENOMEM);
	for (int i = 0; r == 0 && i < PPROF_LABEL_COUNT; i++)
		r = failed(in, 0, model_add_string(in->m, pprof_label_name((enum pprof_label)i), &in->label_keys[i]));
	r = r ? r : failed(in, 0, model_add_string(in->m, STR(CODEC_STACK_CUT), &in->cut));
	while (r == 0 && wire_next(&c, &f)) {
		r = pprof_step(in);
		if (r < 0 || f.number != PROFILE_SAMPLE)
			continue;
		in->done += cur_left(&f.bytes);
		r = read_sample(in, f.bytes, position(in, &f.bytes));
	}
	return r ? r : failed(in, 0, flush_batch(in));
}
