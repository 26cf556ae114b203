/* SPDX-License-Identifier: Apache-2.0 */
#include "net/envelope.h"

#include <jansson.h>

#include "base/utf8.h"

static void json_freep(json_t **value)
{
	json_decref(*value);
}

/* Control bytes would end up on a terminal. What is cut inside a character grows by two bytes. */
static void set_text(const json_t *value, char *out, size_t size)
{
	scoped(buf_release) struct buf text = BUF_INIT(size - 1);
	struct str from;

	out[0] = '\0';
	if (!json_is_string(value))
		return;
	from = str_n(json_string_value(value), json_string_length(value));
	utf8_clean(&text, str_first(from, size - 4), 0);
	if (text.error)
		return;
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
}

int envelope_parse(struct str json, struct envelope *out)
{
	scoped(json_freep) json_t *root = NULL;
	const json_t *code, *id;
	struct envelope result = { 0 };
	json_error_t error;

	root = json_loadb(json.ptr ? json.ptr : "", json.len, 0, &error);
	if (!root)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
	if (!json_is_object(root))
		return -EBADMSG;
	code = json_object_get(root, "code");
	if (json_is_integer(code) && json_integer_value(code) >= 100 && json_integer_value(code) <= 999)
		result.code = (uint32_t)json_integer_value(code);
	set_text(json_object_get(root, "error"), result.error, sizeof(result.error));
	id = json_object_get(json_object_get(root, "body"), "id");
	set_text(id, result.id, sizeof(result.id));
	*out = result;
	return 0;
}
