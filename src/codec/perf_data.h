/* SPDX-License-Identifier: Apache-2.0 */
/* What `perf record` writes: docs/formats/perf-data.md. Read only. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_perf_data;
