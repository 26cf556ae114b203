/* SPDX-License-Identifier: Apache-2.0 */
/* The targets file: what is scraped, how often, and what it belongs to. docs/pull.md describes it. */
#pragma once

#include <sys/socket.h>

#include "base/buf.h"
#include "store/store.h"

#define PULL_TARGETS_MAX 4096
#define PULL_ALLOW_MAX 32
#define PULL_FILE_MAX MIB(4)

#define PULL_KINDS(X)                                  \
	X(CPU, "cpu", "/profile", false)               \
	X(HEAP, "heap", "/heap", true)                 \
	X(ALLOCS, "allocs", "/allocs", true)           \
	X(BLOCK, "block", "/block", true)              \
	X(MUTEX, "mutex", "/mutex", true)              \
	X(GOROUTINE, "goroutine", "/goroutine", false) \
	X(THREADCREATE, "threadcreate", "/threadcreate", false)

#define X(id, name, path, cumulative) PULL_##id,
enum pull_kind { PULL_KINDS(X) PULL_KIND_COUNT };
#undef X

const char *pull_kind_name(enum pull_kind kind); /* also the type it is stored under */
const char *pull_kind_path(enum pull_kind kind); /* below the target's path */

struct pull_prefix {
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned int bits; /* of 128 */
};

/* One address to scrape. All text is owned by the list. */
struct pull_target {
	char *url;      /* http://host:port/debug/pprof */
	char *host;     /* of the URL, without port */
	char *instance; /* host:port, the label that tells targets of a service apart */
	char *service;
	struct store_label labels[STORE_LABELS_MAX]; /* texts owned; "instance" is one of them */
	size_t label_count;
	uint32_t kinds; /* bit per enum pull_kind */
	uint64_t interval_ns, jitter_ns, timeout_ns;
	uint32_t cpu_seconds;
	struct pull_prefix allow[PULL_ALLOW_MAX];
	size_t allow_count;
};

struct pull_targets {
	struct pull_target *items;
	size_t count, cap;
};

void pull_target_release(struct pull_target *t);
void pull_targets_release(struct pull_targets *t); /* a zeroed one is fine */
/** pull_targets_parse - @why: one line on failure. Pure. Return: 0, -EBADMSG, -E2BIG, -ENOMEM; @out untouched then. */
int pull_targets_parse(struct str json, struct buf *why, struct pull_targets *out) warn_unused;

/**
 * pull_address_allowed - whether a scrape of @t may connect to @address
 *
 * Not to link-local, multicast and unspecified addresses and those where clouds tell secrets, unless the target's
 * "allow" holds them; to loopback only when the file says a loopback address or localhost. Pure.
 */
bool pull_address_allowed(const struct pull_target *t, const struct sockaddr *address, socklen_t size);
