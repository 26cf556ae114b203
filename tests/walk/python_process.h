/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that run tests/walk/python_target.py, and what they tell of themselves. */
#pragma once

#include <linux/types.h>
#include <sys/types.h>

#include "abi/abi.h"
#include "abi/python.h"
#include "base/base.h"

#define PYTHONS_MAX 16

struct python_program {
	char path[256], version[8]; /* "3.11" */
};

/** python_programs - the interpreters of this machine, one a version, in order. Return: their number. */
size_t python_programs(struct python_program out[PYTHONS_MAX]);
/** python_own_programs - those of the machine's packages alone, which may have modules that the others lack */
size_t python_own_programs(struct python_program out[PYTHONS_MAX]);

struct python_process {
	pid_t pid;
	int in;                 /* its standard input: it ends when that does */
	uint64_t self;          /* pthread_self() of its main thread */
	struct abi_python info; /* without start time and exec id */
};

/** python_start - Return: 0 or -errno; -EPROTO: it did not say what it should. */
int python_start(const struct python_program *program, const char *target, const char *load, double seconds,
		 struct python_process *out) warn_unused;
void python_end(struct python_process *p);

#define PYTHON_TEXT 1024

struct python_function { /* what a name record says */
	char file[PYTHON_TEXT], name[PYTHON_TEXT];
	int32_t first_line;
	uint32_t lines_size, lines_sent;
};

/** python_decode - of a name whose texts are ASCII. Return: 0; -ENODATA: a text is missing; -EBADMSG. */
int python_decode(const struct abi_name *name, struct python_function *out) warn_unused;
