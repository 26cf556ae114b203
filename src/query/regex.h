/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of strangers: the part of RE2's syntax that selectors use, matched against a whole text. All
 * states of the pattern are followed at once, code point by code point, so that time is at most text times program;
 * nothing is tried twice. Source of the syntax: github.com/google/re2, wiki "Syntax". */
#pragma once

#include "base/str.h"

#define REGEX_PATTERN_MAX 2048 /* bytes */
#define REGEX_STATES_MAX 4096  /* "(a{1,50}){1,50}" needs more and is refused */
#define REGEX_GROUPS_MAX 64    /* open at a time */
#define REGEX_REPEAT_MAX 1000

struct regex_state;
struct regex_range;

struct regex {
	struct regex_state *states;
	size_t states_count, states_cap;
	struct regex_range *ranges; /* of all classes */
	size_t ranges_count, ranges_cap;
	uint32_t *scratch; /* of one match: a regex serves one thread at a time */
	uint64_t steps;    /* that all matches took so far */
};

void regex_release(struct regex *re); /* a zeroed one is fine */

/**
 * regex_compile - Literals, '.' (any code point), [classes], \d \w \s \D \W \S, [[:posix:]], |, ( ), (?: ), (?i) for
 * ASCII, (?s), * + ? {n} {n,} {n,m} (also lazy), ^ and $, \xHH, \x{H}, \n \t \r \f \v \a, \Q..\E
 *
 * Return: 0; -EBADMSG: malformed, or of another syntax (\b, \p, (?P<name>)); -E2BIG over a limit; -ENOMEM. @out needs a
 * release only on 0.
 */
int regex_compile(struct str pattern, struct regex *out) warn_unused;

/** regex_fits - whether all of @text is what the pattern means. Malformed UTF-8 counts as U+FFFD, byte by byte. */
bool regex_fits(struct regex *re, struct str text);
