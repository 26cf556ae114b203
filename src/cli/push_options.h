/* SPDX-License-Identifier: Apache-2.0 */
/* Where to push and how, the same for every command that does. */
#pragma once

#include "cli/command.h"
#include "sink/sink.h"

struct push_options {
	const char *url, *token_file, *ca_file, *spool_dir;
	struct opt_list labels;
	uint64_t spool_bytes;
	bool insecure, no_spool;
};

#define PUSH_TARGET_OPTIONS(config, field)                                                                            \
	{ "label",                                                                                                    \
	  0,                                                                                                          \
	  OPT_LIST,                                                                                                   \
	  .at = offsetof(config, field.labels),                                                                       \
	  .arg = "KEY=VALUE",                                                                                         \
	  .help = "a label of every profile that is sent; repeatable" },                                              \
		{ "token-file",  0,                                                                                   \
		  OPT_PATH,      .at = offsetof(config, field.token_file),                                            \
		  .arg = "FILE", .help = "the collector's token (default: the environment's HEARTH_TOKEN)" },         \
		{ "ca-file",     0,                                                                                   \
		  OPT_PATH,      .at = offsetof(config, field.ca_file),                                               \
		  .arg = "FILE", .help = "certificates (PEM) that vouch for the collector (default: the system's)" }, \
	{                                                                                                             \
		"insecure", 0, OPT_FLAG,                                                                              \
			.at = offsetof(config, field.insecure),                                                       \
			.help = "take any certificate of the collector: whoever is in between reads along"            \
	}

#define PUSH_OPTIONS(config, field)                                                                                \
	{ "push",       0,                                                                                         \
	  OPT_TEXT,     .at = offsetof(config, field.url),                                                         \
	  .arg = "URL", .help = "send a profile per service and window to the collector at this address" },        \
		PUSH_TARGET_OPTIONS(config, field),                                                                \
		{ "spool-dir",                                                                                     \
		  0,                                                                                               \
		  OPT_PATH,                                                                                        \
		  .at = offsetof(config, field.spool_dir),                                                         \
		  .arg = "DIR",                                                                                    \
		  .help = "what the collector has not taken yet waits here (default: /var/spool/hearth for root, " \
			  "otherwise $XDG_STATE_HOME/hearth/spool)" },                                             \
		{ "no-spool", 0, OPT_FLAG, .at = offsetof(config, field.no_spool),                                 \
		  .help = "let it wait in memory only: it is lost when the program ends" },                        \
	{                                                                                                          \
		"spool-size", 0, OPT_SIZE, .at = offsetof(config, field.spool_bytes), .min = MIB(1),               \
					   .fallback = "256M", .arg = "SIZE",                                      \
					   .help = "most that may wait; above it the oldest are dropped"           \
	}

/** push_token - of --token-file or HEARTH_TOKEN, trimmed. Return: EXIT_DONE (@out may be empty), or says what is wrong.
 */
int push_token(const struct command *c, const struct push_options *options, struct buf *out);

/** push_labels - split --label. @out: OPT_LIST_MAX entries, whose texts are owned; see push_labels_release(). */
int push_labels(const struct command *c, const struct push_options *options, struct window_label *out);
void push_labels_release(struct window_label *labels, size_t count);

/* A sink to a collector, for commands that make windows. */
struct pusher {
	const struct command *command;
	struct sink_state *sink; /* for windows; NULL: nothing is pushed, or through `push` */
	struct push *push;       /* for finished profiles; or NULL */
	const char *url;
	char *spool_dir; /* NULL: in memory */
	uint64_t failed; /* windows that could not be handed over whole */
};

/** pusher_open - nothing is done without --push. @jitter_ns: see struct push_config. */
int pusher_open(struct pusher *p, const struct command *c, const struct push_options *options, uint64_t jitter_ns);
/** pusher_open_plain - the same for profiles that p->push is given as they are; --push has to be there. */
int pusher_open_plain(struct pusher *p, const struct command *c, const struct push_options *options);
void pusher_write(struct pusher *p, const struct window *w);
/**
 * pusher_finish - send what waits, for a few seconds; @text gets what became of it
 * Return: EXIT_DONE, or EXIT_FAILED after saying what is lost.
 */
int pusher_finish(struct pusher *p, struct buf *text);
void pusher_release(struct pusher *p);
