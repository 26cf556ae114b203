/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector of profefe's kind answers: {"code":200,"body":{"id":...}} or {"code":400,"error":"..."}. */
#pragma once

#include "base/buf.h"

#define ENVELOPE_ERROR_MAX 512

struct envelope {
	uint32_t code;                  /* 0: not given */
	char error[ENVELOPE_ERROR_MAX]; /* cut when longer; "" when not given */
	char id[256];                   /* body.id, when it is a text that fits; else "" */
};

/** envelope_parse - pure. Return: 0, -EBADMSG when @json is no object of that form, -ENOMEM. */
int envelope_parse(struct str json, struct envelope *out) warn_unused;
