/* SPDX-License-Identifier: Apache-2.0 */
/* A process that gives up what it may do beyond its user. */
#pragma once

#include "base/base.h"

/**
 * rights_give_up - no capability of the calling thread stays, in any set, and none comes back by starting a program
 *
 * A change of user takes them from root only: a program with file capabilities (setcap) has them as any user. Call it
 * before there are other threads. Return: 0 or -errno.
 */
int rights_give_up(void) warn_unused;
