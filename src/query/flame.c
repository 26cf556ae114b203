/* SPDX-License-Identifier: Apache-2.0 */
#include "query/flame.h"

#include <libdeflate.h>

#include "base/array.h"
#include "net/http_parse.h"
#include "store/store.h"

#define DEFLATE_LEVEL 1 /* a second one on the way costs more than the bytes that higher levels save */
#define COLUMNS_MAX GIB(1)

void flame_path_release(struct flame_path *p)
{
	free(p->steps);
	buf_release(&p->bytes);
}

/* Room for all of the text was made before, so views stay where they are. */
static int take_text(struct flame_path *p, struct str value, struct str *out)
{
	size_t at = p->bytes.len;
	int r = json_text(value, &p->bytes);

	*out = str_n(p->bytes.ptr + at, p->bytes.len - at);
	return r;
}

static int parse_step(struct flame_path *p, struct str object)
{
	struct tree_step step = { STR(""), STR(""), STR("") };
	struct str key, value;
	int r = array_grow(&p->steps, &p->cap, p->count, FLAME_PATH_MAX);

	while (r == 0 && json_member(&object, &key, &value) == 1) {
		if (str_eq(key, STR("\"name\"")))
			r = take_text(p, value, &step.name);
		else if (str_eq(key, STR("\"kind\"")))
			r = take_text(p, value, &step.kind);
		else if (str_eq(key, STR("\"module\"")))
			r = take_text(p, value, &step.module);
	}
	if (r == 0)
		p->steps[p->count++] = step;
	return r;
}

static int parse_steps(struct flame_path *p, struct str array)
{
	struct str key, value;
	int r = array.len && array.ptr[0] == '[' ? 0 : -EBADMSG;

	while (r == 0 && json_member(&array, &key, &value) == 1)
		r = value.len && value.ptr[0] == '{' ? parse_step(p, value) : -EBADMSG;
	return r;
}

int flame_path_parse(struct str json, struct flame_path *out)
{
	scoped(flame_path_release) struct flame_path p = { .bytes = BUF_INIT(json.len + 1) };
	struct str rest = json, object, key, value;
	bool found = false;
	int r = json_value(&rest, &object);

	if (r < 0 || str_trim(rest).len || !object.len || object.ptr[0] != '{')
		return -EBADMSG;
	if (!buf_reserve(&p.bytes, json.len + 1))
		return p.bytes.error;
	while (r == 0 && !found && json_member(&object, &key, &value) == 1) {
		found = str_eq(key, STR("\"path\""));
		r = found ? parse_steps(&p, value) : 0;
	}
	if (r < 0 || !found)
		return r ? r : -EBADMSG;
	*out = p;
	p = (struct flame_path){ 0 };
	return 0;
}

/* Groups */

void flame_groups_release(struct flame_groups *g)
{
	buf_release(&g->bytes);
}

static int parse_group(struct flame_groups *g, struct str piece)
{
	struct tree_group group = { .kind = TREE_KIND_LABEL };
	size_t at = g->bytes.len;
	int r = 0;

	if (g->count == TREE_GROUPS_MAX)
		return -E2BIG;
	if (str_eq(piece, STR("thread")))
		group.kind = TREE_KIND_THREAD;
	else if (str_eq(piece, STR("host")))
		group.kind = TREE_KIND_HOST;
	else if (!str_starts(piece, STR("label:")))
		return -EBADMSG;
	if (group.kind == TREE_KIND_LABEL)
		r = http_decode(str_skip(piece, strlen("label:")), true, &g->bytes);
	group.label = group.kind == TREE_KIND_HOST ? STR("host") : str_n(g->bytes.ptr + at, g->bytes.len - at);
	if (r < 0)
		return r;
	if (group.kind == TREE_KIND_LABEL && (!group.label.len || group.label.len > STORE_LABEL_KEY_MAX))
		return -EBADMSG;
	g->items[g->count++] = group;
	return g->bytes.error;
}

/* Room for all of the text was made before, so views stay where they are. */
int flame_groups_parse(struct str text, struct flame_groups *out)
{
	scoped(flame_groups_release) struct flame_groups g = { .bytes = BUF_INIT(text.len + 1) };
	struct str rest = text, piece;
	int r = buf_reserve(&g.bytes, text.len + 1) ? 0 : g.bytes.error;

	while (r == 0 && text.len && str_next(&rest, ',', &piece))
		r = parse_group(&g, piece);
	if (r < 0)
		return r;
	*out = g;
	g.bytes = (struct buf){ 0 }; /* moved out */
	return 0;
}

/* JSON */

static void add_u64s(struct json_out *json, struct str name, const uint64_t *values, uint32_t count)
{
	json_out_key(json, name);
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < count; i++)
		json_out_u64(json, values[i]);
	json_out_end(json, ']');
}

static void add_u32s(struct json_out *json, struct str name, const uint32_t *values, uint32_t count)
{
	json_out_key(json, name);
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < count; i++)
		json_out_u64(json, values[i]);
	json_out_end(json, ']');
}

static void add_frames(struct json_out *json, const struct tree *t)
{
	json_out_key(json, STR("names"));
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < t->frame_count; i++)
		json_out_string(json, tree_frame_text(t, i));
	json_out_end(json, ']');
	json_out_key(json, STR("kind"));
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < t->frame_count; i++)
		json_out_u64(json, t->frames[i].kind);
	json_out_end(json, ']');
	json_out_key(json, STR("module"));
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < t->frame_count; i++)
		json_out_u64(json, t->frames[i].module);
	json_out_end(json, ']');
	json_out_key(json, STR("modules"));
	json_out_begin(json, '[');
	for (uint32_t i = 0; i < intern_count(&t->modules); i++)
		json_out_string(json, i ? intern_get(&t->modules, i) : STR(""));
	json_out_end(json, ']');
}

int flame_write_json(struct json_out *json, const struct tree_cut *c)
{
	const struct tree *t = &c->tree;

	add_frames(json, t);
	add_u32s(json, STR("frame"), t->frame, t->node_count);
	add_u32s(json, STR("level"), t->level, t->node_count);
	add_u64s(json, STR("total"), t->total, t->node_count);
	add_u64s(json, STR("self"), c->self, t->node_count);
	add_u64s(json, STR("hidden"), c->hidden, t->node_count);
	if (c->base_total) {
		add_u64s(json, STR("base_total"), c->base_total, t->node_count);
		add_u64s(json, STR("base_self"), c->base_self, t->node_count);
		add_u64s(json, STR("base_hidden"), c->base_hidden, t->node_count);
	}
	return json->out->error;
}

/* Binary */

static void compressorp(struct libdeflate_compressor **c)
{
	if (*c)
		libdeflate_free_compressor(*c);
}

static int add_deflated(struct str bytes, struct buf *out)
{
	scoped(compressorp) struct libdeflate_compressor *c = libdeflate_alloc_compressor(DEFLATE_LEVEL);
	size_t room, size;
	void *to;

	if (!c)
		return -ENOMEM;
	room = libdeflate_deflate_compress_bound(c, bytes.len);
	to = buf_reserve(out, room);
	if (!to)
		return out->error;
	size = libdeflate_deflate_compress(c, bytes.ptr, bytes.len, to, room);
	if (!size)
		return -E2BIG;
	buf_commit(out, size);
	return 0;
}

int flame_pack(const struct tree_cut *c, struct buf *out)
{
	scoped(buf_release) struct buf columns = BUF_INIT(COLUMNS_MAX);
	int r = tree_cut_encode(c, &columns);

	return r ? r : add_deflated(buf_str(&columns), out);
}

int flame_write_binary(struct str meta, struct str columns, struct buf *out)
{
	uint8_t head[4] = { (uint8_t)meta.len, (uint8_t)(meta.len >> 8), (uint8_t)(meta.len >> 16),
			    (uint8_t)(meta.len >> 24) };

	if (meta.len > UINT32_MAX)
		return -E2BIG;
	buf_add(out, head, sizeof(head));
	buf_adds(out, meta);
	buf_adds(out, columns);
	return out->error;
}
