/* SPDX-License-Identifier: Apache-2.0 */
/* gProfiler's .col files: docs/formats/col.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_col;
