/* SPDX-License-Identifier: Apache-2.0 */
/* What probing one file of Ruby found, for attaching to processes that have it mapped. Addresses are the file's own. */
#pragma once

#include <linux/types.h>

#include "abi/ruby.h"
#include "object/accessor.h"
#include "object/elf_find.h"
#include "runtime/ruby/versions/layouts.h"
#include "runtime/runtime.h"

struct ruby_binary {
	struct runtime_binary base;
	const struct ruby_version *version; /* NULL: refused */
	struct accessor_tls tls;            /* 3.0 on */
	uint64_t current;                   /* up to 2.7: the variable, or what holds its address */
	uint64_t key;                       /* up to 2.7: of an int */
	uint64_t vm;                        /* the variable, or what holds its address; 0: not known */
	bool current_is_slot, vm_is_slot;
	uint32_t vm_objspace;  /* rb_vm_t.objspace (rb_vm_t.gc.objspace) */
	char description[128]; /* as `ruby --version` writes it; empty: not known */
	uint64_t symbols;      /* ruby_global_symbols; 0: not known */
	uint64_t code_low, code_size;
	uint32_t last_operator;
};

/** ruby_probe, ruby_release, ruby_attach - struct runtime's; see runtime.h. */
int ruby_probe(const struct runtime_file *file, struct runtime_binary **out) warn_unused;
void ruby_release(struct runtime_binary *binary);
/** ruby_metadata - struct runtime's: {ruby_version, exe_elfid, libruby_elfid, exe, execfn, arch}. */
int ruby_metadata(const struct runtime_binary *binary, const struct runtime_target *target,
		  struct buf *json) warn_unused;
int ruby_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info) warn_unused;
/** ruby_compiled_ranges - in the text of /proc/PID/maps: where code of Ruby's compiler is. A code_ranges_fn. */
int ruby_compiled_ranges(struct str maps, struct abi_code_range *ranges);
int ruby_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	      struct abi_code_range *ranges) warn_unused;
