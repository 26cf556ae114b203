/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/wire.h"
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

/* ---- CRI ---- */

static void add_entry(struct buf *out, uint32_t field, const char *key, const char *value)
{
	scoped(buf_release) struct buf entry = BUF_INIT(KIB(8));

	wire_add_bytes(&entry, 1, str_of(key));
	wire_add_bytes(&entry, 2, str_of(value));
	wire_add_bytes(out, field, buf_str(&entry));
}

static void add_container(struct buf *out, const char *id, const char *name, const char *pod, const char *restarts)
{
	scoped(buf_release) struct buf one = BUF_INIT(KIB(16)), metadata = BUF_INIT(KIB(8));

	wire_add_bytes(&one, 1, str_of(id));
	wire_add_bytes(&one, 2, STR("the sandbox"));
	wire_add_bytes(&metadata, 1, str_of(name));
	wire_add_number(&metadata, 2, 7);
	wire_add_bytes(&one, 3, buf_str(&metadata));
	wire_add_number(&one, 6, 1);
	add_entry(&one, 8, "io.kubernetes.container.name", "api");
	if (pod) {
		add_entry(&one, 8, "io.kubernetes.pod.name", pod);
		add_entry(&one, 8, "io.kubernetes.pod.namespace", "prod");
		add_entry(&one, 8, "io.kubernetes.pod.uid", "1c2");
		add_entry(&one, 8, "app", "shop");
	}
	if (restarts)
		add_entry(&one, 9, "io.kubernetes.container.restartCount", restarts);
	wire_add_bytes(out, 1, buf_str(&one));
}

static void assert_cri(const char *name, struct str message, int want, const char *names)
{
	scoped(buf_release) struct buf found = BUF_INIT(KIB(8));
	struct cur bytes = guard_page(message.ptr, message.len);

	print_message("  %s\n", name);
	assert_int_equal(container_cri_parse(cur_rest(&bytes), collect, &found), want);
	assert_string_equal(buf_cstr(&found), names);
}

static void cri_lists(void **state)
{
	scoped(buf_release) struct buf m = BUF_INIT(KIB(64));
	static char longest[5000];

	(void)state;
	add_container(&m, A, "api", "api-7d9", "2");
	add_container(&m, B, "tool", NULL, NULL);
	wire_add_bytes(&m, 9, STR("of a later version"));
	assert_cri("a pod's and a lonely one", buf_str(&m), 0, "0123=k8s_api_api-7d9_prod_1c2_2;fedc=tool;");
	assert_cri("cut off", str_first(buf_str(&m), m.len - 3), -EBADMSG,
		   "0123=k8s_api_api-7d9_prod_1c2_2;fedc=tool;");
	assert_cri("none", STR(""), 0, "");
	buf_clear(&m);
	add_container(&m, A, "api", "api-7d9", NULL);
	assert_cri("no annotation", buf_str(&m), 0, "0123=k8s_api_api-7d9_prod_1c2_7;");
	buf_clear(&m);
	add_container(&m, "0123", "short", NULL, NULL);
	add_container(&m, A, "", NULL, NULL);
	assert_cri("no id, no name", buf_str(&m), 0, "");
	buf_clear(&m);
	memset(longest, 'x', sizeof(longest) - 1);
	add_container(&m, A, "api", longest, "1");
	add_container(&m, B, "fits", NULL, NULL);
	assert_cri("a name too long", buf_str(&m), 0, "fedc=fits;");
	buf_clear(&m);
	wire_add_number(&m, 1, 5);
	assert_cri("a number for a container", buf_str(&m), -EBADMSG, "");
	buf_clear(&m);
	wire_add_bytes(&m, 1, STR("\x0a\x7f"));
	assert_cri("an id longer than all", buf_str(&m), -EBADMSG, "");
}

static void grpc_answers(void **state)
{
	static const struct {
		const char *name;
		struct str body;
		int want;
		struct str message;
	} cases[] = {
		{ "empty message", STR("\0\0\0\0\0"), 0, STR("") },
		{ "three bytes", STR("\0\0\0\0\3abc"), 0, STR("abc") },
		{ "nothing", STR(""), -EBADMSG, STR("") },
		{ "cut head", STR("\0\0\0\0"), -EBADMSG, STR("") },
		{ "compressed", STR("\1\0\0\0\3abc"), -EBADMSG, STR("") },
		{ "too short", STR("\0\0\0\0\4abc"), -EBADMSG, STR("") },
		{ "two messages", STR("\0\0\0\0\1a\0\0\0\0\1b"), -EBADMSG, STR("") },
		{ "huge", STR("\0\xff\xff\xff\xff"), -EBADMSG, STR("") },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur bytes = guard_page(cases[i].body.ptr, cases[i].body.len);
		struct str message = STR("");

		print_message("  %s\n", cases[i].name);
		assert_int_equal(container_grpc_parse(cur_rest(&bytes), &message), cases[i].want);
		assert_true(str_eq(message, cases[i].message));
	}
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

static void listen_at(struct engine *engine)
{
	union {
		struct sockaddr_un un;
		struct sockaddr any;
	} address = { .un = { .sun_family = AF_UNIX } };

	memcpy(address.un.sun_path, engine->path, strlen(engine->path) + 1);
	engine->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(engine->fd, &address.any, sizeof(address.un)), 0);
	assert_int_equal(listen(engine->fd, 4), 0);
	assert_int_equal(pthread_create(&engine->thread, NULL, serve, engine), 0);
}

static void engine_start(struct engine *engine, const char *answer, bool mute)
{
	*engine = (struct engine){ .answer = answer, .mute = mute, .dir = "/tmp/hearth-engine-XXXXXX" };
	assert_non_null(mkdtemp(engine->dir));
	(void)snprintf(engine->path, sizeof(engine->path), "%s/engine.sock", engine->dir);
	listen_at(engine);
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

/* The host's usual sockets, below the root of its first process. */
struct host {
	struct engine docker, podman;
	char dir[64];
};

static void host_start(struct host *h, const char *docker, const char *podman)
{
	static const char *const folders[] = {
		"proc", "proc/1", "proc/1/root", "proc/1/root/run", "proc/1/root/var", "proc/1/root/run/podman"
	};
	char path[128];

	(void)snprintf(h->dir, sizeof(h->dir), "/tmp/hearth-host-XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", h->dir, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/proc/1/root/var/run", h->dir);
	assert_int_equal(symlink("/run", path), 0); /* as on a host: followed below its root */
	h->docker = (struct engine){ .answer = docker, .mute = !docker };
	h->podman = (struct engine){ .answer = podman };
	(void)snprintf(h->docker.path, sizeof(path), "%s/proc/1/root/run/docker.sock", h->dir);
	(void)snprintf(h->podman.path, sizeof(path), "%s/proc/1/root/run/podman/podman.sock", h->dir);
	listen_at(&h->docker);
	listen_at(&h->podman);
}

static void host_stop(struct host *h)
{
	char command[128];

	engine_stop(&h->docker);
	engine_stop(&h->podman);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", h->dir);
	assert_int_equal(system(command), 0);
}

static void docker_wins_over_podman(void **state)
{
	struct containers *c = NULL;
	struct host h;
	char *name = NULL;

	(void)state;
	host_start(&h, "[{\"Id\":\"" A "\",\"Names\":[\"/by-docker\"]}]",
		   "[{\"Id\":\"" A "\",\"Names\":[\"/by-podman\"]},{\"Id\":\"" B "\",\"Names\":[\"/pod\"]}]");
	assert_int_equal(containers_open(h.dir, NULL, &c), 0);
	assert_int_equal(ask_until_answered(c, &name), 0);
	for (int i = 0; i < 100 && strcmp(name, "by-docker") != 0; i++) { /* podman may be the quicker one */
		free(name);
		usleep(50000);
		assert_int_equal(containers_name(c, A, &name), 0);
	}
	assert_string_equal(name, "by-docker");
	free(name);
	for (int i = 0; i < 100 && containers_name(c, B, &name) < 0; i++)
		usleep(50000);
	assert_string_equal(name, "pod");
	free(name);
	containers_close(c);
	host_stop(&h);
}

static void hanging_engine_hides_no_other(void **state)
{
	struct containers *c = NULL;
	struct host h;
	char *name = NULL;
	uint64_t start;

	(void)state;
	host_start(&h, NULL, "[{\"Id\":\"" A "\",\"Names\":[\"/by-podman\"]}]");
	assert_int_equal(containers_open(h.dir, NULL, &c), 0);
	start = clock_monotonic_ns(&clock_system);
	assert_int_equal(ask_until_answered(c, &name), 0);
	assert_string_equal(name, "by-podman");
	assert_true(clock_monotonic_ns(&clock_system) - start < 2 * NSEC_PER_SEC); /* the round takes 3 s */
	free(name);
	start = clock_monotonic_ns(&clock_system);
	containers_close(c);
	assert_true(clock_monotonic_ns(&clock_system) - start < 2 * NSEC_PER_SEC);
	host_stop(&h);
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
		cmocka_unit_test(cri_lists),
		cmocka_unit_test(grpc_answers),
		cmocka_unit_test(engine_is_asked_once),
		cmocka_unit_test(mute_engine_costs_half_a_second_once),
		cmocka_unit_test(no_engine),
		cmocka_unit_test(docker_wins_over_podman),
		cmocka_unit_test(hanging_engine_hides_no_other),
		cmocka_unit_test(finds_what_a_person_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
