/* SPDX-License-Identifier: Apache-2.0 */
#include "store_support.h"

#include <dirent.h>
#include <unistd.h>

#include "support.h"

#include "codec/window_codec.h"
#include "model_samples.h"

/* Life */

static uint64_t fixture_now(void *self)
{
	return ((struct fixture *)self)->now;
}

static int fixture_open(void **state, const struct store *store, size_t dictionary_max)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->store = store;
	f->clock = (struct clock){ .monotonic_ns = fixture_now, .wall_ns = fixture_now, .self = f };
	f->now = UINT64_C(1728029000000000000);
	f->config = (struct store_config){ .path = f->path, .clock = &f->clock, .dictionary_max = dictionary_max };
	f->lasts = store == &store_sqlite;
	(void)snprintf(f->path, sizeof(f->path), "/tmp/hearth-store-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	assert_int_equal(store->open(&f->config, &f->s), 0);
	*state = f;
	return 0;
}

int fixture_memory(void **state)
{
	return fixture_open(state, &store_memory, 0);
}

int fixture_sqlite(void **state)
{
	return fixture_open(state, &store_sqlite, 0);
}

int fixture_sqlite_tight(void **state)
{
	return fixture_open(state, &store_sqlite, 1);
}

size_t fixture_clear(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
		count++;
	}
	assert_int_equal(closedir(dir), 0);
	assert_int_equal(rmdir(path), 0);
	return count;
}

int fixture_end(void **state)
{
	struct fixture *f = *state;

	f->store->close(f->s);
	(void)fixture_clear(f->path);
	free(f);
	return 0;
}

void fixture_reopen(struct fixture *f)
{
	f->store->close(f->s);
	f->s = NULL;
	assert_int_equal(f->store->open(&f->config, &f->s), 0);
}

/* Putting */

void fixture_window(uint64_t seed, struct window *out)
{
	assert_int_equal(window_init(out, 0), 0);
	model_release(out->model);
	assert_int_equal(random_model(seed, out->model), 0);
	out->start_ns = (uint64_t)out->model->time_ns;
	out->end_ns = out->start_ns + 10;
}

struct store_id fixture_put(struct fixture *f, const char *service, const char *type, const char *labels,
			    uint64_t created_ns, const struct window *w)
{
	struct store_label list[STORE_LABELS_MAX];
	struct str rest = str_of(labels), piece;
	struct store_upload upload = {
		.service = str_of(service), .type = str_of(type), .labels = list, .created_ns = created_ns, .window = w
	};
	struct store_id id;

	while (*labels && str_next(&rest, ';', &piece)) {
		size_t at = (size_t)str_find(piece, '=');

		list[upload.label_count++] = (struct store_label){ str_first(piece, at), str_skip(piece, at + 1) };
	}
	assert_int_equal(f->store->put(f->s, &upload, &id), 0);
	return id;
}

void fixture_put_random(struct fixture *f, const char *service, uint64_t seed, uint64_t created_ns)
{
	scoped(window_release) struct window w = { 0 };

	fixture_window(seed, &w);
	(void)fixture_put(f, service, "cpu", seed % 3 ? "host=a" : "host=b", created_ns, &w);
}

/* Comparing: every sample with all it refers to as one line */

static void add_text(struct buf *out, const struct model *m, uint32_t id)
{
	struct str text = model_string(m, id);

	buf_addf(out, "%zu:", text.len);
	buf_adds(out, text);
}

static void add_mapping(struct buf *out, const struct model *m, uint32_t row)
{
	const struct model_mapping *mapping = &m->mappings[row];

	buf_addf(out, " [%llx-%llx +%llx f%u ", (unsigned long long)mapping->start, (unsigned long long)mapping->limit,
		 (unsigned long long)mapping->file_offset, mapping->flags);
	add_text(out, m, mapping->filename);
	add_text(out, m, mapping->build_id);
	buf_addc(out, ']');
}

static void add_location(struct buf *out, const struct model *m, uint32_t row)
{
	const struct model_location *location = &m->locations[row];

	buf_addf(out, " @%llx%s", (unsigned long long)location->address, location->is_folded ? "f" : "");
	if (location->mapping)
		add_mapping(out, m, location->mapping);
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct model_line *line = &m->lines[location->first_line + i];
		const struct model_function *function = &m->functions[line->function];

		buf_addf(out, " line %lld:%lld k%d s%lld ", (long long)line->line, (long long)line->column,
			 (int)function->kind, (long long)function->start_line);
		add_text(out, m, function->name);
		add_text(out, m, function->system_name);
		add_text(out, m, function->filename);
	}
}

static void add_process(struct buf *out, const struct model *m, uint32_t row)
{
	const struct model_process *process = &m->processes[row];

	buf_addf(out, " pid %u %llu ", process->pid, (unsigned long long)process->start_ns);
	add_text(out, m, process->comm);
	add_text(out, m, process->container);
	add_text(out, m, process->app_id);
	add_text(out, m, m->app_metadata[process->app_metadata]);
}

static void add_labels(struct buf *out, const struct model *m, uint32_t row)
{
	for (uint32_t i = 0; i < m->label_sets[row].count; i++) {
		const struct model_label *label = &m->labels[m->label_sets[row].first + i];

		buf_addf(out, " label %d %lld ", label->is_number, (long long)label->number);
		add_text(out, m, label->key);
		add_text(out, m, label->is_number ? label->unit : label->text);
	}
}

static char *sample_line(const struct model *m, const struct model_sample *s)
{
	struct buf out = BUF_INIT(MIB(64));
	size_t size;

	for (size_t i = 0; i < m->value_type_count; i++)
		buf_addf(&out, " %lld", (long long)model_values(m, s)[i]);
	buf_addf(&out, " t%llu ", (unsigned long long)s->time_offset_ns);
	add_text(&out, m, s->end);
	add_process(&out, m, s->process);
	add_process(&out, m, m->threads[s->thread].process);
	buf_addf(&out, " tid %u ", m->threads[s->thread].tid);
	add_text(&out, m, m->threads[s->thread].name);
	add_labels(&out, m, s->label_set);
	for (uint32_t node = s->stack; node; node = m->stacks[node].parent)
		add_location(&out, m, m->stacks[node].location);
	for (size_t i = 0; i < out.len; i++)
		out.ptr[i] = out.ptr[i] ? out.ptr[i] : '?'; /* lengths stand in front: nothing gets equal */
	buf_addc(&out, 0);
	assert_int_equal(out.error, 0);
	return buf_take(&out, &size);
}

static int line_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **sample_lines(const struct model *m)
{
	char **lines = calloc(m->samples_count + 1, sizeof(*lines));

	assert_non_null(lines);
	for (size_t i = 0; i < m->samples_count; i++)
		lines[i] = sample_line(m, &m->samples[i]);
	qsort(lines, m->samples_count, sizeof(*lines), line_order);
	return lines;
}

static void header_line(const struct model *m, struct buf *out)
{
	for (size_t i = 0; i < m->value_type_count; i++) {
		add_text(out, m, m->value_types[i].type);
		add_text(out, m, m->value_types[i].unit);
	}
	add_text(out, m, m->period_type.type);
	add_text(out, m, m->period_type.unit);
	buf_addf(out, " %lld %lld %lld ", (long long)m->period, (long long)m->time_ns, (long long)m->duration_ns);
	add_text(out, m, m->drop_frames);
	add_text(out, m, m->keep_frames);
	add_text(out, m, m->default_type);
	add_text(out, m, m->doc_url);
	for (size_t i = 0; i < m->comments_count; i++)
		add_text(out, m, m->comments[i]);
	for (uint32_t i = 1; i < m->mappings_count; i++)
		add_mapping(out, m, i);
}

static void assert_same_models(const struct model *a, const struct model *b)
{
	scoped(buf_release) struct buf x = BUF_INIT(MIB(64)), y = BUF_INIT(MIB(64));
	char **lines = sample_lines(a), **others = sample_lines(b);

	header_line(a, &x);
	header_line(b, &y);
	assert_true(!x.error && !y.error && str_eq(buf_str(&x), buf_str(&y)));
	assert_int_equal(a->samples_count, b->samples_count);
	for (size_t i = 0; i < a->samples_count; i++) {
		assert_string_equal(lines[i], others[i]);
		free(lines[i]);
		free(others[i]);
	}
	free(lines);
	free(others);
}

/* The window without its model, encoded. */
static void facts(const struct window *w, struct buf *out)
{
	scoped(window_release) struct window empty = { 0 };
	struct window copy = *w;

	assert_int_equal(window_init(&empty, 0), 0);
	copy.model = empty.model;
	assert_int_equal(codec_window.encode(&copy, out), 0);
}

void fixture_assert_reads(struct fixture *f, const struct store_id *id, const struct window *want)
{
	scoped(buf_release) struct buf x = BUF_INIT(MIB(16)), y = BUF_INIT(MIB(16));
	struct store_document got = { 0 };

	assert_int_equal(f->store->read(f->s, id, &got), 0);
	assert_false(got.is_raw);
	assert_same_models(got.window.model, want->model);
	facts(&got.window, &x);
	facts(want, &y);
	assert_true(str_eq(buf_str(&x), buf_str(&y)));
	store_document_release(&got);
}

static int count_one(void *ctx, const struct store_profile *profile)
{
	(void)profile;
	++*(size_t *)ctx;
	return 0;
}

size_t fixture_count(struct fixture *f, const struct store_selector *sel)
{
	size_t count = 0;

	assert_int_equal(f->store->list(f->s, sel, count_one, &count), 0);
	return count;
}

size_t fixture_remove(struct fixture *f, const struct store_selector *sel)
{
	struct store_removed removed;

	assert_int_equal(f->store->remove(f->s, sel, &removed), 0);
	assert_int_equal(removed.aside, 0);
	return (size_t)removed.profiles;
}

struct slow_sum {
	struct fixture *f;
	struct model sum;
	size_t count;
};

static int add_read(void *ctx, const struct store_profile *profile)
{
	struct slow_sum *slow = ctx;
	struct store_document d = { 0 };

	if (slow->f->store == &store_memory) /* its lock is held: what it reads is what it sums */
		return 0;
	assert_int_equal(slow->f->store->read(slow->f->s, &profile->id, &d), 0);
	assert_int_equal(model_merge(&slow->sum, d.window.model), 0);
	store_document_release(&d);
	slow->count++;
	return 0;
}

/* A sum that is only looked at has what a merge makes of it. */
static void assert_reads_same(struct fixture *f, const struct store_selector *sel, const struct window *want)
{
	struct store_selector to_read = *sel;
	scoped(window_release) struct window got = { 0 }, merged = { 0 };
	scoped(content_release) struct content a = { 0 }, b = { 0 };
	struct store_sum info;

	to_read.to_read = true;
	assert_int_equal(f->store->sum(f->s, &to_read, &got, &info), 0);
	assert_int_equal(window_init(&merged, MIB(64)), 0);
	assert_int_equal(model_merge(merged.model, got.model), 0);
	content_add(&a, want->model);
	content_add(&b, merged.model);
	content_assert_same(&a, &b);
	assert_int_equal(got.start_ns, want->start_ns);
	assert_int_equal(got.end_ns, want->end_ns);
}

void fixture_assert_sum(struct fixture *f, const struct store_selector *sel)
{
	scoped(window_release) struct window got = { 0 };
	scoped(content_release) struct content a = { 0 }, b = { 0 };
	struct slow_sum slow = { .f = f };
	struct store_sum info;

	assert_int_equal(model_init(&slow.sum, MIB(64)), 0);
	assert_int_equal(f->store->list(f->s, sel, add_read, &slow), 0);
	assert_int_equal(f->store->sum(f->s, sel, &got, &info), 0);
	assert_int_equal(info.parts_bad, 0);
	assert_reads_same(f, sel, &got);
	if (f->lasts) {
		assert_int_equal(info.profiles, slow.count);
		content_add(&a, &slow.sum);
		content_add(&b, got.model);
		content_assert_same(&a, &b);
		assert_int_equal(got.model->duration_ns, slow.sum.duration_ns);
		assert_int_equal(got.model->time_ns, slow.sum.time_ns);
		assert_int_equal(got.model->period, slow.sum.period);
	}
	model_release(&slow.sum);
}
