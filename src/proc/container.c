/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/container.h"

#include <jansson.h>

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Podman and CRI-O run a monitor beside each container: libpod-conmon-ID.scope, crio-conmon-ID.scope. */
static bool is_monitor(struct str before)
{
	return str_ends(before, STR("conmon-"));
}

/* The last run of exactly CONTAINER_ID_SIZE digits; longer runs are no ids. */
static const char *last_id(struct str line)
{
	const char *found = NULL;

	for (size_t i = 0, run = 0; i <= line.len; i++) {
		if (i < line.len && is_hex(line.ptr[i])) {
			run++;
			continue;
		}
		if (run == CONTAINER_ID_SIZE && !is_monitor(str_first(line, i - run)))
			found = line.ptr + i - run;
		run = 0;
	}
	return found;
}

bool container_id_parse(struct str cgroup, char out[CONTAINER_ID_SIZE + 1])
{
	struct str line;

	while (str_next(&cgroup, '\n', &line)) {
		const char *id = last_id(line);

		if (!id)
			continue;
		memcpy(out, id, CONTAINER_ID_SIZE);
		out[CONTAINER_ID_SIZE] = '\0';
		return true;
	}
	return false;
}

static struct str json_text(const json_t *value)
{
	return json_is_string(value) ? str_n(json_string_value(value), json_string_length(value)) : STR("");
}

bool container_is_id(struct str s)
{
	if (s.len != CONTAINER_ID_SIZE)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!is_hex(s.ptr[i]))
			return false;
	return true;
}

/* Names has one entry per link into other containers too ("/web/db"): the container's own has one slash. */
static struct str own_name(const json_t *names)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		struct str name = json_text(json_array_get(names, i));

		if (str_starts(name, STR("/")))
			name = str_skip(name, 1);
		if (name.len && str_find(name, '/') < 0)
			return name;
	}
	return STR("");
}

int container_list_parse(struct str json, container_visit_fn *visit, void *ctx)
{
	json_error_t error;
	json_t *list = json_loadb(json.ptr ? json.ptr : "", json.len, 0, &error);
	int r = 0;

	if (!list)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
	if (!json_is_array(list))
		r = -EBADMSG;
	for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
		const json_t *entry = json_array_get(list, i);
		struct str id = json_text(json_object_get(entry, "Id"));
		struct str name = own_name(json_object_get(entry, "Names"));

		if (container_is_id(id) && name.len)
			r = visit(ctx, id, name);
	}
	json_decref(list);
	return r;
}
