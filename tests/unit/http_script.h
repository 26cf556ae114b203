/* SPDX-License-Identifier: Apache-2.0 */
/* A peer on a real socket that answers with prepared bytes, for what no well-behaved server does. */
#pragma once

#include <pthread.h>

#include "base/buf.h"

#define SCRIPT_REQUESTS_MAX 4096

struct script_request {
	char *head; /* request line and headers */
	char *body;
	size_t body_size;
};

struct script {
	int listener;
	uint16_t port;
	char url[64]; /* http://127.0.0.1:PORT */
	pthread_t thread;
	pthread_mutex_t lock;            /* guards what follows */
	const char *const *answers;      /* the n-th request gets the n-th; the last repeats; "" closes at once */
	struct script_request *requests; /* SCRIPT_REQUESTS_MAX of them */
	size_t count;
	_Atomic bool stop; /* without the lock */
};

/** script_start - @port: 0 for any. */
void script_start(struct script *s, uint16_t port, const char *const *answers);
void script_stop(struct script *s);
size_t script_count(struct script *s);
/** script_header - the value of a header of request @index, up to the line's end; NULL when it has none. */
char *script_header(struct script *s, size_t index, const char *name);

#define SCRIPT_OK                                                               \
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " \
	"33\r\n\r\n{\"code\":200,\"body\":{\"id\":\"abcd\"}}"
