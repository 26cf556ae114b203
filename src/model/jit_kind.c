/* SPDX-License-Identifier: Apache-2.0 */
#include "model/jit_kind.h"

#define COUNTER "unnamed_jit_"

static const struct {
	struct str counter;
	const char *name, *advice;
} kinds[JIT_KIND_COUNT] = {
#define X(id, key, name, advice) [JIT_KIND_##id] = { STR(COUNTER key), name, advice },
	JIT_KINDS(X)
#undef X
};

static const struct {
	struct str file; /* what its name begins with; it ends there, or goes on with one of ". 0123456789" */
	enum jit_kind kind;
} files[] = {
	{ STR("node"), JIT_KIND_NODE },
	{ STR("nodejs"), JIT_KIND_NODE },
	{ STR("libnode.so"), JIT_KIND_NODE },
	{ STR("java"), JIT_KIND_JAVA },
	{ STR("libjvm.so"), JIT_KIND_JAVA },
	{ STR("dotnet"), JIT_KIND_DOTNET },
	{ STR("libcoreclr.so"), JIT_KIND_DOTNET },
	{ STR("beam.smp"), JIT_KIND_ERLANG },
	{ STR("deno"), JIT_KIND_DENO },
	{ STR("electron"), JIT_KIND_ELECTRON },
	{ STR("bun"), JIT_KIND_BUN },
};

struct str jit_kind_counter(enum jit_kind kind)
{
	return kinds[kind].counter;
}

const char *jit_kind_name(enum jit_kind kind)
{
	return kinds[kind].name;
}

const char *jit_kind_advice(enum jit_kind kind)
{
	return kinds[kind].advice;
}

enum jit_kind jit_kind_of(struct str path)
{
	struct str name = str_base(path);

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct str rest;

		if (!str_starts(name, files[i].file))
			continue;
		rest = str_skip(name, files[i].file.len);
		if (!rest.len || strchr(". 0123456789", rest.ptr[0])) /* libnode.so.108, node18, "java (deleted)" */
			return files[i].kind;
	}
	return JIT_KIND_OTHER;
}
