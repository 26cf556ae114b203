/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cloud.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http_client.h"

#define REQUEST_NS (5 * NSEC_PER_SEC)
#define ALL_NS (6 * NSEC_PER_SEC)
#define ANSWER_MAX KIB(64)
#define INFO_MAX KIB(256)
/* Google's service has this address, too: the name metadata.google.internal would be asked of a name server first. */
#define SERVICE "http://169.254.169.254"

struct cloud { /* freed by the last who holds it: its owner, and a thread for each provider */
	_Atomic unsigned holders;
	atomic_bool ends;
	uint64_t until_ns;
	int network;          /* of the host's first process; -1: ours */
	pthread_mutex_t lock; /* guards what follows */
	const char *provider; /* NULL: not known */
	struct buf info;
};

struct question {
	struct cloud *cloud;
	enum cloud_provider provider;
};

static void let_go(struct cloud *c)
{
	if (atomic_fetch_sub(&c->holders, 1) != 1)
		return;
	closep(&c->network);
	buf_release(&c->info);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Return: 0: with status 200; -ENOENT: another one; -errno. @answer: released by the caller in any case. */
static int ask(struct cloud *c, const struct http_request *request, struct http_answer *answer)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	struct http_client_config cfg = {
		.answer_max = ANSWER_MAX, .no_proxy = true, .http_only = true, .cancel = &c->ends
	};
	struct http_client *client;
	int r;

	if (now_ns >= c->until_ns)
		return -ETIMEDOUT;
	cfg.connect_ns = cfg.total_ns = MIN(REQUEST_NS, c->until_ns - now_ns);
	r = http_client_open(&cfg, &client);
	if (r < 0)
		return r;
	r = http_send(client, request, &why, answer);
	http_client_close(client);
	return r < 0 ? r : answer->status == 200 ? 0 : -ENOENT;
}

static void tell(struct cloud *c, enum cloud_provider provider, const struct cloud_answer *answer)
{
	scoped(buf_release) struct buf info = BUF_INIT(INFO_MAX);

	if (cloud_describe(provider, answer, &info) < 0)
		return;
	pthread_mutex_lock(&c->lock);
	if (!c->provider) {
		buf_adds(&c->info, buf_str(&info));
		c->provider = c->info.error ? NULL : cloud_name(provider);
	}
	pthread_mutex_unlock(&c->lock);
}

/* The second version of the service wants a token; one that has none is of the first version, or another cloud's. */
static void ask_aws(struct cloud *c)
{
	static const struct http_header lifetime = { STR("X-aws-ec2-metadata-token-ttl-seconds"), STR("120") };
	scoped(http_answer_release) struct http_answer token = { 0 }, document = { 0 }, life_cycle = { 0 };
	struct http_header key = { .name = STR("X-aws-ec2-metadata-token") };
	struct http_request request = {
		.method = "PUT", .url = SERVICE "/latest/api/token", .headers = &lifetime, .header_count = 1
	};
	struct cloud_answer answer = { 0 };
	int r = ask(c, &request, &token);

	if (r < 0 && r != -ENOENT)
		return;
	key.value = str_trim(buf_str(&token.body));
	request = (struct http_request){ .url = SERVICE "/latest/dynamic/instance-identity/document",
					 .headers = &key,
					 .header_count = r == 0 };
	if (ask(c, &request, &document) < 0)
		return;
	request.url = SERVICE "/latest/meta-data/instance-life-cycle";
	if (ask(c, &request, &life_cycle) == 0)
		answer.life_cycle = str_trim(buf_str(&life_cycle.body));
	answer.document = buf_str(&document.body);
	tell(c, CLOUD_AWS, &answer);
}

static void ask_once(struct cloud *c, enum cloud_provider provider, const char *url, const struct http_header *header)
{
	scoped(http_answer_release) struct http_answer document = { 0 };
	const struct http_request request = { .url = url, .headers = header, .header_count = header != NULL };
	struct cloud_answer answer = { .region = str_of(getenv("AWS_REGION")) };

	if (ask(c, &request, &document) < 0)
		return;
	answer.document = buf_str(&document.body);
	tell(c, provider, &answer);
}

static void *run(void *ctx)
{
	static const struct http_header google = { STR("Metadata-Flavor"), STR("Google") };
	static const struct http_header azure = { STR("Metadata"), STR("true") };
	struct question *q = ctx;
	struct cloud *c = q->cloud;

	if (c->network >= 0) /* not permitted: our own has to do */
		ignore(setns(c->network, CLONE_NEWNET));
	if (q->provider == CLOUD_AWS)
		ask_aws(c);
	else if (q->provider == CLOUD_FARGATE)
		ask_once(c, q->provider, getenv("ECS_CONTAINER_METADATA_URI_V4"), NULL);
	else if (q->provider == CLOUD_GCP)
		ask_once(c, q->provider, SERVICE "/computeMetadata/v1/instance/?recursive=true", &google);
	else
		ask_once(c, q->provider, SERVICE "/metadata/instance/compute/?api-version=2019-08-15", &azure);
	let_go(c);
	free(q);
	return NULL;
}

/* Fargate tells of itself, and nobody else there. */
static bool is_asked(enum cloud_provider provider)
{
	const char *where = getenv("AWS_EXECUTION_ENV");
	bool is_fargate = where && !strcmp(where, "AWS_ECS_FARGATE") && getenv("ECS_CONTAINER_METADATA_URI_V4");

	return (provider == CLOUD_FARGATE) == is_fargate;
}

static int start(struct cloud *c, enum cloud_provider provider)
{
	struct question *q = malloc(sizeof(*q));
	pthread_t thread;
	int r;

	if (!q)
		return -ENOMEM;
	*q = (struct question){ .cloud = c, .provider = provider };
	atomic_fetch_add(&c->holders, 1);
	r = pthread_create(&thread, NULL, run, q);
	if (r) {
		let_go(c);
		free(q);
		return -r;
	}
	return -pthread_detach(thread);
}

/* Where our own is another one: in a container. */
static int open_network(const char *host_root)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	struct stat own, first;
	int fd;

	buf_addf(&path, "%s/proc/1/ns/net", host_root);
	fd = path.error ? -1 : open(buf_cstr(&path), O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &first) == 0 && stat("/proc/self/ns/net", &own) == 0 && own.st_ino == first.st_ino)
		closep(&fd);
	return fd;
}

int cloud_open(const char *host_root, struct cloud **out)
{
	struct cloud *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	atomic_init(&c->holders, 1);
	pthread_mutex_init(&c->lock, NULL);
	c->info = (struct buf)BUF_INIT(INFO_MAX);
	c->until_ns = clock_monotonic_ns(&clock_system) + ALL_NS;
	c->network = open_network(host_root ? host_root : "");
	for (enum cloud_provider i = 0; i < CLOUD_PROVIDERS && r == 0; i++)
		r = is_asked(i) ? start(c, i) : 0;
	if (r < 0) {
		cloud_close(c);
		return r;
	}
	*out = c;
	return 0;
}

int cloud_get(struct cloud *c, const char **provider, struct buf *info)
{
	int r = -ENOENT;

	pthread_mutex_lock(&c->lock);
	if (c->provider) {
		*provider = c->provider;
		buf_adds(info, buf_str(&c->info));
		r = info->error;
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

void cloud_close(struct cloud *c)
{
	if (!c)
		return;
	atomic_store(&c->ends, true);
	let_go(c);
}
