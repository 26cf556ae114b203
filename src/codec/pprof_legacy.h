/* SPDX-License-Identifier: Apache-2.0 */
/* What pprof read before profile.proto: binary CPU profiles of gperftools and the text forms. docs/formats/legacy.md.
 */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_legacy; /* only read */
