/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of debug information: the same program, executed again with LINES_CHILD_WORD as its only argument and
 * one open socket (lines_wire.h). It is executed, not only forked, because a fork would copy locks that other threads
 * hold, and memory that an attacker in the reader should not find. */
#pragma once

#include <stdbool.h>

#define LINES_CHILD_WORD "--lines-child"
#define LINES_CHILD_FD 3

/* Sanitizers reserve terabytes of address space and need to write their report. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LINES_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LINES_SANITIZED 1
#endif
#endif
#ifndef LINES_SANITIZED
#define LINES_SANITIZED 0
#endif

/** lines_child_wanted - was this program started as the reader? Every program that opens a struct debug_lines or
 * source_maps asks first. */
bool lines_child_wanted(int argc, char **argv);
/** lines_child_main - serve until the parent is gone. Return: exit status. */
int lines_child_main(void);

/**
 * lines_confine - give up every right for good: the ids of nobody, no capability, bounded memory and time, and a
 * system call filter that allows only reading open files, memory, messages and exit
 *
 * Return: 0 or -errno; then the process must end.
 */
int lines_confine(void);
