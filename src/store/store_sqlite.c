/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of one machine: files of SQLite in a directory. The parts are listed in sqlite_int.h. */
#include <sys/stat.h>

#include "store/snapshots.h"
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

int partition_count(struct partition *p, uint64_t *out)
{
	struct reader *reader = NULL;
	uint64_t profiles = 0;
	int r = partition_reader(p, &reader);

	r = r ? r : count_profiles(p, reader->db, &profiles);
	partition_reader_done(p, reader);
	*out += profiles;
	return r;
}

static int add_partition(struct partition *p, struct store_stats *out)
{
	struct stat st;
	int r = partition_count(p, &out->profiles);

	out->partitions++;
	if (stat(p->path, &st) == 0)
		out->bytes += (uint64_t)st.st_size;
	return r;
}

static int stats(struct store_state *state, struct store_stats *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	struct store_stats found = { .dictionary_bytes = s->dictionary_bytes,
				     .partitions_bad = s->bad,
				     .rows_bad = s->rows_bad,
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
			r = state_unreadable(s, list.items[i], add_partition(list.items[i], &found));
	}
	(void)pthread_mutex_lock(&s->lock);
	found.files_odd = s->odd_count;
	(void)pthread_mutex_unlock(&s->lock);
	if (r == 0)
		*out = found;
	return r;
}

/* What may stand behind NAME.db, any number of times. Return: whether there was something. */
static bool skip_suffix(struct str *rest)
{
	static const char *const suffixes[] = { "-wal", "-shm", "-journal", ".tmp", CUT_SUFFIX, ".damaged" };
	struct str digits;
	uint64_t number;
	ptrdiff_t end;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (!str_starts(*rest, str_of(suffixes[i])))
			continue;
		*rest = str_skip(*rest, strlen(suffixes[i]));
		return true;
	}
	if (!rest->len || rest->ptr[0] != '.')
		return false;
	end = str_find(*rest, '-'); /* .damaged.2-wal */
	digits = str_skip(str_first(*rest, end < 0 ? rest->len : (size_t)end), 1);
	*rest = str_skip(*rest, digits.len + 1);
	return str_to_u64(digits, 2, UINT32_MAX, &number) == 0;
}

bool store_owns_name(struct str name)
{
	static const char *const whole[] = { "lock", "tokens", "tokens.lock", "retention", CUT_MARK };
	ptrdiff_t at = str_search(name, STR(".db"));
	struct str base, rest;
	uint32_t generation;
	bool is_year;
	int64_t day;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (str_eq(name, str_of(whole[i])))
			return true;
	if (at < 0)
		return str_starts(name, STR("tokens.tmp-")) || snapshots_owns_name(name);
	base = str_first(name, (size_t)at + strlen(".db"));
	rest = str_skip(name, base.len);
	if (!str_eq(base, STR(CATALOG)) && !partition_parse_name(base, &is_year, &day, &generation))
		return false;
	while (skip_suffix(&rest))
		;
	return !rest.len;
}

const struct store store_sqlite = {
	.name = "sqlite",
	.open = open_store,
	.put = sqlite_put,
	.list = sqlite_list,
	.read = sqlite_read,
	.sum = sqlite_sum,
	.totals = sqlite_totals,
	.owners = sqlite_owners,
	.moments = sqlite_moments,
	.series = sqlite_series,
	.remove = sqlite_remove,
	.services = sqlite_services,
	.weigh = sqlite_weigh,
	.expire = sqlite_expire,
	.maintain = sqlite_maintain,
	.survey = sqlite_survey,
	.odd = sqlite_odd,
	.warm = sqlite_warm,
	.compact = sqlite_compact,
	.check = sqlite_check,
	.stats = stats,
	.close = close_store,
};
