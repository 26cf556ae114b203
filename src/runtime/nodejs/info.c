/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a process, as gProfiler has it; it runs `node --version`, here nothing is run. The process says its
 * version in node::per_process::metadata, whose first member is a std::string. In both of libstdc++'s forms that begins
 * with the address of its characters, which end with a 0. Source: Node.js, src/node_metadata.h. */
#include <unistd.h>

#include "base/ascii.h"
#include "runtime/nodejs/nodejs_int.h"
#include "runtime/process_info.h"

#define PIECE 8 /* the text may end where its memory ends */

static bool is_suffix(char c)
{
	return ascii_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
	       c == '.';
}

bool nodejs_is_version(struct str text)
{
	size_t at = 0;

	for (int part = 0; part < 3; part++) {
		size_t from = at;

		while (at < text.len && at - from < 4 && ascii_is_digit(text.ptr[at]))
			at++;
		if (at == from || (part < 2 && (at == text.len || text.ptr[at++] != '.')))
			return false;
	}
	if (at < text.len && text.ptr[at] != '-' && text.ptr[at] != '+')
		return false;
	while (at < text.len && is_suffix(text.ptr[at]))
		at++;
	return at == text.len;
}

int nodejs_version_read(const struct runtime_target *target, uint64_t at, char out[NODEJS_VERSION_MAX])
{
	char text[NODEJS_VERSION_MAX];
	size_t len = 0;
	uint64_t chars;
	int r = target->read(target->self, &chars, sizeof(chars), at);

	if (r < 0)
		return r;
	for (; len == 0 || !memchr(text, 0, len); len += PIECE) {
		if (len == sizeof(text))
			return -EBADMSG;
		r = target->read(target->self, text + len, PIECE, chars + len);
		if (r < 0)
			return r;
	}
	if (!nodejs_is_version(str_of(text)))
		return -EBADMSG;
	memcpy(out, text, len);
	return 0;
}

int nodejs_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	const struct nodejs_binary *b = (const struct nodejs_binary *)binary;
	struct json_out j = { .out = json };
	struct process_info_links links;
	char version[1 + NODEJS_VERSION_MAX] = "v";
	size_t before = json->len;
	int r = process_info_links_read(target->proc_dir, &links);

	if (r < 0)
		return r;
	if (!b->metadata || nodejs_version_read(target, b->metadata + target->bias, version + 1) < 0)
		version[0] = 0;
	json_out_begin(&j, '{');
	process_info_add_text(&j, "node_version", version);
	process_info_add_links(&j, &links);
	return process_info_end(&j, target, before);
}
