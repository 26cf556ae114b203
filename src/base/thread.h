/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of threads that read other processes' memory: reading a page that a file system or userfaultfd(2) never
 * delivers blocks for ever; only the end of our process ends such a read. */
#pragma once

#include <pthread.h>

#include "base/base.h"

/** thread_join - Return: 0; -ETIMEDOUT: it runs on, detached: nothing that it may still touch can be freed; -errno. */
int thread_join(pthread_t thread, uint64_t patience_ns) warn_unused;
