/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/source_maps.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/u64map.h"
#include "runtime/target_files.h"
#include "symbol/lines_asker.h"
#include "symbol/source_map.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXTS_MAX MIB(16)
#define ROWS_MAX (1U << 18)
#define SCRIPTS_MAX 65536
#define ASK_PATIENCE_NS (10 * NSEC_PER_SEC)
#define COST_TIMES 30 /* of the time that a map takes are between two looks at it */
#define NOWHERE 0     /* file of a row: nobody knows where it comes from */

struct script {
	uint32_t origin, path;
	uint64_t map_id;
	bool is_off;      /* its map cannot be read */
	uint64_t next_ns; /* CLOCK_MONOTONIC: not asked before that */
};

struct row {
	uint32_t script;
	int32_t line, column;
	uint32_t file, name;
	int32_t found_line;
};

struct wanted {
	uint32_t script;
	int32_t root_fd;
	uint64_t place; /* source_map_place() */
};

struct source_maps {
	struct lines_asker asker;
	struct intern texts;
	struct script *scripts;
	size_t script_count, script_cap;
	struct u64map script_index;
	struct row *rows;
	size_t row_count, row_cap;
	struct u64map row_index;
	struct buf path; /* at hand */
};

static void begin(struct source_maps *s)
{
	intern_init(&s->texts, TEXTS_MAX);
	u64map_init(&s->script_index, SCRIPTS_MAX);
	u64map_init(&s->row_index, ROWS_MAX);
	s->script_count = s->row_count = 0;
}

static void forget(struct source_maps *s)
{
	intern_release(&s->texts);
	u64map_release(&s->script_index);
	u64map_release(&s->row_index);
}

int source_maps_new(struct source_maps **out)
{
	const struct lines_asker_config cfg = {
		.file_lost = "a source map was not read: the reader of debug information failed",
		.is_off = "no more source maps in this session: the reader of debug information keeps failing",
	};
	struct source_maps *s = calloc(1, sizeof(*s));
	int r = s ? lines_asker_init(&s->asker, &cfg) : -ENOMEM;

	if (r < 0) {
		free(s);
		return r;
	}
	begin(s);
	s->path = (struct buf)BUF_INIT(4 * TARGET_PATH_MAX);
	*out = s;
	return 0;
}

void source_maps_free(struct source_maps *s)
{
	if (!s)
		return;
	lines_asker_release(&s->asker);
	forget(s);
	buf_release(&s->path);
	free(s->scripts);
	free(s->rows);
	free(s);
}

/* ---- what is known ---- */

static bool is_script(const struct source_maps *s, uint32_t at, const struct source_maps_script *script)
{
	const struct script *have = &s->scripts[at];

	return have->origin == script->origin && have->map_id == script->map_id &&
	       str_eq(intern_get(&s->texts, have->path), script->path);
}

static uint64_t script_hash(const struct source_maps_script *script)
{
	const uint64_t words[] = { script->origin, script->map_id, XXH3_64bits(script->path.ptr, script->path.len) };

	return XXH3_64bits(words, sizeof(words));
}

/* Two that share a hash: the second one goes without. */
static int find_script(const struct source_maps *s, const struct source_maps_script *script, uint32_t *out)
{
	int r = u64map_get(&s->script_index, script_hash(script), out);

	return r == 0 && !is_script(s, *out, script) ? -EEXIST : r;
}

static int add_script(struct source_maps *s, const struct source_maps_script *script, uint32_t *out)
{
	struct script new = { .origin = script->origin, .map_id = script->map_id };
	int r = find_script(s, script, out);

	if (r != -ENOENT)
		return r;
	r = intern_add(&s->texts, script->path, &new.path);
	if (r == 0)
		r = array_grow(&s->scripts, &s->script_cap, s->script_count, SCRIPTS_MAX);
	if (r == 0)
		r = u64map_put(&s->script_index, script_hash(script), (uint32_t)s->script_count);
	if (r < 0)
		return r;
	*out = (uint32_t)s->script_count;
	s->scripts[s->script_count++] = new;
	return 0;
}

static uint64_t row_hash(uint32_t script, int32_t line, int32_t column)
{
	const uint32_t words[] = { script, (uint32_t)line, (uint32_t)column };

	return XXH3_64bits(words, sizeof(words));
}

static const struct row *find_row(const struct source_maps *s, uint32_t script, int32_t line, int32_t column)
{
	uint32_t at;
	const struct row *row;

	if (u64map_get(&s->row_index, row_hash(script, line, column), &at) < 0)
		return NULL;
	row = &s->rows[at];
	return row->script == script && row->line == line && row->column == column ? row : NULL;
}

/* ---- paths ---- */

static void add_part(struct buf *out, struct str part)
{
	ptrdiff_t slash;

	if (!part.len || str_eq(part, STR(".")))
		return;
	if (str_eq(part, STR(".."))) {
		slash = str_rfind(buf_str(out), '/');
		out->len = slash > 0 ? (size_t)slash : 0;
		return;
	}
	buf_addc(out, '/');
	buf_adds(out, part);
}

static void add_parts(struct buf *out, struct str path)
{
	struct str part;

	while (str_next(&path, '/', &part))
		add_part(out, part);
}

void source_maps_path(struct str script, struct str source, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(4 * TARGET_PATH_MAX);
	ptrdiff_t slash = str_rfind(script, '/');

	if (str_starts(source, STR("file:///")))
		source = str_skip(source, sizeof("file://") - 1);
	if (str_search(source, STR("://")) >= 0) {
		buf_adds(out, source);
		return;
	}
	if (!str_starts(source, STR("/")))
		add_parts(&path, str_first(script, slash > 0 ? (size_t)slash : 0));
	add_parts(&path, source);
	if (path.error)
		out->error = path.error;
	buf_adds(out, buf_str(&path));
}

/* ---- asking ---- */

struct asked {
	struct source_maps *maps;
	const struct wanted *wanted;
};

/* Where there is no room it is asked again when there is. Return: 0 or -ENOMEM. */
static int keep(void *ctx, size_t index, const struct lines_answer *answer)
{
	const struct asked *asked = ctx;
	struct source_maps *s = asked->maps;
	const struct wanted *w = &asked->wanted[index];
	const struct lines_wire_frame *f = &answer->frames[0];
	struct row row = { .script = w->script,
			   .line = (int32_t)(w->place >> 32) + 1,
			   .column = (int32_t)(uint32_t)w->place + 1,
			   .file = NOWHERE };
	int r = 0;

	if (answer->depth && f->line <= INT32_MAX) {
		buf_clear(&s->path);
		source_maps_path(intern_get(&s->texts, s->scripts[w->script].path), f->file, &s->path);
		row.found_line = (int32_t)f->line;
		r = s->path.error ? s->path.error : intern_add(&s->texts, buf_str(&s->path), &row.file);
		if (r == 0)
			r = intern_add(&s->texts, f->function, &row.name);
	}
	if (r == 0)
		r = array_grow(&s->rows, &s->row_cap, s->row_count, ROWS_MAX);
	if (r == 0)
		r = u64map_put(&s->row_index, row_hash(row.script, row.line, row.column), (uint32_t)s->row_count);
	if (r == 0)
		s->rows[s->row_count++] = row;
	return r == -ENOMEM ? r : 0;
}

/* Return: a descriptor; -ENOENT: it is gone, or another one; -errno. */
static int open_map(struct source_maps *s, const struct wanted *w)
{
	const struct script *script = &s->scripts[w->script];
	struct stat st;
	uint64_t size;
	int fd;

	buf_clear(&s->path);
	buf_adds(&s->path, intern_get(&s->texts, script->path));
	buf_adds(&s->path, STR(".map"));
	fd = target_open(w->root_fd, buf_cstr(&s->path), &size);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && size <= SOURCE_MAP_MAX && target_file_id(&st) == script->map_id)
		return fd;
	close(fd);
	return -ENOENT;
}

/* All places of one script. Return: 0 or -ENOMEM. */
static int ask_script(struct source_maps *s, const struct wanted *w, size_t count)
{
	scoped(closep) int fd = open_map(s, w);
	scoped(freep) uint64_t *places = calloc(count, sizeof(*places));
	struct asked asked = { s, w };
	struct lines_question question = { .addresses = places,
					   .count = count,
					   .flags = LINES_NEW_FILE | LINES_SOURCE_MAP,
					   .fds = { fd },
					   .fd_count = 1 };
	struct script *script = &s->scripts[w->script];
	uint64_t begin_ns = clock_monotonic_ns(&clock_system), end_ns;
	size_t done;
	int r;

	if (!places)
		return -ENOMEM;
	script->is_off = fd == -ENOENT || fd == -ENODEV;
	if (fd < 0 || lines_asker_ready(&s->asker) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		places[i] = w[i].place;
	r = lines_asker_ask(&s->asker, &question, keep, &asked, &done);
	script->is_off = r < 0 && r != -ETIME && r != -ENOMEM;
	end_ns = clock_monotonic_ns(&clock_system);
	script->next_ns = end_ns + COST_TIMES * (end_ns - begin_ns);
	return r == -ENOMEM ? r : 0;
}

static int by_script(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->script != y->script)
		return (x->script > y->script) - (x->script < y->script);
	return (x->place > y->place) - (x->place < y->place);
}

/* What is not known yet, sorted and distinct. Return: count or -ENOMEM. */
static ssize_t list_wanted(struct source_maps *s, const struct source_maps_place *places, size_t count,
			   struct wanted *out)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	size_t n = 0, distinct = 0;

	for (size_t i = 0; i < count; i++) {
		const struct source_maps_place *p = &places[i];
		uint32_t script;
		int r = p->line > 0 && p->column > 0 && p->script.root_fd >= 0 ? add_script(s, &p->script, &script)
									       : -ENOENT;

		if (r == -ENOMEM)
			return r;
		if (r < 0 || s->scripts[script].is_off || s->scripts[script].next_ns > now_ns ||
		    find_row(s, script, p->line, p->column))
			continue;
		out[n++] = (struct wanted){ script, p->script.root_fd,
					    source_map_place((uint32_t)p->line - 1, (uint32_t)p->column - 1) };
	}
	qsort(out, n, sizeof(*out), by_script);
	for (size_t i = 0; i < n; i++)
		if (!distinct || by_script(&out[distinct - 1], &out[i]))
			out[distinct++] = out[i];
	return (ssize_t)distinct;
}

int source_maps_ask(struct source_maps *s, const struct source_maps_place *places, size_t count)
{
	scoped(freep) struct wanted *wanted = s->asker.is_off ? NULL : calloc(count + 1, sizeof(*wanted));
	ssize_t n;
	int r = 0;

	if (!wanted)
		return s->asker.is_off ? 0 : -ENOMEM;
	if (s->row_count > ROWS_MAX / 2 || s->texts.size > TEXTS_MAX / 2 || s->script_count > SCRIPTS_MAX / 2) {
		forget(s);
		begin(s);
	}
	n = list_wanted(s, places, count, wanted);
	if (n <= 0)
		return (int)n;
	s->asker.end_ns = clock_monotonic_ns(&clock_system) + ASK_PATIENCE_NS;
	for (size_t i = 0, next; r == 0 && i < (size_t)n && lines_asker_has_time(&s->asker); i = next) {
		for (next = i; next < (size_t)n && wanted[next].script == wanted[i].script; next++)
			;
		r = ask_script(s, wanted + i, next - i);
	}
	lines_asker_rest(&s->asker);
	return r;
}

bool source_maps_get(struct source_maps *s, const struct source_maps_place *place, struct source_maps_found *out)
{
	const struct row *row;
	uint32_t script;

	if (find_script(s, &place->script, &script) < 0)
		return false;
	row = find_row(s, script, place->line, place->column);
	if (!row || row->file == NOWHERE)
		return false;
	*out = (struct source_maps_found){ .file = intern_get(&s->texts, row->file),
					   .name = intern_get(&s->texts, row->name),
					   .line = row->found_line };
	return true;
}
