/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/engines.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define ANSWER_MAX MIB(16)
#define HEADER_BYTES_MAX KIB(64)
#define QUIET_NS (10 * NSEC_PER_SEC)
#define POLL_MS 50
#define ENGINES_MAX 5

/* Ways to ask, tried in this order. Sources: Docker Engine API v1.41, ContainerList, which podman has too; kubernetes/
 * cri-api, service RuntimeService of runtime.v1 and, up to Kubernetes 1.25, of runtime.v1alpha2. */
static const struct way {
	const char *url;
	enum engines_dialect dialect;
} ways[] = {
	{ "http://localhost/containers/json?all=1", ENGINES_REST },
	{ "http://localhost/runtime.v1.RuntimeService/ListContainers", ENGINES_CRI },
	{ "http://localhost/runtime.v1alpha2.RuntimeService/ListContainers", ENGINES_CRI },
};

#define FIRST_CRI 1

/* Where engines listen when nobody says. Docker's names come first, as gProfiler has it. */
static const struct {
	const char *path;
	size_t first_way, last_way;
} usual[] = {
	{ "/var/run/docker.sock", 0, 0 },
	{ "/run/podman/podman.sock", 0, 0 },
	{ "/run/containerd/containerd.sock", FIRST_CRI, ARRAY_SIZE(ways) - 1 },
	{ "/run/k3s/containerd/containerd.sock", FIRST_CRI, ARRAY_SIZE(ways) - 1 },
	{ "/var/run/crio/crio.sock", FIRST_CRI, ARRAY_SIZE(ways) - 1 },
};

_Static_assert(ARRAY_SIZE(usual) <= ENGINES_MAX, "each has a place");

struct engine {
	const char *path; /* borrowed */
	size_t first_way, last_way, way;
	uint64_t quiet_until_ns; /* monotonic; it did not answer */
	/* While it is asked. */
	CURL *curl;
	int fd;
	struct buf answer;
	size_t header_bytes;
	bool is_grpc_ok;
	int result; /* 0: it answered */
};

struct engines {
	char *root, *fallback_root; /* directories the sockets' paths are resolved in, never leaving them */
	char *socket;               /* the only one, or NULL */
	struct engine items[ENGINES_MAX];
	size_t count;
	struct curl_slist *headers;        /* of gRPC */
	char message[CONTAINER_GRPC_HEAD]; /* an empty one, all zero: no filter */
};

/* One question to all. */
struct round {
	struct engines *engines;
	CURLM *multi;
	uint64_t end_ns;
	engines_take_fn *take;
	void *ctx;
	bool is_enough; /* take() said so */
};

static uint64_t now_ns(void)
{
	return clock_monotonic_ns(&clock_system);
}

static int set_paths(struct engines *e, const char *host_root, const char *socket)
{
	scoped(buf_release) struct buf root = BUF_INIT(KIB(8));
	size_t len;

	if (socket)
		buf_addf(&root, "%s/", host_root);
	else
		buf_addf(&root, "%s/proc/1/root", host_root);
	if (root.error)
		return root.error;
	e->root = buf_take(&root, &len);
	e->fallback_root = str_dup(str_of(*host_root ? host_root : "/"));
	e->socket = socket ? str_dup(str_of(socket)) : NULL;
	return e->root && e->fallback_root && (!socket || e->socket) ? 0 : -ENOMEM;
}

static void engines_freep(struct engines **e)
{
	engines_free(*e);
}

int engines_new(const char *host_root, const char *socket, struct engines **out)
{
	scoped(engines_freep) struct engines *e = calloc(1, sizeof(*e));
	struct curl_slist *longer;
	int r;

	if (!e)
		return -ENOMEM;
	if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
		free(e);
		e = NULL;
		return -ENOMEM;
	}
	r = set_paths(e, host_root, socket);
	if (r < 0)
		return r;
	e->headers = curl_slist_append(NULL, "Content-Type: application/grpc");
	longer = e->headers ? curl_slist_append(e->headers, "TE: trailers") : NULL;
	if (!longer)
		return -ENOMEM;
	if (socket) /* any engine's */
		e->items[e->count++] = (struct engine){ .path = e->socket, .last_way = ARRAY_SIZE(ways) - 1 };
	for (size_t i = 0; !socket && i < ARRAY_SIZE(usual); i++)
		e->items[e->count++] = (struct engine){ .path = usual[i].path,
							.first_way = usual[i].first_way,
							.last_way = usual[i].last_way,
							.way = usual[i].first_way };
	*out = e;
	e = NULL;
	return 0;
}

void engines_free(struct engines *e)
{
	if (!e)
		return;
	curl_slist_free_all(e->headers);
	curl_global_cleanup();
	free(e->root);
	free(e->fallback_root);
	free(e->socket);
	free(e);
}

/* ---- sockets ---- */

/* The host's /var/run is a link to /run: followed below @root, as the host itself would. */
static int open_in_root(const char *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	scoped(closep) int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	long fd;

	if (root_fd < 0)
		return -errno;
	fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* Without the right to look below the root of pid 1, use our own root. */
static int open_socket(const struct engines *e, const char *path)
{
	int fd = open_in_root(e->root, path);

	return fd == -EACCES || fd == -EPERM ? open_in_root(e->fallback_root, path) : fd;
}

/* ---- one engine ---- */

/* libcurl's callbacks; @size is 1 always: CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION. */

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx)
{
	struct engine *engine = ctx;

	buf_add(&engine->answer, bytes, size * count);
	return engine->answer.error ? 0 : count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx)
{
	struct engine *engine = ctx;
	struct str line = str_trim(str_n(bytes, size * count));

	engine->header_bytes += count;
	if (engine->header_bytes > HEADER_BYTES_MAX)
		return 0;
	if (str_eq(line, STR("grpc-status: 0")))
		engine->is_grpc_ok = true;
	return count;
}

static void set_request(const struct round *r, struct engine *engine)
{
	const struct way *way = &ways[engine->way];
	uint64_t left_ns = r->end_ns - MIN(now_ns(), r->end_ns);
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", engine->fd);
	curl_easy_setopt(engine->curl, CURLOPT_UNIX_SOCKET_PATH, path);
	curl_easy_setopt(engine->curl, CURLOPT_FRESH_CONNECT, 1L); /* a number of a descriptor comes to mean others */
	curl_easy_setopt(engine->curl, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(engine->curl, CURLOPT_URL, way->url);
	curl_easy_setopt(engine->curl, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(engine->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(engine->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(engine->curl, CURLOPT_TIMEOUT_MS, (long)MAX(left_ns / NSEC_PER_MSEC, UINT64_C(1)));
	curl_easy_setopt(engine->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(engine->curl, CURLOPT_WRITEDATA, engine);
	curl_easy_setopt(engine->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(engine->curl, CURLOPT_HEADERDATA, engine);
	curl_easy_setopt(engine->curl, CURLOPT_PRIVATE, engine);
	if (way->dialect != ENGINES_CRI)
		return;
	curl_easy_setopt(engine->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	curl_easy_setopt(engine->curl, CURLOPT_HTTPHEADER, r->engines->headers);
	curl_easy_setopt(engine->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(engine->curl, CURLOPT_POSTFIELDSIZE, (long)sizeof(r->engines->message));
	curl_easy_setopt(engine->curl, CURLOPT_POSTFIELDS, r->engines->message);
}

/* Return: 0: it is being asked; -errno. */
static int ask(const struct round *r, struct engine *engine)
{
	CURLMcode code;

	buf_clear(&engine->answer);
	engine->is_grpc_ok = false;
	engine->header_bytes = 0;
	curl_easy_reset(engine->curl);
	set_request(r, engine);
	code = curl_multi_add_handle(r->multi, engine->curl);
	return code == CURLM_OK ? 0 : -ENOMEM;
}

static void begin(const struct round *r, struct engine *engine)
{
	engine->curl = NULL;
	engine->answer = (struct buf)BUF_INIT(ANSWER_MAX);
	engine->fd = now_ns() < engine->quiet_until_ns ? -ETIMEDOUT : open_socket(r->engines, engine->path);
	engine->result = engine->fd < 0 ? engine->fd : -EIO;
	if (engine->fd < 0)
		return;
	engine->curl = curl_easy_init();
	engine->result = engine->curl ? ask(r, engine) : -ENOMEM;
	engine->result = engine->result == 0 ? -ETIMEDOUT : engine->result; /* until it answers */
}

static void end(const struct round *r, struct engine *engine)
{
	if (engine->curl) {
		curl_multi_remove_handle(r->multi, engine->curl);
		curl_easy_cleanup(engine->curl);
	}
	if (engine->result == -ETIMEDOUT && engine->fd >= 0)
		engine->quiet_until_ns = now_ns() + QUIET_NS;
	engine->curl = NULL;
	closep(&engine->fd);
	buf_release(&engine->answer);
}

/* Return: 0, or why this was no answer. */
static int take_answer(struct round *r, struct engine *engine, CURLcode code)
{
	struct engines_answer answer = { .rank = (size_t)(engine - r->engines->items),
					 .dialect = ways[engine->way].dialect };
	long status = 0;
	int e = 0;

	if (code != CURLE_OK)
		return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT
		       : code == CURLE_COULDNT_CONNECT  ? -ECONNREFUSED
							: -EPROTO;
	curl_easy_getinfo(engine->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return -EPROTO;
	answer.message = buf_str(&engine->answer);
	if (answer.dialect == ENGINES_CRI)
		e = engine->is_grpc_ok ? container_grpc_parse(buf_str(&engine->answer), &answer.message) : -EPROTO;
	e = e < 0 ? e : r->take(r->ctx, &answer);
	r->is_enough |= e > 0;
	return MIN(e, 0);
}

/* In another dialect, as long as there is one. Nobody listens: nobody does in any. */
static bool ask_otherwise(const struct round *r, struct engine *engine)
{
	if (engine->result == -ETIMEDOUT || engine->result == -ECONNREFUSED || engine->result == -ENOMEM)
		return false;
	if (engine->way == engine->last_way) {
		engine->way = engine->first_way;
		return false;
	}
	engine->way++;
	return ask(r, engine) == 0;
}

/* ---- all of them ---- */

/* Return: how many are being asked. */
static size_t take_all(struct round *r, size_t asked)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(r->multi, &left))) {
		CURLcode code = message->data.result;
		struct engine *engine = NULL;
		char *private = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		engine = (struct engine *)(void *)private;
		curl_multi_remove_handle(r->multi, engine->curl);
		engine->result = take_answer(r, engine, code);
		if (engine->result == 0 || !ask_otherwise(r, engine))
			asked--;
	}
	return asked;
}

static int result_of(const struct engines *e)
{
	int answered = 0, why = -ENOENT;

	for (size_t i = 0; i < e->count; i++) {
		int result = e->items[i].result;

		answered += result == 0;
		if (result < 0 && result != -ENOENT && why == -ENOENT)
			why = result;
	}
	return answered ? answered : why;
}

static bool goes_on(const struct round *r, const atomic_bool *cancel)
{
	return !r->is_enough && now_ns() < r->end_ns && !(cancel && atomic_load(cancel));
}

int engines_ask(struct engines *e, uint64_t timeout_ns, const atomic_bool *cancel, engines_take_fn *take, void *ctx)
{
	struct round r = {
		.engines = e, .multi = curl_multi_init(), .end_ns = now_ns() + timeout_ns, .take = take, .ctx = ctx
	};
	size_t asked = 0;
	int running;

	if (!r.multi)
		return -ENOMEM;
	for (size_t i = 0; i < e->count; i++) {
		begin(&r, &e->items[i]);
		asked += e->items[i].curl && e->items[i].result == -ETIMEDOUT;
	}
	while (asked && goes_on(&r, cancel) && curl_multi_perform(r.multi, &running) == CURLM_OK) {
		asked = take_all(&r, asked);
		if (asked && curl_multi_poll(r.multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)
			break;
	}
	for (size_t i = 0; i < e->count; i++)
		end(&r, &e->items[i]);
	curl_multi_cleanup(r.multi);
	return result_of(e);
}

int engines_parse(const struct engines_answer *answer, container_visit_fn *visit, void *ctx)
{
	return answer->dialect == ENGINES_CRI ? container_cri_parse(answer->message, visit, ctx)
					      : container_list_parse(answer->message, visit, ctx);
}

void engines_text(const struct engines *e, struct buf *out)
{
	for (size_t i = 0; i < e->count; i++)
		buf_addf(out, "%s%s", i ? ", " : "", e->items[i].path);
}
