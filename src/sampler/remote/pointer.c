// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pointer.h"

#include <sys/uio.h>

#include "base/array.h"
#include "base/io.h"
#include "proc/maps.h"

#ifdef WALK_X86_64

#define MAPS_MAX MIB(16)
#define PIECE KIB(64)      /* of a mapping at each end */
#define WHOLE_MAX KIB(512) /* of a smaller one all */
#define TOTAL_MAX MIB(256)
#define POINTERS_MAX 16384
#define STEP 16 /* they are aligned to more */
#define SELF 16
#define LIST 704
#define TID 720
#define MUSL_PREVIOUS 16
#define MUSL_NEXT 24
#define MUSL_TID 48

struct finder {
	struct remote_process *process;
	uint64_t left; /* bytes that may still be looked through */
	uint64_t words[PIECE / 8];
};

/* Return: bytes that were read. */
static size_t read_memory(const struct finder *f, void *to, size_t size, uint64_t at)
{
	struct iovec into = { to, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t got = process_vm_readv((pid_t)f->process->pid, &into, 1, &from, 1, 0);

	return got < 0 ? 0 : (size_t)got;
}

static bool is_word(const struct finder *f, uint64_t at, uint64_t value)
{
	uint64_t word;

	return read_memory(f, &word, sizeof(word), at) == sizeof(word) && word == value;
}

/* The id of the thread whose struct lies at @at; 0: none does. The head of an empty list points to itself, too: glibc's
 * struct does so twice, and musl's is in a ring with its neighbours, or with itself. */
static uint32_t tid_at(const struct finder *f, uint64_t at, bool *is_glibc)
{
	uint64_t head[MUSL_NEXT / 8 + 1];
	uint32_t tid = 0;

	if (read_memory(f, head, sizeof(head), at) != sizeof(head) || head[0] != at)
		return 0;
	*is_glibc = head[SELF / 8] == at && head[MUSL_NEXT / 8] != at;
	if (!*is_glibc && (!is_word(f, head[MUSL_PREVIOUS / 8] + MUSL_NEXT, at) ||
			   !is_word(f, head[MUSL_NEXT / 8] + MUSL_PREVIOUS, at)))
		return 0;
	if (read_memory(f, &tid, sizeof(tid), at + (*is_glibc ? TID : MUSL_TID)) != sizeof(tid) || tid > INT32_MAX)
		return 0;
	return tid;
}

static const struct remote_pointer *find_known(const struct remote_process *p, uint32_t tid)
{
	for (size_t i = 0; i < p->pointer_count; i++)
		if (p->pointers[i].tid == tid)
			return &p->pointers[i];
	return NULL;
}

static bool is_known(const struct remote_process *p, uint64_t at)
{
	for (size_t i = 0; i < p->pointer_count; i++)
		if (p->pointers[i].at == at)
			return true;
	return false;
}

static int add(struct remote_process *p, uint64_t at, uint32_t tid)
{
	int r = array_grow(&p->pointers, &p->pointer_cap, p->pointer_count, POINTERS_MAX);

	if (r == 0)
		p->pointers[p->pointer_count++] = (struct remote_pointer){ .at = at, .tid = tid };
	return r;
}

/* The other threads are in a list with that at @first; its ends lie elsewhere. */
static int follow(struct finder *f, uint64_t first)
{
	uint64_t at = first + LIST;
	int r = 0;

	for (size_t i = 0; i < POINTERS_MAX && r == 0; i++) {
		bool is_glibc = false;
		uint32_t tid;

		if (read_memory(f, &at, sizeof(at), at) != sizeof(at) || at == first + LIST)
			break;
		if (is_known(f->process, at - LIST))
			continue;
		tid = tid_at(f, at - LIST, &is_glibc);
		if (tid && is_glibc)
			r = add(f->process, at - LIST, tid);
	}
	return r;
}

static int take(struct finder *f, uint64_t at)
{
	bool is_glibc = false;
	uint32_t tid;
	int r;

	if (is_known(f->process, at))
		return 0;
	tid = tid_at(f, at, &is_glibc);
	if (!tid)
		return 0;
	r = add(f->process, at, tid);
	return r == 0 && is_glibc ? follow(f, at) : r;
}

static int look_at(struct finder *f, uint64_t start, uint64_t end)
{
	int r = 0;

	while (start < end && f->left && r == 0) {
		size_t got = read_memory(f, f->words, (size_t)MIN(end - start, (uint64_t)PIECE), start);

		for (size_t i = 0; i + STEP <= got && r == 0; i += STEP)
			if (f->words[i / 8] == start + i)
				r = take(f, start + i);
		f->left -= MIN(f->left, (uint64_t)PIECE);
		start += PIECE;
	}
	return r;
}

static bool may_have(const struct maps_line *line)
{
	return line->readable && line->writable && !line->shared && !line->inode &&
	       (!line->path.len || !str_eq(line->path, STR("[stack]")));
}

static int look(struct finder *f, const struct maps_line *line)
{
	int r;

	if (line->end - line->start <= WHOLE_MAX)
		return look_at(f, line->start, line->end);
	r = look_at(f, line->end - PIECE, line->end);
	return r < 0 ? r : look_at(f, line->start, line->start + PIECE);
}

static int look_through(struct finder *f)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	struct maps_line line;
	struct str rest;
	int r = io_read_file_at(f->process->dir, "maps", &text);

	rest = buf_str(&text);
	for (int more = 1; r == 0 && more;) {
		more = maps_next(&rest, &line);
		if (more == 1 && may_have(&line))
			r = look(f, &line);
	}
	return r;
}

/* Is it still that thread's? Another one may have its memory by now. */
static bool check(const struct finder *f, const struct remote_pointer *pointer)
{
	bool is_glibc;

	return tid_at(f, pointer->at, &is_glibc) == pointer->tid;
}

int remote_pointer_find(struct remote_process *p, struct remote_thread *t)
{
	scoped(freep) struct finder *f = calloc(1, sizeof(*f));
	const struct remote_pointer *found;
	int r;

	if (!f)
		return -ENOMEM;
	f->process = p;
	f->left = TOTAL_MAX;
	found = find_known(p, t->inner_tid);
	if (!found || !check(f, found)) {
		p->pointer_count = 0;
		r = look_through(f);
		if (r < 0)
			return r;
		found = find_known(p, t->inner_tid);
	}
	if (!found)
		return -ENOENT;
	t->tp = found->at;
	return 0;
}

#else

int remote_pointer_find(struct remote_process *p, struct remote_thread *t)
{
	(void)p;
	(void)t;
	return -ENOTSUP;
}

#endif
