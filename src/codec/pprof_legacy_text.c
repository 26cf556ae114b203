/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms: heap and its kin, counts of Go, threads, contention. */
#include <math.h>

#include "codec/pprof_legacy_int.h"

/* Scanning: small cursors over one line */

static void skip_blanks(struct str *s)
{
	while (s->len && s->ptr[0] == ' ')
		*s = str_skip(*s, 1);
}

static bool skip_mark(struct str *s, struct str mark)
{
	skip_blanks(s);
	if (!str_starts(*s, mark))
		return false;
	*s = str_skip(*s, mark.len);
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Decimal digits with an optional '-', as text. */
static bool take_number(struct str *s, struct str *out)
{
	size_t len;

	skip_blanks(s);
	len = s->len && s->ptr[0] == '-';
	while (len < s->len && s->ptr[len] >= '0' && s->ptr[len] <= '9')
		len++;
	*out = str_first(*s, len);
	*s = str_skip(*s, len);
	return len > (out->len && out->ptr[0] == '-');
}

static bool is_space_or_comment(struct str line)
{
	line = str_trim(line);
	return !line.len || line.ptr[0] == '#';
}

static int64_t saturate(double value)
{
	if (value >= 0x1p63)
		return INT64_MAX;
	return value >= -0x1p63 ? (int64_t)value : INT64_MIN; /* not a number ends here too */
}

static int64_t saturating_mul(int64_t a, int64_t b)
{
	int64_t product;

	return !__builtin_mul_overflow(a, b, &product) ? product : (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

/* The next "0x..." of @s, as long as only blanks and hexadecimal words come. Return: 1, 0 at the end, -ERANGE. */
static int take_address(struct str *s, bool anything_between, uint64_t *out)
{
	size_t len = 2;

	while (s->len && !(s->len > 2 && s->ptr[0] == '0' && s->ptr[1] == 'x' && is_hex(s->ptr[2]))) {
		if (!anything_between && s->ptr[0] != ' ' && s->ptr[0] != 'x' && !is_hex(s->ptr[0]))
			return 0;
		*s = str_skip(*s, 1);
	}
	if (!s->len)
		return 0;
	while (len < s->len && is_hex(s->ptr[len]))
		len++;
	if (str_to_hex64(str_n(s->ptr + 2, len - 2), out) < 0)
		return -ERANGE;
	*s = str_skip(*s, len);
	return 1;
}

/* The callers' addresses behind '@': each points behind a call, so one less is in it. */
static int read_callers(struct legacy *in, const struct legacy_line *line, struct str s)
{
	uint64_t address;
	int r, found;

	while ((found = take_address(&s, false, &address)) > 0) {
		r = legacy_add_frame(in, address - 1);
		if (r < 0)
			return r;
	}
	return found ? legacy_bad_line(in, line, "address of more than 64 bits") : 0;
}

static int set_types(struct legacy *in, const char *const *types, struct str period_type, struct str period_unit)
{
	int r = 0;

	for (; r == 0 && *types; types += 2)
		r = model_add_value_type(in->m, str_of(types[0]), str_of(types[1]));
	r = r ? r : model_add_string(in->m, period_type, &in->m->period_type.type);
	r = r ? r : model_add_string(in->m, period_unit, &in->m->period_type.unit);
	return legacy_failed(in, r);
}

/* Passes over what may follow the samples, up to the memory map, and reads that. @line may be its first line. */
static int finish(struct legacy *in, struct legacy_line *line)
{
	int r = 1;

	while (r > 0 && !legacy_is_map_start(line->text))
		r = legacy_next_line(in, line);
	r = r < 0 ? r : legacy_read_map(in, line);
	return r ? r : legacy_place_all(in);
}

/* Heap: "heap profile: objects: bytes [objects: bytes] @ heap_v2/524288", the first pair in use, the second allocated.
 */

struct heap_numbers {
	struct str text[4];
};

struct heap_form {
	bool is_sampled, has_allocations;
	int64_t rate;
};

static bool take_heap_numbers(struct str *s, struct heap_numbers *out)
{
	return take_number(s, &out->text[0]) && skip_mark(s, STR(":")) && take_number(s, &out->text[1]) &&
	       skip_mark(s, STR("[")) && take_number(s, &out->text[2]) && skip_mark(s, STR(":")) &&
	       take_number(s, &out->text[3]) && skip_mark(s, STR("]")) && skip_mark(s, STR("@"));
}

static bool differs(struct str allocated, struct str in_use)
{
	return !str_eq(allocated, in_use) && !str_eq(allocated, STR("0"));
}

static struct str first_line(struct str bytes)
{
	struct str line = STR("");

	ignore(str_next(&bytes, '\n', &line)); /* without any line it stays empty */
	if (str_ends(line, STR("\r")))
		line.len--;
	return line;
}

/* Return: true when @line heads a heap profile of a known kind. */
static bool heap_header(struct str line, struct heap_form *out)
{
	static const struct str sampled[] = { { "heap", 4 }, { "heap_v2", 7 }, { "heapz_v2", 8 } };
	struct heap_numbers n;
	struct str kind;
	ptrdiff_t slash;
	int64_t rate = 0;

	if (!skip_mark(&line, STR("heap profile:")) || !take_heap_numbers(&line, &n))
		return false;
	kind = str_trim(line);
	if (str_starts(kind, STR("growth")) || str_starts(kind, STR("fragmentation"))) {
		*out = (struct heap_form){ .rate = 1 };
		return true;
	}
	out->has_allocations = differs(n.text[2], n.text[0]) || differs(n.text[3], n.text[1]);
	slash = str_find(kind, '/');
	if (slash >= 0 && (size_t)slash + 1 < kind.len && str_to_i64(str_skip(kind, (size_t)slash + 1), &rate) < 0)
		return false;
	kind = slash < 0 ? kind : str_first(kind, (size_t)slash);
	out->is_sampled = false;
	out->rate = 1;
	if (str_eq(kind, STR("heapprofile")))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(sampled); i++)
		out->is_sampled |= str_eq(kind, sampled[i]);
	out->rate = str_eq(kind, STR("heap")) ? rate / 2 : rate; /* Go writes twice its rate */
	return out->is_sampled;
}

/* An object of @size bytes is sampled with probability 1 - exp(-size / rate). */
static void unsample(int64_t rate, int64_t *count, int64_t *size)
{
	double scale;

	if (!*count || !*size) {
		*count = *size = 0;
		return;
	}
	if (rate <= 1)
		return;
	scale = 1 / (1 - exp(-((double)*size / (double)*count) / (double)rate));
	*count = saturate((double)*count * scale);
	*size = saturate((double)*size * scale);
}

static int heap_pair(const struct legacy *in, const struct legacy_line *line, const struct heap_form *form,
		     const struct str *text, int64_t *values, int64_t *block_size)
{
	int64_t count = 0, size = 0;

	if (str_to_i64(text[0], &count) < 0 || str_to_i64(text[1], &size) < 0)
		return legacy_bad_line(in, line, "number of more than 64 bits");
	if (!count && size)
		return legacy_bad_line(in, line, "bytes without objects");
	if (count) {
		*block_size = count == -1 ? saturating_mul(size, -1) : size / count;
		if (form->is_sampled)
			unsample(form->rate, &count, &size);
	}
	values[0] = count;
	values[1] = size;
	return 0;
}

static int heap_row(struct legacy *in, const struct legacy_line *line, const struct heap_form *form)
{
	struct str s = str_trim(line->text);
	struct legacy_sample row = { 0 };
	struct heap_numbers n;
	size_t column = 0;
	int r = 0;

	if (!take_heap_numbers(&s, &n))
		return legacy_bad_line(in, line, "not a row of a heap profile");
	if (form->has_allocations) {
		r = heap_pair(in, line, form, &n.text[2], row.values, &row.block_size);
		column = 2;
	}
	r = r ? r : heap_pair(in, line, form, &n.text[0], &row.values[column], &row.block_size);
	r = r ? r : legacy_begin_sample(in, &row);
	return r ? r : read_callers(in, line, s);
}

static int read_heap(struct legacy *in)
{
	static const char *const all[] = { "alloc_objects", "count",       "alloc_space", "bytes", "inuse_objects",
					   "count",         "inuse_space", "bytes",       NULL };
	static const char *const in_use[] = { "objects", "count", "space", "bytes", NULL };
	struct legacy_line line = { .rest = in->bytes };
	struct heap_form form = { 0 };
	int r = legacy_next_line(in, &line);

	if (r < 0)
		return r;
	must(heap_header(line.text, &form));
	in->m->period = form.rate;
	r = set_types(in, form.has_allocations ? all : in_use, STR("space"), STR("bytes"));
	while (r == 0 && (r = legacy_next_line(in, &line)) > 0 && !legacy_is_map_start(line.text))
		r = is_space_or_comment(line.text) ? 0 : heap_row(in, &line, &form);
	return r < 0 ? r : finish(in, &line);
}

/* Counts of Go: "goroutine profile: total 5" and rows "2 @ 0x43a1c5 0x44f0a1" */

static bool count_header(struct str line, struct str *name)
{
	ptrdiff_t at = str_search(line, STR(" profile: total "));
	uint64_t total;

	if (at < 1)
		return false;
	*name = str_first(line, (size_t)at);
	for (size_t i = 0; i < name->len; i++)
		if ((unsigned char)name->ptr[i] <= ' ')
			return false;
	return str_to_u64(str_skip(line, (size_t)at + strlen(" profile: total ")), 0, UINT64_MAX, &total) != -EBADMSG;
}

static int count_row(struct legacy *in, const struct legacy_line *line)
{
	struct str s = line->text, count;
	struct legacy_sample row = { 0 };
	int r;

	if (!take_number(&s, &count) || !skip_mark(&s, STR("@")) || str_to_i64(count, &row.values[0]) < 0 ||
	    row.values[0] < 0)
		return legacy_bad_line(in, line, "not a row of a count profile");
	r = legacy_begin_sample(in, &row);
	r = r ? r : read_callers(in, line, s);
	if (r == 0 && !in->samples[in->samples_count - 1].frame_count)
		return legacy_bad_line(in, line, "a row without addresses");
	return r;
}

/* The first line that is neither blank nor comment. Return: as legacy_next_line(). */
static int skip_to_header(const struct legacy *in, struct legacy_line *line)
{
	int r;

	do
		r = legacy_next_line(in, line);
	while (r > 0 && is_space_or_comment(line->text));
	return r;
}

static int read_count(struct legacy *in)
{
	struct legacy_line line = { .rest = in->bytes };
	struct str name = STR("");
	int r = skip_to_header(in, &line);

	if (r < 0)
		return r;
	must(count_header(line.text, &name));
	in->m->period = 1;
	r = model_add_value_type(in->m, name, STR("count"));
	in->m->period_type = in->m->value_types[0];
	r = legacy_failed(in, r);
	while (r == 0 && (r = legacy_next_line(in, &line)) > 0 && !str_starts(line.text, STR("---")))
		r = is_space_or_comment(line.text) ? 0 : count_row(in, &line);
	return r < 0 ? r : finish(in, &line);
}

/* Threads: "--- threadz 1 ---", then for each "--- Thread 7f12 (name: worker/123) stack: ---" and addresses */

static bool is_thread(struct str line)
{
	ptrdiff_t at = str_search(line, STR(" (name: "));

	return at > 0 && str_starts(line, STR("--- Thread ")) &&
	       str_search(str_skip(line, (size_t)at), STR(") stack: ---")) > 0;
}

static bool is_threadz(struct str line)
{
	static const struct str mark = { "--- threadz ", 12 };

	return str_starts(line, mark) && str_search(str_skip(line, mark.len), STR(" ---")) > 0;
}

static int thread_addresses(struct legacy *in, const struct legacy_line *line, bool *is_new)
{
	struct str s = line->text;
	uint64_t address;
	int r = 0, found;

	while (r == 0 && (found = take_address(&s, true, &address)) != 0) {
		if (found < 0)
			return legacy_bad_line(in, line, "address of more than 64 bits");
		if (!*is_new)
			r = legacy_begin_sample(in, &(struct legacy_sample){ .values = { 1 } });
		r = r ? r : legacy_add_frame(in, address - *is_new); /* the first is no call */
		*is_new = true;
	}
	return r;
}

/* One thread's lines; @line is its head, then the next one's. Return: 1, 0 at the end of the file, or -errno. */
static int read_thread(struct legacy *in, struct legacy_line *line)
{
	bool same = false, is_new = false;
	int r, bad;

	while ((r = legacy_next_line(in, line)) > 0 && !str_starts(str_trim(line->text), STR("---"))) {
		if (str_search(line->text, STR("same as previous thread")) >= 0) {
			same = true;
			continue;
		}
		bad = thread_addresses(in, line, &is_new);
		if (bad < 0)
			return bad;
	}
	if (r >= 0 && same && is_new) {
		in->samples_count--; /* its own addresses do not count then */
		in->frames_count = in->samples[in->samples_count].first_frame;
	}
	if (r >= 0 && (same || !is_new) && in->samples_count)
		in->samples[in->samples_count - 1].values[0]++;
	return r;
}

static int read_threads(struct legacy *in)
{
	static const char *const types[] = { "thread", "count", NULL };
	struct legacy_line line = { .rest = in->bytes };
	int r = skip_to_header(in, &line);

	in->m->period = 1;
	if (r > 0 && is_threadz(line.text)) {
		do
			r = legacy_next_line(in, &line);
		while (r > 0 && !str_starts(line.text, STR("-")) && !legacy_is_map_start(line.text));
	}
	if (r >= 0 && set_types(in, types, STR("thread"), STR("count")) < 0)
		return -ENOMEM;
	while (r > 0 && !legacy_is_map_start(line.text) && !str_starts(line.text, STR("---- no stack trace for")))
		r = is_thread(line.text) ? read_thread(in, &line)
					 : legacy_bad_line(in, &line, "not the head of a thread");
	r = r < 0 ? r : finish(in, &line);
	if (r == 0)
		legacy_drop_doubled_leaves(in);
	return r;
}

/* Contention: "--- contentionz 1 ---" or "--- mutex:", "name = value" lines, rows "cycles count @ 0x..." */

struct contention_form {
	int64_t clock_hz;
};

static bool is_contention(struct str line)
{
	return str_starts(line, STR("--- contentionz ")) || str_starts(line, STR("--- mutex:")) ||
	       str_starts(line, STR("--- contention:"));
}

static bool take_setting(struct str text, int64_t *out)
{
	uint64_t value;

	if (!str_starts(text, STR("0x")))
		return str_to_i64(text, out) == 0;
	if (str_to_hex64(str_skip(text, 2), &value) < 0 || value > INT64_MAX)
		return false;
	*out = (int64_t)value;
	return true;
}

static int contention_setting(struct legacy *in, const struct legacy_line *line, size_t equals,
			      struct contention_form *form)
{
	struct str key = str_trim(str_first(line->text, equals)), value = str_trim(str_skip(line->text, equals + 1));
	int64_t ms = 0;
	bool good = true;

	if (str_eq(key, STR("cycles/second")))
		good = take_setting(value, &form->clock_hz);
	else if (str_eq(key, STR("sampling period")))
		good = take_setting(value, &in->m->period);
	else if (str_eq(key, STR("ms since reset")))
		good = take_setting(value, &ms);
	else if (str_eq(key, STR("format")) || str_eq(key, STR("resolution"))) {
		codec_fail(in->error, line->number, true, "contention profiles of Java are not read");
		return -ENOTSUP;
	} else if (!str_eq(key, STR("discarded samples")))
		return legacy_bad_line(in, line, "unknown setting");
	if (!good)
		return legacy_bad_line(in, line, "a setting's value is not a number");
	if (ms)
		in->m->duration_ns = saturating_mul(ms, 1000000);
	return 0;
}

static int contention_row(struct legacy *in, const struct legacy_line *line, const struct contention_form *form)
{
	struct str s = str_trim(line->text), delay_text, count_text;
	int64_t delay = 0, count = 0, period = in->m->period;
	struct legacy_sample row = { 0 };
	int r;

	if (!take_number(&s, &delay_text) || !take_number(&s, &count_text) || !skip_mark(&s, STR("@")))
		return legacy_bad_line(in, line, "not a row of a contention profile");
	if (str_to_i64(delay_text, &delay) < 0 || str_to_i64(count_text, &count) < 0 || delay < 0 || count < 0)
		return legacy_bad_line(in, line, "number outside its range");
	if (period > 0 && form->clock_hz > 0) /* cycles to nanoseconds */
		delay = saturate((double)delay * (double)period / ((double)form->clock_hz / 1e9));
	if (period > 0)
		count = saturating_mul(count, period);
	row.values[0] = count;
	row.values[1] = delay;
	r = legacy_begin_sample(in, &row);
	return r ? r : read_callers(in, line, s);
}

static int contention_settings(struct legacy *in, struct legacy_line *line, struct contention_form *form)
{
	int r, bad;

	while ((r = legacy_next_line(in, line)) > 0) {
		ptrdiff_t equals = str_find(line->text, '=');

		if (is_space_or_comment(line->text))
			continue;
		if (equals < 0 || str_starts(str_trim(line->text), STR("---")))
			return 1;
		bad = contention_setting(in, line, (size_t)equals, form);
		if (bad < 0)
			return bad;
	}
	return r;
}

static int read_contention(struct legacy *in)
{
	static const char *const types[] = { "contentions", "count", "delay", "nanoseconds", NULL };
	struct legacy_line line = { .rest = in->bytes };
	struct contention_form form = { 0 };
	int r = legacy_next_line(in, &line);

	in->m->period = 1;
	r = r < 0 ? r : set_types(in, types, STR("contentions"), STR("count"));
	r = r < 0 ? r : contention_settings(in, &line, &form);
	while (r > 0 && !str_starts(str_trim(line.text), STR("---"))) {
		r = is_space_or_comment(line.text) ? 0 : contention_row(in, &line, &form);
		r = r < 0 ? r : legacy_next_line(in, &line);
	}
	return r < 0 ? r : finish(in, &line);
}

/* Which one */

typedef int read_fn(struct legacy *in);

static read_fn *reader_for(struct str bytes)
{
	struct str line = first_line(bytes), rest = bytes, name;
	struct heap_form form;

	if (heap_header(line, &form))
		return read_heap;
	if (is_contention(line))
		return read_contention;
	while (is_space_or_comment(line) && str_next(&rest, '\n', &line))
		line = first_line(line);
	if (count_header(line, &name))
		return read_count;
	return is_threadz(line) || is_thread(line) ? read_threads : NULL;
}

bool legacy_text_is(struct str bytes)
{
	return reader_for(bytes) != NULL;
}

int legacy_text_read(struct legacy *in)
{
	read_fn *read = reader_for(in->bytes);

	must(read);
	return read(in);
}
