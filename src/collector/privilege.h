/* SPDX-License-Identifier: Apache-2.0 */
/* A server that was started as root becomes somebody else. */
#pragma once

#include "base/buf.h"

/**
 * privilege_drop - become @user for good, keep nothing of root's rights, and never gain any again
 * @user: NULL or "": hearth, or nobody where there is no such user; "root" stays
 * @folder: NULL: none is needed. Made when missing, and given to that user with what root left in it; what is refused
 *is neither made nor changed
 * @why: one line on failure
 *
 * Not root: only makes the folder and gives up all capabilities, those of the file we are (setcap) too. To be called
 * while there is one thread. Return: 0 or -errno.
 */
int privilege_drop(const char *user, const char *folder, struct buf *why) warn_unused;

/**
 * privilege_become_owner - root becomes whom the data directory belongs to
 *
 * What is in it belongs to the collector's user, who may have put links there: root must not follow them; and what is
 * made there must be the collector's. @why: one line on failure. Return: 0 or -errno.
 */
int privilege_become_owner(const char *folder, struct buf *why) warn_unused;
