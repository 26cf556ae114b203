/* SPDX-License-Identifier: Apache-2.0 */
/* Load for a collector. bench_http PORT SERVICES CONNECTIONS RATE SECONDS [SEED [PREFIX]]: uploads of SERVICES made-up
 * services (bench_bodies.h, 5,000 stacks each, 4 different bodies) to 127.0.0.1:PORT, RATE a second in all (0: as fast
 * as answers come), each connection one at a time. At a given rate latency counts from the moment an upload was due.
 * Bodies carry no time: they are of the moment they arrive. Prints one line; says so when an answer was not 200.
 * Behind them, in any order: --count N (so many uploads, then it ends), --bodies N (different ones of a service),
 * --stacks N (of a service), --share N (percent of them in a profile).
 * bench_http --write FOLDER COUNT [SEED]: bodies of one service as files. bench_http --ceiling FILE SECONDS [SEED]: how
 * many bodies a second one thread only expands and writes, each with fdatasync. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "bench_bodies.h"
#include "codec/gzip.h"

#define BODIES 4
#define BODIES_MAX 1000
#define STACKS 5000
#define SHARE 4 /* percent of them in a profile: about 110 kB of gzip */
#define UPLOADS_MAX 4000000

struct load {
	uint16_t port;
	uint64_t services, connections, rate, seconds, seed, count, body_count, stacks, share;
	const char *prefix;
	struct buf *bodies; /* body_count of each service */
	uint64_t begin_ns;
	_Atomic uint64_t next, done, failed, bytes, told;
	uint32_t *latency_us;
};

static int dial(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* One answer. Return: its status. */
static int read_answer(int fd)
{
	char text[2048];
	size_t have = 0;

	for (;;) {
		char *end, *length;
		ssize_t n = read(fd, text + have, sizeof(text) - 1 - have);

		if (n <= 0) {
			errno = n ? errno : EPIPE;
			return -1;
		}
		have += (size_t)n;
		text[have] = 0;
		end = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (end && (!length || have >= (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10)))
			return (int)strtol(text + 9, NULL, 10);
		must(have < sizeof(text) - 1);
	}
}

static bool upload(struct load *l, int fd, uint64_t number)
{
	const struct buf *body =
		&l->bodies[number % l->services * l->body_count + number / l->services % l->body_count];
	char head[512];
	int status,
		size = snprintf(head, sizeof(head),
				"POST /api/0/profiles?service=%s-%" PRIu64 "&type=cpu HTTP/1.1\r\nHost: localhost\r\n"
				"Content-Length: %zu\r\n\r\n",
				l->prefix, number % l->services, body->len);

	if (io_write_all(fd, head, (size_t)size) < 0 || io_write_all(fd, body->ptr, body->len) < 0)
		return false;
	atomic_fetch_add(&l->bytes, body->len);
	status = read_answer(fd);
	if (status != 200 && atomic_fetch_add(&l->told, 1) < 10)
		(void)fprintf(stderr, "upload %" PRIu64 ": status %d: %s\n", number, status,
			      status < 0 ? strerror(errno) : "");
	return status == 200;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void *send_all(void *arg)
{
	struct load *l = arg;
	int fd = dial(l->port);

	for (;;) {
		uint64_t number = atomic_fetch_add(&l->next, 1), due = clock_monotonic_ns(&clock_system), took;

		if (l->rate) {
			due = l->begin_ns + number * NSEC_PER_SEC / l->rate;
			sleep_until(due);
		}
		if (due >= l->begin_ns + l->seconds * NSEC_PER_SEC || number >= l->count)
			break;
		if (!upload(l, fd, number)) {
			atomic_fetch_add(&l->failed, 1);
			(void)close(fd);
			fd = dial(l->port);
			continue;
		}
		took = (clock_monotonic_ns(&clock_system) - due) / 1000;
		l->latency_us[atomic_fetch_add(&l->done, 1)] = (uint32_t)MIN(took, (uint64_t)UINT32_MAX);
	}
	(void)close(fd);
	return NULL;
}

static void make_bodies(struct load *l)
{
	l->bodies = calloc(l->services * l->body_count, sizeof(*l->bodies));
	must(l->bodies);
	for (uint64_t service = 0; service < l->services; service++) {
		scoped(bodies_service_release) struct bodies_service base = { 0 };

		must(bodies_service_init(&base, l->seed, service, l->stacks) == 0);
		base.share = l->share;
		for (uint64_t i = 0; i < l->body_count; i++) {
			struct buf *body = &l->bodies[service * l->body_count + i];

			*body = (struct buf)BUF_INIT(MIB(64));
			bodies_upload(&base, i, 0, body);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct load *l, double cpu_before)
{
	double took = (double)(clock_monotonic_ns(&clock_system) - l->begin_ns) / 1e9;
	uint64_t done = l->done;
	struct rusage u;

	must(getrusage(RUSAGE_SELF, &u) == 0);
	qsort(l->latency_us, done, sizeof(*l->latency_us), by_size);
	printf("done %" PRIu64 " failed %" PRIu64
	       " rate %.1f p50_ms %.2f p99_ms %.2f max_ms %.2f mb %.1f client_cpu_s %.2f "
	       "seconds %.2f\n",
	       done, (uint64_t)l->failed, (double)done / took, done ? l->latency_us[done / 2] / 1e3 : 0,
	       done ? l->latency_us[done * 99 / 100] / 1e3 : 0, done ? l->latency_us[done - 1] / 1e3 : 0,
	       (double)l->bytes / 1e6,
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6 - cpu_before,
	       took);
}

static int write_files(int argc, char **argv)
{
	scoped(bodies_service_release) struct bodies_service base = { 0 };
	uint64_t count, seed = 1;

	if (argc < 4 || str_to_u64(str_of(argv[3]), 1, 100000, &count) < 0 ||
	    (argc > 4 && str_to_u64(str_of(argv[4]), 0, UINT64_MAX, &seed) < 0))
		return 2;
	must(bodies_service_init(&base, seed, 0, STACKS) == 0);
	base.share = SHARE;
	for (uint64_t i = 0; i < count; i++) {
		scoped(buf_release) struct buf body = BUF_INIT(MIB(64)), name = BUF_INIT(KIB(4));

		bodies_upload(&base, i, (int64_t)((1709164800 + i * 60) * NSEC_PER_SEC), &body); /* 2024-02-29 */
		buf_addf(&name, "%s/%" PRIu64 ".pb.gz", argv[2], i);
		must(io_replace_file(buf_cstr(&name), body.ptr, body.len) == 0);
	}
	return 0;
}

static int ceiling(int argc, char **argv)
{
	struct load l = { .seed = 1, .services = 1, .body_count = BODIES, .stacks = STACKS, .share = SHARE };
	scoped(buf_release) struct buf plain = BUF_INIT(MIB(64));
	scoped(closep) int fd = argc > 2 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	uint64_t seconds, done = 0;

	if (fd < 0 || argc < 4 || str_to_u64(str_of(argv[3]), 1, 3600, &seconds) < 0 ||
	    (argc > 4 && str_to_u64(str_of(argv[4]), 0, UINT64_MAX, &l.seed) < 0))
		return 2;
	make_bodies(&l);
	l.begin_ns = clock_monotonic_ns(&clock_system);
	while (clock_monotonic_ns(&clock_system) < l.begin_ns + seconds * NSEC_PER_SEC) {
		const struct buf *body = &l.bodies[done++ % l.body_count];

		buf_clear(&plain);
		must(gzip_unpack(buf_str(body), MIB(64), 0, &plain) == 0);
		must(io_write_all(fd, body->ptr, body->len) == 0 && fdatasync(fd) == 0);
	}
	printf("done %" PRIu64 " rate %.1f body_kb %.1f\n", done,
	       (double)done * 1e9 / (double)(clock_monotonic_ns(&clock_system) - l.begin_ns),
	       (double)l.bodies[0].len / 1e3);
	return 0;
}

/* The words behind the positions: pairs. */
static bool read_options(int argc, char **argv, struct load *l)
{
	const struct {
		const char *name;
		uint64_t max, *value;
	} options[] = { { "--count", UPLOADS_MAX, &l->count },
			{ "--bodies", BODIES_MAX, &l->body_count },
			{ "--stacks", 1000000, &l->stacks },
			{ "--share", 100, &l->share } };
	bool known = true;

	for (int i = 0; known && i < argc; i += 2) {
		known = false;
		for (size_t o = 0; i + 1 < argc && o < ARRAY_SIZE(options); o++)
			if (!strcmp(argv[i], options[o].name))
				known = str_to_u64(str_of(argv[i + 1]), 1, options[o].max, options[o].value) == 0;
	}
	return known;
}

static int positions(int argc, char **argv)
{
	int count = 1;

	while (count < argc && strncmp(argv[count], "--", 2) != 0)
		count++;
	return count;
}

int main(int argc, char **argv)
{
	struct load l = { .seed = 1,
			  .prefix = "service",
			  .count = UPLOADS_MAX,
			  .body_count = BODIES,
			  .stacks = STACKS,
			  .share = SHARE };
	int given;
	pthread_t threads[256];
	uint64_t port;
	struct rusage u;

	if (argc > 1 && !strcmp(argv[1], "--write"))
		return write_files(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--ceiling"))
		return ceiling(argc, argv);
	given = positions(argc, argv);
	if (given < 6 || given > 8 || !read_options(argc - given, argv + given, &l) ||
	    str_to_u64(str_of(argv[1]), 1, UINT16_MAX, &port) < 0 ||
	    str_to_u64(str_of(argv[2]), 1, 1000, &l.services) < 0 ||
	    str_to_u64(str_of(argv[3]), 1, ARRAY_SIZE(threads), &l.connections) < 0 ||
	    str_to_u64(str_of(argv[4]), 0, 1000000, &l.rate) < 0 ||
	    str_to_u64(str_of(argv[5]), 1, 86400, &l.seconds) < 0 ||
	    (given > 6 && str_to_u64(str_of(argv[6]), 0, UINT64_MAX, &l.seed) < 0)) {
		(void)fputs("usage: bench_http PORT SERVICES CONNECTIONS RATE SECONDS [SEED [PREFIX]] [--count N]"
			    " [--bodies N] [--stacks N] [--share N]\n",
			    stderr);
		return 2;
	}
	l.port = (uint16_t)port;
	l.prefix = given > 7 ? argv[7] : l.prefix;
	l.latency_us = calloc(UPLOADS_MAX, sizeof(*l.latency_us));
	must(l.latency_us);
	make_bodies(&l);
	must(getrusage(RUSAGE_SELF, &u) == 0);
	puts("ready"); /* the clock runs from here on */
	(void)fflush(stdout);
	(void)getchar(); /* until the caller says so */
	l.begin_ns = clock_monotonic_ns(&clock_system);
	for (uint64_t i = 0; i < l.connections; i++)
		must(pthread_create(&threads[i], NULL, send_all, &l) == 0);
	for (uint64_t i = 0; i < l.connections; i++)
		must(pthread_join(threads[i], NULL) == 0);
	report(&l, (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			   (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	return 0;
}
