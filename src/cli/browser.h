/* SPDX-License-Identifier: Apache-2.0 */
/* The user's browser, started beside us: xdg-open, without a shell. That it is not there is no error. */
#pragma once

#include <sys/resource.h>

#include "base/base.h"

/* A child that waits for the word. It is made before there are threads and before programs may no longer be started. */
struct browser {
	int go_fd; /* -1: there is none */
};

#define BROWSER_INIT        \
	{                   \
		.go_fd = -1 \
	}

/** browser_possible - whether a display is named: DISPLAY or WAYLAND_DISPLAY. */
bool browser_possible(void);
/**
 * browser_prepare - make the child
 * @url: what it will open; copied with the process
 * @data: the limit of memory that the browser gets, instead of ours
 *
 * Return: 0 or -errno.
 */
int browser_prepare(const char *url, const struct rlimit *data, struct browser *out) warn_unused;
/** browser_go - open the page now. */
void browser_go(struct browser *b);
void browser_release(struct browser *b); /* a child that got no word ends */
