/* SPDX-License-Identifier: Apache-2.0 */
/* The legacy pprof inputs, every form, and the same bytes before `go tool pprof -raw` (left out by name without a go).
 */
#include "support.h"

#include <unistd.h>

#include "base/io.h"
#include "codec/gzip.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"

#define OUT_MAX MIB(1)

struct legacy_case {
	const char *name;
	struct str input;
	/* "period N TYPE UNIT", "types ...", samples "values: address@mapping ... [bytes=N]", mappings */
	const char *want;
};

#define MAP_LINES                                                             \
	"00400000-00410000 r-xp 00000000 fe:01 1234       /usr/bin/example\n" \
	"00410000-00420000 rw-p 00010000 fe:01 1234       /usr/bin/example\n" \
	"7f0000001000-7f0000005000 r-xp 00002000 fe:01 99 /lib/libc.so.6\n"
#define MAP_WANT "0x400000/0x410000/0x0 /usr/bin/example \n0x7f0000001000/0x7f0000005000/0x2000 /lib/libc.so.6 \n"
#define CATCH_ALL "0x0/0xffffffffffffffff/0x0  \n"
#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct legacy_case text_cases[] = {
	{ "heap_v2 with allocations, unsampled",
	  S("heap profile:    12:     6144 [    30:    92160] @ heap_v2/524288\r\n"
	    "     2:     1024 [     5:    10240] @ 0x401234 0x40567a 0x7f0000001005\r\n"
	    "# a comment\n\n"
	    "    10:     5120 [    25:    81920] @ 0x401234 0x7f0000002000\n"
	    "     0:        0 [     1:      100] @ 0x401235\n"
	    "\nMAPPED_LIBRARIES:\n" MAP_LINES),
	  "period 524288 space bytes\ntypes alloc_objects/count alloc_space/bytes inuse_objects/count "
	  "inuse_space/bytes\n"
	  "1282 2626563 2049 1049088: 0x401233@0x400000 0x405679@0x400000 0x7f0000001004@0x7f0000001000 [bytes=512]\n"
	  "4012 13148202 10245 5245440: 0x401233@0x400000 0x7f0000001fff@0x7f0000001000 [bytes=512]\n"
	  "5243 524338 0 0: 0x401234@0x400000 [bytes=100]\n" MAP_WANT },
	{ "heap in use only", S("heap profile: 3: 300 [3: 300] @ heapz_v2/1000\n3: 300 [3: 300] @ 0x1001 0x2001\n"),
	  "period 1000 space bytes\ntypes objects/count space/bytes\n31 3152: 0x1000@0x0 0x2000@0x0 "
	  "[bytes=100]\n" CATCH_ALL },
	{ "Go's heap, whose rate is doubled",
	  S("heap profile: 1: 1024 [4: 4096] @ heap/1048576\n1: 1024 [4: 4096] @ 0x11 "
	    "0x21\n#\t0x10\tmain.f+0x1\tx.go:1\n\n"
	    "# runtime.MemStats\n# Alloc = 5\n"),
	  "period 524288 space bytes\ntypes alloc_objects/count alloc_space/bytes inuse_objects/count "
	  "inuse_space/bytes\n"
	  "2050 2099200 512 524800: 0x10@0x0 0x20@0x0 [bytes=1024]\n" CATCH_ALL },
	{ "heapprofile, all counted", S("heap profile: 2: 30 [0: 0] @ heapprofile\n 2: 30 [0: 0] @ 0x11\n"),
	  "period 1 space bytes\ntypes objects/count space/bytes\n2 30: 0x10@0x0 [bytes=15]\n" CATCH_ALL },
	{ "growth", S("heap profile: 2: 2097152 [2: 2097152] @ growthz\n 2: 2097152 [2: 2097152] @ 0x11 0x21\n"),
	  "period 1 space bytes\ntypes objects/count space/bytes\n2 2097152: 0x10@0x0 0x20@0x0 "
	  "[bytes=1048576]\n" CATCH_ALL },
	{ "fragmentation", S("heap profile: 1: 5 [1: 5] @ fragmentationz\n1: 5 [1: 5] @ 0x11\n"),
	  "period 1 space bytes\ntypes objects/count space/bytes\n1 5: 0x10@0x0 [bytes=5]\n" CATCH_ALL },
	{ "Go count",
	  S("goroutine profile: total 7\n5 @ 0x43a1c5 0x44f0a1 0x46f561\n#\t0x43a1c4\truntime.gopark+0xc4\tx.go:1\n\n"
	    "2 @ 0x43a1c5 0x46f561\n"),
	  "period 1 goroutine count\ntypes goroutine/count\n5: 0x43a1c4@0x0 0x44f0a0@0x0 0x46f560@0x0\n"
	  "2: 0x43a1c4@0x0 0x46f560@0x0\n" CATCH_ALL },
	{ "count behind comments, equal rows stay, with a map",
	  S("# written by a test\n\nthreadcreate profile: total 4\n1 @ 0x400101\n3 @ 0x400101\n--- Memory map: "
	    "---\n" MAP_LINES),
	  "period 1 threadcreate count\ntypes threadcreate/count\n1: 0x400100@0x400000\n3: "
	  "0x400100@0x400000\n" MAP_WANT },
	{ "contention, scaled by clock and period",
	  S("--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\nms since reset = "
	    "5000\ndiscarded samples = 3\n"
	    "  400 7 @ 0x401001 0x402001\n  19 1 @ 0x401001\n--- Memory map: ---\n" MAP_LINES),
	  "period 100 contentions count\ntypes contentions/count delay/nanoseconds\n"
	  "700 20000: 0x401000@0x400000 0x402000@0x400000\n100 950: 0x401000@0x400000\n" MAP_WANT },
	{ "Go mutex",
	  S("--- mutex:\ncycles/second=3000000000\nsampling period=5\n9000 3 @ 0x11 "
	    "0x21\n#\t0x10\tsync.(*Mutex).Unlock\n"),
	  "period 5 contentions count\ntypes contentions/count delay/nanoseconds\n15 15000: 0x10@0x0 "
	  "0x20@0x0\n" CATCH_ALL },
	{ "contention without a clock", S("--- contention:\n77 2 @ 0x11\n"),
	  "period 1 contentions count\ntypes contentions/count delay/nanoseconds\n2 77: 0x10@0x0\n" CATCH_ALL },
	{ "threads",
	  S("--- threadz 1 ---\n\n--- Thread 7f01 (name: main/12) stack: ---\n  PC: 0x400010 0x400021: f\n  0x400031\n"
	    "--- Thread 7f02 (name: worker/13) stack: ---\n  [same as previous thread]\n"
	    "--- Thread 7f03 (name: idle/14) stack: ---\n  0x400041 0x400041 0x400051\n---- no stack trace for 3\n"
	    "--- Memory map: ---\n" MAP_LINES),
	  "period 1 thread count\ntypes thread/count\n2: 0x400010@0x400000 0x400020@0x400000 0x400030@0x400000\n"
	  "1: 0x400041@0x400000 0x400050@0x400000\n" MAP_WANT },
	{ "brief map, variables, log prefix",
	  S("p profile: total 2\n1 @ 0x10011 0x20011\n1 @ 0x30011\n--- Memory map: ---\n  build=/opt/example\n"
	    "I1121 file.cc:12] 0x10000-0x18000: $build/bin/tool (@0) 0123abcd\n20000-28000 $build/lib.so (@1000) ffee\n"
	    "words that are no mapping\n30000-31000 rw-p $build/data\n"),
	  "period 1 p count\ntypes p/count\n1: 0x10010@0x10000 0x20010@0x20000\n1: 0x30010@0x0\n"
	  "0x10000/0x18000/0x0 /opt/example/bin/tool 0123abcd\n0x20000/0x28000/0x1000 /opt/example/lib.so "
	  "ffee\n" CATCH_ALL },
	{ "neighbours joined, main binary first, first part missing, start moved",
	  S("p profile: total 3\n1 @ 0x401001 0x501001 0x7001 0x480801\n--- Memory map: ---\n"
	    "00008000-00009000 r-xp 00004000 fe:01 7 /lib/libold.so.1\n00480000-00481000 r-xp 00080000 fe:01 8 "
	    "/bin/main\n"
	    "00481000-00482000 r-xp 00081000 fe:01 8 /bin/main\n00500000-00502000 r-xp 00000000 fe:01 9 /lib/x.so\n"),
	  "period 1 p count\ntypes p/count\n1: 0x401000@0x400000 0x501000@0x500000 0x7000@0x4000 0x480800@0x400000\n"
	  "0x400000/0x482000/0x0 /bin/main \n0x4000/0x9000/0x0 /lib/libold.so.1 \n0x500000/0x502000/0x0 /lib/x.so \n" },
	{ "mappings that overlap: the first wins",
	  S("p profile: total 1\n1 @ 0x1501 0x2501 0x3501\n--- Memory map: ---\n2000-4000 r-xp 0 1:1 1 "
	    "/bin/b\n1000-3000 r-xp 0 1:1 2 /bin/a\n"),
	  "period 1 p count\ntypes p/count\n1: 0x1500@0x1000 0x2500@0x2000 0x3500@0x2000\n"
	  "0x2000/0x4000/0x0 /bin/b \n0x1000/0x3000/0x0 /bin/a \n" },
};

/* Canonical text of a model */

static void canonical_sample(const struct model *m, const struct model_sample *s, struct buf *out)
{
	const struct model_label_set *set = &m->label_sets[s->label_set];

	for (size_t i = 0; i < m->value_type_count; i++)
		buf_addf(out, "%s%lld", i ? " " : "", (long long)model_values(m, s)[i]);
	buf_addc(out, ':');
	for (uint32_t node = s->stack; node; node = m->stacks[node].parent) {
		const struct model_location *location = &m->locations[m->stacks[node].location];

		buf_addf(out, " 0x%llx", (unsigned long long)location->address);
		if (location->mapping)
			buf_addf(out, "@0x%llx", (unsigned long long)m->mappings[location->mapping].start);
	}
	for (uint32_t i = 0; i < set->count; i++)
		buf_addf(out, " [" STR_FMT "=%lld]", STR_ARG(model_string(m, m->labels[set->first + i].key)),
			 (long long)m->labels[set->first + i].number);
	buf_addc(out, '\n');
}

static void canonical_model(const struct model *m, struct buf *out)
{
	buf_addf(out, "period %lld " STR_FMT " " STR_FMT "\ntypes", (long long)m->period,
		 STR_ARG(model_string(m, m->period_type.type)), STR_ARG(model_string(m, m->period_type.unit)));
	for (size_t i = 0; i < m->value_type_count; i++)
		buf_addf(out, " " STR_FMT "/" STR_FMT, STR_ARG(model_string(m, m->value_types[i].type)),
			 STR_ARG(model_string(m, m->value_types[i].unit)));
	buf_addc(out, '\n');
	for (size_t i = 0; i < m->samples_count; i++)
		canonical_sample(m, &m->samples[i], out);
	for (size_t i = 1; i < m->mappings_count; i++)
		buf_addf(out, "0x%llx/0x%llx/0x%llx " STR_FMT " " STR_FMT "\n",
			 (unsigned long long)m->mappings[i].start, (unsigned long long)m->mappings[i].limit,
			 (unsigned long long)m->mappings[i].file_offset,
			 STR_ARG(model_string(m, m->mappings[i].filename)),
			 STR_ARG(model_string(m, m->mappings[i].build_id)));
}

static int read_canonical(struct str bytes, struct buf *out)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	int r = codec_legacy.decode(bytes, &w, &error);

	if (r < 0) {
		if (r != -ENOMEM)
			print_message("%s at %llu\n", error.reason, (unsigned long long)error.position);
		assert_true(error.reason[0]);
		assert_null(w.model);
		return r;
	}
	canonical_model(w.model, out);
	return out->error;
}

/* Canonical text of what `go tool pprof -raw` prints */

struct raw {
	struct str locations[64], mappings[64]; /* "0x400 M=1"; "0x400/0x500/0x0 file build" */
	struct str period, period_type;
};

static size_t number_in_front(struct str line, struct str *rest)
{
	ptrdiff_t colon = str_find(line, ':');
	uint64_t number = 0;

	if (colon < 0 || str_to_u64(str_trim(str_first(line, (size_t)colon)), 1, 63, &number) < 0)
		return 0;
	*rest = str_trim(str_skip(line, (size_t)colon + 1));
	return number;
}

static void raw_location(const struct raw *raw, size_t id, struct buf *out)
{
	struct str s, address, mapping;
	uint64_t number;

	assert_true(id && id < ARRAY_SIZE(raw->locations) && raw->locations[id].ptr);
	s = raw->locations[id];
	assert_true(str_next(&s, ' ', &address));
	buf_addf(out, " " STR_FMT, STR_ARG(address));
	if (str_starts(s, STR("M=")) && str_next(&s, ' ', &mapping) &&
	    str_to_u64(str_skip(mapping, 2), 1, ARRAY_SIZE(raw->mappings) - 1, &number) == 0) {
		ptrdiff_t slash = str_find(raw->mappings[number], '/');

		assert_true(slash > 0);
		buf_addf(out, "@" STR_FMT, STR_ARG(str_first(raw->mappings[number], (size_t)slash)));
	}
}

static void raw_sample(const struct raw *raw, struct str line, struct buf *out)
{
	struct str values = str_first(line, (size_t)str_find(line, ':')), ids = str_skip(line, values.len + 1), word;
	bool first = true;
	uint64_t id;

	while (str_next(&values, ' ', &word)) {
		if (!word.len)
			continue;
		buf_addf(out, "%s" STR_FMT, first ? "" : " ", STR_ARG(word));
		first = false;
	}
	buf_addc(out, ':');
	while (str_next(&ids, ' ', &word))
		if (str_to_u64(word, 1, 63, &id) == 0)
			raw_location(raw, id, out);
}

static void raw_tables(struct str text, struct raw *raw)
{
	struct str *table = NULL;
	struct str line, rest = { 0 };

	while (str_next(&text, '\n', &line)) {
		size_t number = table ? number_in_front(line, &rest) : 0;

		if (str_starts(line, STR("PeriodType: ")))
			raw->period_type = str_skip(line, 12);
		else if (str_starts(line, STR("Period: ")))
			raw->period = str_skip(line, 8);
		else if (str_eq(line, STR("Locations")))
			table = raw->locations;
		else if (str_eq(line, STR("Mappings")))
			table = raw->mappings;
		else if (number)
			table[number] = rest;
	}
}

static void raw_mappings(const struct raw *raw, struct buf *out)
{
	for (size_t i = 1; i < ARRAY_SIZE(raw->mappings) && raw->mappings[i].ptr; i++) {
		struct str rest = raw->mappings[i], range = { 0 }, file = STR(""), build = STR("");

		assert_true(str_next(&rest, ' ', &range));
		ignore(str_next(&rest, ' ', &file)); /* both may be missing */
		ignore(str_next(&rest, ' ', &build));
		buf_addf(out, STR_FMT " " STR_FMT " " STR_FMT "\n", STR_ARG(range), STR_ARG(file), STR_ARG(build));
	}
}

static void canonical_raw(struct str text, struct buf *out)
{
	struct raw raw = { 0 };
	struct str line = { 0 };

	raw_tables(text, &raw);
	buf_addf(out, "period " STR_FMT " " STR_FMT "\ntypes ", STR_ARG(raw.period), STR_ARG(raw.period_type));
	while (str_next(&text, '\n', &line) && !str_eq(line, STR("Samples:"))) {
	}
	assert_true(str_next(&text, '\n', &line));
	buf_adds(out, line);
	while (str_next(&text, '\n', &line) && !str_eq(line, STR("Locations"))) {
		struct str label = str_trim(line);

		if (!str_starts(label, STR("bytes:["))) {
			buf_addc(out, '\n');
			raw_sample(&raw, line, out);
		} else if (!str_eq(label, STR("bytes:[0]"))) {
			buf_addf(out, " [bytes=" STR_FMT "]", STR_ARG(str_first(str_skip(label, 7), label.len - 8)));
		}
	}
	buf_addc(out, '\n');
	raw_mappings(&raw, out);
}

static bool has_go(void)
{
	return system("go tool pprof -help >/dev/null 2>&1") == 0; /* fixed text: nothing foreign reaches the shell */
}

static void assert_go_agrees(struct str input, const char *want)
{
	scoped(buf_release) struct buf raw = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);

	assert_int_equal(io_replace_file("in", input.ptr, input.len), 0);
	assert_int_equal(system("go tool pprof -symbolize=none -raw -output=raw in >log 2>&1"), 0);
	assert_int_equal(io_read_file("raw", &raw), 0);
	canonical_raw(buf_str(&raw), &out);
	assert_string_equal(buf_cstr(&out), want);
}

static void assert_we_read(struct str input, const char *want)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	struct cur in = guard_page(input.ptr, input.len);

	assert_int_equal(read_canonical(str_n((const char *)in.pos, input.len), &out), 0);
	assert_string_equal(buf_cstr(&out), want);
}

/* Binary CPU profiles: the same words in every size and byte order */

struct cpu_case {
	const char *name;
	size_t count;
	uint64_t words[40];
	const char *map;
	const char *want;
};

#define CPU_WANT "period 10000000 cpu nanoseconds\ntypes samples/count cpu/nanoseconds\n"

static const struct cpu_case cpu_cases[] = {
	{ "plain",
	  21,
	  { 0, 3,        0,        10000, 0, 2,        3,        0x400100, 0x400201, 0x1005, 1,
	    2, 0x400100, 0x400301, 1,     2, 0x400110, 0x400201, 0,        1,        0 },
	  MAP_LINES,
	  CPU_WANT
	  "2 20000000: 0x400100@0x400000 0x400200@0x400000 0x1004@0x0\n"
	  "1 10000000: 0x400100@0x400000 0x400300@0x400000\n1 10000000: 0x400110@0x400000 0x400200@0x400000\n" MAP_WANT
		  CATCH_ALL },
	{ "handler frames",
	  22,
	  { 0, 3, 0,        10000,  0,      5,        4, 0x400100, 0x7777,   0x8888, 0x400301,
	    4, 4, 0x400101, 0x7777, 0x8888, 0x400401, 2, 3,        0x400102, 0x7777, 0x8888 }, /* ends without the mark
												*/
	  "",
	  CPU_WANT "5 50000000: 0x400100@0x0 0x400300@0x0\n4 40000000: 0x400101@0x0 0x400400@0x0\n2 20000000: "
		   "0x400102@0x0\n" CATCH_ALL },
	{ "leaf doubled",
	  17,
	  { 0, 3, 0, 10000, 0, 1, 3, 0x400100, 0x400100, 0x400301, 1, 2, 0x400200, 0x400501, 0, 1, 0 },
	  MAP_LINES,
	  CPU_WANT "1 10000000: 0x400100@0x400000 0x400300@0x400000\n1 10000000: 0x400200@0x400000 "
		   "0x400500@0x400000\n" MAP_WANT },
};

static void cpu_bytes(const struct cpu_case *c, size_t size, bool big, struct buf *out)
{
	for (size_t i = 0; i < c->count; i++)
		for (size_t at = 0; at < size; at++)
			buf_addc(out, (char)(c->words[i] >> 8 * (big ? size - 1 - at : at)));
	buf_adds(out, str_of(c->map));
}

static void reads_text_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text_cases); i++) {
		print_message("  %s\n", text_cases[i].name);
		assert_ptr_equal(codec_sniff(text_cases[i].input), &codec_legacy);
		assert_we_read(text_cases[i].input, text_cases[i].want);
	}
}

static void reads_cpu_profiles(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(cpu_cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);

		print_message("  %s, %d bits, %s end first\n", cpu_cases[i / 4].name, i & 1 ? 64 : 32,
			      i & 2 ? "big" : "little");
		cpu_bytes(&cpu_cases[i / 4], i & 1 ? 8 : 4, i & 2, &bytes);
		assert_ptr_equal(codec_sniff(buf_str(&bytes)), &codec_legacy);
		assert_we_read(buf_str(&bytes), cpu_cases[i / 4].want);
	}
}

static void go_reads_the_same(void **state)
{
	char dir[] = "/tmp/hearth-legacy-XXXXXX";

	(void)state;
	if (!has_go()) {
		print_message("no go tool pprof here\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < ARRAY_SIZE(text_cases); i++) {
		print_message("  %s\n", text_cases[i].name);
		assert_go_agrees(text_cases[i].input, text_cases[i].want);
	}
	for (size_t i = 0; i < 4 * ARRAY_SIZE(cpu_cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);

		print_message("  %s, form %zu\n", cpu_cases[i / 4].name, i % 4);
		cpu_bytes(&cpu_cases[i / 4], i & 1 ? 8 : 4, i & 2, &bytes);
		assert_go_agrees(buf_str(&bytes), cpu_cases[i / 4].want);
	}
	assert_int_equal(system("rm -f in raw log"), 0);
	assert_int_equal(rmdir(dir), 0);
}

struct bad_case {
	const char *name;
	struct str input;
	int want;
	uint64_t position;
	bool is_line;
};

static void refuses(void **state)
{
	static const struct bad_case cases[] = {
		{ "empty", S(""), -EBADMSG, 0, false },
		{ "something else", S("hello\n"), -EBADMSG, 0, false },
		{ "heap row of words", S("heap profile: 1: 5 [1: 5] @ heap_v2/9\n\nwords\n"), -EBADMSG, 3, true },
		{ "bytes without objects", S("heap profile: 1: 5 [1: 5] @ heap_v2/9\n0: 5 [0: 0] @ 0x1\n"), -EBADMSG, 2,
		  true },
		{ "long number", S("heap profile: 1: 5 [1: 5] @ heap_v2/9\n1: 99999999999999999999 [0: 0] @ 0x1\n"),
		  -EBADMSG, 2, true },
		{ "long address", S("heap profile: 1: 5 [1: 5] @ heap_v2/9\n1: 5 [0: 0] @ 0x11112222333344445\n"),
		  -EBADMSG, 2, true },
		{ "count without addresses", S("x profile: total 1\n1 @\n"), -EBADMSG, 2, true },
		{ "count below zero", S("x profile: total 1\n-1 @ 0x1\n"), -EBADMSG, 2, true },
		{ "contention of Java", S("--- contentionz 1 ---\nformat = java\n"), -ENOTSUP, 2, true },
		{ "unknown setting", S("--- contentionz 1 ---\ncolour = 5\n"), -EBADMSG, 2, true },
		{ "clock of words", S("--- contentionz 1 ---\ncycles/second = fast\n"), -EBADMSG, 2, true },
		{ "contention row", S("--- contentionz 1 ---\n5 @ 0x1\n"), -EBADMSG, 2, true },
		{ "no head of a thread", S("--- threadz 1 ---\n-- x\n"), -EBADMSG, 2, true },
		{ "record cut off", S("\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0"), -EBADMSG, 28,
		  false },
		{ "CPU of Java", S("\0\0\0\0\3\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0"), -ENOTSUP, 8, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page(cases[i].input.ptr, cases[i].input.len);
		struct window out = { .frequency_hz = 77 };
		struct codec_error error = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(codec_legacy.decode(str_n((const char *)in.pos, cases[i].input.len), &out, &error),
				 cases[i].want);
		assert_true(error.reason[0]);
		assert_int_equal(error.position, cases[i].position);
		assert_int_equal(error.is_line, cases[i].is_line);
		assert_null(out.model);
		assert_int_equal(out.frequency_hz, 77);
	}
}

static void saturates(void **state)
{
	static const struct legacy_case cases[] = {
		{ "heap", S("heap profile: 1: 5 [1: 5] @ heapprofile\n-1: -9223372036854775808 [0: 0] @ 0x11\n"),
		  "period 1 space bytes\ntypes objects/count space/bytes\n"
		  "-1 -9223372036854775808: 0x10@0x0 [bytes=9223372036854775807]\n" CATCH_ALL },
		{ "unsampled",
		  S("heap profile: 1: 5 [1: 5] @ heap_v2/9223372036854775807\n9223372036854775807: 9223372036854775807 "
		    "[0: 0] @ 0x11\n"),
		  "period 9223372036854775807 space bytes\ntypes objects/count space/bytes\n"
		  "9223372036854775807 9223372036854775807: 0x10@0x0 [bytes=1]\n" CATCH_ALL },
		{ "contention",
		  S("--- contentionz 1 ---\ncycles/second = 1\nsampling period = 9223372036854775807\n9000000000 9 @ "
		    "0x11\n"),
		  "period 9223372036854775807 contentions count\ntypes contentions/count delay/nanoseconds\n"
		  "9223372036854775807 9223372036854775807: 0x10@0x0\n" CATCH_ALL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_we_read(cases[i].input, cases[i].want);
	}
}

/* gzip in front, by either name; what is dropped; time. */
static void reads_packed(void **state)
{
	struct str input = text_cases[8].input;
	const struct codec *const by[] = { &codec_legacy, &codec_pprof };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		scoped(buf_release) struct buf packed = BUF_INIT(OUT_MAX);
		scoped(window_release) struct window w = { 0 };
		struct codec_error error;

		assert_int_equal(gzip_pack(input, 6, &packed), 0);
		assert_int_equal(by[i]->decode(buf_str(&packed), &w, &error), 0);
		assert_int_equal(w.model->samples_count, 2);
		assert_int_equal(w.model->duration_ns, 5000000000);
		assert_true(str_search(model_string(w.model, w.model->drop_frames), STR("RecordLockProfileData")) >= 0);
		assert_int_equal(w.model->keep_frames, 0);
	}
}

static int read_once(void *ctx)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	return read_canonical(*(const struct str *)ctx, &out);
}

static void survives_failing_allocations(void **state)
{
	scoped(buf_release) struct buf cpu = BUF_INIT(OUT_MAX);
	struct str input;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text_cases); i++) {
		input = text_cases[i].input;
		for_each_failing_allocation(read_once, &input);
	}
	cpu_bytes(&cpu_cases[0], 8, false, &cpu);
	input = buf_str(&cpu);
	for_each_failing_allocation(read_once, &input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_text_forms),  cmocka_unit_test(reads_cpu_profiles),
		cmocka_unit_test(refuses),           cmocka_unit_test(saturates),
		cmocka_unit_test(reads_packed),      cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(go_reads_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
