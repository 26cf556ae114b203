/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of the JDK Flight Recorder, and of async-profiler in that format: only read. docs/formats/jfr.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_jfr;
