/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/folded_lines.h"

#include "base/array.h"
#include "codec/stack_text.h"

#define TEXT_MAX GIB(4)
#define UNKNOWN "[unknown]"
#define BOM "\xef\xbb\xbf"

static struct str suffix_of(enum model_kind kind, bool is_inlined)
{
	if (kind == MODEL_KIND_KERNEL)
		return STR("_[k]");
	if (is_inlined || kind == MODEL_KIND_JAVA_INLINED)
		return STR("_[i]");
	if (kind == MODEL_KIND_JIT || kind == MODEL_KIND_JAVA || kind == MODEL_KIND_JAVA_C1)
		return STR("_[j]");
	if (model_kind_is_runtime(kind))
		return model_kind_suffix(kind);
	return STR("");
}

struct collecting {
	const struct model *m;
	struct stack_text stacks;
	struct folded_lines *out;
	size_t cap;
};

static void collecting_release(struct collecting *c)
{
	stack_text_release(&c->stacks);
}

void folded_lines_release(struct folded_lines *l)
{
	buf_release(&l->text);
	free(l->items);
	*l = (struct folded_lines){ 0 };
}

static bool is_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((s.ptr[i] < '0' || s.ptr[i] > '9') && s.ptr[i] != '.')
			return false;
	return s.len;
}

/* What a reader of this format would take for something else at the end of a line: blanks before the count go away, and
 * the blank before a last word of digits ("task 5") becomes '_', since flamegraph.pl and others read two numbers there.
 */
static void tame_end(struct buf *text, size_t start)
{
	struct str line;
	ptrdiff_t blank;

	if (text->error)
		return;
	while (text->len > start && text->ptr[text->len - 1] == ' ')
		text->len--;
	if (text->len == start) { /* neither a comm nor a frame */
		buf_adds(text, STR(UNKNOWN));
		return;
	}
	line = str_n(text->ptr + start, text->len - start);
	blank = str_rfind(line, ' ');
	if (blank >= 0 && is_digits(str_skip(line, (size_t)blank + 1)))
		text->ptr[start + (size_t)blank] = '_';
	if (line.ptr[line.len - 1] == ';')
		buf_adds(text, STR(UNKNOWN));
}

/* A byte order mark at the start of a line would be taken off the file's first one, and "# " begins a comment. */
static void tame_start(struct buf *text, size_t start)
{
	if (text->error || text->len == start)
		return;
	if (str_starts(str_n(text->ptr + start, text->len - start), STR(BOM)))
		memcpy(text->ptr + start, "\xef\xbf\xbd", strlen(BOM)); /* U+FFFD */
	else if (str_starts(str_n(text->ptr + start, text->len - start), STR("# ")))
		text->ptr[start + 1] = '_';
}

static int add_line(struct collecting *c, const struct model_sample *s, uint64_t before, uint64_t count)
{
	struct str comm = model_string(c->m, c->m->processes[s->process].comm);
	struct buf *text = &c->out->text;
	size_t start = text->len;
	int r = array_grow(&c->out->items, &c->cap, c->out->count, UINT32_MAX);

	stack_text_name(text, comm);
	r = r ? r : stack_text_add(&c->stacks, s->stack, text);
	r = r ? r : text->error;
	if (r < 0)
		return r;
	if (!comm.len && text->len > start) { /* without a comm the first frame comes first */
		memmove(text->ptr + start, text->ptr + start + 1, text->len - start - 1);
		text->len--;
	}
	tame_start(text, start);
	tame_end(text, start);
	c->out->items[c->out->count++] = (struct folded_line){ start, text->len - start, before, count };
	return text->error;
}

static int line_order(const void *a, const void *b, void *text)
{
	const struct folded_line *x = a, *y = b;

	return str_cmp(str_n((const char *)text + x->at, x->len), str_n((const char *)text + y->at, y->len));
}

static void add_saturating(uint64_t *sum, uint64_t value)
{
	*sum = *sum + value > INT64_MAX ? INT64_MAX : *sum + value; /* both are below 2^63 */
}

/* Bytewise by stack; equal lines become one. */
static void sort_lines(struct folded_lines *l)
{
	size_t kept = 0;

	if (!l->count)
		return;
	qsort_r(l->items, l->count, sizeof(*l->items), line_order, l->text.ptr);
	for (size_t i = 1; i < l->count; i++) {
		struct folded_line *last = &l->items[kept];

		if (line_order(last, &l->items[i], l->text.ptr) == 0) {
			add_saturating(&last->before, l->items[i].before);
			add_saturating(&last->count, l->items[i].count);
		} else {
			l->items[++kept] = l->items[i];
		}
	}
	l->count = kept + 1;
}

bool folded_is_pair(const struct model *m, const struct codec_options *options)
{
	return m->value_type_count == 2 && !options->value &&
	       str_eq(model_string(m, m->value_types[0].type), STR(FOLDED_BEFORE)) &&
	       m->value_types[0].unit == m->value_types[1].unit;
}

int folded_lines_collect(const struct model *m, const struct codec_options *options, bool in_order,
			 struct folded_lines *out)
{
	const struct stack_text_config cfg = { .suffix = suffix_of, .style = options->frames };
	scoped(folded_lines_release) struct folded_lines lines = { .text = BUF_INIT(TEXT_MAX) };
	scoped(collecting_release) struct collecting c = { .m = m, .out = &lines };
	size_t column = codec_value(m, options, model_count_value(m));
	int r = stack_text_init(&c.stacks, m, &cfg);

	lines.is_pair = folded_is_pair(m, options);
	if (lines.is_pair)
		column = 1;
	for (size_t i = 0; r == 0 && m->value_type_count && i < m->samples_count; i++) {
		const int64_t *values = model_values(m, &m->samples[i]);
		int64_t before = lines.is_pair ? values[0] : 0, count = values[column];

		if (before < 0 || count < 0)
			lines.left_out++;
		else if (before || count)
			r = add_line(&c, &m->samples[i], (uint64_t)before, (uint64_t)count);
	}
	if (r < 0)
		return r;
	if (!in_order)
		sort_lines(&lines);
	*out = lines;
	lines = (struct folded_lines){ 0 }; /* moved out */
	return 0;
}
