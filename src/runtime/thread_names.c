/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/thread_names.h"

#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/u64map.h"
#include "proc/program_hash.h"

#define ASK_NS NSEC_PER_SEC          /* between two questions to one program */
#define HOLDS_NS (60 * NSEC_PER_SEC) /* then a name is read again: another thread may have changed it */
/* The same where the kernel's name is full, and only the beginning of what the thread is called: names of a pool differ
 * behind it, so that a thread that renames itself looks as before. */
#define HOLDS_FULL_NS (2 * NSEC_PER_SEC)
/* A thread without a name is asked for after 0.5, 1, 2 ... 60 s: it may have just been made. The first time is shorter
 * than ASK_NS, so that the next question of its program is one for it, too. */
#define TRIES_MAX 8

struct row {
	uint32_t program, tid, next; /* next: 1 + index of another of its program, or of another free one; 0: none */
	uint64_t serial;             /* 0: it is free */
	bool is_wanted;
	uint8_t tries; /* that found no name, TRIES_MAX at most */
	char comm[ABI_COMM_SIZE];
	char *name; /* owned; NULL: none is known */
	uint64_t read_ns;
};

struct asked { /* a program */
	struct program program;
	uint32_t first;           /* 1 + index of a row; 0: none */
	uint32_t threads, wanted; /* rows */
	size_t bytes;             /* of names */
	uint64_t asked_ns;        /* 0: never */
};

struct thread_names {
	struct row *rows;
	size_t row_count, row_cap;
	uint32_t free; /* 1 + index of a row; 0: none */
	struct asked *programs;
	size_t program_count, program_cap;
	struct u64map row_index, program_index;
	size_t bytes;
	uint64_t seed, serial;
};

int thread_names_new(struct thread_names **out)
{
	struct thread_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->seed = random_u64();
	u64map_init(&n->row_index, THREAD_NAMES_MAX);
	u64map_init(&n->program_index, THREAD_NAMES_PROGRAMS_MAX);
	*out = n;
	return 0;
}

static void forget_all(struct thread_names *n)
{
	for (size_t i = 0; i < n->row_count; i++)
		free(n->rows[i].name);
	n->row_count = n->program_count = n->bytes = 0;
	n->free = 0;
	u64map_clear(&n->row_index);
	u64map_clear(&n->program_index);
}

void thread_names_free(struct thread_names *n)
{
	if (!n)
		return;
	forget_all(n);
	free(n->rows);
	free(n->programs);
	u64map_release(&n->row_index);
	u64map_release(&n->program_index);
	free(n);
}

static void copy_comm(char out[ABI_COMM_SIZE], struct str comm)
{
	size_t len = MIN(comm.len, (size_t)ABI_COMM_SIZE - 1);

	memset(out, 0, ABI_COMM_SIZE);
	memcpy(out, comm.ptr, len);
}

static uint64_t row_hash(const struct thread_names *n, const struct program *program, uint32_t tid,
			 const char comm[ABI_COMM_SIZE])
{
	return XXH3_64bits_withSeed(comm, ABI_COMM_SIZE, program_hash(program, n->seed) + tid);
}

/* Collisions are negligible; one would be told from the row. */
static struct row *find_row(const struct thread_names *n, const struct program *program, uint32_t tid,
			    const char comm[ABI_COMM_SIZE])
{
	struct row *row;
	uint32_t at;

	if (u64map_get(&n->row_index, row_hash(n, program, tid, comm), &at) < 0)
		return NULL;
	row = &n->rows[at];
	return row->tid == tid && memcmp(row->comm, comm, ABI_COMM_SIZE) == 0 ? row : NULL;
}

static size_t memory_of(const struct asked *asked)
{
	return asked->bytes + asked->threads * sizeof(struct row);
}

/* Of the program that takes the most memory: who has little does not lose it to another. */
static void forget_most(struct thread_names *n)
{
	struct asked *most = &n->programs[0];
	uint32_t at;

	for (size_t i = 1; i < n->program_count; i++)
		if (memory_of(&n->programs[i]) > memory_of(most))
			most = &n->programs[i];
	while ((at = most->first) != 0) {
		struct row *row = &n->rows[at - 1];

		u64map_remove(&n->row_index, row_hash(n, &most->program, row->tid, row->comm));
		free(row->name);
		most->first = row->next;
		*row = (struct row){ .next = n->free };
		n->free = at;
	}
	n->bytes -= most->bytes;
	most->bytes = 0;
	most->threads = most->wanted = 0;
}

static int get_program(struct thread_names *n, const struct program *program, uint32_t *out)
{
	uint64_t hash = program_hash(program, n->seed);
	int r = u64map_get(&n->program_index, hash, out);

	if (r == 0)
		return 0;
	r = array_grow(&n->programs, &n->program_cap, n->program_count, THREAD_NAMES_PROGRAMS_MAX);
	if (r == 0)
		r = u64map_put(&n->program_index, hash, (uint32_t)n->program_count);
	if (r < 0)
		return r;
	*out = (uint32_t)n->program_count;
	n->programs[n->program_count++] = (struct asked){ .program = *program };
	return 0;
}

/* @out: 1 + index of a row that is free */
static int free_row(struct thread_names *n, uint32_t *out)
{
	int r;

	if (!n->free && n->row_count == THREAD_NAMES_MAX)
		forget_most(n);
	if (!n->free) {
		r = array_grow(&n->rows, &n->row_cap, n->row_count, THREAD_NAMES_MAX);
		if (r < 0)
			return r;
		n->rows[n->row_count] = (struct row){ 0 };
		n->free = (uint32_t)++n->row_count;
	}
	*out = n->free;
	return 0;
}

static int add_row(struct thread_names *n, const struct program *program, uint32_t tid, const char comm[ABI_COMM_SIZE])
{
	struct asked *asked;
	struct row *row;
	uint32_t at, place = 0;
	int r = get_program(n, program, &at);

	if (r == -E2BIG) {
		forget_all(n);
		r = get_program(n, program, &at);
	}
	r = r ? r : free_row(n, &place);
	r = r ? r : u64map_put(&n->row_index, row_hash(n, program, tid, comm), place - 1);
	if (r < 0)
		return r;
	row = &n->rows[place - 1];
	asked = &n->programs[at];
	n->free = row->next;
	*row = (struct row){
		.program = at, .tid = tid, .next = asked->first, .serial = ++n->serial, .is_wanted = true
	};
	memcpy(row->comm, comm, ABI_COMM_SIZE);
	asked->first = place;
	asked->threads++;
	asked->wanted++;
	return 0;
}

static uint64_t holds_ns(const struct row *row)
{
	uint64_t holds = row->comm[ABI_COMM_SIZE - 2] ? HOLDS_FULL_NS : HOLDS_NS;

	return row->name ? holds : MIN(ASK_NS / 4 << row->tries, holds);
}

bool thread_names_want(struct thread_names *n, const struct program *program, uint32_t tid, struct str comm,
		       uint64_t now_ns)
{
	char name[ABI_COMM_SIZE];
	struct asked *asked;
	struct row *row;
	uint32_t at;
	int r = 0;

	copy_comm(name, comm);
	row = find_row(n, program, tid, name);
	if (!row) {
		r = add_row(n, program, tid, name);
	} else if (!row->is_wanted && now_ns - row->read_ns >= holds_ns(row)) {
		row->is_wanted = true;
		n->programs[row->program].wanted++;
	}
	if (r < 0 || u64map_get(&n->program_index, program_hash(program, n->seed), &at) < 0)
		return false;
	asked = &n->programs[at];
	if (!asked->wanted || (asked->asked_ns && now_ns - asked->asked_ns < ASK_NS))
		return false;
	asked->asked_ns = now_ns;
	return true;
}

size_t thread_names_wanted(const struct thread_names *n, const struct program *program, struct thread_wanted *out)
{
	size_t count = 0;
	uint32_t at;

	if (u64map_get(&n->program_index, program_hash(program, n->seed), &at) < 0)
		return 0;
	for (at = n->programs[at].first; at && count < THREAD_NAMES_WANTED_MAX; at = n->rows[at - 1].next) {
		const struct row *row = &n->rows[at - 1];

		if (!row->is_wanted)
			continue;
		out[count] = (struct thread_wanted){ .row = at - 1, .tid = row->tid, .serial = row->serial };
		memcpy(out[count++].comm, row->comm, ABI_COMM_SIZE);
	}
	return count;
}

int thread_names_put(struct thread_names *n, const struct thread_wanted *wanted, struct str name, uint64_t now_ns)
{
	struct row *row;
	char *copy = NULL;

	if (wanted->row >= n->row_count || n->rows[wanted->row].serial != wanted->serial)
		return 0;
	row = &n->rows[wanted->row];
	if (name.len) {
		copy = str_dup(name);
		if (!copy)
			return -ENOMEM;
	}
	if (copy) { /* or it could not be read again, as of a thread that has ended: what is known stays */
		size_t gone = row->name ? strlen(row->name) : 0;

		n->bytes += strlen(copy) - gone;
		n->programs[row->program].bytes += strlen(copy) - gone;
		free(row->name);
		row->name = copy;
	}
	if (!row->name && row->tries < TRIES_MAX)
		row->tries++;
	row->read_ns = now_ns;
	n->programs[row->program].wanted -= row->is_wanted;
	row->is_wanted = false;
	if (n->bytes > THREAD_NAMES_BYTES)
		forget_most(n);
	return 0;
}

int thread_names_find(const struct thread_names *n, const struct program *program, uint32_t tid, struct str comm,
		      struct str *out)
{
	char name[ABI_COMM_SIZE];
	const struct row *row;

	copy_comm(name, comm);
	row = find_row(n, program, tid, name);
	if (!row || !row->name)
		return -ENOENT;
	*out = str_of(row->name);
	return 0;
}
