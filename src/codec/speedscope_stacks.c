/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, frames, stacks and samples of speedscope's JSON. */
#include "base/array.h"
#include "codec/call_tree.h"
#include "codec/json.h"
#include "codec/speedscope_int.h"

#define SAMPLES_STEP 64 /* samples or events between two looks whether to stop */

int speedscope_bad(struct speedscope_in *in, struct str at, const char *reason)
{
	codec_fail(in->error, at.ptr ? (uint64_t)(at.ptr - in->start) : 0, false, "%s", reason);
	return -EBADMSG;
}

/* Numbers */

/* Return: false when @text is no number. @out: it, times 10 to the power of @shift, in billionths; saturates. */
bool speedscope_number(struct str text, int shift, __int128 *out)
{
	const __int128 max = (__int128)INT64_MAX * SPEEDSCOPE_BILLION;
	bool negative = str_starts(text, STR("-")), has_dot = false;
	int64_t power = shift + 9, exponent = 0;
	__int128 digits = 0;

	for (text = str_skip(text, negative); text.len; text = str_skip(text, 1)) {
		char c = text.ptr[0];

		if (c == '.') {
			has_dot = true;
		} else if (c < '0' || c > '9') {
			break;
		} else if (digits > max) { /* further ones change nothing that counts */
			power += !has_dot;
		} else {
			digits = digits * 10 + (c - '0');
			power -= has_dot;
		}
	}
	if (text.len && text.ptr[0] != 'e' && text.ptr[0] != 'E')
		return false;
	if (text.len) {
		bool is_down = str_starts(str_skip(text, 1), STR("-"));

		text = str_skip(text, text.len > 1 && (is_down || text.ptr[1] == '+') ? 2 : 1);
		for (; text.len; text = str_skip(text, 1))
			exponent = MIN(exponent * 10 + (text.ptr[0] - '0'), INT64_C(1000000));
		power += is_down ? -exponent : exponent;
	}
	for (; power > 0 && digits && digits <= max; power--)
		digits *= 10;
	for (; power < 0 && digits; power++)
		digits /= 10;
	digits = MIN(digits, max);
	*out = negative ? -digits : digits;
	return true;
}

/* Values are whole. Each gets what the sum of all fractions so far, rounded, has more than was given out: the total is
 * that of the file, rounded once. */
int64_t speedscope_settle(struct speedscope_in *in, __int128 value)
{
	uint64_t *left = &in->left[in->column];
	__int128 whole = value / SPEEDSCOPE_BILLION, rest = value % SPEEDSCOPE_BILLION;
	uint64_t before = (*left + (uint64_t)SPEEDSCOPE_BILLION / 2) / (uint64_t)SPEEDSCOPE_BILLION;

	if (rest < 0) {
		rest += SPEEDSCOPE_BILLION;
		whole--;
	}
	*left += (uint64_t)rest; /* would take 18 thousand million samples to wrap */
	whole = MIN(MAX(whole, (__int128)INT64_MIN), (__int128)INT64_MAX); /* a difference of two times may be more */
	return saturating_add(
		(int64_t)whole,
		(int64_t)((*left + (uint64_t)SPEEDSCOPE_BILLION / 2) / (uint64_t)SPEEDSCOPE_BILLION - before));
}

int64_t speedscope_line(struct str text)
{
	__int128 number;

	if (!text.len || !speedscope_number(text, 0, &number) || number < 0)
		return 0;
	return (int64_t)(number / SPEEDSCOPE_BILLION);
}

/* Frames */

/* A text that is none counts as empty. */
int speedscope_text(struct speedscope_in *in, struct str value, uint32_t *out)
{
	buf_clear(&in->text);
	if (json_text(value, &in->text) == -EBADMSG)
		buf_clear(&in->text);
	if (in->text.error)
		return in->text.error;
	return model_add_string(in->m, codec_text(in->limits, buf_str(&in->text)), out);
}

struct frame_texts {
	struct str name, file, line, col, kind, module;
};

struct str speedscope_key(struct str key)
{
	return key.len < 2 ? STR("") : str_n(key.ptr + 1, key.len - 2);
}

void speedscope_members(struct str json, const struct str *keys, struct str *values, size_t count)
{
	struct str key, value;

	while (json_member(&json, &key, &value))
		for (size_t i = 0; i < count; i++)
			if (str_eq(speedscope_key(key), keys[i]))
				values[i] = value;
}

static struct frame_texts frame_texts(struct str json)
{
	static const struct str keys[] = { { "name", 4 }, { "file", 4 }, { "line", 4 },
					   { "col", 3 },  { "kind", 4 }, { "module", 6 } };
	struct str v[ARRAY_SIZE(keys)] = { { 0 } };

	speedscope_members(json, keys, v, ARRAY_SIZE(keys));
	return (struct frame_texts){ v[0], v[1], v[2], v[3], v[4], v[5] };
}

static uint8_t frame_kind(struct str json)
{
	struct str kind = frame_texts(json).kind;

	return kind.len < 2 ? MODEL_KIND_NATIVE : (uint8_t)call_kind_of(speedscope_key(kind));
}

/* hearth writes the module in place of a file that is not known. */
static int add_mapping(struct speedscope_in *in, const struct frame_texts *texts, struct model_function *function,
		       struct model_location *location)
{
	struct model_mapping mapping = { .flags = MODEL_HAS_FUNCTIONS };
	int r = speedscope_text(in, texts->module, &mapping.filename);

	if (r < 0 || !mapping.filename)
		return r;
	if (function->filename == mapping.filename)
		function->filename = 0;
	return model_add_mapping(in->m, &mapping, &location->mapping);
}

static int make_location(struct speedscope_in *in, struct speedscope_frame *frame)
{
	const struct frame_texts texts = frame_texts(frame->json);
	struct model_function function = { .start_line = speedscope_line(texts.line) };
	struct model_line line = { .line = function.start_line, .column = speedscope_line(texts.col) };
	struct model_location location = { .line_count = 1 };
	int r = speedscope_text(in, texts.name, &function.name);

	if (frame->kind < MODEL_KIND_COUNT)
		function.kind = (enum model_kind)frame->kind;
	function.system_name = model_kind_is_function(function.kind) ? 0 : function.name;
	r = r ? r : speedscope_text(in, texts.file, &function.filename);
	r = r ? r : add_mapping(in, &texts, &function, &location);
	r = r ? r : model_add_function(in->m, &function, &line.function);
	r = r ? r : model_add_location(in->m, &location, &line, &frame->location);
	if (r == 0)
		frame->is_known = true;
	return r;
}

int speedscope_frames(struct speedscope_in *in, struct str list)
{
	struct str key, value;
	int r = 0;

	while (r == 0 && json_member(&list, &key, &value)) {
		if (in->limits->memory_max && in->frames_cap * sizeof(*in->frames) > in->limits->memory_max / 2)
			return -E2BIG;
		r = array_grow(&in->frames, &in->frames_cap, in->frames_count, UINT32_MAX);
		if (r == 0)
			in->frames[in->frames_count++] =
				(struct speedscope_frame){ .json = value, .kind = frame_kind(value) };
	}
	return r;
}

/* Stacks */

int speedscope_node(struct speedscope_in *in, uint32_t parent, uint32_t index, uint32_t *out)
{
	struct speedscope_frame *frame = &in->frames[index];
	int r = frame->is_known ? 0 : make_location(in, frame);

	return r ? r : model_add_stack(in->m, parent, frame->location, out);
}

/* The text of an application id, or nothing when that frame is none. */
static struct str app_id_of(const struct speedscope_in *in, uint32_t name)
{
	struct str text = model_string(in->m, name);

	return str_starts(text, STR(CALL_APP_ID)) ? str_skip(text, strlen(CALL_APP_ID)) : STR("");
}

/* The same as a string of the model, 0: none. */
static int owner_app_id(struct speedscope_in *in, size_t at, uint32_t *out)
{
	struct speedscope_frame *frame = &in->frames[in->path[at]];
	int r = 0;

	if (!frame->has_app_id) {
		buf_clear(&in->text);
		buf_adds(&in->text, app_id_of(in, frame->name)); /* adding a string may move those that are there */
		r = in->text.error ? in->text.error : model_add_string(in->m, buf_str(&in->text), &frame->app_id);
		frame->has_app_id = r == 0;
	}
	*out = frame->app_id;
	return r;
}

static bool is_owner(struct speedscope_in *in, size_t at, uint32_t kind)
{
	return at < in->path_count && in->frames[in->path[at]].kind == kind;
}

static int owner_name(struct speedscope_in *in, size_t at, uint32_t *out)
{
	struct speedscope_frame *frame = &in->frames[in->path[at]];
	int r = frame->is_named ? 0 : speedscope_text(in, frame_texts(frame->json).name, &frame->name);

	frame->is_named |= r == 0;
	*out = frame->name;
	return r;
}

/* Takes the frames that say whose a stack is off its root. @out: how many; the others are frames as all are. */
int speedscope_owner(struct speedscope_in *in, uint32_t *process, size_t *out)
{
	struct model_process row = { 0 };
	uint32_t names[2] = { 0 };
	size_t at = 0, count = 0;
	int r = 0;

	*process = 0;
	if (is_owner(in, at, CALL_KIND_CONTAINER))
		r = owner_name(in, at++, &row.container);
	for (; r == 0 && count < 2 && is_owner(in, at + count, CALL_KIND_PROCESS); count++)
		r = owner_name(in, at + count, &names[count]);
	if (r == 0 && count == 2 && !app_id_of(in, names[1]).len)
		count = 1;
	if (r == 0 && count)
		r = owner_app_id(in, at + count - 1, &row.app_id);
	if (count == 2 || !row.app_id)
		row.comm = names[0];
	*out = at + count;
	if (r < 0 || (!row.container && !row.comm && !row.app_id))
		return r;
	return model_add_process(in->m, &row, process);
}

/* The stack of in->path from frame @from on, without what is beyond the depth that is allowed. */
int speedscope_stack(struct speedscope_in *in, size_t from, struct model_sample *out)
{
	size_t max = in->limits->depth_max;
	int r = 0;

	if (max && in->path_count - from > max) {
		from = in->path_count - max;
		r = in->cut ? 0 : model_add_string(in->m, STR(CODEC_STACK_CUT), &in->cut);
		out->end = in->cut;
	}
	for (out->stack = 0; r == 0 && from < in->path_count; from++)
		r = speedscope_node(in, out->stack, in->path[from], &out->stack);
	return r;
}

int speedscope_push(struct speedscope_in *in, uint64_t frame, struct str at)
{
	int r;

	if (frame >= in->frames_count)
		return speedscope_bad(in, at, "there is no frame of this number");
	r = array_grow(&in->path, &in->path_cap, in->path_count, UINT32_MAX);
	if (r == 0)
		in->path[in->path_count++] = (uint32_t)frame;
	return r;
}

/* "[0, 5, 7]" into in->path. */
int speedscope_path(struct speedscope_in *in, struct str list)
{
	struct str rest = list;
	int r = 0;

	in->path_count = 0;
	if (!str_starts(list, STR("[")))
		return speedscope_bad(in, list, "a stack is not a list of frames");
	for (rest = str_skip(rest, 1); r == 0 && rest.len; rest = str_skip(rest, 1)) {
		size_t digits = 0;
		uint64_t frame;

		if (strchr(", \t\r\n]", rest.ptr[0])) /* the scanner has seen that commas stand where they belong */
			continue;
		while (digits < rest.len && rest.ptr[digits] >= '0' && rest.ptr[digits] <= '9')
			digits++;
		if (str_to_u64(str_first(rest, digits), 0, UINT32_MAX, &frame) < 0)
			return speedscope_bad(in, rest, "there is no frame of this number");
		r = speedscope_push(in, frame, rest);
		rest = str_skip(rest, digits - 1);
	}
	return r;
}

/* Samples */

int speedscope_limits(struct speedscope_in *in, struct str at)
{
	if (++in->seen % SAMPLES_STEP == 0 && codec_stopped(in->limits, (uint64_t)(at.ptr - in->start)))
		return -ECANCELED;
	if (!in->limits->samples_max || in->m->samples_count <= in->limits->samples_max)
		return 0;
	codec_fail(in->error, (uint64_t)(at.ptr - in->start), false, "more than %zu samples", in->limits->samples_max);
	return -E2BIG;
}

/* @value: in billionths of the column's unit */
int speedscope_sample(struct speedscope_in *in, struct model_sample *sample, __int128 value)
{
	int64_t values[MODEL_VALUE_TYPES_MAX] = { 0 };

	sample->thread = in->thread;
	if (in->has_clock) {
		const __int128 max = (__int128)INT64_MAX * SPEEDSCOPE_BILLION;

		sample->time_offset_ns = (uint64_t)(MIN(MAX(in->passed, (__int128)0), max) / SPEEDSCOPE_BILLION);
		in->passed = MIN(in->passed + value, max);
	}
	values[in->column] = speedscope_settle(in, value);
	return model_add_sample(in->m, sample, values);
}
