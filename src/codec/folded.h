/* SPDX-License-Identifier: Apache-2.0 */
/* Folded ("collapsed") stacks: docs/formats/folded.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_folded;
