/* SPDX-License-Identifier: Apache-2.0 */
/* The Firefox Profiler's processed profile, which is only written: docs/formats/firefox.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_firefox;
