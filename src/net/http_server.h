/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server over libmicrohttpd: one thread with all connections, workers of our own for the requests. A
 * connection is suspended while its request waits or runs. Bodies are gathered in bounded memory before a worker sees
 * them.
 *
 * begin() runs in the connections' thread as soon as the header is there and must not wait; handle() runs in a worker
 * and may. */
#pragma once

#include "base/buf.h"

/* Workers and queues of their own. Who watches the server asks HTTP_LANE_WATCH: nothing else is in it. */
enum http_lane {
	HTTP_LANE_WRITE,
	HTTP_LANE_LARGE, /* writes that take much */
	HTTP_LANE_READ,
	HTTP_LANE_MERGE, /* reads that take much */
	HTTP_LANE_WATCH,
	HTTP_LANES
};

struct http_header {
	char *name, *value; /* owned */
};

#define HTTP_HEADERS_OUT_MAX 16

#define HTTP_PIECE_MAX MIB(32)

/* An answer that is made piece by piece while it is taken: events, or what is too large for memory. No worker is held
 * between two pieces, and none while a reader is slow. */
struct http_stream {
	void *ctx;
	/**
	 * The next piece, into @out, which is empty, or lent by http_piece_lend(). A piece of more than 64 KiB takes
	 * its place by http_piece_claim() first, and its reader has to take it as fast as a whole answer. In a worker
	 * of the request's lane, one at a time. Return: 1: there may be more; 0: that was the end; -EAGAIN: nothing
	 * now, ask again at http_stream_wake(); another -errno: the connection breaks off.
	 */
	int (*more)(void *ctx, struct buf *out);
	void (*close)(void *ctx); /* once, after the last more() */
};

struct http_response {
	struct http_stream stream; /* more NULL: the answer is @body */
	unsigned int status;
	const char *content_type; /* static */
	struct buf body;
	struct http_header headers[HTTP_HEADERS_OUT_MAX];
	size_t header_count;
	bool close; /* the connection ends after it */
};

struct http_exchange; /* private, as are these */
struct http_server;
struct http_sender;

/* One request; everything is borrowed until done() returned. */
struct http_request {
	struct str method, path, query; /* path and query as they came, not decoded */
	struct str body;                /* in handle() only */
	struct str remote;              /* the client's address */
	bool is_tls;
	uint64_t received_ns; /* monotonic */
	enum http_lane lane;  /* begin() chooses; HTTP_LANE_READ */
	uint64_t sender;      /* begin(): who this is done for, to be fair between them; 0: the address */
	unsigned int tries;   /* how often handle() had it before: http_again() */
	size_t body_max;      /* begin() grants; 0: no body is read */
	unsigned int route;   /* for the owner: begin() may leave something here */
	void *owner;          /* the same */
	struct http_exchange *exchange;
};

/** http_header_get - a header of the request; ptr NULL when it is not there. */
struct str http_header_get(const struct http_request *rq, const char *name);
/** http_gone - whether nobody waits for the answer any more: the client left, or the server stops. Any thread. */
bool http_gone(const struct http_request *rq);
/** http_broken - the same, but a client that only closed its side for sending may still wait. Any thread. */
bool http_broken(const struct http_request *rq);
/** http_sender - who the request is done for, as fairness counts: begin()'s sender, else the address (of IPv6 its /64).
 * In handle() and behind it. */
uint64_t http_sender(const struct http_request *rq);
/** http_stream_wake - there is something to say: more() is asked again. Any thread, until close(). */
void http_stream_wake(struct http_request *rq);

/* Memory of what waits for its readers (config.answers_max), counted for one sender. */
struct http_claim {
	struct http_server *server;
	struct http_sender *sender;
	size_t bytes;
};

/**
 * http_claim - take @bytes of it for the request's sender
 * One claim of a sender may be of any size, further ones get at most as much as is left to the others. Up to 64 KiB are
 * not counted.
 * @out: what it held before is given back
 *
 * Return: whether there was room; otherwise @out stays as it is. Any thread, until close().
 */
bool http_claim(const struct http_request *rq, size_t bytes, struct http_claim *out) warn_unused;
/** http_claim_give - @c becomes one of the request's sender for @bytes, whether there is room or not. */
void http_claim_give(const struct http_request *rq, size_t bytes, struct http_claim *c);
void http_claim_release(struct http_claim *c); /* a zeroed one is fine; after the server is closed it is not */
/** http_piece_claim - the same for the piece that more() is about to make. Return: false: there is no room now; more()
 * returns -EAGAIN then, and is asked again within about a second. */
bool http_piece_claim(struct http_request *rq, size_t bytes) warn_unused;
/** http_piece_lend - in more(): the piece is @bytes. They stay there until the next more() or close(); their memory is
 * the caller's to claim. */
void http_piece_lend(struct http_request *rq, struct str bytes);
#define HTTP_ANSWERS_FULL "too many large answers wait for their readers"
/** http_stopping - whether the server takes no more requests: a stream should end. Any thread. */
bool http_stopping(const struct http_request *rq);
/** http_answers_full - whether so much waits for its readers that a large answer would hardly find room. Any thread. */
bool http_answers_full(const struct http_request *rq);
/** http_answers_refuse - that, as an answer: 503 with Retry-After. */
void http_answers_refuse(const struct http_request *rq, struct http_response *rs);
/** http_again - to be called in handle(), last: another worker of @lane handles the request anew. */
void http_again(struct http_request *rq, enum http_lane lane);
/** http_rank - the place in a line: lower is earlier. Time of arrival, what the request will take, what its sender has
 * taken of late. Any thread. */
uint64_t http_rank(const struct http_request *rq);
/** http_header_set - add a header to the answer; a value with control bytes is left out. Errors are dropped. */
void http_header_set(struct http_response *rs, const char *name, struct str value);

struct http_server_config {
	int listen_fd; /* ours from then on, also on failure */
	unsigned int workers[HTTP_LANES];
	int nice[HTTP_LANES];          /* added to their threads' */
	size_t queue_max;              /* requests waiting in each lane; more get 503 */
	size_t queue_share;            /* queries of one sender that wait or run; 0: any number */
	size_t weight_light;           /* weight up to which a request may use the last quarter of its lane's workers */
	size_t connections_max;        /* of all */
	size_t connections_per_ip;     /* 0: any number */
	size_t header_max, bodies_max; /* bytes: of one header block; of all bodies at once (503 beyond) */
	size_t answers_max; /* bytes of all that is made and not taken yet: a large answer beyond is 503, streams wait
			     */
	size_t path_max;    /* bytes of path and query */
	uint64_t header_ns, idle_ns;    /* for the first header; without a request */
	size_t body_rate;               /* bytes a second that a body has to come with, in any 5 s after the first 5 */
	size_t answer_rate;             /* the same for an answer that is taken */
	const char *tls_cert, *tls_key; /* PEM files; NULL: plain */
	void *ctx;
	/** Return: true to go on, false when @rs was filled: it is the answer, the body is thrown away. */
	bool (*begin)(void *ctx, struct http_request *rq, struct http_response *rs);
	void (*handle)(void *ctx, struct http_request *rq, struct http_response *rs);
	/** What the request will about take, in bytes to work through; may change rq->lane. In the connections' thread,
	 * once the body is there. NULL: nothing. */
	size_t (*weigh)(void *ctx, struct http_request *rq);
	/** After the answer went out, or the connection broke: @status is 0 when there was none. */
	void (*done)(void *ctx, struct http_request *rq, unsigned int status, size_t bytes_out);
	/** An error of the server's own: fill @rs for @status. @rq: as far as it came; path and method may be empty,
	 * and begin() may not have seen it. */
	void (*refuse)(void *ctx, const struct http_request *rq, unsigned int status, const char *why,
		       struct http_response *rs);
};

struct http_stats {
	uint64_t connections, waiting[HTTP_LANES], body_bytes, answer_bytes; /* right now */
	uint64_t accepted, refused_busy, refused_bytes, refused_answers, timed_out, made_room;
};

/** http_listen - bind and listen. @host empty: every address. @why: one line on failure. Return: a descriptor, -errno.
 */
int http_listen(struct str host, uint16_t port, struct buf *why) warn_unused;
/** http_listen_port - the port a descriptor listens on. */
uint16_t http_listen_port(int fd);

int http_server_open(const struct http_server_config *config, struct buf *why, struct http_server **out) warn_unused;
/**
 * http_server_reload - read certificate and key again, when the server has some. Any thread.
 * Return: 0; -errno: the old ones stay.
 */
int http_server_reload(struct http_server *s) warn_unused;
void http_server_stats(struct http_server *s, struct http_stats *out);
/** http_server_tick - to be called about once a second: ends connections that are too slow, and streams that nobody
 * reads. */
void http_server_tick(struct http_server *s);
/** http_server_stop - accept nothing more, let running requests end for @grace_ns, then end the rest. Idempotent. */
void http_server_stop(struct http_server *s, uint64_t grace_ns);
void http_server_close(struct http_server *s); /* stops first; NULL is fine */
