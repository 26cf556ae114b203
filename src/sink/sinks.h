/* SPDX-License-Identifier: Apache-2.0 */
/* The implementations, for sinks.c only. */
#pragma once

#include "sink/sink.h"

extern const struct sink sink_cycle, sink_file, sink_http, sink_memory;
