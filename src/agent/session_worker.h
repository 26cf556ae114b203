/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of a session. */
#pragma once

#include "agent/session_int.h"

/** session_worker - the thread that names the frames of finished windows; ends when s->jobs is closed and empty. */
void *session_worker(void *session);
