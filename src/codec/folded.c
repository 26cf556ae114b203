/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, one line per stack: "comm;frame;...;leaf count", or "... before count" of a difference. */
#include "codec/folded.h"

#include "base/limit.h"
#include "base/u64map.h"
#include "base/utf8.h"
#include "codec/folded_lines.h"
#include "codec/stack_text.h"

#define OUT_MAX GIB(4)
#define LINES_STEP 64 /* lines between two looks whether to stop */
#define BOM "\xef\xbb\xbf"

/* Writing */

static void add_count(struct buf *out, uint64_t count)
{
	buf_addc(out, ' ');
	buf_addu64(out, count);
}

struct folded_out {
	struct folded_lines lines;
	size_t done;
};

static void end(void *state)
{
	struct folded_out *o = state;

	if (o)
		folded_lines_release(&o->lines);
	free(o);
}

static size_t held(const void *state)
{
	const struct folded_out *o = state;

	return o->lines.text.cap + o->lines.count * sizeof(*o->lines.items);
}

static int begin(const struct window *w, const struct codec_options *options, void **out)
{
	struct folded_out *o = calloc(1, sizeof(*o));
	int r = o ? folded_lines_collect(w->model, options, false, &o->lines) : -ENOMEM;

	if (r < 0) {
		end(o);
		return r;
	}
	if (o->lines.left_out)
		codec_lose(options->lost, "folded text has no counts below zero: %llu samples are left out",
			   (unsigned long long)o->lines.left_out);
	*out = o;
	return 0;
}

static int next(void *state, size_t size, struct buf *out)
{
	struct folded_out *o = state;
	const struct folded_lines *lines = &o->lines;
	size_t start = out->len;

	for (; o->done < lines->count && out->len - start < size && !out->error; o->done++) {
		buf_adds(out, folded_line_text(lines, o->done));
		if (lines->is_pair)
			add_count(out, lines->items[o->done].before);
		add_count(out, lines->items[o->done].count);
		buf_addc(out, '\n');
	}
	return out->error ? out->error : o->done < lines->count;
}

static int encode_as(const struct window *w, const struct codec_options *options, struct buf *out)
{
	return codec_whole(&codec_folded, w, options, out);
}

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return encode_as(w, &usual, out);
}

/* Reading */

static const struct {
	struct str text;
	enum model_kind kind;
} suffixes_in[] = {
	{ { "_[k]", 4 }, MODEL_KIND_KERNEL },        { { "_[j]", 4 }, MODEL_KIND_JIT },
	{ { "_[i]", 4 }, MODEL_KIND_JAVA_INLINED },  { { "_[p]", 4 }, MODEL_KIND_PYTHON },
	{ { "_[pe]", 5 }, MODEL_KIND_PYTHON_ERROR }, { { "_[rb]", 5 }, MODEL_KIND_RUBY },
	{ { "_[php]", 6 }, MODEL_KIND_PHP },         { { "_[perl]", 7 }, MODEL_KIND_PERL },
};

struct folded_in {
	struct model *m;
	struct stack_reader *stacks;
	struct u64map processes; /* string id of the comm to process row */
	struct codec_error *error;
	const struct codec_limits *limits;
	uint64_t line, left_out;
	uint64_t fractions[2]; /* by column: the sum of what followed the dots, in billionths */
	bool is_pair;          /* every line with a count ends in two numbers */
};

static void folded_in_release(struct folded_in *in)
{
	stack_reader_free(&in->stacks);
	u64map_release(&in->processes);
}

#define BILLION UINT64_C(1000000000)

struct count {
	int64_t whole;
	uint64_t billionths;
};

/* What follows the dot; digits beyond the ninth are left out. Return: false when it is no number. */
static bool read_fraction(struct str digits, uint64_t *out)
{
	uint64_t unit = BILLION / 10;

	*out = 0;
	for (size_t i = 0; i < digits.len; i++, unit /= 10) {
		if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
			return false;
		*out += (uint64_t)(digits.ptr[i] - '0') * unit;
	}
	return true;
}

/* digits[.digits]; too large ones saturate. Return: false when it is no such number. */
static bool read_count(struct str s, struct count *out)
{
	ptrdiff_t dot = str_find(s, '.');
	struct str whole = dot < 0 ? s : str_first(s, (size_t)dot),
		   rest = dot < 0 ? STR("") : str_skip(s, (size_t)dot + 1);
	uint64_t value = 0;
	int r;

	if (!whole.len || whole.ptr[0] < '0' || whole.ptr[0] > '9')
		return false;
	if (!read_fraction(rest, &out->billionths))
		return false;
	r = str_to_u64(whole, 0, INT64_MAX - 1, &value);
	if (r == -EBADMSG)
		return false;
	if (r < 0) {
		value = INT64_MAX;
		out->billionths = 0;
	}
	out->whole = (int64_t)value;
	return true;
}

/* Counts are whole. Each gets what the sum of all fractions so far, rounded, has more than was given out: the total is
 * that of the file, rounded once. */
static int64_t settle_count(struct folded_in *in, size_t column, struct count count)
{
	uint64_t before = (in->fractions[column] + BILLION / 2) / BILLION, after;

	in->fractions[column] += count.billionths; /* would take 18 thousand million lines to wrap */
	after = (in->fractions[column] + BILLION / 2) / BILLION;
	return saturating_add(count.whole, (int64_t)(after - before));
}

static struct str drop_blanks(struct str s)
{
	while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Cuts the last number off @line. Return: false when there is none, or nothing in front of it. */
static bool take_count(struct str *line, struct count *out)
{
	struct str s = drop_blanks(*line);
	size_t at = s.len;

	while (at && s.ptr[at - 1] != ' ' && s.ptr[at - 1] != '\t')
		at--;
	if (!at || !read_count(str_skip(s, at), out))
		return false;
	s = drop_blanks(str_first(s, at));
	if (!s.len)
		return false;
	*line = s;
	return true;
}

/* "# text", and a line with a '#' in front that has no count: a stack may begin with that byte, too. */
static bool is_comment(struct str line)
{
	struct count count;

	if (!line.len || line.ptr[0] != '#')
		return false;
	return line.len == 1 || line.ptr[1] == ' ' || line.ptr[1] == '\t' || !take_count(&line, &count);
}

static bool all_pairs(struct str text)
{
	struct str line;
	bool any = false;
	struct count count;

	while (codec_next_line(&text, &line)) {
		if (is_comment(line) || !take_count(&line, &count))
			continue;
		if (!take_count(&line, &count))
			return false;
		any = true;
	}
	return any;
}

static int add_frame(struct folded_in *in, struct str name, uint32_t *stack)
{
	enum model_kind kind = MODEL_KIND_NATIVE;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes_in); i++) {
		if (name.len <= suffixes_in[i].text.len || !str_ends(name, suffixes_in[i].text))
			continue;
		kind = suffixes_in[i].kind;
		name.len -= suffixes_in[i].text.len;
		break;
	}
	return stack_reader_frame(in->stacks, *stack, codec_text(in->limits, name), kind, stack);
}

static int find_process(struct folded_in *in, struct str comm, uint32_t *out)
{
	struct model_process row = { 0 };
	int r = model_add_string(in->m, comm, &row.comm);

	if (r < 0)
		return r;
	if (!row.comm) {
		*out = 0;
		return 0;
	}
	if (u64map_get(&in->processes, row.comm, out) == 0)
		return 0;
	r = model_add_process(in->m, &row, out);
	return r ? r : u64map_put(&in->processes, row.comm, *out);
}

/* The first bad line is named, all are counted. */
static void leave_out(struct folded_in *in)
{
	if (!in->left_out++)
		codec_fail(in->error, in->line, true, "no count at the end of the line");
}

static size_t pieces(struct str line)
{
	size_t count = 0;

	for (size_t i = 0; i < line.len; i++)
		count += line.ptr[i] == ';';
	return count + 1;
}

/* Leaves out what is nearest the root of a stack that is too deep. */
static int cut_root(struct folded_in *in, struct str *line, uint32_t *end)
{
	size_t count = pieces(*line), max = in->limits->depth_max;
	struct str piece;

	if (!max || !line->len || count <= max)
		return 0;
	for (; count > max; count--)
		ignore(str_next(line, ';', &piece)); /* there are that many */
	return model_add_string(in->m, STR(CODEC_STACK_CUT), end);
}

static int read_line(struct folded_in *in, struct str line)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	struct count counts[2] = { 0 };
	int64_t values[2];
	struct str piece;
	int r;

	if (!take_count(&line, &counts[in->is_pair]) || (in->is_pair && !take_count(&line, &counts[0]))) {
		leave_out(in);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		values[i] = settle_count(in, i, counts[i]);
	ignore(str_next(&line, ';', &piece)); /* a line has at least one piece */
	r = find_process(in, piece, &sample.process);
	r = r ? r : cut_root(in, &line, &sample.end);
	while (r == 0 && str_next(&line, ';', &piece))
		r = add_frame(in, piece, &sample.stack);
	r = r ? r : model_add_sample(in->m, &sample, values);
	if (r < 0)
		codec_fail(in->error, in->line, true, "%s", r == -E2BIG ? "too many stacks" : "out of memory");
	return r;
}

static int look_at_limits(struct folded_in *in, uint64_t done)
{
	if (in->line % LINES_STEP == 0 && codec_stopped(in->limits, done))
		return -ECANCELED;
	if (!in->limits->samples_max || in->m->samples_count <= in->limits->samples_max)
		return 0;
	codec_fail(in->error, in->line, true, "more than %zu stacks", in->limits->samples_max);
	return -E2BIG;
}

static int read_text(struct folded_in *in, struct str text)
{
	size_t all = text.len;
	struct str line;
	int r = 0;

	in->is_pair = all_pairs(text);
	if (in->is_pair)
		r = model_add_value_type(in->m, STR(FOLDED_BEFORE), STR("count"));
	r = r ? r : model_add_value_type(in->m, STR("samples"), STR("count"));
	while (r == 0 && codec_next_line(&text, &line)) {
		in->line++;
		if (drop_blanks(line).len && !is_comment(line))
			r = read_line(in, line);
		r = r ? r : look_at_limits(in, all - text.len);
	}
	if (r == 0 && in->error)
		in->error->left_out = in->left_out;
	return r == 0 && in->left_out && !in->m->samples_count ? -EBADMSG : r;
}

/* UTF-16 with a byte order mark, as some Windows tools write. Bad units become U+FFFD. */
static void from_utf16(struct str bytes, bool is_big, struct buf *out)
{
	for (size_t i = 2; i + 1 < bytes.len; i += 2) {
		uint32_t a = (uint8_t)bytes.ptr[i], b = (uint8_t)bytes.ptr[i + 1],
			 unit = is_big ? a << 8 | b : b << 8 | a;

		if ((unit & 0xfc00) == 0xd800 && i + 3 < bytes.len) {
			uint32_t c = (uint8_t)bytes.ptr[i + 2], d = (uint8_t)bytes.ptr[i + 3],
				 low = is_big ? c << 8 | d : d << 8 | c;

			if ((low & 0xfc00) == 0xdc00) {
				unit = 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
				i += 2;
			}
		}
		utf8_add(out, unit);
	}
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(folded_in_release) struct folded_in in = { .error = error, .limits = limits };
	scoped(buf_release) struct buf wide = BUF_INIT(OUT_MAX);
	int r = window_init(&w, limit_of_sizes(bytes.len, 2, KIB(64)));

	in.m = w.model;
	in.stacks = r == 0 ? stack_reader_new(w.model) : NULL;
	u64map_init(&in.processes, UINT32_MAX);
	if (!in.stacks) {
		codec_fail(error, 0, true, "out of memory");
		return -ENOMEM;
	}
	in.m->memory_max = limits->memory_max;
	if (str_starts(bytes, STR("\xff\xfe")) || str_starts(bytes, STR("\xfe\xff"))) {
		from_utf16(bytes, (uint8_t)bytes.ptr[0] == 0xfe, &wide);
		if (wide.error) {
			codec_fail(error, 0, true, "out of memory");
			return wide.error;
		}
		bytes = buf_str(&wide);
	} else if (str_starts(bytes, STR(BOM))) {
		bytes = str_skip(bytes, strlen(BOM));
	}
	r = read_text(&in, bytes);
	if (r < 0)
		return r;
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

/* The first line that is neither empty nor a comment ends in a number and the bytes are text. */
static int sniff(struct str bytes)
{
	struct str text = str_first(bytes, KIB(4)), line;
	struct count count;

	if (str_starts(bytes, STR("\xff\xfe")) || str_starts(bytes, STR("\xfe\xff")))
		return 1;
	if (memchr(text.len ? text.ptr : "", 0, text.len))
		return 0;
	while (codec_next_line(&text, &line))
		if (drop_blanks(line).len && !is_comment(line))
			return take_count(&line, &count) || !text.ptr;
	return 0;
}

static const char *const suffixes[] = { ".folded", ".collapsed", ".txt", NULL };

const struct codec codec_folded = {
	.name = "folded",
	.suffixes = suffixes,
	.help = "one line per stack with its count, as flamegraph.pl and speedscope read",
	.encode = encode,
	.encode_as = encode_as,
	.begin = begin,
	.next = next,
	.held = held,
	.end = end,
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
