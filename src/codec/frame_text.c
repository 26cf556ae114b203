/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/frame_text.h"

struct str frame_text_last_name(struct str qualified)
{
	ptrdiff_t dot = str_rfind(qualified, '.'), angle = str_rfind(qualified, '<');

	/* "<lambda>", "<listcomp>": nothing in front of '<' but a dot, and dots inside belong to it */
	if (str_ends(qualified, STR(">")) && angle >= 0 && (!angle || qualified.ptr[angle - 1] == '.'))
		return str_skip(qualified, (size_t)angle);
	if (dot < 0 || (size_t)dot + 1 == qualified.len)
		return qualified;
	return str_skip(qualified, (size_t)dot + 1);
}

static void add_name(const struct model *m, const struct model_function *f, enum frame_names names, struct buf *out)
{
	struct str name = model_string(m, f->name), qualified = model_string(m, f->system_name);

	if (names == FRAME_NAMES_PYSPY)
		name = frame_text_last_name(qualified.len ? qualified : name);
	buf_adds(out, name.len ? name : STR("[unknown]"));
}

static int64_t choose_line(const struct model_function *f, const struct model_line *line, enum frame_lines lines)
{
	int64_t first = f->start_line, executing = line->line;

	if (lines == FRAME_LINES_EXECUTING)
		return executing > 0 ? executing : first;
	return first > 0 ? first : executing;
}

void frame_text_name(const struct model *m, const struct frame_style *style, const struct model_function *function,
		     struct buf *out)
{
	struct str name = model_string(m, function->name);

	if (function->kind == MODEL_KIND_PYTHON)
		add_name(m, function, style->names, out);
	else
		buf_adds(out, name.len ? name : STR("[unknown]"));
}

static void add_python(const struct model *m, const struct frame_style *style, const struct model_location *location,
		       const struct model_line *line, struct buf *out)
{
	const struct model_function *f = &m->functions[line->function];
	struct str file = model_string(m, f->filename);
	struct str distribution =
		model_distribution_of_mapping(model_string(m, m->mappings[location->mapping].filename));
	int64_t number = choose_line(f, line, style->lines);

	add_name(m, f, style->names, out);
	if (!file.len)
		return;
	buf_adds(out, STR(" ("));
	buf_adds(out, file);
	if (number > 0) {
		buf_addc(out, ':');
		buf_addu64(out, (uint64_t)number);
	}
	if (number > 0 && distribution.len && !style->no_versions && str_ends(file, STR(".py"))) {
		buf_adds(out, STR(" ["));
		buf_adds(out, distribution);
		buf_addc(out, ']');
	}
	buf_addc(out, ')');
}

static bool is_java(enum model_kind kind)
{
	return kind >= MODEL_KIND_JAVA && kind <= MODEL_KIND_JAVA_INTERPRETED;
}

/* "com/acme/Db.get(I)V": one dot, between class and method. Other formats have dots in the class, too. */
static bool is_vm_name(struct str name)
{
	ptrdiff_t open = str_find(name, '('), dot = str_find(name, '.');

	return dot > 0 && open > dot && str_rfind(str_first(name, (size_t)open), '.') == dot;
}

static void add_java(const struct frame_style *style, const struct model_function *f, struct str name, struct buf *out)
{
	ptrdiff_t open = str_find(name, '(');

	buf_adds(out, str_first(name, (size_t)open));
	if (style->java_lines && f->start_line > 0) {
		buf_addc(out, ':');
		buf_addu64(out, (uint64_t)f->start_line);
	}
	buf_adds(out, str_skip(name, (size_t)open));
}

/* As V8's perf maps have it, which gProfiler reads: "name /path/file.js:12". */
static void add_javascript(const struct model *m, const struct frame_style *style, const struct model_line *line,
			   struct buf *out)
{
	const struct model_function *f = &m->functions[line->function];
	struct str name = model_string(m, f->name), file = model_string(m, f->filename);
	int64_t number = choose_line(f, line, style->lines);

	buf_adds(out, name.len ? name : STR("[unknown]"));
	if (!file.len)
		return;
	buf_addc(out, ' ');
	buf_adds(out, file);
	if (number > 0) {
		buf_addc(out, ':');
		buf_addu64(out, (uint64_t)number);
	}
}

/* As rbspy: "method - file:line" (src/core/types.rs, StackFrame). C functions have no file. */
static void add_ruby(const struct model *m, const struct frame_style *style, const struct model_line *line,
		     struct buf *out)
{
	const struct model_function *f = &m->functions[line->function];
	struct str name = model_string(m, f->name), file = model_string(m, f->filename);
	struct str plain = model_string(m, f->system_name); /* rbspy knows no classes */
	int64_t number = choose_line(f, line, style->ruby_lines);

	if (plain.len)
		name = plain;
	buf_adds(out, name.len ? name : STR("[unknown]"));
	if (!file.len)
		return;
	buf_adds(out, STR(" - "));
	buf_adds(out, file);
	if (number > 0) {
		buf_addc(out, ':');
		buf_addu64(out, (uint64_t)number);
	}
}

/* As phpspy writes it: "func /srv/a.php:24", "array_map <internal>:-1". Source: gprofiler/profilers/php.py. */
static void add_php(const struct model *m, const struct frame_style *style, const struct model_line *line,
		    struct buf *out)
{
	const struct model_function *f = &m->functions[line->function];
	struct str file = model_string(m, f->filename);
	int64_t number = choose_line(f, line, style->lines);

	add_name(m, f, FRAME_NAMES_PACKAGE, out);
	if (!file.len)
		return;
	buf_addc(out, ' ');
	buf_adds(out, file);
	if (number > 0) {
		buf_addc(out, ':');
		buf_addu64(out, (uint64_t)number);
	} else if (str_eq(file, STR("<internal>"))) {
		buf_adds(out, STR(":-1"));
	}
}

void frame_text(const struct model *m, const struct frame_style *style, uint32_t location, uint32_t line,
		struct buf *out)
{
	const struct model_location *row = &m->locations[location];
	const struct model_line *l = line < row->line_count ? &m->lines[row->first_line + line] : NULL;
	struct str library = model_string(m, m->mappings[row->mapping].filename);

	if (l && m->functions[l->function].kind == MODEL_KIND_PYTHON) {
		add_python(m, style, row, l, out);
		return;
	}
	if (l && style->signatures && is_java(m->functions[l->function].kind)) {
		const struct model_function *f = &m->functions[l->function];
		struct str name = model_string(m, f->system_name);

		if (is_vm_name(name)) {
			add_java(style, f, name, out);
			return;
		}
	}
	if (l && m->functions[l->function].kind == MODEL_KIND_JAVASCRIPT) {
		add_javascript(m, style, l, out);
		return;
	}
	if (l && m->functions[l->function].kind == MODEL_KIND_RUBY) {
		add_ruby(m, style, l, out);
		return;
	}
	if (l && m->functions[l->function].kind == MODEL_KIND_PHP) {
		add_php(m, style, l, out);
		return;
	}
	model_frame_name(m, location, line, out);
	if (style->libraries && l && m->functions[l->function].kind == MODEL_KIND_NATIVE && library.len) {
		buf_adds(out, STR(" ("));
		buf_adds(out, library);
		buf_addc(out, ')');
	}
}

/* "FILE:LINE", the line as it would be written. */
static bool parse_place(struct str text, struct frame_parts *out)
{
	ptrdiff_t colon = str_rfind(text, ':');
	struct str digits;
	uint64_t line;

	if (colon <= 0)
		return false;
	digits = str_skip(text, (size_t)colon + 1);
	if (!digits.len || digits.ptr[0] == '0' || str_to_u64(digits, 1, INT64_MAX, &line) < 0)
		return false;
	out->file = str_first(text, (size_t)colon);
	out->line = (int64_t)line;
	return true;
}

bool frame_text_parse(struct str text, struct frame_parts *out)
{
	ptrdiff_t open = str_search(text, STR(" (")), bracket;
	struct frame_parts parts = { 0 };
	struct str place;

	if (open <= 0 || !str_ends(text, STR(")")))
		return false;
	parts.name = str_first(text, (size_t)open);
	place = str_skip(text, (size_t)open + 2);
	place.len--;
	if (str_search(place, STR(" (")) >= 0)
		return false; /* which of them begins the place? */
	bracket = str_search(place, STR(" ["));
	if (bracket >= 0 && str_ends(place, STR("]"))) {
		parts.distribution = str_skip(place, (size_t)bracket + 2);
		parts.distribution.len--;
		place = str_first(place, (size_t)bracket);
		if (!parts.distribution.len ||
		    !str_ends(str_first(place, (size_t)MAX(str_rfind(place, ':'), 0)), STR(".py")))
			return false;
	}
	if (!parse_place(place, &parts))
		return false;
	*out = parts;
	return true;
}
