/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/debug_lines.h"

#include <elf.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/u64map.h"
#include "symbol/lines_asker.h"
#include "symbol/symbol_int.h"

#define MEMORY_DEFAULT MIB(64)
#define ASK_PATIENCE_NS (60 * NSEC_PER_SEC)
#define FILES_MAX 8192 /* of a session; what comes later has no lines */
#define ADDRESS_BITS 40
#define NO_FRAMES UINT32_MAX

static_assert(DEBUG_LINES_DEPTH_MAX == LINES_DEPTH_MAX, "what one side sends the other shows");

enum file_state { FILE_NEW, FILE_USABLE, FILE_WITHOUT, FILE_FAILED };

struct file { /* one build id, possibly under several file ids */
	struct symbol_key key;
	uint64_t base; /* lowest address: answers are kept by the distance from it */
	enum file_state state;
};

struct frame { /* strings of l->texts */
	uint32_t name, system_name, file;
	uint32_t line;
	bool is_last;
};

struct wanted {
	uint32_t file, file_id;
	uint64_t address;
};

struct debug_lines {
	struct symbols *symbols;
	struct lines_asker asker;
	size_t memory_max;
	uint64_t ask_patience_ns;
	struct file *files;
	size_t file_count, file_cap;
	struct u64map file_of_id; /* file id -> index in files */
	struct intern texts;
	struct u64map readable; /* text of a linkage name -> its demangled text */
	struct frame *frames;
	size_t frame_count, frame_cap;
	struct u64map answers; /* file and address -> first frame, or NO_FRAMES */
	struct debug_lines_stats stats;
	struct buf text; /* being demangled */
};

static void forget(struct debug_lines *l)
{
	intern_release(&l->texts);
	intern_init(&l->texts, l->memory_max / 2);
	u64map_clear(&l->readable);
	u64map_clear(&l->answers);
	l->frame_count = 0;
}

static size_t frames_max(const struct debug_lines *l)
{
	return l->memory_max / 2 / (sizeof(struct frame) + 2 * sizeof(uint64_t));
}

int debug_lines_open(const struct debug_lines_config *cfg, struct symbols *symbols, struct debug_lines **out)
{
	struct lines_asker_config asker = {
		.needs_libdw = true,
		.file_lost = "no inlined frames and lines of a file: the reader of debug information failed",
		.is_off = "no more inlined frames and lines in this session: the reader of debug information keeps "
			  "failing",
	};
	struct debug_lines *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->symbols = symbols;
	l->memory_max = cfg->memory_max ? cfg->memory_max : MEMORY_DEFAULT;
	l->ask_patience_ns = cfg->ask_patience_ns ? cfg->ask_patience_ns : ASK_PATIENCE_NS;
	intern_init(&l->texts, l->memory_max / 2);
	u64map_init(&l->readable, frames_max(l));
	u64map_init(&l->answers, frames_max(l));
	u64map_init(&l->file_of_id, SYMBOL_FILES_MAX);
	l->text = (struct buf)BUF_INIT(SYMBOL_TEXT_MAX + KIB(4));
	asker.reply_patience_ns = cfg->reply_patience_ns;
	r = lines_asker_init(&l->asker, &asker);
	if (r == 0) /* at once, so that a missing libdw is reported before the profile is taken, not after */
		r = lines_asker_start(&l->asker);
	if (r < 0) {
		debug_lines_close(l);
		return r;
	}
	*out = l;
	return 0;
}

void debug_lines_close(struct debug_lines *l)
{
	if (!l)
		return;
	lines_asker_release(&l->asker);
	intern_release(&l->texts);
	u64map_release(&l->readable);
	u64map_release(&l->answers);
	u64map_release(&l->file_of_id);
	buf_release(&l->text);
	free(l->files);
	free(l->frames);
	free(l);
}

/* ---- files ---- */

static int add_file(struct debug_lines *l, const struct symbol_key *key, uint64_t base, uint32_t *out)
{
	int r;

	for (size_t i = 0; i < l->file_count; i++) {
		if (symbol_key_same(&l->files[i].key, key)) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	r = array_grow(&l->files, &l->file_cap, l->file_count, FILES_MAX);
	if (r < 0)
		return r;
	l->files[l->file_count] = (struct file){ .key = *key, .base = base };
	*out = (uint32_t)l->file_count++;
	return 0;
}

/* Return: 0 and *out; -ENOENT for what has no lines; -ENOMEM. */
static int find_file(struct debug_lines *l, uint32_t file_id, struct symbol_object *m, uint32_t *out)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	struct symbol_key key;
	uint32_t index;
	int r;

	if (u64map_get(&l->file_of_id, file_id, &index) == 0) {
		*out = index;
		return index == NO_FRAMES ? -ENOENT : 0;
	}
	if (symbol_object_waits(l->symbols, m))
		return -ENOENT;
	index = NO_FRAMES;
	r = symbol_file_open(l->symbols, file_id, &file);
	if (r == 0)
		symbol_object_opened(m);
	else if (r != -ENOMEM)
		symbol_object_failed(l->symbols, m, r);
	if (r < 0 && r != -ENOMEM && m->reopen.is_away)
		return -ENOENT; /* for now */

	if (r == 0 && file.view.fd >= 0) { /* the vDSO is no file and has no debug information */
		key = symbol_key_of(m, &file);
		r = add_file(l, &key, elf_base(&m->elf), &index);
	}
	if (r == -ENOMEM || u64map_put(&l->file_of_id, file_id, index) < 0)
		return -ENOMEM;
	*out = index;
	return index == NO_FRAMES ? -ENOENT : 0;
}

/* Return: 0 and what to ask for; -ENOENT; -ENOMEM. */
static int find_place(struct debug_lines *l, const struct debug_lines_place *place, struct wanted *out)
{
	struct symbol_object *m;
	uint64_t address;
	int r = symbol_object_get(l->symbols, place->file_id, &m);

	if (r < 0 || !m->is_elf || elf_address_of(&m->elf, place->offset, &address) < 0)
		return r == -ENOMEM ? r : -ENOENT;
	out->file_id = place->file_id;
	out->address = address - (place->is_return ? 1 : 0);
	r = find_file(l, place->file_id, m, &out->file);
	if (r == 0 && (out->address - l->files[out->file].base) >> ADDRESS_BITS)
		r = -ENOENT;
	return r;
}

static uint64_t key_of(const struct debug_lines *l, const struct wanted *w)
{
	return (uint64_t)w->file << ADDRESS_BITS | (w->address - l->files[w->file].base);
}

static bool has_debug_info(const struct elf *elf)
{
	static const struct str names[] = { { ".debug_info", 11 }, { ".zdebug_info", 12 } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct elf_section *section = elf_section_find(elf, names[i]);

		if (section && section->type != SHT_NOBITS && section->size)
			return true;
	}
	return false;
}

struct sources { /* the descriptors that go to the child */
	struct symbol_file debug, alt;
};

static void sources_release(struct sources *s)
{
	symbol_file_release(&s->debug);
	symbol_file_release(&s->alt);
}

/* The file itself, or its separate debug file. Return: 0, -ENOENT, -EAGAIN when it cannot be opened now, -ENOMEM. */
static int open_sources(struct debug_lines *l, uint32_t file_id, struct sources *out)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	struct symbol_object *m;
	int r = symbol_object_get(l->symbols, file_id, &m);

	if (r == 0) {
		r = symbol_file_open(l->symbols, file_id, &file);
		if (r < 0)
			return r == -ENOMEM ? r : -EAGAIN;
		r = elf_parse(&file.in, &file.elf);
	}
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	if (has_debug_info(&file.elf)) {
		out->debug = file;
		file = (struct symbol_file){ .view.fd = -1 };
	} else {
		r = symbol_debug_open(l->symbols, m, &file.elf, &out->debug);
		if (r < 0 || !has_debug_info(&out->debug.elf))
			return r == -ENOMEM ? r : -ENOENT;
	}
	return symbol_debug_open_alt(l->symbols, &out->debug.elf, &out->alt) == -ENOMEM ? -ENOMEM : 0;
}

/* ---- answers ---- */

static int add_readable(struct debug_lines *l, uint32_t system_name, uint32_t *out)
{
	int r;

	if (l->symbols->raw_names || !system_name || u64map_get(&l->readable, system_name, out) == 0) {
		if (l->symbols->raw_names || !system_name)
			*out = system_name;
		return 0;
	}
	buf_clear(&l->text);
	demangle_add(intern_get(&l->texts, system_name), &l->text);
	if (l->text.error)
		return -ENOMEM; /* the buffer holds the longest possible name */
	r = intern_add(&l->texts, buf_str(&l->text), out);
	return r < 0 ? r : u64map_put(&l->readable, system_name, *out);
}

static int add_frame(struct debug_lines *l, const struct lines_wire_frame *f, bool is_last)
{
	struct frame row = { .line = f->line, .is_last = is_last };
	int r = intern_add(&l->texts, f->function, &row.system_name);

	if (r == 0)
		r = add_readable(l, row.system_name, &row.name);
	if (r == 0)
		r = intern_add(&l->texts, f->file, &row.file);
	if (r == 0)
		r = array_grow(&l->frames, &l->frame_cap, l->frame_count, frames_max(l));
	if (r == 0)
		l->frames[l->frame_count++] = row;
	return r;
}

/* Return: 0, -E2BIG when the memory for answers is used up, or -ENOMEM. */
static int keep(struct debug_lines *l, const struct wanted *w, const struct lines_answer *answer)
{
	uint32_t first = answer->depth ? (uint32_t)l->frame_count : NO_FRAMES;
	int r = 0;

	for (size_t i = 0; i < answer->depth && r == 0; i++)
		r = add_frame(l, &answer->frames[i], i + 1 == answer->depth);
	if (r == 0)
		r = u64map_put(&l->answers, key_of(l, w), first);
	if (r < 0 && first != NO_FRAMES)
		l->frame_count = first;
	if (r == 0)
		l->stats.found += answer->depth > 0;
	return r;
}

/* ---- the child ---- */

static void give_up(struct debug_lines *l, struct file *file, size_t count)
{
	file->state = FILE_FAILED;
	l->stats.files_failed++;
	l->stats.failed += count;
}

struct asked {
	struct debug_lines *lines;
	const struct wanted *wanted;
};

static int on_answer(void *ctx, size_t index, const struct lines_answer *answer)
{
	const struct asked *asked = ctx;
	int r = keep(asked->lines, &asked->wanted[index], answer);

	asked->lines->stats.failed += r < 0; /* no room: asked again when there is */
	return r == -ENOMEM ? r : 0;
}

/* Return: as lines_asker_ask(). */
static int exchange(struct debug_lines *l, const struct wanted *w, size_t count, const struct sources *sources,
		    size_t *done)
{
	scoped(freep) uint64_t *addresses = calloc(count, sizeof(*addresses));
	struct lines_question question = { .addresses = addresses, .count = count, .flags = LINES_NEW_FILE };
	struct asked asked = { l, w };

	*done = 0;
	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		addresses[i] = w[i].address;
	question.fds[question.fd_count++] = sources->debug.view.fd;
	if (sources->alt.view.fd >= 0) {
		question.fds[question.fd_count++] = sources->alt.view.fd;
		question.flags |= LINES_HAS_ALT;
	}
	return lines_asker_ask(&l->asker, &question, on_answer, &asked, done);
}

/* All addresses of one file. Return: 0 or -ENOMEM. */
static int ask_file(struct debug_lines *l, const struct wanted *w, size_t count)
{
	scoped(sources_release) struct sources sources = { .debug.view.fd = -1, .alt.view.fd = -1 };
	struct file *file = &l->files[w->file];
	size_t done = 0;
	int r = open_sources(l, w->file_id, &sources);

	if (r == -ENOENT) {
		file->state = FILE_WITHOUT;
		l->stats.files_without++;
	}
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return r;
	l->stats.asked += count;
	if (r == -EAGAIN) { /* asked again with the next window */
		l->stats.failed += count;
		return 0;
	}
	r = lines_asker_ready(&l->asker);
	if (r < 0) {
		l->stats.failed += count;
		return r == -ENOMEM ? r : 0;
	}
	r = exchange(l, w, count, &sources, &done);
	if (r == 0) {
		l->stats.files += file->state == FILE_NEW;
		file->state = FILE_USABLE;
		return 0;
	}
	give_up(l, file, count - done);
	return r == -ENOMEM ? r : 0;
}

static int by_file(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->file != y->file)
		return (x->file > y->file) - (x->file < y->file);
	return (x->address > y->address) - (x->address < y->address);
}

/* What is not known yet, sorted and distinct. Return: count or -ENOMEM. */
static ssize_t list_wanted(struct debug_lines *l, const struct debug_lines_place *places, size_t count,
			   struct wanted *out)
{
	size_t n = 0, distinct = 0;
	uint32_t known;

	for (size_t i = 0; i < count; i++) {
		int r = find_place(l, &places[i], &out[n]);

		if (r == -ENOMEM)
			return r;
		if (r < 0 || l->files[out[n].file].state > FILE_USABLE ||
		    u64map_get(&l->answers, key_of(l, &out[n]), &known) == 0)
			continue;
		n++;
	}
	qsort(out, n, sizeof(*out), by_file);
	for (size_t i = 0; i < n; i++)
		if (!distinct || by_file(&out[distinct - 1], &out[i]))
			out[distinct++] = out[i];
	return (ssize_t)distinct;
}

int debug_lines_ask(struct debug_lines *l, const struct debug_lines_place *places, size_t count)
{
	scoped(freep) struct wanted *wanted = calloc(count + 1, sizeof(*wanted));
	ssize_t n;

	if (!wanted)
		return -ENOMEM;
	l->asker.end_ns = clock_monotonic_ns(&clock_system) + l->ask_patience_ns;
	if (l->frame_count > frames_max(l) / 2 || l->texts.size > l->texts.byte_max / 2)
		forget(l);
	n = list_wanted(l, places, count, wanted);
	if (n < 0)
		return (int)n;
	for (size_t i = 0, next; i < (size_t)n; i = next) {
		int r = 0;

		for (next = i; next < (size_t)n && wanted[next].file == wanted[i].file; next++)
			;
		if (!l->asker.is_off && lines_asker_has_time(&l->asker)) {
			r = ask_file(l, wanted + i, next - i);
		} else {
			l->stats.asked += next - i;
			l->stats.failed += next - i;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

size_t debug_lines_get(struct debug_lines *l, const struct debug_lines_place *place, struct debug_lines_frame *frames,
		       size_t max)
{
	struct wanted w;
	uint32_t at;
	size_t count = 0;

	if (find_place(l, place, &w) < 0 || u64map_get(&l->answers, key_of(l, &w), &at) < 0 || at == NO_FRAMES)
		return 0;
	while (count < max) {
		const struct frame *f = &l->frames[at++];

		frames[count++] = (struct debug_lines_frame){ .name = intern_get(&l->texts, f->name),
							      .system_name = intern_get(&l->texts, f->system_name),
							      .file = intern_get(&l->texts, f->file),
							      .line = f->line };
		if (f->is_last)
			return count;
	}
	return count;
}

bool debug_lines_has_file(struct debug_lines *l, uint32_t file_id)
{
	uint32_t index;

	return u64map_get(&l->file_of_id, file_id, &index) == 0 && index != NO_FRAMES &&
	       l->files[index].state == FILE_USABLE;
}

void debug_lines_stats(const struct debug_lines *l, struct debug_lines_stats *out)
{
	*out = l->stats;
	out->deaths = l->asker.deaths;
}
