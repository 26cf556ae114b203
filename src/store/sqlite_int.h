/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite engine's parts. docs/formats/store.md describes the files.
 *
 * A partition holds the profiles of one UTC day (or the daily sums of one year). While it is open, one thread writes to
 * it: what has gathered during a commit becomes the next transaction. Readers have connections of their own and wait
 * for nobody. A closed partition is one immutable file.
 *
 * Locks, taken in this order: expire_lock, compact_lock, make_lock, state->lock, partition->lock, service->lock,
 * chunks_lock. None but the first three is held over a commit or a sync. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/intern.h"
#include "store/expiry.h"
#include "store/pack.h"
#include "store/store_int.h"

#define SQLITE_STORE_VERSION 1
#define DICTIONARY_MEMORY MIB(112) /* of all dictionaries, unless configured */
#define SERVICE_DICTIONARY_MAX \
	MIB(64) /* of one service in one partition; profiles beyond are kept as encoded windows */

#define CATALOG "catalog.db"

/* `replaces` of a closed day's file, and its keys replaced-GENERATION. */
#define REPLACES_ALL 1 /* all with lower numbers, as older versions wrote */
#define REPLACES_LISTED 2
#define REPLACED_KEY "replaced-"
#define REPLACED_WHOLLY 1
#define REPLACED_BUT_ROWS 2 /* some could not be read: that file is set aside */

#define BATCH_MAX 256 /* jobs of one transaction */

/* Levels of zstd. */
#define LIVE_LEVEL 3 /* of what is written over again when the day closes */
#define CLOSED_LEVEL                                                                                    \
	19 /* of what stays as it is: a fifth smaller than 1 (measured); the time does not matter there \
	    */

/* sqlite_db.c: SQLite with our errors */

int db_error(int rc);     /* -errno for a result code; 0 for SQLITE_OK, SQLITE_ROW and SQLITE_DONE */
bool db_is_damage(int r); /* the file is not what it should be */
/** db_open - @vfs: of the state; NULL: SQLite's own. */
int db_open(const char *vfs, const char *path, bool read_only, sqlite3 **out) warn_unused;
void db_closep(sqlite3 **db);
int db_exec(sqlite3 *db, const char *sql) warn_unused;
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out) warn_unused;
int db_step(sqlite3_stmt *stmt) warn_unused; /* 1: a row, 0: done, -errno */
void db_finalizep(sqlite3_stmt **stmt);
void db_bind_str(sqlite3_stmt *stmt, int at, struct str text);   /* borrowed until the next reset */
void db_bind_blob(sqlite3_stmt *stmt, int at, struct str bytes); /* the same; empty: NULL */
struct str db_column(sqlite3_stmt *stmt, int at);                /* text or blob; valid until the next step */
/** db_number - one number of one row. Return: 1 and *out, 0 without a row or when it is NULL, -errno. */
int db_number(sqlite3 *db, const char *sql, int64_t *out) warn_unused;
int db_set_meta(sqlite3 *db, const char *key, int64_t value) warn_unused;
int db_get_meta(sqlite3 *db, const char *key, int64_t *out) warn_unused; /* as db_number() */
int db_create(sqlite3 *db) warn_unused;                                  /* the tables of a partition */

/* New rows of a dictionary, packed by the thread that added them: the writer must not wait for a service's lock, under
 * which others intern whole profiles. */
struct chunk {
	struct chunk *next;
	struct buf packed;
};

/* A service in a partition and its dictionary. */
struct service {
	pthread_mutex_t lock; /* guards dictionary, loaded, packed */
	struct dictionary dictionary;
	bool loaded;
	struct dictionary_mark packed; /* rows before it are stored, or in a chunk */
	pthread_mutex_t chunks_lock;   /* guards the list; taken last, for moments */
	struct chunk *first, *last;    /* not stored yet, in their order */
	struct chunk *pending;         /* the writer's: the last one in its transaction; NULL: none is */
	bool is_pending;               /* the writer's: its chunks are in the transaction */
	int64_t next_chunk;            /* the writer's, once loaded: number of @first */
	/* Guarded by partition->lock */
	int refs;
	uint64_t used;
	size_t size; /* as counted in state->dictionary_bytes */
};

struct partition;

struct job {
	struct job *next;
	int (*run)(struct partition *p,
		   struct job *job); /* in the writer's transaction. Return: 0 or -errno: all fail */
	int result;
	bool done;
	pthread_cond_t changed; /* done; each waits for its own, so that a commit wakes whom it concerns */
};

struct reader {
	sqlite3 *db;
	struct reader *next;
};

/* What becomes of a file that is taken out of use, once nobody reads it. */
enum partition_fate {
	FATE_REMOVE,
	FATE_ASIDE, /* it is damaged, or rows of it are: renamed */
	FATE_LEAVE, /* it is none of ours, or out of reach: not touched */
};

enum profile_form { FORM_PACKED, FORM_RAW, FORM_WINDOW };

struct partition {
	struct sqlite_state *state;
	char name[40]; /* the file's */
	char *path;
	int64_t day; /* since 1970; for a year of rollups its first day */
	uint32_t generation;
	bool is_year;
	bool compacted; /* made by closing its day: immutable. Never changes */
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* of the writer: there is something to do */
	/* Guarded by lock */
	struct job *first, *last;
	bool stop, running;
	struct reader *readers;
	struct intern names; /* of services; index into services */
	struct service **services;
	size_t services_cap;
	/* Guarded by state->lock */
	int refs;
	bool gone; /* out of use: @fate is due when the last one lets go */
	enum partition_fate fate;
	uint64_t leaving;  /* bytes that this will free, as counted in state->leaving */
	uint64_t rows_bad; /* compact_lock guards it: rows that closing the day could not read */
	/* Takes no more writes. Set under lock; may be read under a service's lock, which comes behind it */
	_Atomic bool closed;
	/* Written by the writer, read by anybody */
	_Atomic uint64_t newest_upload, newest_request;
	_Atomic uint64_t removals; /* that are committed */
	_Atomic bool has_no_sum;   /* not all of a closed day can be added up: no use in trying again */
	/* Guarded by lock: what was counted last, so that only what came since has to be */
	struct {
		uint64_t profiles, removals;
		int64_t last_id;
	} counted;
	/* The writer's */
	pthread_t thread;
	sqlite3 *db;
	sqlite3_stmt *find_service, *add_service, *find_series, *add_series, *add_chunk, *add_profile, *drop_rollup,
		*find_request, *add_request, *add_rollup;
	struct service *touched[BATCH_MAX]; /* whose chunks are in the transaction */
	size_t touched_count;
};

struct request {
	struct request *next;
	struct str key;
};

/* A file of the folder that is left as it is, out of service. */
struct odd_file {
	char name[64], why[96];
};

struct sqlite_state {
	struct store_config config;
	char *path;
	const char *vfs; /* for db_open(): see sqlite_db.c */
	int folder_fd, lock_fd;
	sqlite3 *catalog;             /* NULL: it cannot be had */
	pthread_mutex_t catalog_lock; /* guards catalog */
	pthread_mutex_t expire_lock;  /* guards expiry and what was said; taken before all others */
	pthread_mutex_t compact_lock; /* one compaction at a time; taken before all others */
	pthread_mutex_t make_lock; /* one partition is made at a time, which takes several syncs; taken before lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct partition **partitions; /* by day, then generation; years of rollups first */
	size_t partitions_count, partitions_cap;
	struct odd_file *odd;
	size_t odd_count, odd_cap;
	struct store_ids ids;
	struct request *requests; /* under way */
	_Atomic uint64_t readers_kept, dictionary_bytes, tick, commits, puts, puts_failed, repeated, expired, bad,
		rows_bad;
	_Atomic uint64_t leaving; /* bytes of dropped partitions that somebody still reads */
	bool cut_pending;      /* compact_lock guards it: the next start has to see to files that were written anew */
	_Atomic bool is_stuck; /* a file that should have gone could not be removed: no more go for room */
	/* expire_lock guards these */
	struct expiry_memory expiry;
	uint64_t said_lowered_ns, said_over_ns; /* monotonic; 0: never */
	size_t dictionary_max;
};

static inline uint64_t state_now(struct sqlite_state *s)
{
	return clock_wall_ns(s->config.clock);
}

/* sqlite_partition.c */

/** partition_open_at - any file as partition of a day, under any name. */
int partition_open_at(struct sqlite_state *s, const char *path, int64_t day, struct partition **out) warn_unused;
/** partition_name - the file of a day or year. */
void partition_name(char out[40], bool is_year, int64_t day, uint32_t generation);
bool partition_parse_name(struct str name, bool *is_year, int64_t *day, uint32_t *generation);
/** partition_open - an existing file, or a new one. Return: 0, -EBADMSG (damaged), -errno. */
int partition_open(struct sqlite_state *s, bool is_year, int64_t day, uint32_t generation, bool create,
		   struct partition **out) warn_unused;
void partition_free(struct partition *p);
int partition_reader(struct partition *p, struct reader **out) warn_unused;
void partition_reader_done(struct partition *p, struct reader *reader);
/** partition_submit - run @job in the writer and wait for the commit. Return: its result, -ESTALE when closed, -errno.
 */
int partition_submit(struct partition *p, struct job *job) warn_unused;
bool partition_is_closed(struct partition *p);
/** partition_close - no more writes: waits for the writer and ends it. The file stays readable. */
void partition_close(struct partition *p);

/* sqlite_service.c */

/** service_get - with its dictionary loaded; service_put() when done. */
int service_get(struct partition *p, struct str name, struct service **out) warn_unused;
/** service_peek - the same when its dictionary is in memory; otherwise NULL, and nothing is read. */
struct service *service_peek(struct partition *p, struct str name);
void service_put(struct partition *p, struct service *service);
/**
 * service_strings - of a stored dictionary: far less work than loading it, and nothing stays in memory
 * @plain: room for a chunk, used again
 * @out: was initialised; what it had goes
 *
 * Return: 0 or -errno.
 */
int service_strings(sqlite3 *db, struct str name, struct buf *plain, struct dictionary_strings *out) warn_unused;
void service_free(struct service *service);
/** service_pack - pack what is new in the dictionary for the writer, at a level of zstd. service->lock is held.
 * Return: 0 or -errno: the next call packs it. */
int service_pack(struct service *service, int level) warn_unused;
/** service_write - in the writer: the id of the service, its dictionary's packed rows in the transaction. */
int service_write(struct partition *p, struct str name, struct service *service, int64_t *id) warn_unused;
/** service_written - in the writer, after the commit (or not). */
void service_written(struct partition *p, bool committed);
int service_series(struct partition *p, int64_t service, struct str type, struct str labels, int64_t *out) warn_unused;

/* sqlite_open.c: the folder, and what lies in it */

int state_open(const struct store_config *config, struct sqlite_state **out) warn_unused;
void state_close(struct sqlite_state *s);
/** odd_look - what keeps @name in the folder, or SQLite's files beside it, from being used; it is not opened
 * Return: whether there is something, as text in @why. *is_read_only: otherwise it may be read only. */
bool odd_look(const struct sqlite_state *s, const char *name, bool *is_read_only, char why[96]);
/** odd_note - remember, and log, that a file is out of service. */
void odd_note(struct sqlite_state *s, const char *name, const char *why);

/** odd_visit_aside - every file that was set aside. Return: how many, or -errno. */
int odd_visit_aside(const struct sqlite_state *s, store_problem_fn *visit, void *ctx) warn_unused;

/* sqlite_state.c: which partitions there are */

/** state_for_write - the open partition of a day, made when there is none; state_release() when done. */
int state_for_write(struct sqlite_state *s, bool is_year, int64_t day, struct partition **out) warn_unused;
void state_release(struct sqlite_state *s, struct partition *p);

struct partition_list {
	struct sqlite_state *state;
	struct partition **items;
	size_t count, cap;
};

/** state_partitions - those of days @first..@last (years: the ones that contain them), referenced. */
int state_partitions(struct sqlite_state *s, bool years, int64_t first, int64_t last,
		     struct partition_list *out) warn_unused;
void partition_list_release(struct partition_list *list);
/** state_damaged - take a damaged partition out of use; it is renamed once nobody reads it. */
void state_damaged(struct sqlite_state *s, struct partition *p);
/** state_unreadable - @r: of opening @p. Return: @r; 0 when its file turns out to be odd, or is gone, and was taken out
 * of use. */
int state_unreadable(struct sqlite_state *s, struct partition *p, int r) warn_unused;
/** state_is_gone - whether somebody removed the file of @p; then it is out of use: what came later would be lost. */
bool state_is_gone(struct sqlite_state *s, struct partition *p);
/** state_drop - take a partition out of use; the file goes once nobody reads it. */
void state_drop(struct sqlite_state *s, struct partition *p);
/** state_drop_sized - the same, for room: until the file goes its @size counts as state->leaving. */
void state_drop_sized(struct sqlite_state *s, struct partition *p, uint64_t size);
/** state_swap - at one stroke, put @fresh in and take the ones of @old out, whose files go. */
int state_swap(struct sqlite_state *s, struct partition *fresh, const struct partition_list *old) warn_unused;
uint32_t state_next_generation(struct sqlite_state *s, bool is_year, int64_t day); /* state->lock is held */
int state_sync(struct sqlite_state *s) warn_unused;                                /* the directory */
/** state_reserve - take the name of a new file by an empty one, so that no other gets it. Return: 0 or -errno. */
int state_reserve(const char *path) warn_unused;

void state_catalog_note(struct sqlite_state *s, const struct partition *p, const char *what);
int state_insert(struct sqlite_state *s, struct partition *p) warn_unused; /* state->lock is held, or nobody is there */
bool state_take_out(struct sqlite_state *s, const struct partition *p);    /* the same */
bool state_has(struct sqlite_state *s, const struct partition *p);         /* it is in use */
/** state_end - carry out the fate of a partition that is out of the list and has no user. */
void state_end(struct sqlite_state *s, struct partition *p);
/** state_path - of a file in the folder; @suffix: "" or behind its name. */
void state_path(const struct sqlite_state *s, const char *name, const char *suffix, struct buf *out);
/** state_remove_files - a partition's, and SQLite's beside it. Return: 0, or -errno of the first. */
int state_remove_files(const struct sqlite_state *s, const char *name);
void state_set_aside(struct sqlite_state *s, const char *name);

/* sqlite_write.c */

int sqlite_put(struct store_state *s, const struct store_upload *upload, struct store_id *out);
int sqlite_remove(struct store_state *s, const struct store_selector *sel, struct store_removed *out);
/** removed_beside - @r: of removing from @p, which is set aside or left alone when it cannot be read. Return: @r; 0
 * when it is out of use now and the others go on. */
int removed_beside(struct sqlite_state *s, struct partition *p, int r, struct store_removed *out) warn_unused;
/** write_rollup - in the writer: one row. */
int write_rollup(struct partition *p, int64_t series, int64_t span, int64_t t, struct str header,
		 struct str data) warn_unused;

/* sqlite_read.c */

/** What of a partition a selector means: a row of `series`. */
struct series_row {
	int64_t id;
	struct store_series series; /* borrows labels and bytes */
	struct store_label labels[STORE_LABELS_MAX];
	char *bytes;
};

struct series_list {
	struct series_row *items;
	size_t count, cap;
};

void series_list_release(struct series_list *list);
int read_series(sqlite3 *db, const struct store_selector *sel, struct series_list *out) warn_unused;
int sqlite_list(struct store_state *s, const struct store_selector *sel, store_profile_fn *visit, void *ctx);
int sqlite_read(struct store_state *s, const struct store_id *id, struct store_document *out);
/** bind_series_range - ?1 the series, ?2 and ?3 the times of @sel, both included. */
void bind_series_range(sqlite3_stmt *stmt, int64_t series, const struct store_selector *sel);

typedef int partition_fn(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx);

/** partition_each - @visit every partition of the range. Damage ends one partition only. Return: as store.list(). */
int partition_each(struct sqlite_state *s, const struct store_selector *sel, partition_fn *visit,
		   void *ctx) warn_unused;

int sqlite_warm(struct store_state *s);
int sqlite_series(struct store_state *s, const struct store_selector *sel, store_series_fn *visit, void *ctx);

/* sqlite_totals.c */

/* Where the texts of a header's rows are. */
struct header_texts {
	const struct dictionary *dictionary; /* its service's lock is held; NULL: */
	const struct dictionary_strings *strings;
};

/* The columns' types and units as text, so that no lock is held while a visitor reads them. */
struct point_names {
	struct header last;
	struct buf texts;
	struct store_label columns[MODEL_VALUE_TYPES_MAX], period;
};

void point_names_release(struct point_names *n);
/** point_names_take - those of @h. Return: 0 or -ENOMEM. */
int point_names_take(struct point_names *n, const struct header_texts *texts, const struct header *h) warn_unused;
/** point_of - a point of @h, whose names were taken; borrows from all three. */
struct store_point point_of(const struct point_names *n, const struct header *h, const struct store_series *series,
			    uint64_t created_ns);
int sqlite_totals(struct store_state *s, const struct store_selector *sel, store_point_fn *visit, void *ctx);

/* sqlite_sum.c */

/* Sums over the rows of one service's dictionary. */
struct sum {
	struct header header, scratch;
	uint32_t *mapping_at;
	int64_t *values; /* column after column, one cell per key */
	uint8_t *seen;
	size_t keys, mappings, strings;
	struct columns columns;
	struct buf plain;
	uint64_t bad;
};

int sum_init(struct sum *sum, struct service *service) warn_unused;
void sum_release(struct sum *sum);
/** sum_add - a packed profile. Return: 0, -EINVAL (other types), -EBADMSG, -ENOMEM. */
int sum_add(struct sum *sum, struct str header, struct str data) warn_unused;
/** sum_columns - the result in columns. */
int sum_columns(struct sum *sum, struct columns *out) warn_unused;
int sqlite_sum(struct store_state *s, const struct store_selector *sel, struct window *out, struct store_sum *info);

/* sqlite_owners.c */
int sqlite_owners(struct store_state *s, const struct store_selector *sel, bool by_hour, store_owners_fn *visit,
		  void *ctx);
int sqlite_moments(struct store_state *s, const struct store_selector *sel, uint64_t since_ns, store_moments_fn *visit,
		   void *ctx);

/* sqlite_rollup.c, sqlite_compact.c, sqlite_retention.c */

/** rollup_hours - hourly sums of hours of @p that ended before @until_ns and have none. */
int rollup_hours(struct partition *p, uint64_t until_ns) warn_unused;
/** rollup_day - the day's sums of closed partition @p into its year, unless they are there. Return: 0, -errno;
 * -EUCLEAN: @p was set aside. */
int rollup_day(struct partition *p) warn_unused;
/** rollup_has_day - whether the year's file has the sums of all of @p. Return: 1, 0, -errno. */
int rollup_has_day(struct partition *p) warn_unused;
/** rollup_follow - in @db, a year's new file: the sums of @day were made from file number @from, which is @to now. */
int rollup_follow(sqlite3 *db, int64_t day, uint32_t from, uint32_t to) warn_unused;
/** rollup_forget - in a year's writer: the sums of @day are not all there any more. */
int rollup_forget(struct partition *p, int64_t day) warn_unused;
/** compact_day - all files of a day into one that takes no more writes; @without: what to leave out, or NULL.
 * Return: 0; -EAGAIN: another file of the day came; -EUCLEAN: a damaged file of the day was set aside, the others stay
 * as they are; -errno. */
int compact_day(struct sqlite_state *s, int64_t day, const struct store_selector *without) warn_unused;
/** compact_sums - rollup_day() of a closed day that is in use, while no file is written anew: a sum of a service that
 * is being deleted must not come into a file that the deletion does not know of. */
int compact_sums(struct sqlite_state *s, struct partition *p) warn_unused;
/** compact_reserve - the next number of a day or year, its file made empty; @path: appended. Return: 0, -EAGAIN: the
 * day has a file behind number @last; -errno. */
int compact_reserve(struct sqlite_state *s, bool is_year, int64_t day, uint32_t last, uint32_t *generation,
		    struct buf *path) warn_unused;
/** compact_finish - a day's new file gets the sums of its hours, and takes no profiles from then on. */
int compact_finish(struct sqlite_state *s, const char *path, int64_t day) warn_unused;
int compact_sync(const char *path) warn_unused;

/* sqlite_cut.c */

/* What a file has of a service. */
struct cut_traces {
	bool any, is_alone; /* something; and of no other service */
	int64_t profiles, sums;
};

int cut_look(struct partition *p, struct str service, struct cut_traces *out) warn_unused;
/** cut_file - @p without a service at @path, not synced and not closed. Return: 0; -EUCLEAN: of @p; -errno. */
int cut_file(struct partition *p, struct str service, const char *path) warn_unused;

int sqlite_services(struct store_state *s, const struct store_selector *sel, store_service_fn *visit, void *ctx);
int sqlite_weigh(struct store_state *s, const struct store_selector *sel, struct store_removed *out);

/* sqlite_delete.c */

#define CUT_SUFFIX ".cut" /* of new files that have not taken their places */
#define CUT_MARK "cut"    /* they do, whatever happens */

/**
 * delete_service - all of sel->service
 * @out: what went: nothing unless it returns 0
 *
 * The rows of the others are copied as they are. Files of days take no more profiles then. After a failure behind the
 * moment, it is done by the next start, and no file is written anew until then.
 *
 * Return: 0; -EINPROGRESS: the next start does it; -EALREADY: it has to do another one first; -ENOSPC, -ECANCELED,
 * -errno: nothing was done.
 */
int delete_service(struct sqlite_state *s, const struct store_selector *sel, struct store_removed *out) warn_unused;
/** cut_take_place - NAME.cut becomes NAME. */
int cut_take_place(struct sqlite_state *s, const char *name) warn_unused;
/** cut_forget - CUT_MARK goes, if it is there; synced. */
int cut_forget(struct sqlite_state *s) warn_unused;

/* sqlite_retention.c */

/** seed_day - dictionaries of the day after @p from what @p's profiles of the last hour use. */
int seed_day(struct sqlite_state *s, struct partition *p, int64_t day) warn_unused;
/** partition_size - bytes of its files on the disk. */
uint64_t partition_size(const struct partition *p);
/** state_day_size - the same of all files of a day that are in use. */
uint64_t state_day_size(struct sqlite_state *s, int64_t day);
/** retention_open - what was noted of the last removal by age. */
void retention_open(struct sqlite_state *s);
int sqlite_expire(struct store_state *s, uint64_t before_ns);
int sqlite_maintain(struct store_state *s);
int sqlite_survey(struct store_state *s, store_day_fn *visit, void *ctx, struct store_outlook *out);

/* store_sqlite.c */

/** partition_count - add the number of its profiles to @out. Return: 0 or -errno. */
int partition_count(struct partition *p, uint64_t *out) warn_unused;

/* sqlite_check.c */
int sqlite_check(struct store_state *s, store_problem_fn *visit, void *ctx);
int sqlite_odd(struct store_state *s, store_problem_fn *visit, void *ctx);
int sqlite_compact(struct store_state *s);
