/* SPDX-License-Identifier: Apache-2.0 */
/* Up to 3.10 a code object's fields are members that Python code can read, so the process has a table of where they
 * are: PyCode_Type.tp_members, records {char *name; int type; ssize_t offset; int flags; char *doc}. A build whose
 * objects are larger (with reference tracing) is found out by it. Source: CPython 3.10, Include/structmember.h,
 * cpython/object.h. */
#include "base/cur.h"
#include "runtime/python/python_int.h"

#define TYPE_MEMBERS 240
#define RECORD_SIZE 40
#define RECORDS_MAX 40
#define NAME_SIZE 16

static int read_record(const struct runtime_target *t, uint64_t at, char name[NAME_SIZE], uint64_t *offset)
{
	uint8_t bytes[RECORD_SIZE];
	struct cur c = cur_of(bytes, sizeof(bytes));
	uint64_t text;
	int r = t->read(t->self, bytes, sizeof(bytes), at);

	if (r < 0)
		return r;
	text = cur_le64(&c);
	cur_le64(&c); /* type, padding */
	*offset = cur_le64(&c);
	name[0] = 0;
	if (!text)
		return 0;
	r = t->read(t->self, name, NAME_SIZE, text);
	name[NAME_SIZE - 1] = 0;
	return r;
}

bool python_members_agree(const struct runtime_target *target, uint64_t code_type, const struct abi_python_layout *l)
{
	const struct {
		const char *name;
		uint16_t at;
	} wanted[] = {
		{ "co_filename", l->code_filename },
		{ "co_name", l->code_name },
		{ "co_firstlineno", l->code_first_line },
	};
	char name[NAME_SIZE];
	uint64_t table = 0, offset;

	if (target->read(target->self, &table, sizeof(table), code_type + TYPE_MEMBERS) < 0 || !table)
		return true; /* nothing is said against it */
	for (size_t i = 0; i < RECORDS_MAX; i++) {
		if (read_record(target, table + i * RECORD_SIZE, name, &offset) < 0 || !name[0])
			return true;
		for (size_t j = 0; j < ARRAY_SIZE(wanted); j++)
			if (strcmp(name, wanted[j].name) == 0 && offset != wanted[j].at)
				return false;
	}
	return true;
}
