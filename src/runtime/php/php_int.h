/* SPDX-License-Identifier: Apache-2.0 */
/* What probing one file of PHP found, for attaching to processes that have it mapped. Addresses are the file's own. */
#pragma once

#include <linux/types.h>

#include "abi/php.h"
#include "object/accessor.h"
#include "runtime/php/versions/layouts.h"
#include "runtime/runtime.h"

struct php_binary {
	struct runtime_binary base;
	const struct php_version *version; /* NULL: refused */
	uint64_t globals;                  /* executor_globals; 0: every thread has its own (ZTS) */
	uint64_t globals_slot;             /* of the global offset table; 0: there is none */
	uint64_t globals_offset;           /* ZTS: the variable executor_globals_offset */
	struct accessor_tls tls;           /* ZTS: where a thread has the address that this offset starts from */
	uint64_t request, request_slot;    /* as globals: of sapi_globals; 0: there is none */
	uint64_t request_offset;           /* ZTS: the variable sapi_globals_offset */
	uint64_t module, module_slot;      /* as globals: of sapi_module; 0: there is none */
	uint64_t loop, loop_size;          /* execute_ex */
	bool is_sure;                      /* a tried version's table, with which the code agrees */
	bool is_hybrid;                    /* the loop keeps the frame in r14 and the operation in r15 */
};

/** php_probe, php_release, php_attach, php_sync - struct runtime's; see runtime.h. */
int php_probe(const struct runtime_file *file, struct runtime_binary **out) warn_unused;
void php_release(struct runtime_binary *binary);
int php_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info) warn_unused;
int php_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
	     struct abi_code_range *ranges) warn_unused;

/** php_application - struct runtime's. */
int php_application(const struct runtime_target *target, struct buf *out) warn_unused;
/** php_metadata - struct runtime's: {php_version, exe_elfid, libphp_elfid, exe, execfn, arch}. */
int php_metadata(const struct runtime_binary *binary, const struct runtime_target *target,
		 struct buf *json) warn_unused;
/** php_pool - the id of a worker of php-fpm by its command line: "php-fpm: www". Return: 0; -ENOENT: it is none;
 * -ENOMEM. Pure. */
int php_pool(struct str argv, struct buf *out) warn_unused;

/** php_compiled_ranges - in the text of /proc/PID/maps: where code of PHP's compiler is. @ranges: ABI_CODE_RANGES.
 * Return: how many; -EAGAIN: there may be opcache's memory, which hides them while they are written. Pure. */
int php_compiled_ranges(struct str maps, struct abi_code_range *ranges);

enum php_code_id { PHP_CODE_LINE, PHP_CODE_FILE, PHP_CODE_PASS, PHP_CODE_COUNT };

struct php_code { /* of a function; size 0: the file does not have it */
	uint64_t address, size;
};

enum php_code_says { PHP_CODE_AGREES, PHP_CODE_UNSURE, PHP_CODE_DISAGREES };

/**
 * php_code_says - does the code of the file find frames and functions where the table says?
 * @code: by enum php_code_id; @globals: address of executor_globals in the file; 0: not known
 * @function: name of the first function because of which it is not AGREES
 *
 * UNSURE: the file lacks a function, or not all of its code could be looked at and some is as wanted; and no function
 * disagrees.
 */
enum php_code_says php_code_says(const struct elf *elf, const struct php_code code[PHP_CODE_COUNT],
				 const struct abi_php_layout *layout, uint64_t globals, const char **function);

/**
 * php_agrees - does a script that runs there lie in memory as the table says?
 *
 * Asked for versions that nobody tried, beside what their code says. Frames, functions, lines and texts of the script
 * must make sense up to the outermost one, or 64 of them. target->effort counts frames. Return: 1; -EAGAIN: no script
 * runs, it went on meanwhile, or makes no sense; -ENOTSUP: so many were read in this process that it is given up.
 */
int php_agrees(const struct runtime_target *target, const struct abi_php *info) warn_unused;
