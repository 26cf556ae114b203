/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles (opentelemetry.proto.profiles.v1development.ProfilesData) as a file. docs/formats/otlp.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_otlp;

#define OTLP_VERSION "1.10.0" /* of opentelemetry-proto; 1.11.0 has the same messages */
