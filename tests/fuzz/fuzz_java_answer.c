/* SPDX-License-Identifier: Apache-2.0 */
/* What a JVM, or what says that it is one, answers; and what the kernel says of it, which has its name in it. */
#include "fuzz.h"

#include "runtime/java/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = str_n((const char *)data, size);
	scoped(buf_release) struct buf out = BUF_INIT(KIB(16));
	struct java_request request = { .command = STR("jcmd"), .words = { bytes } };
	struct java_answer answer;
	struct java_owner owner;

	for (int load = 0; load < 2; load++)
		if (java_answer_parse(bytes, load, &answer) == 0)
			must(answer.text.ptr >= bytes.ptr &&
			     answer.text.ptr + answer.text.len == bytes.ptr + bytes.len);
	ignore(java_owner_parse(bytes, &owner) < 0);
	if (java_request_write(&request, &out) == 0)
		must(out.len == sizeof("1") + sizeof("jcmd") + size + 3);
	return 0;
}
