/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTTP server: http_server.c (life), http_exchange.c (one request), http_workers.c (queues). */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/http_server.h"
#include "net/http_tls.h"

/* Whom the server is fair between: an address (of IPv6 its /64), or whom begin() names. Guarded by server->lock. */
struct http_sender {
	struct http_sender *next; /* of the same bucket */
	uint64_t id;
	size_t refs;        /* connections and requests */
	size_t connections; /* of an address */
	size_t queries;     /* that wait or run */
	size_t running[HTTP_LANES];
	size_t body_small, body_large, answers; /* bytes; answers: see http_claim() */
	uint64_t spent_ns, spent_at_ns;         /* CPU time of late: it drains away */
};

#define HTTP_SENDER_BUCKETS 1024
#define HTTP_SENDERS_IDLE 8192 /* kept for what they have spent */

struct http_senders {
	struct http_sender *buckets[HTTP_SENDER_BUCKETS];
	size_t count;
};

/* How fast bytes come or go, of late. */
struct http_pace {
	uint64_t since_ns, mark_ns; /* of all; of the present window */
	uint64_t bytes, mark_bytes; /* up to now; at mark_ns */
};

/* A connection, for the clock: the connections' thread adds and removes, tick() reads, all under server->lock. */
struct http_connection {
	struct http_connection *next, **at;
	int fd;
	struct http_sender *peer; /* its address; NULL: no memory */
	uint64_t since_ns;        /* when it began, or its last request ended */
	unsigned int requests;
	bool busy;                      /* a request's header is there and the answer is not out */
	bool reading;                   /* and its body is not all there */
	bool answering;                 /* and the answer is on its way */
	bool ended;                     /* it was told to end */
	uint64_t heard_ns;              /* of a body: its last piece */
	size_t held;                    /* of a body: bytes of memory */
	struct http_exchange *stream;   /* its answer is one that is under way; NULL: it is not */
	uint64_t moved_ns, moved_bytes; /* of a stream: when and what its reader took last */
	struct http_pace piece_pace;    /* of a stream's large piece, as pace */
	struct http_pace pace;          /* of the body, then of the answer as far as the peer has acknowledged it */
};

/* http_pace.c: pure */
void pace_begin(struct http_pace *p, uint64_t now_ns, uint64_t bytes);
/**
 * pace_is_slow - whether @bytes until now are less than @rate a second within the present window of 5 s
 *
 * The first window is not judged. A head start buys nothing: each window stands for itself.
 */
bool pace_is_slow(struct http_pace *p, uint64_t now_ns, uint64_t bytes, uint64_t rate);

/* http_senders.c: server->lock is held */

/** sender_get - a reference to the account of @id. Return: NULL without memory: the caller goes without. */
struct http_sender *sender_get(struct http_senders *all, uint64_t id);
void sender_put(struct http_senders *all, struct http_sender *s, uint64_t now_ns); /* NULL is fine */
/** sender_spent - CPU time that counts against it now. NULL: 0. */
uint64_t sender_spent(const struct http_sender *s, uint64_t now_ns);
void sender_spend(struct http_sender *s, uint64_t now_ns, uint64_t cpu_ns);
/** senders_tidy - forget those that have nothing any more. */
void senders_tidy(struct http_senders *all, uint64_t now_ns);
void senders_release(struct http_senders *all);
/** sender_address - the id of an address; a /64 of IPv6 is one, and IPv4 inside of IPv6 is IPv4. */
uint64_t sender_address(const struct sockaddr *a);

/** body_need - bytes a second that the body of this connection has to come with. server->lock is held. */
uint64_t body_need(const struct http_server *s, const struct http_connection *c);

enum exchange_state {
	EXCHANGE_NEW,     /* only the line of the request is known */
	EXCHANGE_BODY,    /* the body is gathered */
	EXCHANGE_DISCARD, /* the answer is known, the body is thrown away */
	EXCHANGE_RUNNING, /* waits for a worker or runs; the connection is suspended */
	EXCHANGE_DONE,    /* the answer may go out */
};

enum stream_state {
	STREAM_NONE,
	STREAM_READY,   /* the connections' thread has the piece */
	STREAM_WORKING, /* a worker has it, or will; the connection is suspended, as below */
	STREAM_WAITING, /* there is nothing to say */
	STREAM_FAILED,
};

struct http_exchange {
	struct http_request request;
	struct http_response response;
	struct http_server *server;
	struct MHD_Connection *connection;
	struct http_connection *link;
	struct http_exchange *next; /* in a queue */
	struct http_sender *sender; /* NULL: no memory */
	size_t weight;              /* bytes, as weigh() said */
	bool again;                 /* http_again() */
	bool is_large;              /* its body is beyond what is kept free for small ones */
	enum exchange_state state;
	char *uri, *method; /* owned; uri NULL: too long, or no memory */
	bool uri_too_long, has_no_end, queued_answer, counted;
	struct buf body;
	size_t discarded, claimed; /* bytes; claimed: of the memory of bodies */
	size_t bytes_out;
	struct http_claim claim; /* of the whole answer, or of the piece */
	char remote[64];
	/* Of a stream. In READY the connections' thread has the piece, in WORKING the worker; server->lock guards the
	 * rest. */
	enum stream_state stream_state;
	struct buf piece;
	struct str lent; /* the piece instead: http_piece_lend() */
	size_t piece_size;
	_Atomic size_t piece_left; /* bytes; changed in READY by the connections' thread, read by the tick */
	bool stream_last, stream_woken, stream_retry; /* retry: the lane was full, or there was no room for the piece */
	uint64_t queued_ns;                           /* since when the next piece is waited for; 0: no stream */
};

struct http_queue {
	struct http_exchange *first, *last;
	size_t count, running_heavy; /* heavy: beyond config.weight_light */
	pthread_cond_t changed;      /* something was put in: one worker is enough */
};

#define HTTP_WORKERS_MAX 64

struct http_server {
	struct http_server_config config;
	struct MHD_Daemon *daemon;
	struct http_tls tls;
	pthread_mutex_t reload_lock; /* guards tls while it is loaded: a signal and the clock both ask for it */
	pthread_mutex_t lock; /* guards queues, busy, connections, senders, bytes, stop_workers; taken for moments */
	pthread_cond_t drained;
	struct http_queue queues[HTTP_LANES];
	size_t busy; /* requests whose header is there and whose answer is not out */
	bool stop_workers;
	struct http_connection *connections;
	size_t connection_count;
	struct http_connection *look_at; /* who is looked at next, whether it has left; NULL: the first one */
	struct http_senders senders;
	size_t body_bytes, body_large, answer_bytes; /* memory of all; of bodies that are not small */
	struct http_worker {
		struct http_server *server;
		pthread_t thread;
		enum http_lane lane;
	} workers[HTTP_WORKERS_MAX];
	size_t worker_count;
	atomic_bool quiet;    /* no more requests */
	atomic_bool stopping; /* those that run end early */
	bool stopped;
	_Atomic uint64_t accepted, refused_busy, refused_bytes, refused_answers, timed_out, made_room;
};

/* http_exchange.c: the callbacks of libmicrohttpd */
void *exchange_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result exchange_step(void *server, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **state);
void exchange_end(void *server, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code);
/** socket_acked - bytes that the peer has acknowledged; 0 when that is not known. */
uint64_t socket_acked(int fd);
void response_release(struct http_response *rs);

/* http_answers.c */

/** answer_hold - the answer takes its place among those that wait, or becomes a 503. In a worker. */
void answer_hold(struct http_exchange *x);

/* http_stream.c */
void stream_begin(struct http_exchange *x); /* its header goes out */
void stream_end(struct http_exchange *x);   /* closes response.stream; nothing is fine */
ssize_t stream_read(void *exchange, uint64_t at, char *to, size_t room);
/** stream_work - make the next piece; stream_settle() with the result, last. In a worker. */
int stream_work(struct http_exchange *x);
void stream_settle(struct http_exchange *x, int r);
/** stream_is_stuck - whether its reader has taken nothing for long though there is something, or less than @rate bytes
 * a second of a large piece. server->lock is held. */
bool stream_is_stuck(struct http_connection *c, uint64_t now_ns, uint64_t rate);
/** streams_resume - break off waiting streams whose readers have left, or @all. */
void streams_resume(struct http_server *s, bool all);
/** streams_say_stop - let every stream say that it ends. */
void streams_say_stop(struct http_server *s);

/* http_workers.c */
int workers_start(struct http_server *s) warn_unused;
/** workers_submit - Return: false when the lane is full, or its sender's share; the exchange stays the caller's. */
bool workers_submit(struct http_server *s, struct http_exchange *x);
/** workers_submit_locked - the same while server->lock is held. */
bool workers_submit_locked(struct http_server *s, struct http_exchange *x);
/** refuse_busy - the answer to a request that workers_submit() did not take: 503. */
void refuse_busy(struct http_exchange *x);
/** workers_drain - wait until nothing waits or runs, at most @ns. Return: whether it came to that. */
bool workers_drain(struct http_server *s, uint64_t ns);
void workers_stop(struct http_server *s); /* what waits is still done */
