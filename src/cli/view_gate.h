/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look at the files of hearth view. Every user of the machine can connect to a loopback address, so the pages
 * stand below a path that nobody can guess: /KEY/. A cookie would go to every port of the host name; a path does not.
 *
 * The command line of a browser can be read by all users. What it is started with is therefore another path, the
 * ticket: it leads to /KEY/ once. */
#pragma once

#include "base/str.h"

#define VIEW_SECRET_SIZE 32 /* hexadecimal digits */

struct view_gate {
	char key[VIEW_SECRET_SIZE + 1], ticket[VIEW_SECRET_SIZE + 1];
	bool is_used; /* the ticket */
};

enum view_gate_way {
	VIEW_GATE_PASS,    /* below the key, and one of the paths that pages ask for */
	VIEW_GATE_ENTER,   /* to be sent on to /KEY/ */
	VIEW_GATE_USED,    /* the ticket, for the second time */
	VIEW_GATE_NOTHING, /* there is no such path */
	VIEW_GATE_METHOD,  /* the path is read only */
};

/** view_gate_path - is @path, without the key, one of those that pages ask for? PASS, METHOD or NOTHING. */
enum view_gate_way view_gate_path(struct str method, struct str path);

/** view_gate_init - new secrets. Return: 0, or -EIO when the kernel gives no random bytes. */
int view_gate_init(struct view_gate *g) warn_unused;

/**
 * view_gate_check - what becomes of a request; one thread at a time, since it uses the ticket up
 * @path: as it came, not decoded
 * @rest: on VIEW_GATE_PASS the path behind /KEY, from its slash on; otherwise untouched
 */
enum view_gate_way view_gate_check(struct view_gate *g, struct str method, struct str path, struct str *rest);
