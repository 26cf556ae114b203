/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by runtimes.c (the reader's side), runtimes_files.c (which files are runtimes), runtimes_attach.c (what
 * walkers must know), runtimes_describe.c (what people are told), runtimes_worker.c and runtimes_looker.c (long looks
 * at files).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/u64map.h"
#include "object/elf.h"
#include "runtime/elf_id.h"
#include "runtime/names.h"
#include "runtime/runtimes.h"
#include "runtime/thread_names.h"

#define RUNTIMES_PAGE 256
#define RUNTIMES_PAGES 1024          /* of file ids: 262,144 of them */
#define RUNTIMES_PROCESSES_MAX 32768 /* that have a runtime */
#define RUNTIMES_ATTACHED_MAX 4      /* runtimes in one process */
#define RUNTIMES_PENDING_MAX 4096    /* processes that are asked again */
#define RUNTIMES_PROGRAMS_MAX 4096   /* files that were main program of a process with a runtime */
#define RUNTIMES_QUEUE_BYTES MIB(4)
#define RUNTIMES_QUEUE_STARTS MIB(5)   /* execs of what may be told already may go on top, ... */
#define RUNTIMES_QUEUE_ALL MIB(6)      /* ... and forks and exits: losing one leaks */
#define RUNTIMES_TEXT_MAX 4096         /* of an application id; of metadata when METADATA_ALL is used up */
#define RUNTIMES_METADATA_MAX KIB(256) /* of one process: all flags of a JVM */
#define RUNTIMES_METADATA_ALL MIB(24)  /* of all processes; beyond it each further one has TEXT_MAX */

/* What is known of one file. Made by the worker or the looker, whoever is first. */
struct runtimes_probed {
	struct runtime_binary *binary;
	struct elf segments; /* only its segments: which address a mapping's offset has */
	char *path;
	void *learnt;                   /* the worker's: what runtime.learn_file() said, owned; NULL: not yet */
	_Atomic bool is_noted;          /* that processes of it cannot be attached to has been said */
	_Atomic bool is_unwalked_noted; /* that they are attached to, but their frames are not walked */
};

struct runtimes_page {
	_Atomic(const struct runtimes_probed *) slots[RUNTIMES_PAGE]; /* NULL: not probed yet */
};

extern const struct runtimes_probed runtimes_nothing;    /* probed, and no runtime */
extern const struct runtimes_probed runtimes_unfinished; /* runtimes_probe(): it is one, a long look tells the rest */

struct runtimes_files {
	_Atomic(struct runtimes_page *)
		pages[RUNTIMES_PAGES]; /* written with the lock of struct runtimes, read by all */
};

/* One runtime in one process. */
struct runtimes_attached {
	const struct runtimes_probed *probed;
	uint64_t bias;
	enum runtimes_state state;
	uint32_t info_size; /* READY: of info */
	uint8_t *info;      /* owned */
	void *learnt;       /* the worker's: of runtime.learn_process(), owned */
	uint64_t effort;    /* runtime_target.effort; forks go on counting */
	uint64_t doubt_ns;  /* since when it does not look like its version; 0: it does, or cannot be told yet. REFUSED:
			     * when that was; 0: for good */
	uint32_t range_count;
	struct abi_code_range ranges[ABI_CODE_RANGES]; /* as sync() said last */
};

/* A process with a runtime, or one that was started by exec and will have one, so its file says. Written by the worker
 * with the lock held, read by the worker without and by the reader with it. */
struct runtimes_entry {
	struct program key;
	struct runtimes_attached attached[RUNTIMES_ATTACHED_MAX];
	size_t attached_count;
	uint64_t since_ns;            /* when the newest of its runtimes was met; without any: when this was made */
	uint64_t earliest_ns;         /* pending: no look before that, whatever is mapped meanwhile */
	uint64_t late_ns;             /* code was met that its ranges may not know: runtimes_sync() then */
	bool is_pending;              /* there is a struct runtimes_pending of it */
	bool is_searching;            /* its mappings are read until a runtime is among them */
	bool head_is_old;             /* ranges have changed since the sink was told of them */
	bool hides_code;              /* at the last look: sync() said -EAGAIN; the worker's */
	uint8_t hidden_looks;         /* for that reason, since its mappings were told of last; the worker's */
	char *application, *metadata; /* owned, or NULL */
	size_t described_count;       /* attached ones that were not pending when these were found out; the worker's */
	struct abi_runtimes head;     /* as the sink was told last; exec_id and start_ns 0: nothing */
};

/** runtimes_set_metadata - with the lock held; @metadata: becomes the entry's own; NULL: none */
void runtimes_set_metadata(struct runtimes *r, struct runtimes_entry *e, char *metadata);
/** runtimes_metadata_room - how long the metadata of @e may be, so that all of them are bounded. The worker's. */
size_t runtimes_metadata_room(const struct runtimes *r, const struct runtimes_entry *e);

struct runtimes_pending {
	struct program key;
	uint64_t due_ns, since_ns; /* since_ns: as the entry has it */
};

enum runtimes_message_kind {
	RUNTIMES_SEE,
	RUNTIMES_START,
	RUNTIMES_SHARE,
	RUNTIMES_FORGET,
	RUNTIMES_RECALL,
	RUNTIMES_SEE_LONG, /* the looker's: some file of a SEE takes a long look */
	RUNTIMES_READ,     /* from here on: can wait */
	RUNTIMES_DESCRIBE,
	RUNTIMES_THREADS, /* read what its threads are called */
};

struct runtimes_seen { /* a mapping whose file is or may be a runtime */
	uint64_t start, offset, device, inode;
	uint32_t file_id;
	bool is_unsure;  /* a quick look did not tell, or not all of it */
	bool is_runtime; /* the quick look found a runtime, of which a long look must read the rest */
};

struct runtimes_message {
	struct runtimes_message *next;
	size_t bytes;
	enum runtimes_message_kind kind;
	struct program process, parent;
	struct names_key key; /* READ */
	uint32_t main_file;   /* SEE_LONG: file id of the main program; 0: nobody knows */
	bool is_urgent; /* SEE_LONG: one of its files is_runtime: it goes before those that only may have a runtime */
	size_t seen_count; /* SEE */
	struct runtimes_seen seen[];
};

struct runtimes_list {
	struct runtimes_message *first, **end;
	uint64_t added, done; /* messages; done: taken and handled */
};

struct runtimes {
	struct runtimes_config cfg; /* never changed after open */
	struct runtime_sink sink;
	const struct clock *clock;
	char *host_root;
	struct files *files; /* has a lock of its own */
	struct runtimes_files probed;

	/* The reader's. */
	struct buf application, metadata; /* what runtimes_process() lends */
	struct names *names;
	struct buf name_room;              /* of the name that is decoded */
	uint64_t recalled_ns, refilled_ns; /* refilled_ns: the budget for decoding lines */
	bool has_asked;                    /* since runtimes_has_asked() */

	/* The worker's. */
	pthread_t worker;
	bool worker_runs;
	struct buf scratch, text;
	struct runtimes_pending *pending;
	size_t pending_count, pending_cap;
	int64_t looks_left_ns;    /* time for looks at pending processes; below 0: the last one took longer */
	uint64_t looks_earned_ns; /* when that was counted last */
	bool look_at_young;       /* next_look() */
	uint64_t swept_ns;
	bool full_is_noted; /* that the sink has no more room has been said */
	struct elf_ids ids;
	struct u64map programs;  /* hash of device and inode, by stat, of main programs */
	struct u64map libraries; /* hash of device and inode, as maps shows them, of runtimes -> file id */

	_Atomic bool has_answers;
	_Atomic bool has_programs; /* there are any in `programs` */

	pthread_t looker;
	bool looker_runs;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed, looks_changed;
	/* The worker's, handled in this order: a process that has just begun waits in `work`, its first samples are
	 * lost otherwise; of `reads`, names and descriptions, there may be tens of thousands. */
	struct runtimes_list work, reads;
	struct runtimes_list looks; /* the looker's */
	struct u64map failures;     /* file id -> how often it was met since it could not be opened */
	pthread_cond_t settled;     /* done has grown, for who waits in runtimes_settle() */
	size_t bytes;
	struct runtimes_answer *answers; /* for the reader, see runtimes_names.c */
	size_t answer_bytes;
	struct thread_names *threads;    /* NULL: nobody wants them */
	_Atomic bool has_teller;         /* a runtime that names threads was attached to: without, no sample asks */
	bool stops, is_busy, is_looking; /* is_busy: with something of `work`; is_looking: of `looks` */
	struct runtimes_entry *entries;
	size_t entry_count, entry_cap;
	struct u64map entry_index; /* hash of the program -> entries */
	size_t metadata_bytes;     /* of all entries */
	uint64_t seed;
	struct runtime_stats stats[ABI_RUNTIME_COUNT];
	struct buf notices;
};

/* ---- runtimes_files.c ---- */

/** runtimes_files_get - NULL: not probed yet, or out of range. Any thread. */
const struct runtimes_probed *runtimes_files_get(const struct runtimes_files *f, uint32_t file_id);
enum runtimes_look {                            /* flags */
		     RUNTIMES_LOOK_PROGRAM = 1, /* at a main program; otherwise at a library */
		     RUNTIMES_LOOK_LONG = 2,    /* 64 MiB of it may be read; otherwise processes wait */
		     RUNTIMES_LOOK_BLIND = 4,   /* at what may be a main program; that it is none does not last */
};

/** runtimes_probe - the worker's and the looker's: what file @file_id is; reads the file until a look has told that.
 * NULL: a quick look does not tell; &runtimes_unfinished: it tells that it is a runtime; &runtimes_nothing: it is none,
 * or could not be looked at. */
const struct runtimes_probed *runtimes_probe(struct runtimes *r, uint32_t file_id, unsigned int look);
/** runtimes_note - why frames of that file are not walked, for people; said once per file. */
void runtimes_note(struct runtimes *r, const struct runtimes_probed *p, const char *why);
/** runtimes_note_unwalked - that frames of that file are not walked in this session (--unwind fp); said once per file.
 */
void runtimes_note_unwalked(struct runtimes *r, const struct runtimes_probed *p);
void runtimes_files_release(struct runtimes_files *f);

/* ---- runtimes_names.c ---- */

int runtimes_names_open(struct runtimes *r) warn_unused;
void runtimes_names_close(struct runtimes *r);
/** runtimes_read_name - the worker's: read what a function is called. @target NULL: the process is gone. Return: 0, or
 * why it could not be read. */
int runtimes_read_name(struct runtimes *r, const struct runtime *runtime, const struct runtime_target *target,
		       const void *info, const struct names_key *key);

/* ---- runtimes_attach.c: the worker's ---- */

/** runtimes_open_process - Return: a descriptor of /proc/PID; -ESRCH: it is gone, or another process has its pid;
 * -errno: that cannot be told now (too many descriptors). */
int runtimes_open_process(struct runtimes *r, const struct program *p) warn_unused;
/** runtimes_target - the process as the runtime @a sees it; @dir: its descriptor. */
struct runtime_target runtimes_target(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a,
				      int dir);
/** runtimes_remark - what people should know of that process; "": nothing. */
void runtimes_remark(struct runtimes *r, const struct runtimes_entry *e, const struct runtime *runtime,
		     const char *remark);
/** runtimes_learn - runtime.learn_process(), once; target->of_process is what it said. Its remark is noted. */
void runtimes_learn(struct runtimes *r, const struct runtimes_entry *e, struct runtimes_attached *a,
		    struct runtime_target *target);
/** runtimes_add - it has a runtime, whose file is mapped at @start from @offset on. */
void runtimes_add(struct runtimes *r, struct runtimes_entry *e, const struct runtimes_probed *probed, uint64_t start,
		  uint64_t offset);
/** runtimes_attach - to all that are not ready. Return: 0: done; -EAGAIN: later; -ENOSPC: the sink has room for no more
 * processes; -ESRCH: the process is gone. */
int runtimes_attach(struct runtimes *r, struct runtimes_entry *e, int dir) warn_unused;
/** runtimes_doubt_again - those that were refused a while ago because of what they looked like are pending again */
void runtimes_doubt_again(struct runtimes *r, struct runtimes_entry *e);
/** runtimes_tell - the sink: @info is what its walker needs. Return: 0 or -errno. */
int runtimes_tell(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, const uint8_t *info,
		  uint32_t size) warn_unused;
/** runtimes_tell_again - the sink what it has been told of all that are ready: it may have forgotten. What cannot be
 * told is pending. Return: 0; -EAGAIN: something is. */
int runtimes_tell_again(struct runtimes *r, struct runtimes_entry *e) warn_unused;
/** runtimes_sync - ask those that are ready where their code is now, and tell the sink what has changed. e->hides_code
 * is set when one says that it cannot be seen just now. */
void runtimes_sync(struct runtimes *r, struct runtimes_entry *e, int dir);
/**
 * runtimes_add_range - one more range of code, as a process says it is
 * Return: 0; -EBADMSG: it is empty, or not within the addresses that a process can have, or overlaps another one;
 * -ENOSPC: @head holds no more.
 */
int runtimes_add_range(struct abi_runtimes *head, enum abi_runtime runtime,
		       const struct abi_code_range *range) warn_unused;
/** runtimes_has_ready - NONE: any runtime. */
bool runtimes_has_ready(const struct runtimes_entry *e, enum abi_runtime id);

/* ---- runtimes_describe.c: the worker's ---- */

/** runtimes_want_description - describe it when nothing else waits: whole files may have to be read for it. Once for
 * each runtime that is met in it. */
void runtimes_want_description(struct runtimes *r, const struct runtimes_entry *e);
void runtimes_describe(struct runtimes *r, const struct program *process);
/**
 * runtimes_main_of - the runtime that the main program of a process is one of
 *
 * It is the main program itself, or the program is linked with it; what it loads later is neither. @entry: where the
 * main program begins, 0: not known; @program: its file, or NULL. Return: NULL: none of them is.
 */
const struct runtimes_attached *runtimes_main_of(const struct runtimes_attached *attached, size_t count, uint64_t entry,
						 const struct elf *program);
/**
 * runtimes_join_metadata - append the members of both JSON objects: of those in both the @first one's
 * An empty text is no object; the other one is appended as it is. Return: 0; -EBADMSG: one is no object; the buffer's
 * error. Pure.
 */
int runtimes_join_metadata(struct str first, struct str second, struct buf *out) warn_unused;

/* ---- runtimes_threads.c ---- */

/** runtimes_read_threads - the worker's: read what the threads of @process are called that are wanted. */
void runtimes_read_threads(struct runtimes *r, const struct program *process);

/* ---- runtimes_worker.c ---- */

void *runtimes_worker_main(void *runtimes);

/* ---- runtimes_looker.c ---- */

void *runtimes_looker_main(void *runtimes);

/* ---- runtimes.c ---- */

void runtimes_list_init(struct runtimes_list *l);
void runtimes_list_add(struct runtimes_list *l, struct runtimes_message *m);
struct runtimes_message *runtimes_list_take(struct runtimes_list *l);

/** runtimes_message_new - with room for @seen mappings; NULL: out of memory. */
struct runtimes_message *runtimes_message_new(enum runtimes_message_kind kind, const struct program *p, size_t seen);
/** runtimes_hand_over - to the worker or the looker; @m is moved in. Return: false when there is no room: it is gone.
 */
bool runtimes_hand_over(struct runtimes *r, struct runtimes_message *m, size_t limit);

/** runtimes_entry_find - with the lock held, or by the worker. */
struct runtimes_entry *runtimes_entry_find(const struct runtimes *r, const struct program *p);
/** runtimes_is_replaced - the worker's: has the process of @p executed another program since, as far as its entries
 * tell? What is told of @p later than that (a file took a long look) would be told of the new program: all that can be
 * read of a process is the new one's, and the sink knows it by its pid. */
bool runtimes_is_replaced(const struct runtimes *r, const struct program *p);
/** runtimes_entry_get - the worker's: found or made. NULL: out of memory, too many, or runtimes_is_replaced(). */
struct runtimes_entry *runtimes_entry_get(struct runtimes *r, const struct program *p);
void runtimes_entry_drop(struct runtimes *r, struct runtimes_entry *e);
/** runtimes_count - add to one figure of one runtime. */
void runtimes_count(struct runtimes *r, const struct runtime *runtime, size_t offset);
#define RUNTIMES_COUNT(r, runtime, field) runtimes_count((r), (runtime), offsetof(struct runtime_stats, field))
