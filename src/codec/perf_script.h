/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `perf script`: docs/formats/perf-script.md. Read only. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_perf_script;
