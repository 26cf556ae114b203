/* SPDX-License-Identifier: Apache-2.0 */
/* Names of formats in the help of all commands that take them: src/codec/codecs.c and src/sink/format.c. */
#pragma once

#define FORMATS_READ "pprof, col, folded, speedscope, otlp, jfr, perf-data, perf-script, window or legacy"
#define FORMATS_WRITTEN "html, svg, pprof, col, folded, speedscope, firefox, cpuprofile, otlp or window"
#define SUFFIXES_WRITTEN ".html .svg .pb.gz .col .folded .speedscope.json .profile.json .cpuprofile .otlp .hwin"
