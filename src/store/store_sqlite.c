/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of one machine: files of SQLite in a directory. The parts are listed in sqlite_int.h. */
#include <sys/stat.h>

#include "store/sqlite_int.h"

static int open_store(const struct store_config *config, struct store_state **out)
{
	struct sqlite_state *s;
	int r = state_open(config, &s);

	if (r == 0)
		*out = (struct store_state *)s;
	return r;
}

static void close_store(struct store_state *s)
{
	state_close((struct sqlite_state *)s);
}

/* How many profiles: the first time by an index, then only those behind the last one that was counted. */
static int count_profiles(struct partition *p, sqlite3 *db, uint64_t *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	uint64_t removals = p->removals, before = 0;
	int64_t last = 0;
	int r;

	(void)pthread_mutex_lock(&p->lock);
	if (p->counted.removals == removals) {
		before = p->counted.profiles;
		last = p->counted.last_id;
	}
	(void)pthread_mutex_unlock(&p->lock);
	r = db_prepare(db,
		       last ? "SELECT count(*), max(id) FROM profile WHERE id > ?1"
			    : "SELECT (SELECT count(*) FROM profile), (SELECT max(id) FROM profile) WHERE ?1 = 0",
		       &stmt);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, last);
	r = db_step(stmt);
	if (r < 0)
		return r;
	*out = before + (uint64_t)sqlite3_column_int64(stmt, 0);
	last = MAX(last, sqlite3_column_int64(stmt, 1)); /* NULL, which is 0 here: nothing came */
	(void)pthread_mutex_lock(&p->lock);
	p->counted.profiles = *out;
	p->counted.last_id = last;
	p->counted.removals = removals;
	(void)pthread_mutex_unlock(&p->lock);
	return 0;
}

static int add_partition(struct partition *p, struct store_stats *out)
{
	struct reader *reader = NULL;
	struct stat st;
	uint64_t profiles = 0;
	int r = partition_reader(p, &reader);

	r = r ? r : count_profiles(p, reader->db, &profiles);
	partition_reader_done(p, reader);
	out->partitions++;
	out->profiles += profiles;
	if (stat(p->path, &st) == 0)
		out->bytes += (uint64_t)st.st_size;
	return r;
}

static int stats(struct store_state *state, struct store_stats *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	struct store_stats found = { .dictionary_bytes = s->dictionary_bytes,
				     .partitions_bad = s->bad,
				     .commits = s->commits,
				     .puts = s->puts,
				     .puts_failed = s->puts_failed,
				     .requests_repeated = s->repeated,
				     .expired_partitions = s->expired };
	int r = 0;

	for (int years = 0; r == 0 && years < 2; years++) {
		scoped(partition_list_release) struct partition_list list = { 0 };

		r = state_partitions(s, years, INT64_MIN, INT64_MAX, &list);
		for (size_t i = 0; r == 0 && i < list.count; i++)
			r = add_partition(list.items[i], &found);
	}
	if (r == 0)
		*out = found;
	return r;
}

const struct store store_sqlite = {
	.name = "sqlite",
	.open = open_store,
	.put = sqlite_put,
	.list = sqlite_list,
	.read = sqlite_read,
	.sum = sqlite_sum,
	.totals = sqlite_totals,
	.series = sqlite_series,
	.remove = sqlite_remove,
	.expire = sqlite_expire,
	.maintain = sqlite_maintain,
	.warm = sqlite_warm,
	.compact = sqlite_compact,
	.check = sqlite_check,
	.stats = stats,
	.close = close_store,
};
