/* SPDX-License-Identifier: Apache-2.0 */
/* A process that gives up what it may do beyond its user. */
#pragma once

#include "base/base.h"

/**
 * rights_bound - nothing that is started from here on gets capabilities
 * @keep_user: but those to change its user for a lesser one, as the child that reads debug information does
 *
 * The bounding set of the calling thread; its own capabilities stay. Without CAP_SETPCAP, which it takes, nothing
 * happens: no capability comes by a set-user-id program then either once rights_give_up() was called. Call it before
 * there are other threads. Return: 0 or -errno.
 */
int rights_bound(bool keep_user) warn_unused;
/**
 * rights_give_up - no capability of the calling thread stays, in any set, and none comes back by starting a program
 *
 * A change of user takes them from root only: a program with file capabilities (setcap) has them as any user. Call it
 * before there are other threads. Return: 0 or -errno.
 */
int rights_give_up(void) warn_unused;
