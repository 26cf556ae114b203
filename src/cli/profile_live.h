/* SPDX-License-Identifier: Apache-2.0 */
/* What hearth profile makes while it samples: pictures in files (-E) and a flame graph over HTTP (-T). Both are fed
 * with windows of a second, whose samples have times. */
#pragma once

#include "cli/command.h"
#include "model/window.h"

struct profile_live_options { /* a member of the command's configuration */
	bool pictures, stream, shimmer;
	const char *pattern, *path, *port, *addr, *rate, *size, *max, *user;
};

/* clang-format off: a list of rows, as tables are written */
#define PROFILE_LIVE_OPTIONS(config, member)                                                                    \
	{                                                                                                       \
		{ "live", 'T', OPT_FLAG, .at = offsetof(config, member.stream),                                 \
		  .help = "serve the flame graph while it grows: a page, moving pictures, files" },             \
			{ "live-path",                                                                          \
			  'P',                                                                                  \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.path),                                                  \
			  .fallback = "/",                                                                      \
			  .arg = "PATH",                                                                        \
			  .help = "of its address" },                                                           \
			{ "live-port",                                                                          \
			  'R',                                                                                  \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.port),                                                  \
			  .fallback = "9090",                                                                   \
			  .arg = "PORT",                                                                        \
			  .help = "of its address" },                                                           \
			{ "addr",                                                                               \
			  0,                                                                                    \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.addr),                                                  \
			  .fallback = "127.0.0.1",                                                              \
			  .arg = "HOST",                                                                        \
			  .help = "where it listens; 0.0.0.0: for everybody who can reach this machine" },      \
			{ "live-user",                                                                          \
			  0,                                                                                    \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.user),                                                  \
			  .arg = "NAME",                                                                        \
			  .help = "whom the server becomes when root starts it (default: hearth, or nobody)" }, \
			{ "frames", 'E', OPT_FLAG, .at = offsetof(config, member.pictures),                     \
			  .help = "write pictures of the growing flame graph into PNG files" },                 \
			{ "frame-files",                                                                        \
			  'g',                                                                                  \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.pattern),                                               \
			  .fallback = "frames/flamegraph%04d.png",                                              \
			  .arg = "PATTERN",                                                                     \
			  .help = "their names, with one %d, %4d or %04d for the number" },                     \
			{ "frame-rate",                                                                         \
			  0,                                                                                    \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.rate),                                                  \
			  .fallback = "30",                                                                     \
			  .arg = "COUNT",                                                                       \
			  .help = "so many a second" },                                                         \
			{ "frame-size",                                                                         \
			  0,                                                                                    \
			  OPT_TEXT,                                                                             \
			  .at = offsetof(config, member.size),                                                  \
			  .fallback = "1024x800",                                                               \
			  .arg = "WIDTHxHEIGHT",                                                                \
			  .help = "of pictures, also of those of -T" },                                         \
			{ "frames-max",   0,                                                                    \
			  OPT_TEXT,       .at = offsetof(config, member.max),                                   \
			  .arg = "COUNT", .help = "write no more than these (default: all)" },                  \
			{ "shimmer", 0, OPT_FLAG, .at = offsetof(config, member.shimmer),                       \
			  .help = "colours of pictures move, as go-profile's do" },                             \
			{ 0 },                                                                                  \
	}
/* clang-format on */

struct profile_live;

static inline bool profile_live_wanted(const struct profile_live_options *o)
{
	return o->pictures || o->stream;
}

/**
 * profile_live_open - check the options, make the folder, start the server; nothing when none of both is wanted
 * While there is one thread, and before rights are given up. @out: NULL when nothing is wanted.
 * Return: EXIT_DONE; EXIT_USAGE or EXIT_FAILED after saying why.
 */
int profile_live_open(const struct command *c, const struct profile_live_options *o,
		      struct profile_live **out) warn_unused;
/** profile_live_add - a window. One thread at a time. */
void profile_live_add(struct profile_live *l, const struct window *w);
/** profile_live_finish - the last window was added. Return: EXIT_DONE or EXIT_FAILED after saying why. */
int profile_live_finish(struct profile_live *l);
void profile_live_free(struct profile_live *l); /* NULL is fine */
