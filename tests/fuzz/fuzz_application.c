/* SPDX-License-Identifier: Apache-2.0 */
/* Names of services: "EXE\0COMM\0UNIT\0CONTAINER\0" and then a command line, which is the environment too. */
#include "fuzz.h"

#include "base/utf8.h"
#include "proc/application.h"
#include "proc/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct workload_facts facts = { 0 };
	struct str *const fields[] = { &facts.exe, &facts.comm, &facts.unit, &facts.container };
	scoped(buf_release) struct buf first = BUF_INIT(MIB(1)), again = BUF_INIT(MIB(1));
	struct str rest = str_n((const char *)data, size);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!str_next(&rest, 0, fields[i]))
			return 0;
	facts.argv = rest;
	must(workload_name(&facts, NULL, &first) == workload_name(&facts, NULL, &again));
	must(str_eq(buf_str(&first), buf_str(&again)));
	must(first.len && first.len <= WORKLOAD_NAME_MAX && !first.error && utf8_valid(buf_str(&first)));
	for (size_t i = 0; i < first.len; i++)
		must((uint8_t)first.ptr[i] >= ' ' && first.ptr[i] != 0x7f);
	buf_clear(&again);
	must((application_of(facts.exe, rest, &again) == APPLICATION_NONE) == !again.len);
	must(again.len <= APPLICATION_ARGV_MAX + 64);
	must(workload_hostname(rest).len <= rest.len);
	return 0;
}
