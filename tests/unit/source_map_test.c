/* SPDX-License-Identifier: Apache-2.0 */
/* Source maps: what their text says of places, maps that are broken, and one that is read by the confined child. This
 * program is its own reader, as hearth is. */
#include "support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "runtime/target_files.h"
#include "symbol/lines_child.h"
#include "symbol/source_map.h"
#include "symbol/source_maps.h"

/* Line 0: from column 0 on a.ts, line 1, "first"; from column 8 on b.ts, line 3, "second". Line 1: nothing. Line 2:
 * from column 4 on a.ts, line 2. */
#define MAPPINGS "AAAAA,QCECC;;IDDD"
#define MAP \
	"{\"version\":3,\"sources\":[\"a.ts\",\"b.ts\"],\"names\":[\"first\",\"second\"],\"mappings\":\"" MAPPINGS "\"}"

struct seen {
	size_t count;
	uint32_t line[16];
	char file[16][64], name[16][64];
};

static int see(void *ctx, const struct lines_answer *answer)
{
	const struct lines_wire_frame *f = &answer->frames[0];
	struct seen *seen = ctx;

	assert_true(answer->depth <= 1 && seen->count < 16);
	if (answer->depth) {
		seen->line[seen->count] = f->line;
		(void)snprintf(seen->file[seen->count], 64, STR_FMT, STR_ARG(f->file));
		(void)snprintf(seen->name[seen->count], 64, STR_FMT, STR_ARG(f->function));
	}
	seen->count++;
	return 0;
}

static int find_in(const char *text, const uint64_t *places, size_t count, struct seen *seen)
{
	struct source_map *m = NULL;
	int r = source_map_parse(str_of(text), &m);

	*seen = (struct seen){ 0 };
	if (r == 0)
		r = source_map_find(m, places, count, UINT64_MAX, see, seen);
	source_map_close(m);
	return r;
}

static void places_are_found(void **state)
{
	static const struct {
		uint32_t line, column, want_line;
		const char *file, *name;
	} cases[] = {
		{ 0, 0, 1, "a.ts", "first" }, { 0, 5, 1, "a.ts", "" }, { 0, 8, 3, "b.ts", "second" },
		{ 0, 100, 3, "b.ts", "" },    { 1, 0, 0, "", "" },     { 2, 3, 0, "", "" },
		{ 2, 4, 2, "a.ts", "" },      { 3, 0, 0, "", "" },
	};
	uint64_t places[ARRAY_SIZE(cases)];
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		places[i] = source_map_place(cases[i].line, cases[i].column);
	assert_int_equal(find_in(MAP, places, ARRAY_SIZE(cases), &seen), 0);
	assert_int_equal(seen.count, ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %u:%u\n", cases[i].line, cases[i].column);
		assert_int_equal(seen.line[i], cases[i].want_line);
		assert_string_equal(seen.file[i], cases[i].file);
		assert_string_equal(seen.name[i], cases[i].name);
	}
}

static void forms_that_are_read(void **state)
{
	static const struct {
		const char *name, *text, *file;
		uint32_t line;
	} cases[] = {
		{ "a root", "{\"version\":3,\"sourceRoot\":\"/src\",\"sources\":[\"x.ts\"],\"mappings\":\"AAAA\"}",
		  "/src/x.ts", 1 },
		{ "a root with a slash",
		  "{\"version\":3,\"sourceRoot\":\"/src/\",\"sources\":[\"x.ts\"],\"mappings\":\"AAAA\"}", "/src/x.ts",
		  1 },
		{ "a guard", ")]}'\n{\"version\":3,\"sources\":[\"x.ts\"],\"mappings\":\"AAAA\"}", "x.ts", 1 },
		{ "escapes", "{\"version\":3,\"sources\":[\"\\u0078\\n.ts\"],\"mappings\":\"AAAA\"}", "x\n.ts", 1 },
		{ "texts are passed over",
		  "{\"version\":3,\"sources\":[\"x.ts\"],\"sourcesContent\":[\"{[\\\"\"],\"mappings\":\"AAAA\"}",
		  "x.ts", 1 },
		{ "a source without a name", "{\"version\":3,\"sources\":[null],\"mappings\":\"AAAA\"}", "", 0 },
		{ "a source with a NUL", "{\"version\":3,\"sources\":[\"a\\u0000b\"],\"mappings\":\"AAAA\"}", "", 0 },
		{ "a root without a source",
		  "{\"version\":3,\"sourceRoot\":\"/src\",\"sources\":[null],\"mappings\":\"AAAA\"}", "", 0 },
		{ "code from nowhere", "{\"version\":3,\"sources\":[\"x.ts\"],\"mappings\":\"A\"}", "", 0 },
		{ "columns that go back", "{\"version\":3,\"sources\":[\"x.ts\"],\"mappings\":\"AAAA,IAAA,FAAA\"}", "",
		  0 },
		{ "nothing", "{\"version\":3,\"sources\":[],\"mappings\":\"\"}", "", 0 },
		{ "only lines", "{\"version\":3,\"sources\":[],\"mappings\":\";;;,;\"}", "", 0 },
	};
	const uint64_t place = source_map_place(0, 9);
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(find_in(cases[i].text, &place, 1, &seen), 0);
		assert_int_equal(seen.count, 1);
		assert_string_equal(seen.file[0], cases[i].file);
		assert_int_equal(seen.line[0], cases[i].line);
	}
}

static void broken_maps(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{",
		"{\"version\":3,\"sources\":[\"x\"]}",
		"{\"version\":2,\"sources\":[\"x\"],\"mappings\":\"AAAA\"}",
		"{\"version\":3,\"sources\":\"x\",\"mappings\":\"AAAA\"}",
		"{\"version\":3,\"sources\":[\"x\"],\"mappings\":7}",
		"{\"version\":3,\"sources\":[\"x\"],\"mappings\":\"AA\\u0041A\"}",
		"{\"version\":3,\"sections\":[{\"offset\":{\"line\":0,\"column\":0},\"map\":" MAP "}]}",
	};
	static const char *const mappings[] = {
		"!",    "AAA", "AA",   "AAAAAA",    "D",     "AD",    "AAD",      "AAAAC",
		"AEAA", "g",   "gggg", "ggggggggA", "AAAA=", "A\xc3", "gggggggE",
	};
	const uint64_t place = source_map_place(70, 9);
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		print_message("  %s\n", texts[i]);
		assert_int_equal(find_in(texts[i], &place, 1, &seen), -EBADMSG);
	}
	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			       "{\"version\":3,\"sources\":[\"x\",\"y\"],\"names\":[\"n\"],\"mappings\":\"%s\"}",
			       mappings[i]);
		print_message("  %s\n", mappings[i]);
		assert_int_equal(find_in(text, &place, 1, &seen), -EBADMSG);
	}
}

static void time_is_bounded(void **state)
{
	enum { SEGMENTS = 200000 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(4));
	const uint64_t place = source_map_place(UINT32_MAX, 0);
	struct source_map *m = NULL;
	struct seen seen = { 0 };

	(void)state;
	buf_adds(&text, STR("{\"version\":3,\"sources\":[\"x\"],\"mappings\":\""));
	for (int i = 0; i < SEGMENTS; i++)
		buf_adds(&text, STR("CAAA,"));
	buf_adds(&text, STR("\"}"));
	assert_int_equal(source_map_parse(buf_str(&text), &m), 0);
	assert_int_equal(source_map_find(m, &place, 1, 1, see, &seen), -ETIMEDOUT);
	assert_int_equal(source_map_find(m, &place, 1, UINT64_MAX, see, &seen), 0);
	source_map_close(m);
}

static int find_once(void *ctx)
{
	const uint64_t places[] = { source_map_place(0, 0), source_map_place(0, 8) };
	struct seen seen;

	(void)ctx;
	return find_in(MAP, places, 2, &seen);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	for_each_failing_allocation(find_once, NULL);
}

static void paths(void **state)
{
	static const struct {
		const char *script, *source, *want;
	} cases[] = {
		{ "/app/dist/x.js", "x.ts", "/app/dist/x.ts" },
		{ "/app/dist/x.js", "../src/./x.ts", "/app/src/x.ts" },
		{ "/app/dist/x.js", "../../../../etc/x.ts", "/etc/x.ts" },
		{ "/app/dist/x.js", "/src//x.ts", "/src/x.ts" },
		{ "/x.js", "x.ts", "/x.ts" },
		{ "/app/x.js", "webpack://app/./src/x.js", "webpack://app/./src/x.js" },
		{ "/app/x.js", "file:///src/../x.ts", "/x.ts" },
		{ "/app/x.js", "..", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));

		source_maps_path(str_of(cases[i].script), str_of(cases[i].source), &out);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

/* ---- with the child ---- */

struct place { /* a folder with a map, as the root of a process */
	char folder[64];
	int root;
	struct source_maps *maps;
	struct source_maps_place at;
};

static void make(struct place *p, const char *map)
{
	char path[128];
	struct stat st;

	(void)snprintf(p->folder, sizeof(p->folder), "/tmp/source_map_test.XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	(void)snprintf(path, sizeof(path), "%s/x.js.map", p->folder);
	assert_int_equal(io_replace_file(path, map, strlen(map)), 0);
	assert_int_equal(stat(path, &st), 0);
	p->root = open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->root >= 0);
	assert_int_equal(source_maps_new(&p->maps), 0);
	p->at = (struct source_maps_place){
		.script = { .origin = 1, .root_fd = p->root, .path = STR("/x.js"), .map_id = target_file_id(&st) },
		.line = 1,
		.column = 9,
	};
}

static void drop(struct place *p)
{
	char path[128];

	source_maps_free(p->maps);
	close(p->root);
	(void)snprintf(path, sizeof(path), "%s/x.js.map", p->folder);
	ignore(unlink(path));
	ignore(rmdir(p->folder));
}

static void the_child_reads_it(void **state)
{
	struct source_maps_found found;
	struct source_maps_place many[3];
	struct place p;

	(void)state;
	make(&p, MAP);
	many[0] = many[1] = many[2] = p.at;
	many[1].column = 1;
	many[2].line = 2; /* nothing is there */
	assert_int_equal(source_maps_ask(p.maps, many, 3), 0);
	assert_true(source_maps_get(p.maps, &many[0], &found));
	assert_true(str_eq(found.file, STR("/b.ts")) && str_eq(found.name, STR("second")) && found.line == 3);
	assert_true(source_maps_get(p.maps, &many[1], &found));
	assert_true(str_eq(found.file, STR("/a.ts")) && str_eq(found.name, STR("first")) && found.line == 1);
	assert_false(source_maps_get(p.maps, &many[2], &found));
	p.at.script.root_fd = -1; /* what is known stays known */
	assert_int_equal(source_maps_ask(p.maps, &p.at, 1), 0);
	assert_true(source_maps_get(p.maps, &p.at, &found));
	drop(&p);
}

static void another_map_is_not_read(void **state)
{
	struct source_maps_found found;
	struct place p;

	(void)state;
	make(&p, MAP);
	p.at.script.map_id++;
	assert_int_equal(source_maps_ask(p.maps, &p.at, 1), 0);
	assert_false(source_maps_get(p.maps, &p.at, &found));
	p.at.script.path = STR("/y.js");
	assert_int_equal(source_maps_ask(p.maps, &p.at, 1), 0);
	assert_false(source_maps_get(p.maps, &p.at, &found));
	drop(&p);
}

static void a_broken_map_costs_itself(void **state)
{
	struct source_maps_found found;
	struct place bad, good;

	(void)state;
	make(&bad, "{\"version\":3,\"sources\":[\"x\"],\"mappings\":\"AAAA,!\"}");
	make(&good, MAP);
	good.at.script.origin = 2;
	assert_int_equal(source_maps_ask(bad.maps, (struct source_maps_place[]){ bad.at, good.at }, 2), 0);
	assert_false(source_maps_get(bad.maps, &bad.at, &found));
	assert_true(source_maps_get(bad.maps, &good.at, &found));
	drop(&bad);
	drop(&good);
}

static int ask_once(void *ctx)
{
	struct place *p = ctx;
	struct source_maps *maps = NULL;
	int r = source_maps_new(&maps);

	if (r == 0)
		r = source_maps_ask(maps, &p->at, 1);
	source_maps_free(maps);
	return r;
}

static void asking_without_memory(void **state)
{
	struct place p;

	(void)state;
	make(&p, MAP);
	for_each_failing_allocation(ask_once, &p);
	drop(&p);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(forms_that_are_read),
		cmocka_unit_test(broken_maps),
		cmocka_unit_test(time_is_bounded),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(paths),
		cmocka_unit_test(the_child_reads_it),
		cmocka_unit_test(another_map_is_not_read),
		cmocka_unit_test(a_broken_map_costs_itself),
		cmocka_unit_test(asking_without_memory),
	};

	if (lines_child_wanted(argc, argv))
		return lines_child_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
