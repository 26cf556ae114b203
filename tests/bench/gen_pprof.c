/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a large synthetic profile, plain protobuf, the same for the same seed: gen_pprof SEED MEBIBYTES FILE [hard]. A
 * skewed call graph like that of a big service: 50,000 functions, a quarter of the locations with inlined lines, mean
 * depth 32, labels on every sixth sample, samples in no order. A new stack is an earlier one with another end: about
 * five tree nodes for each sample, as in recorded profiles. "hard" makes each stack anew, so that hardly anything but
 * the first frames is shared. */
#include "base/io.h"
#include "base/wire.h"
#include "codec/pprof.h"

#define FUNCTIONS 50000
#define CALLEES 6
#define PATHS 4096
#define PATH_MAX_DEPTH 64

struct path {
	uint32_t depth, frames[PATH_MAX_DEPTH];
};

static uint64_t state;

static uint64_t next_random(void) /* xorshift64, G. Marsaglia 2003 */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Small numbers are likelier: the square of a uniform one. */
static uint32_t skewed(uint32_t below)
{
	uint64_t x = next_random() & 0xffff;

	return (uint32_t)((x * x >> 16) * below >> 16);
}

static void add_message(struct buf *out, uint32_t field, struct buf *body)
{
	wire_add_bytes(out, field, buf_str(body));
	buf_clear(body);
}

static void add_tables(struct buf *out)
{
	scoped(buf_release) struct buf body = BUF_INIT(KIB(4)), line = BUF_INIT(64);

	for (uint32_t id = 1; id <= 20; id++) {
		wire_add_number(&body, 1, id);
		wire_add_number(&body, 2, UINT64_C(0x7f0000000000) + id * MIB(4));
		wire_add_number(&body, 3, UINT64_C(0x7f0000000000) + id * MIB(4) + MIB(2));
		wire_add_number(&body, 5, 1);
		add_message(out, 3, &body);
	}
	for (uint32_t id = 1; id <= 2 * FUNCTIONS; id++) {
		wire_add_number(&body, 1, id);
		wire_add_number(&body, 2, 1 + id % 20);
		wire_add_number(&body, 3, UINT64_C(0x7f0000000000) + (1 + id % 20) * MIB(4) + id * 16);
		for (uint32_t i = 0; i < (id % 4 ? 1 : 3); i++) {
			wire_add_number(&line, 1, 1 + (id + i) % FUNCTIONS);
			wire_add_number(&line, 2, id % 3000);
			add_message(&body, 4, &line);
		}
		add_message(out, 4, &body);
	}
	for (uint32_t id = 1; id <= FUNCTIONS; id++) {
		wire_add_number(&body, 1, id);
		wire_add_number(&body, 2, 9 + id);
		wire_add_number(&body, 3, 9 + id);
		wire_add_number(&body, 4, 1 + id % 8);
		add_message(out, 5, &body);
	}
}

static void add_strings(struct buf *out)
{
	static const char *const first[] = { "",       "samples", "count",   "cpu",   "nanoseconds",
					     "thread", "worker",  "request", "bytes", "x" };
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		wire_add_bytes(out, 6, str_of(first[i]));
	for (int id = 1; id <= FUNCTIONS; id++) {
		int size = snprintf(name, sizeof(name), "example.com/service/internal/package%d.(*Type%d).Method%d",
				    id % 300, id % 2000, id);

		wire_add_bytes(out, 6, str_n(name, (size_t)size));
	}
}

static uint32_t callee(uint32_t caller)
{
	uint64_t at = skewed(CALLEES);

	if (next_random() % 100 == 0)
		return 1 + (uint32_t)(next_random() % (2 * FUNCTIONS));
	return 1 + (uint32_t)((caller * UINT64_C(2654435761) + at * 40503) % (2 * FUNCTIONS));
}

/* A new stack of an easy file: one of the last few thousand, with another end. */
static uint32_t vary(struct path *p)
{
	uint32_t drop = 1 + skewed(16), more = 1 + skewed(16), keep = MAX(p->depth, drop + 4) - drop;

	p->depth = MIN(keep + more, (uint32_t)PATH_MAX_DEPTH);
	for (uint32_t i = keep; i < p->depth; i++)
		p->frames[i] = callee(p->frames[i - 1]);
	return p->depth;
}

static uint32_t begin(struct path *p)
{
	uint32_t at = 1 + skewed(100);

	p->depth = 8 + (uint32_t)(next_random() % 49);
	for (uint32_t i = 0; i < p->depth; i++)
		p->frames[i] = at = callee(at);
	return p->depth;
}

static void add_sample(struct buf *out, struct buf *body, struct buf *ids, struct path *p)
{
	uint64_t count = 1 + skewed(100);

	for (uint32_t depth = p->depth; depth;)
		wire_add_varint(ids, p->frames[--depth]);
	add_message(body, 1, ids);
	wire_add_varint(ids, count);
	wire_add_varint(ids, count * 10101010);
	add_message(body, 2, ids);
	if (next_random() % 6 == 0) {
		wire_add_number(ids, 1, 5);
		wire_add_number(ids, 2, 6 + next_random() % 2);
		add_message(body, 3, ids);
	}
	add_message(out, 2, body);
}

int main(int argc, char **argv)
{
	scoped(buf_release) struct buf out = BUF_INIT(GIB(1)), body = BUF_INIT(KIB(4)), ids = BUF_INIT(KIB(4));
	scoped(freep) struct path *paths = calloc(PATHS, sizeof(*paths));
	uint64_t seed, mebibytes;
	static const uint8_t types[] = {
		0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3, 0x10, 4, 0x5a, 4, 0x08, 3, 0x10, 4
	};

	if (argc < 4 || argc > 5 || (argc == 5 && strcmp(argv[4], "hard") != 0) ||
	    str_to_u64(str_of(argv[1]), 1, UINT64_MAX, &seed) < 0 ||
	    str_to_u64(str_of(argv[2]), 1, 900, &mebibytes) < 0) {
		fprintf(stderr, "usage: gen_pprof SEED MEBIBYTES FILE [hard]\n");
		return 2;
	}
	must(paths);
	state = seed;
	buf_add(&out, types, sizeof(types));
	add_tables(&out);
	add_strings(&out);
	wire_add_number(&out, 12, 10101010);
	for (size_t i = 0; i < PATHS; i++)
		begin(&paths[i]);
	while (!out.error && out.len < MIB(mebibytes)) {
		struct path *p = &paths[next_random() % PATHS];

		must((argc == 5 ? begin(p) : vary(p)) <= PATH_MAX_DEPTH);
		add_sample(&out, &body, &ids, p);
	}
	must(!out.error && !body.error && !ids.error);
	return io_replace_file(argv[3], out.ptr, out.len) < 0;
}
