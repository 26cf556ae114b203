/* SPDX-License-Identifier: Apache-2.0 */
/* A folded profile of any size for benchmarks: real-looking names, a skewed call graph, Pareto values.
 *
 *   gen_folded [-l LINES] [-n NAMES] [-d MEAN_DEPTH] [-s SEED] > out.folded
 *
 * The defaults give 1,000,000 distinct lines, about 1 GB and 10 million call paths. Each function has a short list of
 * callees of which the first are chosen most; one call in a hundred goes anywhere. Equal arguments give equal bytes. */
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
	double depth;
	char (*name)[NAME_MAX_BYTES];
	uint32_t (*callee)[CALLEES_MAX];
	uint8_t *callee_count;
	uint64_t *seen; /* hashes of lines already written */
	size_t seen_mask;
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
		"read", "write", "handle", "parse", "buffer", "index", "request", "response", "cache", "lookup",
		"insert", "commit", "encode", "decode", "channel", "stream", "worker", "queue", "table", "schedule",
		"flush", "merge", "sort", "scan", "filter", "project", "session", "connection", "packet", "frame",
		"signal", "context", "allocate", "release", "update", "resolve", "dispatch", "compare", "hash", "visit",
	};

	return words[next(g) % (sizeof(words) / sizeof(*words))];
}

static const char *scope(struct generator *g)
{
	static const char *const scopes[] = {
		"net", "storage", "core", "util", "rpc", "query", "engine", "runtime", "http", "index", "memory", "system",
		"codec", "auth", "metrics", "planner",
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

static size_t make_path(struct generator *g, uint32_t *path)
{
	/* Depth: a spread around the mean, never a single shape. */
	size_t depth = (size_t)(g->depth * (0.4 + 0.6 * (uniform(g) + uniform(g))));
	uint32_t at = (uint32_t)skewed(g, 12 < g->names ? 12 : g->names);

	if (depth < 3)
		depth = 3;
	if (depth > DEPTH_MAX)
		depth = DEPTH_MAX;
	for (size_t i = 0; i < depth; i++) {
		path[i] = at;
		if (next(g) % 100 == 0)
			at = (uint32_t)(next(g) % g->names);
		else
			at = g->callee[at][next(g) % 100 < 72 ? 0 : skewed(g, g->callee_count[at])];
	}
	return depth;
}

static void write_lines(struct generator *g)
{
	uint32_t path[DEPTH_MAX];

	for (unsigned long written = 0; written < g->lines;) {
		size_t depth = make_path(g, path);
		uint64_t hash = UINT64_C(0xcbf29ce484222325);
		double value = 1.0 / pow(1.0 - uniform(g), 1.0 / 1.2);

		for (size_t i = 0; i < depth; i++)
			hash = (hash ^ path[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 31;
		if (!is_new(g, hash))
			continue;
		for (size_t i = 0; i < depth; i++) {
			fputs(g->name[path[i]], stdout);
			putchar(i + 1 < depth ? ';' : ' ');
		}
		printf("%lu\n", value < 1e6 ? (unsigned long)value : 1000000ul);
		written++;
	}
}

int main(int argc, char **argv)
{
	struct generator g = { .lines = 1000000, .names = 50000, .depth = 32, .state = 1 };
	size_t slots = 1024;
	int c;

	while ((c = getopt(argc, argv, "l:n:d:s:")) != -1) {
		if (c == 'l')
			g.lines = strtoul(optarg, NULL, 10);
		else if (c == 'n')
			g.names = strtoul(optarg, NULL, 10);
		else if (c == 'd')
			g.depth = strtod(optarg, NULL);
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
	if (!g.seen || !g.name || !g.callee || !g.callee_count)
		return 1;
	make_graph(&g);
	write_lines(&g);
	free(g.seen);
	free(g.name);
	free(g.callee);
	free(g.callee_count);
	return fflush(stdout) ? 1 : 0;
}
