/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles are kept. An engine is one const struct of functions, listed in stores.c; tests/unit/store_test.c
 * holds for every one. All functions may be called from several threads at once, but close(). */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "model/window.h"

/* A profile's name: seconds of created_at (big-endian), then eight bytes that nothing else has. As text 20 characters
 * of base32hex (the layout of github.com/rs/xid, which profefe uses), so that it fits in a URL. */
#define STORE_ID_SIZE 12
#define STORE_ID_TEXT 20

struct store_id {
	uint8_t bytes[STORE_ID_SIZE];
};

/** store_id_text - the 20 characters and a NUL. */
void store_id_text(const struct store_id *id, char out[STORE_ID_TEXT + 1]);
/** store_id_parse - Return: 0, or -EBADMSG when @text is no id. */
int store_id_parse(struct str text, struct store_id *out) warn_unused;

struct store_label {
	struct str key, value;
};

#define STORE_LABELS_MAX 32
#define STORE_LABEL_KEY_MAX 256
#define STORE_LABEL_VALUE_MAX 2048
#define STORE_NAME_MAX 2048       /* a service or a type */
#define STORE_REQUEST_KEY_MAX 256 /* an Idempotency-Key */
#define STORE_RAW_MAX MIB(512)
#define STORE_DAYS_MAX 4096 /* days with profiles: 11 years. Today and its neighbours always have room besides */

#define STORE_LONG_RANGE_NS (7 * 24 * 3600 * NSEC_PER_SEC) /* sums of longer ranges may outlive their profiles */

/* What put() takes; everything is borrowed. */
struct store_upload {
	struct str service, type;
	const struct store_label *labels; /* in any order; equal keys are kept */
	size_t label_count;
	uint64_t created_ns;         /* the moment described: decides the partition */
	bool any_time;               /* whatever past_max_ns and ahead_max_ns say */
	struct str request_key;      /* the same key within 24 hours stores nothing again; empty: none */
	const struct window *window; /* NULL: the bytes of @raw are kept as they are (execution traces) */
	struct str raw;
	/* Called when put() has nothing left to compute and begins to wait for the disk; perhaps more than once.
	 * NULL: nobody wants to know. */
	void (*packed)(void *ctx);
	void *packed_ctx;
};

struct store_series;

/* Which profiles. */
struct store_selector {
	struct str service, type;         /* empty: any */
	const struct store_label *labels; /* all of them, with equal values */
	size_t label_count;
	uint64_t from_ns, to_ns; /* of created_at, both included */
	size_t limit;            /* at most this many, the most recent ones; 0: all */
	bool (*stop)(void *ctx); /* asked now and then; true ends the query with -ECANCELED. NULL: never */
	void *stop_ctx;
	/* Whether a series that fits so far is meant: one question at a time, perhaps from another thread, and again
	 * for each day that has the series. NULL: all are. */
	bool (*fits)(void *ctx, const struct store_series *series);
	void *fits_ctx;
	/* Of sum(): the result is only looked at, so that it may have functions, locations and stacks that no sample
	 * has, or the same ones twice. Faster. */
	bool to_read;
};

/* A stored profile without its content; borrowed for the length of the call. */
struct store_profile {
	struct store_id id;
	struct str service, type;
	const struct store_label *labels; /* sorted by key */
	size_t label_count;
	uint64_t created_ns, uploaded_ns;
	size_t size; /* bytes it takes, dictionaries not counted */
};

/* A visitor that returns something else than 0 ends the walk, which returns that. */
typedef int store_profile_fn(void *ctx, const struct store_profile *profile);

/* The totals of one profile, all samples added up; columns as in its value types. */
struct store_point {
	uint64_t created_ns;
	const struct store_series *series;
	const struct store_label *columns; /* key: type, value: unit */
	const int64_t *values;
	size_t value_count, default_column; /* what is meant when no column is named */
	struct store_label period;          /* type and unit of what a sample was taken every; empty: not said */
	uint64_t profiles, duration_ns;     /* 1, or how many were added up; how long they took together, 0: not said */
};

typedef int store_point_fn(void *ctx, const struct store_point *point);

/* What one thread of a process has of a point. Samples that say nothing have zeros and empty texts. */
struct store_owner {
	uint32_t pid, tid;
	uint64_t start_ns; /* of the process, CLOCK_BOOTTIME; 0: not said */
	struct str comm, container, app_id, thread;
	const int64_t *values; /* by column; all owners of a point add up to its values */
};

/* One process and thread may come several times in a point: with other texts, or where too many are told apart. */
typedef int store_owners_fn(void *ctx, const struct store_point *point, const struct store_owner *owners, size_t count);

/* The samples of a point by row, with their times. */
struct store_moments {
	uint64_t start_ns; /* what the times count from, wall clock; 0: not said, then created_ns */
	size_t count;
	const uint64_t *offsets;          /* ns from the start; MODEL_NO_TIME: none. NULL: no sample has one */
	const int64_t *values;            /* column after column: values[column * count + row] */
	const struct store_owner *owners; /* without values */
	const uint32_t *owner_of;         /* by row */
};

typedef int store_moments_fn(void *ctx, const struct store_point *point, const struct store_moments *moments);

/* One series: what profiles have in common besides time. */
struct store_series {
	struct str service, type;
	const struct store_label *labels;
	size_t label_count;
};

typedef int store_series_fn(void *ctx, const struct store_series *series);

typedef int store_service_fn(void *ctx, struct str name);

/* A stored document: a window, or the bytes that were uploaded. */
struct store_document {
	bool is_raw;
	struct window window;
	struct buf raw;
};

void store_document_release(struct store_document *d); /* a zeroed one is fine */

struct store_sum {
	uint64_t profiles;  /* merged into the result */
	uint64_t skipped;   /* raw documents, which cannot be merged */
	uint64_t parts_bad; /* damaged rows left out */
};

/* What remove() has removed. */
struct store_removed {
	uint64_t profiles;
	uint64_t sums;  /* of days, in the years' files */
	uint64_t files; /* that were written anew without them */
	uint64_t bytes; /* that this gave back; rows removed from a file that takes profiles give room to later ones */
	uint64_t aside; /* files that could not be read: what they hold stays */
};

struct store_stats {
	uint64_t profiles, bytes, dictionary_bytes; /* stored; on disk (or in memory); dictionaries in memory */
	uint64_t partitions, partitions_bad;        /* in use; set aside because they are damaged */
	uint64_t commits, puts, puts_failed, requests_repeated;
	uint64_t expired_partitions;
	uint64_t files_odd; /* in the folder, out of service and left as they are: a FIFO, another owner, a newer
			       version */
	uint64_t rows_bad;  /* profiles that closing a day could not read; their file was set aside */
};

/* One day of profiles, or the sums of one year. */
struct store_day {
	int64_t day, days;     /* the first one since 1970; how many */
	bool is_year, is_open; /* is_open: it takes profiles */
	uint64_t profiles, files, bytes;
	uint64_t newest_ns; /* newest upload, wall clock; 0: none, or not known */
	const char *reason; /* it goes at the next maintain(), and why: age, size, free. NULL: it stays */
};

typedef int store_day_fn(void *ctx, const struct store_day *day);

/* What retention sees, and will do. */
struct store_outlook {
	uint64_t age_max_ns, size_max, free_min, rollup_age_max_ns; /* as in struct store_config */
	uint64_t bytes;                                             /* of all files, which size_max limits */
	bool disk_known;                                            /* the next three are of the file system */
	uint64_t disk_size, disk_free, leaving; /* bytes; leaving: of files that go once their last reader is done */
	uint64_t free_goal;                     /* in force; 0: none */
	bool is_lowered, is_over,
		is_stuck; /* as expiry_plan has them; a file could not be removed: nothing goes for room */
	bool any_next;    /* something will go because of its age: */
	bool next_is_year;
	int64_t next_day;
	uint64_t next_ns; /* not before, wall clock */
};

struct store_config {
	size_t kept_max;            /* memory store only: profiles of which the oldest go; 0: any number */
	bool keeps_sum;             /* memory store only, of one series: sum() of all there ever was is at hand */
	const char *path;           /* directory; made when missing. Not used by the memory store */
	const struct clock *clock;  /* wall time of uploads, retention and closing */
	uint64_t age_max_ns;        /* a day goes when its newest upload is older; 0: never */
	uint64_t size_max;          /* oldest days go above this many bytes; 0: no limit */
	uint64_t free_min;          /* oldest days go while the file system has less left; 0: no limit. See expiry.h */
	uint64_t rollup_age_max_ns; /* of the daily rows in rollup-YYYY.db; 0: never */
	uint64_t past_max_ns;       /* how far created_ns may lie behind now, and ahead of it; 0: any time */
	uint64_t ahead_max_ns;
	size_t dictionary_max; /* bytes of dictionaries kept in memory; 0: 112 MiB */
};

/* Something wrong that check() found: where, and what, as text. */
typedef void store_problem_fn(void *ctx, const char *where, const char *what);

struct store_state;

struct store {
	const char *name;
	int (*open)(const struct store_config *config, struct store_state **out);
	/**
	 * put - store one profile; when it returns, it is durable
	 *
	 * Return: 0; 1 when request_key is known already (*out is the profile stored then); -ENOSPC, -EIO,
	 * -EINVAL (no service, no type), -E2BIG over a limit above, -ERANGE: created_ns outside 1970..2106;
	 * -ETIME: it is too far from now; -EOVERFLOW: its day would be one more than STORE_DAYS_MAX.
	 */
	int (*put)(struct store_state *s, const struct store_upload *upload, struct store_id *out);
	/**
	 * list - every profile of @sel by created_at, oldest first, those of one moment by their ids' bytes: a page of
	 * a list that ends at an id goes on in front of it. With a limit the most recent ones, in the same order.
	 *
	 * Return: 0, -errno or what @visit returned.
	 */
	int (*list)(struct store_state *s, const struct store_selector *sel, store_profile_fn *visit, void *ctx);
	/** read - one profile, equal to the uploaded one as pprof compares. Return: 0, -ENOENT, -EBADMSG, -errno. */
	int (*read)(struct store_state *s, const struct store_id *id, struct store_document *out);
	/**
	 * sum - all profiles of @sel as one, by the rules of model_merge()
	 * @out: an empty model when nothing was found; start and end are those of what was merged
	 *
	 * Memory follows the number of distinct stacks. Return: 0, -EINVAL when sample types differ, -errno.
	 */
	int (*sum)(struct store_state *s, const struct store_selector *sel, struct window *out, struct store_sum *info);
	/** totals - one point for each profile but raw ones, in no order; limit is ignored. Return: as list(). */
	int (*totals)(struct store_state *s, const struct store_selector *sel, store_point_fn *visit, void *ctx);
	/**
	 * owners - the points of totals() with what each process and thread has of them; no stack is looked at
	 * @by_hour: profiles of one series and hour (UTC) that is in the range as a whole may come as one point, whose
	 *	created_ns is where the hour begins. Several times as fast for long ranges
	 *
	 * Return: as list().
	 */
	int (*owners)(struct store_state *s, const struct store_selector *sel, bool by_hour, store_owners_fn *visit,
		      void *ctx);
	/**
	 * moments - the points of totals() with their samples' times; no stack is looked at
	 * @since_ns: profiles that say that they ended before (wall clock) are left out, and cost little
	 *
	 * Return: as list().
	 */
	int (*moments)(struct store_state *s, const struct store_selector *sel, uint64_t since_ns,
		       store_moments_fn *visit, void *ctx);
	/**
	 * series - every series with a profile in the time of @sel, once: by service, type, then labels, bytewise. A
	 * list of services needs to remember only the one before. limit is ignored. Return: as list().
	 */
	int (*series)(struct store_state *s, const struct store_selector *sel, store_series_fn *visit, void *ctx);
	/**
	 * remove - delete the profiles of @sel (limit is ignored) and the sums they are in
	 * @out: what went, for good; also when the call fails
	 *
	 * A service that is meant whole (no type, no labels, from 0 to UINT64_MAX) goes whole or not at all, whatever
	 * fails and when it is killed, and from one moment to the next for readers. Nothing is left of it in any file
	 * in use: neither its name nor those of its functions. Of other selections a call that failed, or a crash,
	 * leaves some days without them and the others whole; lists and sums agree, and the same call again removes the
	 * rest. What is put meanwhile may stay.
	 *
	 * Return: 0, -ENOSPC (files are written anew beside the old ones), -ECANCELED, -EINPROGRESS (a service goes
	 * with the next open()), -EALREADY (one does, and until then nothing else can), -errno.
	 */
	int (*remove)(struct store_state *s, const struct store_selector *sel, struct store_removed *out);
	/**
	 * services - the name of every service that a file in use has something of, sums too: once each, bytewise
	 *
	 * Of @sel only stop counts. Return: as list(); -E2BIG: the names are more than STORE_SERVICES_BYTES_MAX.
	 */
	int (*services)(struct store_state *s, const struct store_selector *sel, store_service_fn *visit, void *ctx);
	/**
	 * weigh - what remove() of the whole of sel->service would take along, as things are
	 * @out: sums: all of its days'; files: that have something of it; bytes: of its rows, or of files that have no
	 *	other service: about what comes back. Untouched on failure
	 *
	 * Of @sel only service and stop count. Return: 0 or -errno.
	 */
	int (*weigh)(struct store_state *s, const struct store_selector *sel, struct store_removed *out);
	/** expire - drop at once the days whose newest upload is older than @before_ns. Return: how many files, or
	 * -errno. */
	int (*expire)(struct store_state *s, uint64_t before_ns);
	/**
	 * maintain - what has to happen now and then: rollups, the next day's dictionaries, closing days that are over,
	 * retention. To be called about once a minute.
	 */
	int (*maintain)(struct store_state *s);
	/** survey - every day, then every year of sums, in their order; and what goes next. Return: as list(). */
	int (*survey)(struct store_state *s, store_day_fn *visit, void *ctx, struct store_outlook *out);
	/** odd - files that are out of service, and those that were set aside. Return: how many, or -errno. */
	int (*odd)(struct store_state *s, store_problem_fn *visit, void *ctx);
	/** warm - load what puts to services written in the last hour need; a server is ready after it. */
	int (*warm)(struct store_state *s);
	/** compact - close every day that is over now. Return: how many, or -errno. */
	int (*compact)(struct store_state *s);
	/** check - read everything. Return: the number of problems, or -errno. @visit is called once for each. */
	int (*check)(struct store_state *s, store_problem_fn *visit, void *ctx);
	int (*stats)(struct store_state *s, struct store_stats *out);
	void (*close)(struct store_state *s); /* NULL is fine */
};

extern const struct store store_memory, store_sqlite;

/** store_owns_name - whether hearth makes files of this name in a data directory: partitions, the catalog, what SQLite
 * puts beside them, what was set aside, tokens, locks. */
bool store_owns_name(struct str name);

const struct store *store_at(size_t index); /* NULL behind the last */
const struct store *store_find(struct str name);
