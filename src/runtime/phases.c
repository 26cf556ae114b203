/* SPDX-License-Identifier: Apache-2.0 */
/* Source: Itanium C++ ABI, 5.1.3: a nested name is N, qualifiers, and each part with its length in front. */
#include "runtime/phases.h"

#include "base/base.h"

#define PARTS_MAX 8 /* of a name that are looked at */

/* The first parts of a mangled name: "v8", "internal", "Heap" of _ZN2v88internal4Heap8ScavengeEv. Return: how many; 0:
 * it is not nested in anything. */
static size_t take_parts(struct str name, struct str parts[PARTS_MAX])
{
	size_t at = 2, count = 0;

	if (name.len < 3 || name.ptr[0] != '_' || name.ptr[1] != 'Z')
		return 0;
	while (at < name.len && name.ptr[at] == 'Z') /* of something that is in a function */
		at++;
	if (at == name.len || name.ptr[at++] != 'N')
		return 0;
	while (at < name.len && strchr("rVKRO", name.ptr[at]))
		at++;
	while (count < PARTS_MAX && at < name.len && name.ptr[at] >= '1' && name.ptr[at] <= '9') {
		size_t len = 0;

		while (at < name.len && name.ptr[at] >= '0' && name.ptr[at] <= '9' && len < name.len)
			len = len * 10 + (size_t)(name.ptr[at++] - '0');
		if (len > name.len - at)
			break;
		parts[count++] = str_n(name.ptr + at, len);
		at += len;
	}
	return count;
}

static bool is_in(const char *function, const struct str *parts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(function) < parts[i].len || memcmp(function, parts[i].ptr, parts[i].len) != 0)
			return false;
		function += parts[i].len;
		if (!*function)
			return true;
		if (strncmp(function, "::", 2) != 0)
			return false;
		function += 2;
	}
	return false;
}

const struct runtime_phase *runtime_phase_of(const struct runtime_phase *phases, struct str system_name)
{
	struct str parts[PARTS_MAX];
	size_t count = phases ? take_parts(system_name, parts) : 0;

	for (; count && phases->function; phases++)
		if (is_in(phases->function, parts, count))
			return phases;
	return NULL;
}
