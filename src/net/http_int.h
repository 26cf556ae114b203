/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTTP server: http_server.c (life), http_exchange.c (one request), http_workers.c (queues). */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/http_server.h"
#include "net/http_tls.h"

/* A connection, for the clock: the connections' thread adds and removes, tick() reads, all under server->lock. */
struct http_connection {
	struct http_connection *next, **at;
	int fd;
	uint64_t since_ns; /* when it began, or its last request ended */
	unsigned int requests;
	bool busy;                        /* a request's header is there and the answer is not out */
	bool reading;                     /* and its body is not all there */
	uint64_t body_since_ns, heard_ns; /* of that body: its header, its last piece */
	size_t got;                       /* bytes of it */
	uint64_t answer_since_ns;         /* an answer is on its way since; 0: none */
	uint64_t acked;                   /* bytes of the connection that had arrived then */
};

/** connection_is_slow - whether the body's bytes come slower than they have to. server->lock is held. */
bool connection_is_slow(const struct http_server_config *config, const struct http_connection *c, uint64_t now_ns);

enum exchange_state {
	EXCHANGE_NEW,     /* only the line of the request is known */
	EXCHANGE_BODY,    /* the body is gathered */
	EXCHANGE_DISCARD, /* the answer is known, the body is thrown away */
	EXCHANGE_RUNNING, /* waits for a worker or runs; the connection is suspended */
	EXCHANGE_DONE,    /* the answer may go out */
};

struct http_exchange {
	struct http_request request;
	struct http_response response;
	struct http_server *server;
	struct MHD_Connection *connection;
	struct http_connection *link;
	struct http_exchange *next; /* in a queue */
	enum exchange_state state;
	char *uri, *method; /* owned; uri NULL: too long, or no memory */
	bool uri_too_long, queued_answer, counted;
	struct buf body;
	size_t discarded, claimed; /* bytes; claimed: of server->body_bytes */
	size_t bytes_out, held;    /* held: of server->answer_bytes */
	char remote[64];
};

struct http_queue {
	struct http_exchange *first, *last;
	size_t count;
	pthread_cond_t changed; /* something was put in: one worker is enough */
};

#define HTTP_WORKERS_MAX 64

struct http_server {
	struct http_server_config config;
	struct MHD_Daemon *daemon;
	struct http_tls tls;
	pthread_mutex_t reload_lock; /* guards tls while it is loaded: a signal and the clock both ask for it */
	pthread_mutex_t lock;        /* guards queues, busy, connections, stop_workers, connection_count */
	pthread_cond_t drained;
	struct http_queue queues[HTTP_LANES];
	size_t busy; /* requests whose header is there and whose answer is not out */
	bool stop_workers;
	struct http_connection *connections;
	size_t connection_count;
	struct http_worker {
		struct http_server *server;
		pthread_t thread;
		enum http_lane lane;
	} workers[HTTP_WORKERS_MAX];
	size_t worker_count;
	atomic_bool quiet;    /* no more requests */
	atomic_bool stopping; /* those that run end early */
	bool stopped;
	_Atomic uint64_t body_bytes, answer_bytes, accepted, refused_busy, refused_bytes, refused_answers, timed_out;
};

/* http_exchange.c: the callbacks of libmicrohttpd */
void *exchange_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result exchange_step(void *server, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **state);
void exchange_end(void *server, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code);
/** answer_hold - the answer takes its place among those that wait, or becomes a 503. In a worker. */
void answer_hold(struct http_exchange *x);
/** socket_acked - bytes that the peer has acknowledged; 0 when that is not known. */
uint64_t socket_acked(int fd);
void response_release(struct http_response *rs);

/* http_workers.c */
int workers_start(struct http_server *s) warn_unused;
/** workers_submit - Return: false when the lane is full; the exchange stays the caller's. */
bool workers_submit(struct http_server *s, struct http_exchange *x);
/** workers_drain - wait until nothing waits or runs, at most @ns. Return: whether it came to that. */
bool workers_drain(struct http_server *s, uint64_t ns);
void workers_stop(struct http_server *s); /* what waits is still done */
