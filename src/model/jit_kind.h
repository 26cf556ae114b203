/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of programs by the compiler that writes their code while they run, and what makes each tell that code's names.
 * A window counts in "unnamed_jit_KIND" the samples with such code of a process that has no perf map. */
#pragma once

#include "model/window.h"

/* Sources: node --help; openjdk, jdk.jcmd(1), Compiler.perfmap; docs of .NET, DOTNET_PerfMapEnabled; erl(1), +JPperf;
 * deno run --help, --v8-flags; docs of Electron, command line switches, --js-flags. */
#define JIT_KINDS(X)                                                                                            \
	X(OTHER, "other", "other programs", "they need a perf map, /tmp/perf-PID.map")                          \
	X(NODE, "node", "node", "start it with --perf-basic-prof")                                              \
	X(JAVA, "java", "java", "use a perf-map agent, or jcmd PID Compiler.perfmap (JDK 17 and later)")        \
	X(DOTNET, "dotnet", ".NET", "start it with DOTNET_PerfMapEnabled=1")                                    \
	X(ERLANG, "erlang", "erlang", "start erl with +JPperf true")                                            \
	X(DENO, "deno", "Deno", "its V8 is not walked, start it with --v8-flags=--perf-basic-prof")             \
	X(ELECTRON, "electron", "Electron", "its V8 is not walked, start it with --js-flags=--perf-basic-prof") \
	X(BUN, "bun", "Bun", "its JavaScriptCore is not walked and tells no names")

#define X(id, key, name, advice) JIT_KIND_##id,
enum jit_kind { JIT_KINDS(X) JIT_KIND_COUNT };
#undef X

/** jit_kind_counter - the name of the window's counter. */
struct str jit_kind_counter(enum jit_kind kind);
/** jit_kind_name - what people call it. */
const char *jit_kind_name(enum jit_kind kind);
/** jit_kind_advice - what gives its code names, as the end of a sentence: "start it with ...". */
const char *jit_kind_advice(enum jit_kind kind);
/** jit_kind_of - by one file of the process, its program or a library. Return: OTHER when the file tells nothing. */
enum jit_kind jit_kind_of(struct str path);
