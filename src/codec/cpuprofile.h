/* SPDX-License-Identifier: Apache-2.0 */
/* V8's .cpuprofile, which is only written: docs/formats/cpuprofile.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_cpuprofile;
