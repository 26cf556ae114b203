/* SPDX-License-Identifier: Apache-2.0 */
/* A folded profile of any size for benchmarks: real-looking names, a skewed call graph, Pareto values.
 *
 *   gen_folded [-l LINES] [-n NAMES] [-d MEAN_DEPTH] [-s SEED] [-b FRAMES] [--sorted] > out.folded
 *
 * The defaults give 1,000,000 distinct lines, about 1 GB and 10 million call paths. Each function has a short list of
 * callees, and the first of them are chosen most; one call in a hundred goes anywhere. Equal arguments give equal
 * bytes. The lines come in no order, as from a hash table; --sorted writes them by the names of their frames. With -b a
 * line leaves some line before it only at its end, with FRAMES frames of its own in the mean (at most as many are new),
 * as in a profile with many samples of the same stacks: -l 228000 -d 35 -b 6 gives about a million call paths. */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLEES_MAX 24u
#define DEPTH_MAX 128u
#define NAME_MAX_BYTES 160u

struct generator {
	uint64_t state;
	unsigned long lines, names;
	double depth, branch; /* branch: mean length of what a line adds to an earlier one, 0: lines stand alone */
	bool sorted;
	char (*name)[NAME_MAX_BYTES];
	uint32_t (*callee)[CALLEES_MAX];
	uint8_t *callee_count;
	uint64_t *seen; /* hashes of lines already written */
	size_t seen_mask;
	uint32_t *rank;  /* of a name among the sorted ones */
	uint32_t *paths; /* of all lines, with -b and --sorted */
	struct line *lines_kept;
	size_t path_count, path_cap;
};

struct line {
	size_t path;
	uint32_t depth, value;
};

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next(struct generator *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static double uniform(struct generator *g)
{
	return (double)(next(g) >> 11) / 9007199254740992.0;
}

static const char *word(struct generator *g)
{
	static const char *const words[] = {
		"read",     "write",   "handle",  "parse",      "buffer",   "index",   "request", "response",
		"cache",    "lookup",  "insert",  "commit",     "encode",   "decode",  "channel", "stream",
		"worker",   "queue",   "table",   "schedule",   "flush",    "merge",   "sort",    "scan",
		"filter",   "project", "session", "connection", "packet",   "frame",   "signal",  "context",
		"allocate", "release", "update",  "resolve",    "dispatch", "compare", "hash",    "visit",
	};

	return words[next(g) % (sizeof(words) / sizeof(*words))];
}

static const char *scope(struct generator *g)
{
	static const char *const scopes[] = {
		"net",  "storage", "core",   "util",   "rpc",   "query", "engine",  "runtime",
		"http", "index",   "memory", "system", "codec", "auth",  "metrics", "planner",
	};

	return scopes[next(g) % (sizeof(scopes) / sizeof(*scopes))];
}

static void name_one(struct generator *g, unsigned long i)
{
	unsigned pick = (unsigned)(next(g) % 100);
	char *out = g->name[i];
	const char *a = scope(g), *b = scope(g), *x = word(g), *y = word(g);

	if (i < g->names / 10 && pick < 92) /* what is called most has short names */
		snprintf(out, NAME_MAX_BYTES, pick < 40 ? "%s::%s%lu" : "%s_%s%lu", x, y, i);
	else if (pick < 36)
		snprintf(out, NAME_MAX_BYTES, "%s::%s::%s_%s%lu(%s::%s const&)", a, b, x, y, i, a, word(g));
	else if (pick < 46)
		snprintf(out, NAME_MAX_BYTES, "std::__detail::_%s_%s<%s::%s%lu>::operator()", x, y, b, word(g), i);
	else if (pick < 60)
		snprintf(out, NAME_MAX_BYTES, "%s_%s%lu", x, y, i);
	else if (pick < 72)
		snprintf(out, NAME_MAX_BYTES, "%s_%s%lu_[k]", a, x, i);
	else if (pick < 84)
		snprintf(out, NAME_MAX_BYTES, "com/example/%s/%s/%sImpl%lu.%s%s_[j]", a, b, x, i, y, word(g));
	else if (pick < 92)
		snprintf(out, NAME_MAX_BYTES, "github.com/example/%s/%s.(*%s%lu).%s%s", a, b, x, i, y, word(g));
	else
		snprintf(out, NAME_MAX_BYTES, "%s_%s (/srv/app/%s/%s%lu.py)_[p]", x, y, a, b, i);
}

/* Small numbers far more often than big ones. */
static unsigned long skewed(struct generator *g, unsigned long below)
{
	double u = uniform(g);

	return (unsigned long)((double)below * u * u * u * u * u);
}

static void make_graph(struct generator *g)
{
	for (unsigned long i = 0; i < g->names; i++) {
		name_one(g, i);
		g->callee_count[i] = (uint8_t)(1 + skewed(g, CALLEES_MAX));
		for (unsigned k = 0; k < g->callee_count[i]; k++)
			g->callee[i][k] = (uint32_t)skewed(g, g->names);
	}
}

static bool is_new(struct generator *g, uint64_t hash)
{
	size_t at = (size_t)hash & g->seen_mask;

	for (hash |= 1; g->seen[at]; at = (at + 1) & g->seen_mask) {
		if (g->seen[at] == hash)
			return false;
	}
	g->seen[at] = hash;
	return true;
}

/* The start of an earlier line in @path, at most @most frames. Return: how many. */
static size_t branch_off(struct generator *g, unsigned long written, size_t most, uint32_t *path)
{
	const struct line *from = &g->lines_kept[next(g) % written];
	size_t count = from->depth < most ? from->depth : most;

	memcpy(path, g->paths + from->path, count * sizeof(*path));
	return count;
}

static uint32_t call(struct generator *g, uint32_t at)
{
	if (next(g) % 100 == 0)
		return (uint32_t)(next(g) % g->names);
	return g->callee[at][next(g) % 100 < 72 ? 0 : skewed(g, g->callee_count[at])];
}

static size_t make_path(struct generator *g, unsigned long written, uint32_t *path)
{
	/* Depth: a spread around the mean, never a single shape. */
	size_t depth = (size_t)(g->depth * (0.4 + 0.6 * (uniform(g) + uniform(g)))), own, i = 0;

	if (depth < 3)
		depth = 3;
	if (depth > DEPTH_MAX)
		depth = DEPTH_MAX;
	own = g->branch > 0 ? 1 + (size_t)(-log(1.0 - uniform(g)) * (g->branch - 1)) : depth;
	if (own < depth && written)
		i = branch_off(g, written, depth - own, path);
	if (!i)
		path[i++] = (uint32_t)skewed(g, 12 < g->names ? 12 : g->names);
	for (; i < depth; i++)
		path[i] = call(g, path[i - 1]);
	return depth;
}

static void write_line(const struct generator *g, const uint32_t *path, size_t depth, unsigned long value)
{
	for (size_t i = 0; i < depth; i++) {
		fputs(g->name[path[i]], stdout);
		putchar(i + 1 < depth ? ';' : ' ');
	}
	printf("%lu\n", value);
}

static bool keep_line(struct generator *g, unsigned long at, const uint32_t *path, size_t depth, unsigned long value)
{
	if (g->path_count + depth > g->path_cap) {
		size_t cap = 2 * g->path_cap + DEPTH_MAX;
		uint32_t *paths = realloc(g->paths, cap * sizeof(*paths));

		if (!paths)
			return false;
		g->paths = paths;
		g->path_cap = cap;
	}
	memcpy(g->paths + g->path_count, path, depth * sizeof(*path));
	g->lines_kept[at] = (struct line){ g->path_count, (uint32_t)depth, (uint32_t)value };
	g->path_count += depth;
	return true;
}

static bool make_lines(struct generator *g)
{
	uint32_t path[DEPTH_MAX];

	for (unsigned long written = 0; written < g->lines;) {
		size_t depth = make_path(g, written, path);
		uint64_t hash = UINT64_C(0xcbf29ce484222325);
		double value = 1.0 / pow(1.0 - uniform(g), 1.0 / 1.2);
		unsigned long count = value < 1e6 ? (unsigned long)value : 1000000ul;

		for (size_t i = 0; i < depth; i++)
			hash = (hash ^ path[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 31;
		if (!is_new(g, hash))
			continue;
		if (g->lines_kept && !keep_line(g, written, path, depth, count))
			return false;
		if (!g->sorted)
			write_line(g, path, depth, count);
		written++;
	}
	return true;
}

static int name_order(const void *left, const void *right, void *ctx)
{
	const struct generator *g = ctx;

	return strcmp(g->name[*(const uint32_t *)left], g->name[*(const uint32_t *)right]);
}

static int line_order(const void *left, const void *right, void *ctx)
{
	const struct generator *g = ctx;
	const struct line *l = left, *r = right;

	for (size_t i = 0; i < l->depth && i < r->depth; i++) {
		uint32_t a = g->rank[g->paths[l->path + i]], b = g->rank[g->paths[r->path + i]];

		if (a != b)
			return a < b ? -1 : 1;
	}
	return l->depth < r->depth ? -1 : l->depth > r->depth;
}

static bool write_sorted(struct generator *g)
{
	uint32_t *names = malloc(g->names * sizeof(*names));

	g->rank = malloc(g->names * sizeof(*g->rank));
	if (names && g->rank) {
		for (uint32_t i = 0; i < g->names; i++)
			names[i] = i;
		qsort_r(names, g->names, sizeof(*names), name_order, g);
		for (uint32_t i = 0; i < g->names; i++)
			g->rank[names[i]] = i;
		qsort_r(g->lines_kept, g->lines, sizeof(*g->lines_kept), line_order, g);
		for (unsigned long i = 0; i < g->lines; i++)
			write_line(g, g->paths + g->lines_kept[i].path, g->lines_kept[i].depth, g->lines_kept[i].value);
	}
	free(names);
	return g->rank;
}

int main(int argc, char **argv)
{
	struct generator g = { .lines = 1000000, .names = 50000, .depth = 32, .state = 1 };
	static const struct option options[] = { { "sorted", no_argument, NULL, 'S' }, { 0 } };
	size_t slots = 1024;
	bool done;
	int c;

	while ((c = getopt_long(argc, argv, "l:n:d:s:b:", options, NULL)) != -1) {
		if (c == 'l')
			g.lines = strtoul(optarg, NULL, 10);
		else if (c == 'n')
			g.names = strtoul(optarg, NULL, 10);
		else if (c == 'd')
			g.depth = strtod(optarg, NULL);
		else if (c == 'b')
			g.branch = strtod(optarg, NULL);
		else if (c == 'S')
			g.sorted = true;
		else if (c == 's')
			g.state = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (!g.names || g.lines > 100000000) {
		fprintf(stderr, "gen_folded: out of range\n");
		return 2;
	}
	while (slots < 2 * g.lines)
		slots *= 2;
	g.seen_mask = slots - 1;
	g.seen = calloc(slots, sizeof(*g.seen));
	g.name = calloc(g.names, sizeof(*g.name));
	g.callee = calloc(g.names, sizeof(*g.callee));
	g.callee_count = calloc(g.names, 1);
	if (g.sorted || g.branch > 0)
		g.lines_kept = calloc(g.lines, sizeof(*g.lines_kept));
	if (!g.seen || !g.name || !g.callee || !g.callee_count || ((g.sorted || g.branch > 0) && !g.lines_kept))
		return 1;
	make_graph(&g);
	done = make_lines(&g) && (!g.sorted || write_sorted(&g));
	free(g.seen);
	free(g.name);
	free(g.callee);
	free(g.callee_count);
	free(g.rank);
	free(g.paths);
	free(g.lines_kept);
	return fflush(stdout) || !done ? 1 : 0;
}
