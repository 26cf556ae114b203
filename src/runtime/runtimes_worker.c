/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: probes files, attaches to processes, asks again. Only it changes entries and calls the sink. It reads
 * little of a file: a disk may be slow, and processes wait. */
#include "runtime/runtimes_int.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/proc_read.h"

#define WORKER_NICE \
	(-10) /* a process that has just begun is asked within milliseconds, or its first samples are lost */
#define LATE_NS (100 * NSEC_PER_MSEC) /* between two looks at ranges because of code that cannot be read */
#define DELAY_MIN_NS (2 * NSEC_PER_MSEC)
#define HIDDEN_LOOKS 8
#define DELAY_MAX_NS (100 * NSEC_PER_MSEC)
#define PATIENCE_NS (10 * NSEC_PER_SEC) /* then ever more rarely */
#define DELAY_RARE_NS (60 * NSEC_PER_SEC)
#define SEARCH_NS (5 * NSEC_PER_SEC) /* a program that has not loaded its runtime by then is seen by its mappings */
#define SWEEP_NS (10 * NSEC_PER_SEC)
#define FULL_NS (10 * NSEC_PER_SEC) /* without room the next look is so late: there are thousands of them */
/* A quarter of the time is for looks at processes that are not ready or hide their code, so much of it at once. The
 * rest is for others' names. What one look takes beyond LOOKS_DEBT_NS is not counted: it waited for a disk. */
#define LOOKS_SHARE 4
#define LOOKS_BURST_NS ((int64_t)(50 * NSEC_PER_MSEC))
#define LOOKS_DEBT_NS ((int64_t)(250 * NSEC_PER_MSEC))

/* ---- what is where ---- */

/* Where the main program begins; 0: nobody knows. */
static uint64_t read_entry(int dir)
{
	uint64_t entry;

	return proc_auxv(dir, AT_ENTRY, &entry) < 0 ? 0 : entry;
}

static uint64_t file_hash(const struct runtimes *r, uint64_t device, uint64_t inode)
{
	const uint64_t words[] = { device, inode };

	return XXH3_64bits_withSeed(words, sizeof(words), r->seed);
}

static uint64_t program_file(const struct runtimes *r, int dir)
{
	struct stat st;

	return fstatat(dir, "exe", &st, 0) < 0 ? 0 : file_hash(r, st.st_dev, st.st_ino);
}

/* ---- one process ---- */

/* The next look at a process that is @age_ns old to us. */
static uint64_t delay_of(uint64_t age_ns)
{
	uint64_t most = age_ns < PATIENCE_NS ? DELAY_MAX_NS : DELAY_RARE_NS;

	return MAX(MIN(age_ns / 4, most), (uint64_t)DELAY_MIN_NS);
}

/* Is @other a later program of the process of @e, or another process with its pid? */
static bool is_successor(const struct runtimes_entry *other, const struct runtimes_entry *e)
{
	if (other == e || other->key.pid != e->key.pid)
		return false;
	return other->key.start_ns != e->key.start_ns || exec_is_before(e->key.exec_id, other->key.exec_id);
}

/* The sink knows pids only: what an exec has put there already stays. @id: NONE: any of its runtimes. */
static bool has_successor(const struct runtimes *r, const struct runtimes_entry *e, enum abi_runtime id)
{
	for (size_t i = 0; i < r->entry_count; i++)
		if (is_successor(&r->entries[i], e) && runtimes_has_ready(&r->entries[i], id))
			return true;
	return false;
}

static void forget_entry(struct runtimes *r, struct runtimes_entry *e)
{
	if (r->sink.head && runtimes_has_ready(e, ABI_RUNTIME_NONE) && !has_successor(r, e, ABI_RUNTIME_NONE))
		ignore(r->sink.head(r->sink.self, e->key.pid, NULL)); /* takes no room */
	for (size_t i = 0; r->sink.forget && i < e->attached_count; i++) {
		enum abi_runtime id = e->attached[i].probed->binary->runtime->id;

		if (e->attached[i].state == RUNTIMES_READY && !has_successor(r, e, id))
			r->sink.forget(r->sink.self, id, e->key.pid);
	}
	runtimes_entry_drop(r, e);
}

/* The end of a process can be lost, when the reader had no room for it. */
static void sweep(struct runtimes *r)
{
	for (size_t i = r->entry_count; i-- > 0;) {
		int dir = runtimes_open_process(r, &r->entries[i].key);

		if (dir >= 0)
			close(dir);
		else if (dir == -ESRCH)
			forget_entry(r, &r->entries[i]); /* the last one, seen already, takes its place */
	}
}

/* Return: whether it was time to. */
static bool sweep_again(struct runtimes *r)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	if (r->swept_ns && now - r->swept_ns < SWEEP_NS)
		return false;
	r->swept_ns = now;
	sweep(r);
	return true;
}

static struct runtimes_entry *get_entry(struct runtimes *r, const struct program *p)
{
	struct runtimes_entry *e = runtimes_entry_get(r, p);

	if (e || r->entry_count < RUNTIMES_PROCESSES_MAX || !sweep_again(r))
		return e;
	return runtimes_entry_get(r, p);
}

/* The next look is in @delay_ns, and none that hasten() wants in @earliest_ns. Return: whether there was room. */
static bool put_pending_in(struct runtimes *r, struct runtimes_entry *e, uint64_t delay_ns, uint64_t earliest_ns)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	if (e->is_pending)
		return true;
	if (array_grow(&r->pending, &r->pending_cap, r->pending_count, RUNTIMES_PENDING_MAX) < 0)
		return false;
	r->pending[r->pending_count++] =
		(struct runtimes_pending){ .key = e->key, .due_ns = now + delay_ns, .since_ns = e->since_ns };
	e->is_pending = true;
	e->earliest_ns = now + earliest_ns;
	return true;
}

static void put_pending(struct runtimes *r, struct runtimes_entry *e, uint64_t least_ns)
{
	uint64_t delay = MAX(delay_of(clock_monotonic_ns(r->clock) - e->since_ns), least_ns);

	if (!put_pending_in(r, e, delay, MAX(MIN(delay, (uint64_t)DELAY_MAX_NS), least_ns)))
		forget_entry(r, e); /* its mappings are told again in half a minute */
}

/* Its code is hidden while its compiler writes, mostly for less than a millisecond. A runtime without a compiler may
 * look the same, so it is asked again some times only: HIDDEN_LOOKS, half a second in all. */
static void put_hidden(struct runtimes *r, struct runtimes_entry *e)
{
	if (e->hidden_looks < HIDDEN_LOOKS) /* no room: it is known anyway */
		ignore(put_pending_in(r, e, (uint64_t)DELAY_MIN_NS << e->hidden_looks++, DELAY_MIN_NS));
}

/* A pending process was told of once more: it has another runtime, or new files. It is looked at now, though no sooner
 * after the last time than usual, DELAY_MAX_NS at most: a young one is told of every few milliseconds. */
static void hasten(struct runtimes *r, const struct runtimes_entry *e)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	for (size_t i = 0; i < r->pending_count; i++) {
		struct runtimes_pending *p = &r->pending[i];

		if (program_equal(&p->key, &e->key))
			p->due_ns = MIN(p->due_ns, MAX(now, e->earliest_ns)); /* ask_again() comes next */
	}
}

/* Looks for runtimes in what is mapped now: what the reader learned of a young process is old before it is handled. */
static void search(struct runtimes *r, struct runtimes_entry *e, int dir)
{
	struct maps_line line;
	struct str rest;
	uint32_t file_id;
	int result;

	buf_clear(&r->text);
	if (io_read_file_at(dir, "maps", &r->text) < 0)
		return;
	rest = buf_str(&r->text);
	while ((result = maps_next(&rest, &line)) != 0) {
		const struct runtimes_probed *probed;

		if (result < 0 || !line.executable || !line.inode)
			continue;
		if (u64map_get(&r->libraries, file_hash(r, makedev(line.device_major, line.device_minor), line.inode),
			       &file_id) < 0)
			continue;
		probed = runtimes_files_get(&r->probed, file_id);
		if (probed && probed->binary)
			runtimes_add(r, e, probed, line.start, line.offset);
	}
	e->is_searching = e->attached_count == 0;
}

static void note_full(struct runtimes *r)
{
	if (r->full_is_noted)
		return;
	r->full_is_noted = true;
	pthread_mutex_lock(&r->lock);
	buf_adds(&r->notices,
		 STR("more processes with a language runtime than there is room for: the stacks of those that "
		     "came last stay native until others end\n"));
	pthread_mutex_unlock(&r->lock);
}

/* The sink has no room. Ends of processes can be lost: those that are gone go. */
static void wait_for_room(struct runtimes *r, struct program key)
{
	uint64_t least_ns = sweep_again(r) ? DELAY_MIN_NS : FULL_NS;
	struct runtimes_entry *e = runtimes_entry_find(r, &key); /* it may have moved, or gone */

	if (least_ns == FULL_NS)
		note_full(r);
	if (e)
		put_pending(r, e, least_ns);
}

/* One look at a process: is it ready, and where is its code now? */
static void look(struct runtimes *r, struct runtimes_entry *e)
{
	scoped(closep) int dir = runtimes_open_process(r, &e->key);
	int result;

	if (dir == -ESRCH) {
		forget_entry(r, e);
		return;
	}
	if (dir < 0) {
		put_pending(r, e, 0);
		return;
	}
	if (e->is_searching)
		search(r, e, dir);
	if (e->is_searching && clock_monotonic_ns(r->clock) - e->since_ns > SEARCH_NS) {
		forget_entry(r, e);
		return;
	}
	e->hides_code = false;
	if (!e->is_searching)
		runtimes_sync(r, e, dir);
	result = e->is_searching ? -EAGAIN : runtimes_attach(r, e, dir);
	if (result != -ESRCH)
		runtimes_want_description(r, e);
	if (result == -ESRCH)
		forget_entry(r, e);
	else if (result == -EAGAIN)
		put_pending(r, e, 0);
	else if (result == -ENOSPC)
		wait_for_room(r, e->key);
	else if (e->hides_code)
		put_hidden(r, e);
}

/* ---- messages ---- */

/* What is still in use is put there again when a process of it is seen. */
static void clear_when_full(struct u64map *m)
{
	if (m->used >= RUNTIMES_PROGRAMS_MAX)
		u64map_clear(m);
}

#define PROGRAM_MAPPINGS 4 /* of the main program's, which has one or two with code */

/* Is one of @own there still? After an exec all lie elsewhere or are of another file. */
static bool still_maps(struct runtimes *r, int dir, const struct runtimes_seen *const *own, size_t count)
{
	struct maps_line line;
	struct str rest;
	int result;

	buf_clear(&r->text);
	result = io_read_file_at(dir, "maps", &r->text);
	if (result < 0 && result != -E2BIG) /* of too many the first are there, programs among them */
		return false;
	rest = buf_str(&r->text);
	while ((result = maps_next(&rest, &line)) != 0)
		for (size_t i = 0; result > 0 && i < count; i++)
			if (own[i]->start == line.start && own[i]->inode == line.inode &&
			    own[i]->device == makedev(line.device_major, line.device_minor))
				return true;
	return false;
}

/* The main program of a process with a runtime: the next process of it is looked at without delay. A child that was
 * sampled before its exec is mostly told of behind that, when it may be any program. One whose file is not among those
 * that were told of (0) is not remembered. */
static void know_program(struct runtimes *r, const struct runtimes_message *m, int dir, uint32_t program)
{
	const struct runtimes_seen *own[PROGRAM_MAPPINGS];
	uint64_t hash = program ? program_file(r, dir) : 0;
	size_t count = 0;
	uint32_t known;

	if (!hash || u64map_get(&r->programs, hash, &known) == 0)
		return;
	for (size_t i = 0; i < m->seen_count && count < PROGRAM_MAPPINGS; i++)
		if (m->seen[i].file_id == program)
			own[count++] = &m->seen[i];
	if (!still_maps(r, dir, own, count))
		return;
	clear_when_full(&r->programs);
	if (u64map_put(&r->programs, hash, 1) < 0)
		return;
	atomic_store_explicit(&r->has_programs, true, memory_order_relaxed);
	for (size_t i = 0; r->sink.set_program && i < count; i++) {
		if (r->sink.set_program(r->sink.self, own[i]->device, own[i]->inode) != 1)
			continue; /* what could not be told comes with its samples */
		/* The others are told of when they are seen again. */
		u64map_clear(&r->programs);
		ignore(u64map_put(&r->programs, hash, 1) < 0);
	}
}

/* The file at the entry point. */
static uint32_t main_file(const struct runtimes_message *m, uint64_t entry)
{
	uint32_t found = 0;
	uint64_t start = 0;

	for (size_t i = 0; i < m->seen_count; i++) {
		if (m->seen[i].start > entry || m->seen[i].start < start)
			continue;
		start = m->seen[i].start;
		found = m->seen[i].file_id;
	}
	return found;
}

#define UNSURE_COMPARED 64 /* of so many it is found out which they are, of more only how many mappings there are */

/* Are all files that are unsure in @of unsure in @m, too? */
static bool has_unsure(const struct runtimes_message *m, const struct runtimes_message *of)
{
	size_t compared = 0;

	for (size_t i = 0; i < of->seen_count; i++) {
		bool has = !of->seen[i].is_unsure;

		if (!has && compared++ == UNSURE_COMPARED)
			return m->seen_count >= of->seen_count;
		for (size_t k = 0; !has && k < m->seen_count; k++)
			has = m->seen[k].is_unsure && m->seen[k].file_id == of->seen[i].file_id;
		if (!has)
			return false;
	}
	return true;
}

/* A process that maps more and more is told of again and again. */
static bool waits_already(struct runtimes *r, const struct runtimes_message *m, bool is_urgent)
{
	bool waits = false;

	pthread_mutex_lock(&r->lock);
	for (const struct runtimes_message *other = r->looks.first; other && !waits; other = other->next)
		waits = program_equal(&other->process, &m->process) && (other->is_urgent || !is_urgent) &&
			has_unsure(other, m);
	pthread_mutex_unlock(&r->lock);
	return waits;
}

/* A quick look does not tell: the looker's. */
static void see_long(struct runtimes *r, const struct runtimes_message *m, uint32_t program)
{
	struct runtimes_message *later;
	bool is_urgent = false;

	for (size_t i = 0; i < m->seen_count; i++)
		is_urgent |= m->seen[i].is_runtime;
	if (waits_already(r, m, is_urgent))
		return;
	later = malloc(m->bytes);
	if (!later)
		return; /* its mappings are told again in half a minute */
	memcpy(later, m, m->bytes);
	later->kind = RUNTIMES_SEE_LONG;
	later->main_file = program;
	later->is_urgent = is_urgent;
	ignore(runtimes_hand_over(r, later, RUNTIMES_QUEUE_BYTES)); /* likewise */
}

/* One mapping of the process whose descriptor is @dir, negative: it is gone. Return: whether it was looked at for a
 * runtime that is in there; *has_runtime: set when there is one, with the first one its program is known. */
static bool see_file(struct runtimes *r, struct runtimes_message *m, struct runtimes_seen *s, uint32_t program, int dir,
		     bool *has_runtime)
{
	unsigned int how = !program ? RUNTIMES_LOOK_BLIND : s->file_id == program ? RUNTIMES_LOOK_PROGRAM : 0;
	const struct runtimes_probed *probed = runtimes_probe(r, s->file_id, how);
	struct runtimes_entry *e;
	size_t before;

	s->is_runtime = probed == &runtimes_unfinished;
	s->is_unsure = !probed || s->is_runtime;
	if (!probed || !probed->binary || !(e = get_entry(r, &m->process)))
		return false;
	clear_when_full(&r->libraries);
	ignore(u64map_put(&r->libraries, file_hash(r, s->device, s->inode), s->file_id) < 0); /* no memory */
	if (dir < 0) {
		forget_entry(r, e);
		return false;
	}
	before = e->attached_count;
	runtimes_add(r, e, probed, s->start, s->offset);
	e->is_searching = false;
	if (!*has_runtime) /* before the look: it may end any time */
		know_program(r, m, dir, program);
	*has_runtime = true;
	if (e->attached_count == before || e->is_pending)
		return false;
	look(r, e);
	return true;
}

/* Files that nobody knows are read from a disk that may be slow: a runtime is attached to when it is met. Libraries
 * that were loaded first lie highest, the interpreter before its modules. */
static void see(struct runtimes *r, struct runtimes_message *m)
{
	scoped(closep) int dir = runtimes_open_process(r, &m->process);
	uint64_t entry = dir < 0 ? 0 : read_entry(dir);
	uint32_t program = entry ? main_file(m, entry) : 0;
	bool is_unsure = false, was_looked_at = false, has_runtime = false;
	struct runtimes_entry *e;

	if (dir < 0 && dir != -ESRCH) /* which file is the main program? Its mappings are told again in half a minute */
		return;
	for (size_t i = 0; i < m->seen_count; i++)
		if (m->seen[i].file_id == program)
			was_looked_at |= see_file(r, m, &m->seen[i], program, dir, &has_runtime);
	for (size_t i = m->seen_count; i-- > 0;) {
		if (m->seen[i].file_id != program)
			was_looked_at |= see_file(r, m, &m->seen[i], program, dir, &has_runtime);
		is_unsure |= m->seen[i].is_unsure;
	}
	if (is_unsure && dir >= 0)
		see_long(r, m, program);
	e = runtimes_entry_find(r, &m->process);
	if (e)
		e->hidden_looks = 0;
	if (e && e->is_pending)
		hasten(r, e);
	else if (e && e->attached_count && !was_looked_at) {
		runtimes_doubt_again(r, e);
		look(r, e); /* code of its runtimes may lie elsewhere now */
	}
}

/* A tick within the exec has the new program's exec id already, and a quick worker tells the sink of it then; at the
 * end of the exec, where its record comes from, the kernel's side forgets what it knows of the pid. */
static void told_too_early(struct runtimes *r, struct runtimes_entry *e)
{
	if (!runtimes_is_replaced(r, &e->key) && runtimes_tell_again(r, e) < 0)
		put_pending(r, e, 0);
}

static void started(struct runtimes *r, const struct program *p)
{
	struct runtimes_entry *e = runtimes_entry_find(r, p);
	scoped(closep) int dir = -1;
	uint32_t known;

	if (e)
		told_too_early(r, e);
	if (e || !r->programs.used)
		return;
	dir = runtimes_open_process(r, p);
	if (dir < 0 || u64map_get(&r->programs, program_file(r, dir), &known) < 0)
		return;
	e = get_entry(r, p);
	if (!e)
		return;
	e->is_searching = true;
	look(r, e);
}

static void share(struct runtimes *r, const struct program *child, const struct program *parent)
{
	struct runtimes_entry *from = runtimes_entry_find(r, parent), *to;
	bool is_pending = false;

	if (!from || runtimes_entry_find(r, child))
		return;
	to = get_entry(r, child);
	from = runtimes_entry_find(r, parent); /* may have moved */
	if (!to || !from)
		return;
	to->is_searching = from->is_searching;
	to->hides_code = from->hides_code && from->is_pending;
	pthread_mutex_lock(&r->lock);
	to->attached_count = from->attached_count;
	for (size_t i = 0; i < from->attached_count; i++) {
		to->attached[i] = from->attached[i];
		to->attached[i].info = NULL;
		to->attached[i].learnt = NULL;
		if (to->attached[i].state != RUNTIMES_REFUSED)
			to->attached[i].doubt_ns = 0;
		if (to->attached[i].state == RUNTIMES_READY)
			to->attached[i].state = RUNTIMES_PENDING;
	}
	to->application = from->application ? str_dup(str_of(from->application)) : NULL;
	to->described_count = from->described_count;
	if (from->metadata && strlen(from->metadata) <= runtimes_metadata_room(r, to))
		runtimes_set_metadata(r, to, str_dup(str_of(from->metadata)));
	else if (from->metadata) /* no room for a copy: it is described anew, in at most RUNTIMES_TEXT_MAX bytes */
		to->described_count = 0;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < from->attached_count; i++) {
		uint8_t info[RUNTIME_INFO_MAX];

		if (from->attached[i].state == RUNTIMES_READY) {
			memcpy(info, from->attached[i].info, from->attached[i].info_size);
			memcpy(info, &child->start_ns, sizeof(child->start_ns));
			memcpy(info + sizeof(child->start_ns), &child->exec_id, sizeof(child->exec_id));
			if (runtimes_tell(r, to, &to->attached[i], info, from->attached[i].info_size) == 0)
				continue;
		}
		is_pending |= to->attached[i].state == RUNTIMES_PENDING;
	}
	if (is_pending || to->is_searching)
		put_pending(r, to, 0);
	else if (to->hides_code)
		put_hidden(r, to);
	else
		runtimes_want_description(r, to);
}

/* Memory becomes code without a word (mprotect): a frame of it then looks like compiled code that cannot be read. V8's
 * copies of its built-in code up to 10.2 are such. */
static void sync_late(struct runtimes *r, struct runtimes_entry *e, int dir)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	if (e->late_ns && now - e->late_ns < LATE_NS)
		return;
	e->late_ns = now;
	runtimes_sync(r, e, dir);
}

/* Of the runtime that walks this process, as long as it is the same program. */
static void read_name(struct runtimes *r, const struct names_key *key)
{
	struct runtimes_entry *e = runtimes_entry_find(r, &key->program);
	const struct runtime *runtime = NULL;
	char remark[RUNTIME_WHY_MAX] = "";
	int result;

	for (size_t i = 0; e && i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];
		scoped(closep) int dir = -1;

		runtime = a->probed->binary->runtime;
		if (runtime->id != key->runtime || a->state != RUNTIMES_READY)
			continue;
		dir = runtimes_open_process(r, &key->program);
		if (dir >= 0) {
			struct runtime_target target = runtimes_target(r, e, a, dir);

			runtimes_learn(r, e, a, &target);
			target.remark = remark;
			result = runtimes_read_name(r, runtime, &target, a->info, key);
			if (remark[0])
				RUNTIMES_COUNT(r, runtime, failed);
			runtimes_remark(r, e, runtime, remark);
			if (result < 0 && key->is_code && runtime->code_moves)
				sync_late(r, e, dir);
			return;
		}
	}
	ignore(runtimes_read_name(r, runtime, NULL, NULL, key) < 0); /* the reader hears of it */
}

static void handle(struct runtimes *r, struct runtimes_message *m)
{
	struct runtimes_entry *e;

	switch (m->kind) {
	case RUNTIMES_SEE:
		see(r, m);
		break;
	case RUNTIMES_START:
		started(r, &m->process);
		break;
	case RUNTIMES_SHARE:
		share(r, &m->process, &m->parent);
		break;
	case RUNTIMES_FORGET:
		e = runtimes_entry_find(r, &m->process);
		if (e)
			forget_entry(r, e);
		break;
	case RUNTIMES_READ:
		read_name(r, &m->key);
		break;
	case RUNTIMES_DESCRIBE:
		runtimes_describe(r, &m->process);
		break;
	case RUNTIMES_THREADS:
		runtimes_read_threads(r, &m->process);
		break;
	case RUNTIMES_RECALL:
		if (r->sink.recall)
			r->sink.recall(r->sink.self);
		break;
	case RUNTIMES_SEE_LONG: /* the looker's */
		break;
	}
}

/* ---- the loop ---- */

/* Whose turn is it? There are some, 4,096 at most. The one that waits longest, and by turns the youngest of those whose
 * time has come: a crowd that is due all the time keeps nobody else waiting. */
static size_t next_look(const struct runtimes *r, uint64_t now)
{
	const struct runtimes_pending *all = r->pending;
	size_t first = 0, young = 0;

	for (size_t i = 1; i < r->pending_count; i++) {
		if (all[i].due_ns < all[first].due_ns)
			first = i;
		if (all[i].due_ns <= now && (all[i].since_ns > all[young].since_ns || all[young].due_ns > now))
			young = i;
	}
	return r->look_at_young && all[young].due_ns <= now ? young : first;
}

/* Return: when there is time for a look, now or later. */
static uint64_t look_time(struct runtimes *r, uint64_t now)
{
	int64_t earned = (int64_t)((now - r->looks_earned_ns) / LOOKS_SHARE);

	r->looks_left_ns = MIN(r->looks_left_ns + earned, LOOKS_BURST_NS);
	r->looks_earned_ns = now;
	return r->looks_left_ns > 0 ? now : now + MAX((uint64_t)-r->looks_left_ns * LOOKS_SHARE, NSEC_PER_MSEC);
}

/* Asks those whose time has come, as long as there is time for looks. Return: when to come again; UINT64_MAX: there is
 * nobody. */
static uint64_t ask_again(struct runtimes *r)
{
	while (r->pending_count) {
		uint64_t now = clock_monotonic_ns(r->clock), may = look_time(r, now);
		size_t at = next_look(r, now);
		struct runtimes_pending p = r->pending[at];
		struct runtimes_entry *e;

		if (p.due_ns > now || may > now)
			return MAX(p.due_ns, may);
		r->look_at_young = !r->look_at_young;
		r->pending[at] = r->pending[--r->pending_count];
		e = runtimes_entry_find(r, &p.key);
		if (!e || !e->is_pending)
			continue;
		e->is_pending = false;
		look(r, e); /* may put it back */
		r->looks_left_ns -= (int64_t)(clock_monotonic_ns(r->clock) - now);
		r->looks_left_ns = MAX(r->looks_left_ns, -LOOKS_DEBT_NS);
	}
	return UINT64_MAX;
}

/* With the lock held. Return: false at the end. */
static bool wait_for_work(struct runtimes *r, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	while (!r->work.first && !r->reads.first && !r->stops) {
		if (until_ns == UINT64_MAX)
			pthread_cond_wait(&r->changed, &r->lock);
		else if (pthread_cond_timedwait(&r->changed, &r->lock, &until) != 0)
			break;
	}
	return !r->stops;
}

/* With the lock held: the one with the most urgent message; NULL: there is none. */
static struct runtimes_list *next_list(struct runtimes *r)
{
	if (r->work.first)
		return &r->work;
	return r->reads.first ? &r->reads : NULL;
}

void *runtimes_worker_main(void *argument)
{
	struct runtimes *r = argument;
	uint64_t due_ns = UINT64_MAX;

	ignore(setpriority(PRIO_PROCESS, (id_t)gettid(), WORKER_NICE)); /* without the right: as it is */
	pthread_mutex_lock(&r->lock);
	while (wait_for_work(r, due_ns)) {
		struct runtimes_list *from = next_list(r);
		struct runtimes_message *m = from ? runtimes_list_take(from) : NULL;

		r->bytes -= m ? m->bytes : 0;
		r->is_busy = from == &r->work;
		pthread_mutex_unlock(&r->lock);
		if (m)
			handle(r, m);
		free(m);
		due_ns = ask_again(r);
		pthread_mutex_lock(&r->lock);
		if (from)
			from->done++;
		if (r->is_busy)
			pthread_cond_broadcast(&r->settled);
		r->is_busy = false;
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}
