/* SPDX-License-Identifier: Apache-2.0 */
/* The window's own encoding, with everything in it: between agent, sinks and store. docs/formats/window.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_window;

#define WINDOW_ENCODED_MAX GIB(2)
