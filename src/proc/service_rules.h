/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the user gives to services: a file of rules, the first that fits wins. docs/services.md has the format. */
#pragma once

#include "base/buf.h"

#define SERVICE_RULES_SIZE_MAX MIB(1)
#define SERVICE_RULES_MAX 4096
#define SERVICE_RULE_PATTERN_MAX 1024
#define SERVICE_RULE_NAME_MAX 200
#define SERVICE_RULE_TEXT_MAX KIB(4) /* bytes of what a pattern is held against */

enum service_rule_field {
	SERVICE_RULE_EXE,
	SERVICE_RULE_COMM,
	SERVICE_RULE_COMMAND, /* arguments with blanks between them */
	SERVICE_RULE_CGROUP,
	SERVICE_RULE_UNIT,
	SERVICE_RULE_CONTAINER,
	SERVICE_RULE_FIELD_COUNT,
};

struct service_rules;

/**
 * service_rules_parse - lines "FIELD PATTERN -> NAME"; '#' begins a comment line
 * @why: on failure one line: which line is wrong, and how
 *
 * Return: 0, -EBADMSG, -E2BIG over a limit above, -ENOMEM. Pure.
 */
int service_rules_parse(struct str text, struct buf *why, struct service_rules **out) warn_unused;
void service_rules_free(struct service_rules *r); /* NULL is fine */
void service_rules_freep(struct service_rules **r);
size_t service_rules_count(const struct service_rules *r);
/** service_rules_ask - does any rule ask for this field? NULL: none does. */
bool service_rules_ask(const struct service_rules *r, enum service_rule_field field);

/** service_rules_find - @fields: by enum; empty ones fit no pattern. Return: borrowed from @r; empty: no rule fits. */
struct str service_rules_find(const struct service_rules *r, const struct str fields[SERVICE_RULE_FIELD_COUNT]);
/** service_rules_fits - '*' any bytes, '?' one byte, all others themselves. */
bool service_rules_fits(struct str pattern, struct str text);
