/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate of raw stacks -> profile with names. Runs on the symbol worker; each distinct frame is resolved once. */
#pragma once

#include "agent/aggregate.h"
#include "model/window.h"
#include "symbol/debug_lines.h"
#include "symbol/symbol.h"

/**
 * build_window - name the frames of @a and add them to a new model in @out
 * @lines: NULL, or what gives inlined frames and lines of native code
 * @frequency_hz: gives the period; columns are samples/count and cpu/nanoseconds
 * @out: metadata already there is kept; model and counters are set here
 *
 * Counters set: samples, user_samples, complete, cut_REASON, frames, unnamed_frames, guessed_frames (the last three
 * count frames of samples, so a share over them is a share of what is shown); with @lines: lines_asked, lines_found,
 * lines_failed (distinct addresses that were not known before this window). Return: 0 or -ENOMEM, -E2BIG.
 */
int build_window(const struct aggregate *a, struct symbols *symbols, struct debug_lines *lines, uint32_t frequency_hz,
		 struct window *out) warn_unused;
