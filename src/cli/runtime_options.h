/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say which language runtimes are looked at, and how: --NAME-mode and --no-NAME for each row of
 * runtime/registry.h, in every command that takes stacks. */
#pragma once

#include "agent/session.h"
#include "cli/command.h"
#include "runtime/registry.h"

struct runtime_options {            /* a member of the command's configuration */
	size_t mode[RUNTIME_COUNT]; /* index of runtime_modes_NAME */
	bool on[RUNTIME_COUNT];     /* not --no-NAME */
	bool interpreter_frames, php_request;
};

/* clang-format off: lists of rows, as tables are written */
/* Of one row of RUNTIMES(). @config is a type whose @member is a struct runtime_options. */
#define RUNTIME_SWITCH_ROW(id, title, modes, config, member)               \
	{ #id,                                                             \
	  0,                                                               \
	  OPT_FLAG,                                                        \
	  .at = offsetof(config, member.on) + sizeof(bool) * RUNTIME_##id, \
	  .fallback = "true",                                              \
	  .help = "name the functions of " title " programs" },
#define RUNTIME_MODE_ROW(id, title, modes, config, member)                     \
	{ #id "-mode",                                                         \
	  0,                                                                   \
	  OPT_CHOICE,                                                          \
	  .at = offsetof(config, member.mode) + sizeof(size_t) * RUNTIME_##id, \
	  .choices = runtime_modes_##id,                                       \
	  .fallback = "auto",                                                  \
	  .arg = "NAME",                                                       \
	  .help = "stacks of " title ": " modes },
#define RUNTIME_BOTH_ROWS(...) RUNTIME_MODE_ROW(__VA_ARGS__) RUNTIME_SWITCH_ROW(__VA_ARGS__)

/* A whole table: of what reads the stacks of one moment, and of what samples. */
#define RUNTIME_SWITCHES(config, member)                     \
	{                                                    \
		RUNTIMES(RUNTIME_SWITCH_ROW, config, member) \
		{                                            \
			0                                    \
		}                                            \
	}
#define RUNTIME_SAMPLED_ROWS(config, member)                                                                           \
	RUNTIMES(RUNTIME_BOTH_ROWS, config,                                                                            \
		 member){ "native-interpreter-frames", 0, OPT_FLAG, .at = offsetof(config, member.interpreter_frames), \
			  .help = "keep the interpreters' own native frames, and V8's and HotSpot's stubs" },
#define RUNTIME_OPTIONS(config, member)              \
	{                                            \
		RUNTIME_SAMPLED_ROWS(config, member) \
		{                                    \
			0                            \
		}                                    \
	}
/* Of what shows labels of samples, too. */
#define RUNTIME_LABEL_OPTIONS(config, member)                                                                        \
	{                                                                                                            \
		RUNTIME_SAMPLED_ROWS(config, member){ "php-request", 0, OPT_FLAG,                                    \
						      .at = offsetof(config, member.php_request),                    \
						      .help = "label samples of php-fpm, php-cgi and php with what " \
							      "is asked for: script, and path of the "               \
							      "URI (personal data)" },                               \
		{                                                                                                    \
			0                                                                                            \
		}                                                                                                    \
	}
/* clang-format on */

/** runtime_options_without - the runtimes that are not wanted: bits of enum abi_runtime. */
uint32_t runtime_options_without(const struct runtime_options *o);
/** runtime_options_outside - are stacks read from outside, in place of the native ones? */
bool runtime_options_outside(const struct runtime_options *o);
/** runtime_options_apply - what the session is told: what modes and frames mean for it, and which sampler a mode needs.
 */
void runtime_options_apply(const struct runtime_options *o, struct session_config *session);
