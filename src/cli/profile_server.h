/* SPDX-License-Identifier: Apache-2.0 */
/* The server of hearth profile -T: a process of its own, without rights, that is fed with windows over a socket. Below
 * its path are the collector's live page, moving pictures for <img>, and what was sampled so far as files. */
#pragma once

#include "cli/command.h"

struct profile_server_config {
	int listen_fd; /* ours from then on */
	int feed_fd;   /* windows, as collector/feed.h takes them; their end ends the server */
	int ready_fd;  /* gets a line once requests are taken; ended without one: it failed, and has said why */
	const char *path, *host, *user;
	uint32_t width, height; /* of pictures */
	bool shimmer;           /* their colours move */
};

/** profile_server_run - in a child, while it has one thread. Return: EXIT_DONE or EXIT_FAILED. */
int profile_server_run(const struct command *c, const struct profile_server_config *config);
