/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/container.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void ids(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "docker, v1 and v2", "4:memory:/docker/" A "\n0::/docker/" A "\n", A },
		{ "systemd scope", "0::/system.slice/docker-" A ".scope\n", A },
		{ "the first line that has one", "9:x:/\n4:memory:/docker/" A "\n0::/docker/" B "\n", A },
		{ "the last run in it", "0::/" A "/kubepods/pod1/" B "\n", B },
		{ "none", "9:name=systemd:/\n0::/user.slice\n", NULL },
		{ "too long", "0::/docker/" A "0\n", NULL },
		{ "too short", "0::/docker/0123456789abcdef\n", NULL },
		{ "upper case", "0::/ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789\n", NULL },
		{ "without a line end", "0::/docker/" A, A },
		{ "empty", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur bytes = guard_page(cases[i].text, strlen(cases[i].text));
		char id[CONTAINER_ID_SIZE + 1] = "untouched";

		print_message("  %s\n", cases[i].name);
		assert_int_equal(container_id_parse(cur_rest(&bytes), id), cases[i].want != NULL);
		assert_string_equal(id, cases[i].want ? cases[i].want : "untouched");
	}
}

static int collect(void *ctx, struct str id, struct str name)
{
	buf_addf(ctx, STR_FMT "=" STR_FMT ";", STR_ARG(str_first(id, 4)), STR_ARG(name));
	return 0;
}

static void lists(void **state)
{
	static const struct {
		const char *name, *json;
		int want;
		const char *found;
	} cases[] = {
		{ "two", "[{\"Id\":\"" A "\",\"Names\":[\"/web-1\"]},{\"Id\":\"" B "\",\"Names\":[\"/db\"]}]", 0,
		  "0123=web-1;fedc=db;" },
		{ "linked", "[{\"Id\":\"" A "\",\"Names\":[\"/web/db\",\"/db\"]}]", 0, "0123=db;" },
		{ "no names",
		  "[{\"Id\":\"" A "\",\"Names\":[]},{\"Id\":\"" A "\"},{\"Id\":\"" A "\",\"Names\":[\"/\"]}]", 0, "" },
		{ "odd shapes",
		  "[1,null,[],{\"Id\":1,\"Names\":{}},{\"Id\":\"zz\",\"Names\":[\"/x\"]},{\"Id\":\"" B
		  "\",\"Names\":[\"/y\"]}]",
		  0, "fedc=y;" },
		{ "a NUL", "[{\"Id\":\"" A "\",\"Names\":[\"/a\\u0000b\"]}]", -EBADMSG, "" },
		{ "an error object", "{\"message\":\"no\"}", -EBADMSG, "" },
		{ "cut off", "[{\"Id\":\"" A "\",", -EBADMSG, "" },
		{ "tail", "[]x", -EBADMSG, "" },
		{ "empty", "", -EBADMSG, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf found = BUF_INIT(KIB(4));
		struct cur bytes = guard_page(cases[i].json, strlen(cases[i].json));

		print_message("  %s\n", cases[i].name);
		assert_int_equal(container_list_parse(cur_rest(&bytes), collect, &found), cases[i].want);
		assert_string_equal(buf_cstr(&found), cases[i].found);
	}
}

static void deep_list_is_refused(void **state)
{
	scoped(buf_release) struct buf json = BUF_INIT(MIB(1)), found = BUF_INIT(64);

	(void)state;
	for (int i = 0; i < 200000; i++)
		buf_addc(&json, '[');
	assert_int_equal(container_list_parse(buf_str(&json), collect, &found), -EBADMSG);
}

/* A socket that answers as an engine does; or, told to, never. */
struct engine {
	int fd;
	const char *answer;
	_Atomic int requests;
	bool mute;
	char dir[64], path[128];
	pthread_t thread;
};

static void *serve(void *ctx)
{
	struct engine *engine = ctx;
	char request[KIB(2)];
	int client;

	while ((client = accept(engine->fd, NULL, NULL)) >= 0) {
		ssize_t n = read(client, request, sizeof(request) - 1);

		request[n > 0 ? n : 0] = '\0';
		engine->requests++;
		if (engine->mute)
			(void)!read(client, request, 1); /* until the other side gives up */
		else if (strstr(request, "GET /containers/json?all=1 HTTP/1.1"))
			dprintf(client,
				"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
				strlen(engine->answer), engine->answer);
		close(client);
	}
	return NULL;
}

static void engine_start(struct engine *engine, const char *answer, bool mute)
{
	union {
		struct sockaddr_un un;
		struct sockaddr any;
	} address = { .un = { .sun_family = AF_UNIX } };

	*engine = (struct engine){ .answer = answer, .mute = mute, .dir = "/tmp/hearth-engine-XXXXXX" };
	assert_non_null(mkdtemp(engine->dir));
	(void)snprintf(engine->path, sizeof(engine->path), "%s/engine.sock", engine->dir);
	memcpy(address.un.sun_path, engine->path, strlen(engine->path) + 1);
	engine->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(engine->fd, &address.any, sizeof(address.un)), 0);
	assert_int_equal(listen(engine->fd, 4), 0);
	assert_int_equal(pthread_create(&engine->thread, NULL, serve, engine), 0);
}

static void engine_stop(struct engine *engine)
{
	shutdown(engine->fd, SHUT_RDWR);
	pthread_join(engine->thread, NULL);
	close(engine->fd);
	unlink(engine->path);
	rmdir(engine->dir);
}

/* The first answer is waited for; on a machine too busy to give it in time, the next question gets it. */
static int ask_until_answered(struct containers *c, char **name)
{
	int r = containers_name(c, A, name);

	for (int i = 0; i < 100 && r == -EAGAIN && !containers_generation(c); i++)
		usleep(50000);
	return r == -EAGAIN ? containers_name(c, A, name) : r;
}

static void engine_is_asked_once(void **state)
{
	struct containers *c = NULL;
	struct engine engine;
	char *name = NULL;

	(void)state;
	engine_start(&engine, "[{\"Id\":\"" A "\",\"Names\":[\"/web-1\"]}]", false);
	assert_int_equal(containers_open("", engine.path, &c), 0);
	assert_int_equal(ask_until_answered(c, &name), 0);
	assert_string_equal(name, "web-1");
	free(name);
	assert_int_equal(containers_name(c, A, &name), 0);
	free(name);
	assert_int_equal(engine.requests, 1);
	assert_int_equal(containers_name(c, B, &name), -EAGAIN); /* asks again, but later */
	containers_close(c);
	engine_stop(&engine);
}

static void mute_engine_costs_half_a_second_once(void **state)
{
	struct containers *c = NULL;
	struct engine engine;
	struct timespec before, after;
	char *name = NULL;
	double took;

	(void)state;
	engine_start(&engine, "", true);
	assert_int_equal(containers_open("", engine.path, &c), 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(containers_name(c, A, &name), -EAGAIN);
	for (int i = 0; i < 1000; i++)
		assert_true(containers_name(c, A, &name) < 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	took = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
	assert_true(took < 1.5);
	containers_close(c);
	engine_stop(&engine);
}

static void no_engine(void **state)
{
	struct containers *c = NULL;
	char *name = NULL;

	(void)state;
	assert_int_equal(containers_open("", "/nowhere/engine.sock", &c), 0);
	assert_true(containers_name(c, A, &name) < 0);
	assert_null(name);
	containers_close(c);
	containers_close(NULL);
}

static void assert_find(const char *socket, const char *wanted, int want, const char *said)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	print_message("  %s\n", wanted);
	assert_int_equal(containers_find("", socket, str_of(wanted), &why), want);
	if (said)
		assert_non_null(strstr(buf_cstr(&why), said));
	else
		assert_int_equal(why.len, 0);
}

static void finds_what_a_person_means(void **state)
{
	struct engine engine;

	(void)state;
	engine_start(&engine,
		     "[{\"Id\":\"" A "\",\"Names\":[\"/web-1\"]},{\"Id\":\"" B "\",\"Names\":[\"/database\"]}]", false);
	assert_find(engine.path, "web-1", 0, NULL);
	assert_find(engine.path, "fedcba987654", 0, NULL);
	assert_find(engine.path, B, 0, NULL);
	assert_find(engine.path, "fedcba98765", -ENOENT, "no container 'fedcba98765'");
	assert_find(engine.path, "web", -ENOENT, "did you mean 'web-1'?");
	assert_find(engine.path, "datbase", -ENOENT, "did you mean 'database'?");
	assert_find(engine.path, "nothing-like-it", -ENOENT, "known to the engine");
	assert_find(engine.path, "", -ENOENT, "no container ''");
	engine_stop(&engine);
	engine_start(&engine, "{\"message\":\"no\"}", false);
	assert_find(engine.path, "web-1", -ENOENT, "does not answer");
	engine_stop(&engine);
	assert_find("/nowhere/engine.sock", "web-1", -ENOENT, "does not answer");
	assert_find("/nowhere/engine.sock", "0123456789ab", -ENOENT, "does not answer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		cmocka_unit_test(lists),
		cmocka_unit_test(deep_list_is_refused),
		cmocka_unit_test(engine_is_asked_once),
		cmocka_unit_test(mute_engine_costs_half_a_second_once),
		cmocka_unit_test(no_engine),
		cmocka_unit_test(finds_what_a_person_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
