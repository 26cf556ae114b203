/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/runtimes_int.h"

#include <elf.h>
#include <unistd.h>

#include "runtime/file_elf.h"
#include "runtime/registry.h"

#define SEGMENTS_MAX 16
#define NOTICE_PATH_MAX 200
#define FAILURES_MAX 8 /* sights since a file could not be opened; then every so many of them are one look */

const struct runtimes_probed runtimes_nothing, runtimes_unfinished;

const struct runtimes_probed *runtimes_files_get(const struct runtimes_files *f, uint32_t file_id)
{
	const struct runtimes_page *page;

	if (file_id >= RUNTIMES_PAGE * RUNTIMES_PAGES)
		return &runtimes_nothing;
	page = atomic_load_explicit(&f->pages[file_id / RUNTIMES_PAGE], memory_order_acquire);
	return page ? atomic_load_explicit(&page->slots[file_id % RUNTIMES_PAGE], memory_order_acquire) : NULL;
}

/* With the lock held. Both threads may have looked at the file: the first that found a runtime counts. Return: what is
 * known of it now; NULL: out of memory, it is probed again. */
static const struct runtimes_probed *publish(struct runtimes_files *f, uint32_t file_id,
					     const struct runtimes_probed *probed)
{
	struct runtimes_page *page = atomic_load_explicit(&f->pages[file_id / RUNTIMES_PAGE], memory_order_relaxed);
	const struct runtimes_probed *before;

	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return NULL;
		atomic_store_explicit(&f->pages[file_id / RUNTIMES_PAGE], page, memory_order_release);
	}
	before = atomic_load_explicit(&page->slots[file_id % RUNTIMES_PAGE], memory_order_relaxed);
	if (before && before != &runtimes_nothing)
		return before;
	atomic_store_explicit(&page->slots[file_id % RUNTIMES_PAGE], probed, memory_order_release);
	return probed;
}

static void probed_free(struct runtimes_probed *p)
{
	if (!p || p == &runtimes_nothing)
		return;
	if (p->learnt)
		p->binary->runtime->unlearn(p->learnt);
	if (p->binary)
		p->binary->runtime->release(p->binary);
	elf_release(&p->segments);
	free(p->path);
	free(p);
}

static void probed_freep(struct runtimes_probed **p)
{
	probed_free(*p);
}

void runtimes_files_release(struct runtimes_files *f)
{
	for (size_t i = 0; i < RUNTIMES_PAGES; i++) {
		struct runtimes_page *page = atomic_load(&f->pages[i]);

		for (size_t j = 0; page && j < RUNTIMES_PAGE; j++)
			probed_free((struct runtimes_probed *)(uintptr_t)atomic_load(&page->slots[j]));
		free(page);
	}
}

static int keep_segments(const struct elf *elf, struct elf *out)
{
	out->segments = calloc(SEGMENTS_MAX, sizeof(*out->segments));
	if (!out->segments)
		return -ENOMEM;
	for (size_t i = 0; i < elf->segment_count && out->segment_count < SEGMENTS_MAX; i++)
		if (elf->segments[i].type == PT_LOAD)
			out->segments[out->segment_count++] = elf->segments[i];
	return 0;
}

static const struct runtime *runtime_of(const struct runtimes *r, size_t index)
{
	return r->cfg.runtimes ? r->cfg.runtimes[index] : runtime_at(index);
}

static void note_once(struct runtimes *r, const struct runtimes_probed *p, const _Atomic bool *is_noted,
		      const char *why)
{
	_Atomic bool *noted = (_Atomic bool *)(uintptr_t)is_noted; /* malloc'd, not const there */
	struct str path = str_first(str_of(p->path), NOTICE_PATH_MAX);

	if (atomic_exchange(noted, true))
		return;
	pthread_mutex_lock(&r->lock);
	buf_addf(&r->notices, STR_FMT ": %s %s; its %s\n", STR_ARG(path), p->binary->runtime->name, why,
		 r->cfg.only_runtimes ? "samples are left out" : "stacks stay native");
	pthread_mutex_unlock(&r->lock);
}

void runtimes_note(struct runtimes *r, const struct runtimes_probed *p, const char *why)
{
	note_once(r, p, &p->is_noted, why);
}

void runtimes_note_unwalked(struct runtimes *r, const struct runtimes_probed *p)
{
	note_once(r, p, &p->is_unwalked_noted, "is not walked by frame pointers");
}

/* Return: 1 and *out, 0 when it is none, -EAGAIN when only a long look will tell, -EINPROGRESS when it will tell the
 * rest of what is a runtime, -errno. */
static int ask_all(struct runtimes *r, const struct runtime_file *file, struct runtime_binary **out)
{
	const struct runtime *runtime;
	int result = 0;

	for (size_t i = 0; (runtime = runtime_of(r, i)); i++) {
		int found = runtime->probe(file, out);

		if (found == -EINPROGRESS || (found == -EAGAIN && result == 0))
			result = found;
		if (found == 0 || found == -EBADMSG || found == -EAGAIN || found == -EINPROGRESS)
			continue;
		if (found == 1)
			(*out)->runtime = runtime;
		return found;
	}
	return result;
}

static int probe(struct runtimes *r, uint32_t file_id, unsigned int look, struct runtimes_probed **out)
{
	scoped(file_elf_release) struct file_elf o = { .view.fd = -1 };
	scoped(probed_freep) struct runtimes_probed *p = NULL;
	struct runtime_binary *binary = NULL;
	struct runtime_file file = { .elf = &o.elf,
				     .is_program = look & RUNTIMES_LOOK_PROGRAM,
				     .be_quick = !(look & RUNTIMES_LOOK_LONG) };
	int result = file_elf_open(r->files, file_id, &o);

	if (result < 0)
		return result;
	file.path = str_of(o.view.path ? o.view.path : "");
	result = ask_all(r, &file, &binary);
	if (result != 1)
		return result;
	p = calloc(1, sizeof(*p));
	if (!p) {
		binary->runtime->release(binary);
		return -ENOMEM;
	}
	p->binary = binary;
	p->path = str_dup(file.path);
	if (!p->path || keep_segments(&o.elf, &p->segments) < 0)
		return -ENOMEM;
	*out = p;
	p = NULL;
	return 1;
}

/* A file that could not be opened is met again with each sight of a process that has it mapped. Is it worth another
 * look? The first sights are, then every FAILURES_MAX-th: once struct files has a descriptor of it, it can be opened.
 * Counts the sight. */
static bool is_worth_a_look(struct runtimes *r, uint32_t file_id)
{
	uint32_t before = 0;

	pthread_mutex_lock(&r->lock);
	if (u64map_get(&r->failures, file_id, &before) == 0)
		ignore(u64map_put(&r->failures, file_id, before + 1) < 0); /* replaces: needs no room */
	pthread_mutex_unlock(&r->lock);
	return before < FAILURES_MAX || before % FAILURES_MAX == 0;
}

/* With the lock held: it could not be looked at. */
static void note_failure(struct runtimes *r, uint32_t file_id)
{
	uint32_t before;

	if (u64map_get(&r->failures, file_id, &before) == 0)
		return; /* counted at its sight */
	if (r->failures.used >= RUNTIMES_PROGRAMS_MAX)
		u64map_clear(&r->failures);               /* they get more looks than they should */
	ignore(u64map_put(&r->failures, file_id, 1) < 0); /* likewise */
}

/* With the lock held: what came of a look. Return: what is known of the file now. */
static const struct runtimes_probed *settle(struct runtimes *r, uint32_t file_id, unsigned int look, int result,
					    const struct runtimes_probed *found)
{
	if ((result < 0 && !files_error_is_final(result)) || (result == 0 && look & RUNTIMES_LOOK_BLIND)) {
		note_failure(r, file_id);
		return &runtimes_nothing; /* for now */
	}
	if (r->failures.used)
		ignore(u64map_remove(&r->failures, file_id) < 0); /* most never failed */
	return publish(&r->probed, file_id, result == 1 ? found : &runtimes_nothing);
}

const struct runtimes_probed *runtimes_probe(struct runtimes *r, uint32_t file_id, unsigned int look)
{
	const struct runtimes_probed *known = runtimes_files_get(&r->probed, file_id);
	struct runtimes_probed *found = NULL;
	int result;

	if (known)
		return known;
	/* A long look follows a quick one, which was counted. If both counted, the counter would rise by two, and its
	 * multiples of FAILURES_MAX could all fall on quick looks. */
	if (!(look & RUNTIMES_LOOK_LONG) && !is_worth_a_look(r, file_id))
		return &runtimes_nothing;
	result = probe(r, file_id, look, &found);
	if (result == -EAGAIN || result == -EINPROGRESS)
		return result == -EAGAIN ? NULL : &runtimes_unfinished;
	pthread_mutex_lock(&r->lock);
	known = settle(r, file_id, look, result, found);
	pthread_mutex_unlock(&r->lock);
	if (known != found)
		probed_free(found);
	if (!known || known != found)
		return known ? known : &runtimes_nothing; /* no memory for its page */
	RUNTIMES_COUNT(r, found->binary->runtime, binaries);
	if (found->binary->refused[0]) {
		RUNTIMES_COUNT(r, found->binary->runtime, refused);
		runtimes_note(r, found, found->binary->refused);
	}
	return found;
}
