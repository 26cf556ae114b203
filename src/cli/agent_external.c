/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_external.h"

#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/u64map.h"
#include "codec/json.h"

#define FILE_MAX_BYTES MIB(1)
#define PROCESSES_MAX 65536
#define AGE_MAX 300 /* seconds; source: gprofiler/metadata/external_metadata.py */

static bool is_object(struct str value)
{
	return value.len && value.ptr[0] == '{';
}

/* The last one of that name counts, as for json.loads(). */
static bool find_member(struct str object, struct str wanted, struct str *out)
{
	struct str key, value;
	bool is_found = false;

	while (json_member(&object, &key, &value)) {
		if (!str_eq(key, wanted))
			continue;
		*out = value;
		is_found = true;
	}
	return is_found;
}

/* Return: 0; -ESTALE: nobody has written it for too long; -EBADMSG; -errno. @object is borrowed from @text. */
static int read_fresh(const char *path, struct buf *text, struct str *object)
{
	struct str rest;
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r == 0 && time(NULL) - st.st_mtime > AGE_MAX)
		return -ESTALE;
	r = r ? r : io_read_file(path, text);
	if (r < 0)
		return r;
	rest = buf_str(text);
	return json_value(&rest, object) < 0 || str_trim(rest).len || !is_object(*object) ? -EBADMSG : 0;
}

int agent_external_read(const struct command *c, const char *path, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct str object = STR(""), value;
	int r = read_fresh(path, &text, &object);

	if (r == -ESTALE)
		return command_fail(c, "--external-metadata: '%s' was not written for %d seconds", path, AGE_MAX);
	if (r == 0 && find_member(object, STR("\"static\""), &value)) {
		if (is_object(value))
			buf_adds(out, value);
		else
			r = -EBADMSG;
	}
	r = r ? r : out->error;
	if (r == -EBADMSG)
		return command_fail(c, "--external-metadata: '%s' is no JSON object with an object \"static\"", path);
	return r < 0 ? command_fail(c, "--external-metadata: cannot read '%s': %s", path, reason_of(r)) : EXIT_DONE;
}

static void add_member(struct json_out *j, struct str key, struct str value)
{
	buf_adds(j->out, j->needs_comma ? STR(", ") : STR(""));
	buf_adds(j->out, key);
	buf_adds(j->out, STR(": "));
	buf_adds(j->out, value);
	j->needs_comma = true;
}

/* @over wins. */
static int merge(struct str under, struct str over, struct buf *out)
{
	struct json_out j = { .out = out };
	struct str key, value, other, rest = over;

	json_out_begin(&j, '{');
	while (json_member(&under, &key, &value))
		if (!find_member(over, key, &other))
			add_member(&j, key, value);
	while (json_member(&rest, &key, &value))
		add_member(&j, key, value);
	json_out_end(&j, '}');
	return out->error;
}

static int add_to(struct model *m, struct model_process *p, struct str external)
{
	scoped(buf_release) struct buf merged = BUF_INIT(2 * FILE_MAX_BYTES);
	struct str known = model_string(m, m->app_metadata[p->app_metadata]);
	int r = merge(known, external, &merged);

	return r ? r : model_add_app_metadata(m, buf_str(&merged), &p->app_metadata);
}

/* Where in @text the object of each process begins. */
static int index_applications(struct str text, struct str applications, struct u64map *out)
{
	struct str key, value;
	uint64_t pid;
	int r = 0;

	while (r == 0 && json_member(&applications, &key, &value)) {
		if (!is_object(value) || key.len < 2)
			continue;
		if (str_to_u64(str_n(key.ptr + 1, key.len - 2), 1, INT32_MAX, &pid) == 0)
			r = u64map_put(out, pid, (uint32_t)(value.ptr - text.ptr));
	}
	return r;
}

static int add_to_all(struct str text, const struct u64map *index, struct model *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->processes_count; i++) {
		struct str rest, external;
		uint32_t at;

		if (u64map_get(index, m->processes[i].pid, &at) < 0)
			continue;
		rest = str_skip(text, at);
		if (json_value(&rest, &external) == 0) /* it was one a moment ago */
			r = add_to(m, &m->processes[i], external);
	}
	return r;
}

void agent_external_add(const char *path, struct window *w)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	scoped(u64map_release) struct u64map index;
	struct str object = STR(""), applications;
	int r = read_fresh(path, &text, &object);

	u64map_init(&index, PROCESSES_MAX);
	if (r == 0 && find_member(object, STR("\"application\""), &applications))
		r = index_applications(buf_str(&text), applications, &index);
	r = r ? r : add_to_all(buf_str(&text), &index, w->model);
	if (r == -ESTALE)
		log_warn("--external-metadata is left out of a cycle: its file was not written for too long",
			 LOG_CSTR("path", path), LOG_U64("seconds_max", AGE_MAX));
	else if (r < 0)
		log_warn("--external-metadata is left out of a cycle", LOG_CSTR("path", path), LOG_ERR(r));
}
