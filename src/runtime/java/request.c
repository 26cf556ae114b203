/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to the server in a JVM, and what it answers; what the kernel says of a JVM. */
#include "runtime/java/server.h"

#define VERSION "1"
#define QUIT_BIT (1U << 2) /* of SIGQUIT, which is 3 */
#define RETURN_CODE "return code: "

/* Column @index of a line of numbers behind "Name:\t"; the last one: SIZE_MAX. */
static int column(struct str line, size_t index, uint32_t *out)
{
	struct str word = { 0 }, one;
	uint64_t value;

	for (size_t i = 0; i <= index && str_next(&line, '\t', &one); i++)
		word = one;
	if (str_to_u64(str_trim(word), 0, UINT32_MAX, &value) < 0)
		return -EBADMSG;
	*out = (uint32_t)value;
	return 0;
}

int java_owner_parse(struct str status, struct java_owner *out)
{
	struct java_owner found = { 0 };
	unsigned int seen = 0;
	struct str line;
	uint64_t caught = 0;

	while (str_next(&status, '\n', &line)) {
		if (str_starts(line, STR("Uid:\t")))
			seen |= column(str_skip(line, 5), 1, &found.uid) == 0 ? 1U : 0;
		else if (str_starts(line, STR("Gid:\t")))
			seen |= column(str_skip(line, 5), 1, &found.gid) == 0 ? 2U : 0;
		else if (str_starts(line, STR("NSpid:\t")))
			seen |= column(str_skip(line, 7), SIZE_MAX - 1, &found.inner_pid) == 0 ? 4U : 0;
		else if (str_starts(line, STR("SigCgt:\t")))
			seen |= str_to_hex64(str_trim(str_skip(line, 8)), &caught) == 0 ? 8U : 0;
	}
	if (seen != 15)
		return -EBADMSG;
	found.takes_quit = caught & QUIT_BIT;
	*out = found;
	return 0;
}

static int add_word(struct buf *out, struct str word)
{
	if (word.len > JAVA_REQUEST_MAX)
		return -E2BIG;
	if (str_find(word, '\0') >= 0)
		return -EINVAL;
	buf_adds(out, word);
	buf_addc(out, '\0');
	return out->error;
}

int java_request_write(const struct java_request *request, struct buf *out)
{
	int r = add_word(out, STR(VERSION));

	r = r ? r : add_word(out, request->command);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(request->words); i++)
		r = add_word(out, request->words[i]);
	return r;
}

int java_answer_parse(struct str bytes, bool is_load, struct java_answer *out)
{
	struct java_answer found = { 0 };
	struct str line, rest = bytes, second;

	if (!str_next(&rest, '\n', &line) || !rest.ptr || str_to_i64(line, &found.code) < 0)
		return -EBADMSG; /* a line feed belongs to it */
	found.text = rest;
	/* From 9 on "return code: 0", before that "0"; a text without one says why it was not loaded. */
	if (is_load && found.code == 0) {
		ignore(str_next(&rest, '\n', &second)); /* empty: there is none */
		if (str_starts(second, STR(RETURN_CODE)))
			second = str_skip(second, sizeof(RETURN_CODE) - 1);
		if (str_to_i64(second, &found.code) < 0)
			found.code = -1;
	}
	*out = found;
	return 0;
}
