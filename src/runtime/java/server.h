/* SPDX-License-Identifier: Apache-2.0 */
/* The server inside of a JVM that takes commands, as jcmd asks it: HotSpot's dynamic attach. By request only: hearth
 * profiles Java without it.
 *
 *	/tmp/.java_pidN            socket of the server; N as the JVM knows its number, /tmp as the JVM sees it
 *	.attach_pidN, SIGQUIT      what makes a JVM open it, where it has not
 *	"1\0COMMAND\0A\0B\0C\0"    a request, one a connection; then "CODE\n" and text
 *
 * Source: OpenJDK 17, src/hotspot/os/linux/attachListener_linux.cpp, src/hotspot/share/services/attachListener.cpp.
 *
 * The JVM may be hostile, and whoever can write where it lives. Paths are looked up in its root and never leave it; the
 * child that does so has its user and groups. The socket must be the user's alone, and who listens there must be that
 * process. What it answers is bounded in bytes and time. SIGQUIT is sent only to a JVM that takes it. */
#pragma once

#include "base/buf.h"

#define JAVA_REQUEST_MAX 1024 /* bytes of one word of a request, as HotSpot has it */
#define JAVA_ANSWER_MAX MIB(64)

struct java_server { /* whom to ask; borrowed */
	uint32_t pid;
	uint64_t timeout_ns; /* of all together */
};

struct java_request {
	struct str command; /* "jcmd", "load" */
	struct str words[3];
};

struct java_answer {
	int64_t code;    /* 0: done */
	struct str text; /* borrowed */
};

/* What /proc/PID/status says of a JVM. */
struct java_owner {
	uint32_t uid, gid;  /* effective; as we see them */
	uint32_t inner_pid; /* as the process sees itself */
	bool takes_quit;    /* it has a handler of SIGQUIT */
};

/** java_owner_parse - Return: 0; -EBADMSG: something is missing. Pure. */
int java_owner_parse(struct str status, struct java_owner *out) warn_unused;

/** java_request_write - append the bytes that are sent. Return: 0; -E2BIG: a word is too long; -EINVAL: it has a 0. */
int java_request_write(const struct java_request *request, struct buf *out) warn_unused;
/**
 * java_answer_parse - the code, and text behind it
 * Of "load" the code is the library's: its answer has a second one. Return: 0; -EBADMSG: that is no answer. Pure.
 */
int java_answer_parse(struct str bytes, bool is_load, struct java_answer *out) warn_unused;

/**
 * java_server_ask - send one request
 * @out: what was answered, bytes; java_answer_parse() says what they mean
 * @why: one line, for people, on failure
 *
 * Return: 0; -EPERM: not allowed; -ESRCH: there is no such process; -ENOTSUP: it is no JVM that can be asked;
 * -ETIMEDOUT; -E2BIG: more was answered than JAVA_ANSWER_MAX; -EBADMSG: whoever answers is another one; -errno.
 */
int java_server_ask(const struct java_server *server, const struct java_request *request, struct buf *out,
		    struct buf *why) warn_unused;
