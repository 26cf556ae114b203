/* SPDX-License-Identifier: Apache-2.0 */
/* One chunk of a recording: header, the types that its metadata event declares, and constants.
 *
 *	 0 "FLR\0"  4 major, minor  8 size  16 last checkpoint  24 metadata  32 start, duration in ns  48 start in ticks
 *	56 ticks a second  64 state  66 flags: 1 compressed numbers, 2 last chunk	all big-endian
 *
 * Then events: size, type, fields. Type 0 is the metadata, type 1 a checkpoint with constants. */
#include "base/limit.h"
#include "codec/jfr_int.h"

#define TYPE_METADATA 0
#define TYPE_CHECKPOINT 1
#define DEPTH_MAX 32 /* of elements of the metadata */
#define STRINGS_MAX 1000000
#define CLASSES_MAX 65536
#define FIELDS_MAX 1000000
#define FLAG_COMPRESSED 1
#define STATE_BUSY 255

int jfr_bad(const struct jfr_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -EBADMSG;
}

int jfr_failed(const struct jfr_in *in, uint64_t at, int r)
{
	if (r == -E2BIG || r == -ENOMEM) /* the others have theirs */
		codec_fail(in->error, at, false, "%s", r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

static size_t chunk_memory(const struct jfr_chunk *k)
{
	size_t size = k->names.cap + k->strings_cap * sizeof(*k->strings) + k->classes_cap * sizeof(*k->classes) +
		      k->fields_cap * sizeof(*k->fields) + k->class_by_id.cap * 16;

	for (size_t i = 0; i < JFR_POOL_COUNT; i++)
		size += k->pools[i].by_key.cap * 16 + k->pools[i].cap * sizeof(*k->pools[i].items);
	return size;
}

int jfr_limits_look(const struct jfr_in *in, const struct jfr_chunk *k)
{
	size_t size = chunk_memory(k) + (in->frames_cap + in->nodes_cap) * sizeof(*in->frames);

	if (codec_stopped(in->limits, in->done))
		return -ECANCELED;
	return in->limits->memory_max && size > in->limits->memory_max / 2 ? jfr_failed(in, k->at, -E2BIG) : 0;
}

void jfr_chunk_release(struct jfr_chunk *k)
{
	buf_release(&k->names);
	free(k->strings);
	free(k->classes);
	free(k->fields);
	u64map_release(&k->class_by_id);
	for (size_t i = 0; i < JFR_POOL_COUNT; i++) {
		u64map_release(&k->pools[i].by_key);
		free(k->pools[i].items);
	}
	free(k->event_plans);
}

/* Events */

struct cur jfr_events(const struct jfr_chunk *k)
{
	return cur_of(k->bytes.ptr + JFR_HEADER_SIZE, k->bytes.len - JFR_HEADER_SIZE);
}

int jfr_next_event(const struct jfr_chunk *k, struct cur *c, struct jfr_event *out)
{
	struct cur start = *c;
	uint64_t size, head;

	if (!cur_left(c))
		return 0;
	out->at = jfr_position(k, c);
	size = jfr_number(k, c, JFR_INT);
	head = (uint64_t)(c->pos - start.pos);
	if (c->bad || size <= head || size - head > cur_left(c))
		return jfr_bad(k->in, out->at, "an event's size is wrong");
	out->content = cur_sub(c, (size_t)(size - head));
	out->type = jfr_number(k, &out->content, JFR_LONG);
	return out->content.bad ? jfr_bad(k->in, out->at, "malformed event") : 1;
}

/* Header */

static int read_header(struct jfr_chunk *k, struct str rest)
{
	struct jfr_in *in = k->in;
	struct cur c = cur_of(rest.ptr, rest.len);
	const uint8_t *magic = cur_bytes(&c, 4);
	uint64_t major, minor, size, flags, state;

	if (!magic || memcmp(magic, "FLR", 4) != 0)
		return jfr_bad(in, k->at, "no chunk of a recording begins here");
	major = jfr_big_endian(&c, 2) & 0xffff;
	minor = jfr_big_endian(&c, 2) & 0xffff;
	if (!c.bad && (major != 2 || minor > 1)) {
		codec_fail(in->error, k->at, false, "version %u.%u is not read, only 2.0 and 2.1%s",
			   (unsigned int)major, (unsigned int)minor, major < 2 ? ": it is of JDK 8 or older" : "");
		return -ENOTSUP;
	}
	size = jfr_big_endian(&c, 8);
	ignore(jfr_big_endian(&c, 8)); /* where the last checkpoint is: all events are gone through */
	k->metadata_at = jfr_big_endian(&c, 8);
	k->start_ns = jfr_big_endian(&c, 8);
	k->duration_ns = jfr_big_endian(&c, 8);
	k->start_ticks = jfr_big_endian(&c, 8);
	k->ticks_per_second = jfr_big_endian(&c, 8);
	state = jfr_big_endian(&c, 2) >> 8 & 0xff;
	flags = jfr_big_endian(&c, 2);
	if (c.bad || (size && size > rest.len))
		return jfr_bad(in, k->at, "the recording is cut off in this chunk");
	if (!size || (minor && state == STATE_BUSY))
		return jfr_bad(in, k->at, "this chunk is still being written: stop or dump the recording");
	if (size < JFR_HEADER_SIZE || size > UINT32_MAX)
		return jfr_bad(in, k->at, "the chunk's size is wrong");
	k->bytes = str_first(rest, (size_t)size);
	k->is_plain = !(flags & FLAG_COMPRESSED);
	return 0;
}

/* Metadata: strings, then a tree of elements, each with a name, attributes and children. */

static int read_strings(struct jfr_chunk *k, struct cur *c)
{
	uint64_t count = jfr_count(k, c);
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < count && !c->bad; i++) {
		struct jfr_text text = { .at = k->names.len };
		struct jfr_string string;

		jfr_read_string(k, c, &string);
		ignore(jfr_string_add_plain(k, &string, &k->names)); /* null is empty; constants are not known yet */
		text.len = k->names.len - text.at;
		r = k->names.error ? k->names.error
				   : array_grow(&k->strings, &k->strings_cap, k->strings_count, STRINGS_MAX);
		if (r == 0)
			k->strings[k->strings_count++] = text;
	}
	return jfr_failed(k->in, k->at, r);
}

static bool text_at(const struct jfr_chunk *k, struct cur *c, struct jfr_text *out)
{
	uint64_t index = jfr_number(k, c, JFR_INT);

	if (index >= k->strings_count)
		c->bad = true;
	else
		*out = k->strings[index];
	return !c->bad;
}

struct element {
	struct str name;
	struct jfr_text own_name;
	uint64_t id, class_id;
	bool has_id, is_constant, is_array;
};

/* Digits: at most 19. A longer text may be many attributes' value. */
static bool read_digits(struct str text, uint64_t *out)
{
	return text.len <= 19 && str_to_u64(text, 0, INT64_MAX, out) == 0;
}

static void read_attributes(const struct jfr_chunk *k, struct cur *c, struct element *out)
{
	uint64_t count = jfr_count(k, c);

	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct jfr_text key, value;
		struct str name, text;

		if (!text_at(k, c, &key) || !text_at(k, c, &value))
			return;
		name = jfr_name(k, key);
		text = jfr_name(k, value);
		if (str_eq(name, STR("name")))
			out->own_name = value;
		else if (str_eq(name, STR("id")))
			out->has_id = read_digits(text, &out->id);
		else if (str_eq(name, STR("class")))
			ignore(read_digits(text, &out->class_id)); /* 0: no such type */
		else if (str_eq(name, STR("constantPool")))
			out->is_constant = str_eq(text, STR("true"));
		else if (str_eq(name, STR("dimension")))
			out->is_array = !str_eq(text, STR("0"));
	}
}

static enum jfr_primitive primitive_of(struct str name)
{
	static const char *const names[] = {
		[JFR_BOOLEAN] = "boolean", [JFR_BYTE] = "byte",     [JFR_SHORT] = "short",
		[JFR_CHAR] = "char",       [JFR_INT] = "int",       [JFR_LONG] = "long",
		[JFR_FLOAT] = "float",     [JFR_DOUBLE] = "double", [JFR_STRING] = "java.lang.String"
	};

	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, str_of(names[i])))
			return (enum jfr_primitive)i;
	return JFR_COMPOSITE;
}

static int add_class(struct jfr_chunk *k, const struct element *e)
{
	struct str name = jfr_name(k, e->own_name);
	int r = array_grow(&k->classes, &k->classes_cap, k->classes_count, CLASSES_MAX);

	if (r == 0 && e->has_id)
		r = u64map_put(&k->class_by_id, e->id, (uint32_t)k->classes_count);
	if (r < 0)
		return jfr_failed(k->in, k->at, r);
	k->classes[k->classes_count++] = (struct jfr_class){ .id = e->id,
							     .name = e->own_name,
							     .first_field = (uint32_t)k->fields_count,
							     .primitive = primitive_of(name),
							     .event = jfr_event_of(name) };
	return 0;
}

static int add_field(struct jfr_chunk *k, const struct element *e)
{
	int r = array_grow(&k->fields, &k->fields_cap, k->fields_count, FIELDS_MAX);

	if (r < 0)
		return jfr_failed(k->in, k->at, r);
	k->fields[k->fields_count++] = (struct jfr_field){
		.name = e->own_name, .class_id = e->class_id, .is_constant = e->is_constant, .is_array = e->is_array
	};
	k->classes[k->classes_count - 1].field_count++;
	return 0;
}

/* An element of the tree whose children are being read. */
struct open_element {
	uint64_t children;
	size_t class; /* number of the class that it is + 1, or 0 */
};

static int read_element(struct jfr_chunk *k, struct cur *c, size_t parent_class, struct open_element *out)
{
	struct element e = { 0 };
	struct jfr_text name;
	int r = 0;

	if (!text_at(k, c, &name))
		return 0; /* the cursor is bad */
	e.name = jfr_name(k, name);
	read_attributes(k, c, &e);
	*out = (struct open_element){ .children = jfr_count(k, c) };
	if (c->bad)
		return 0;
	if (str_eq(e.name, STR("class"))) {
		r = add_class(k, &e);
		out->class = k->classes_count;
	} else if (str_eq(e.name, STR("field")) && parent_class && parent_class == k->classes_count) {
		r = add_field(k, &e); /* those of one class lie one behind another */
	}
	return r;
}

static int read_elements(struct jfr_chunk *k, struct cur *c)
{
	struct open_element open[DEPTH_MAX] = { { .children = 1 } };
	size_t depth = 1;
	int r = 0;

	while (r == 0 && depth && !c->bad) {
		struct open_element *top = &open[depth - 1];

		if (!top->children) {
			depth--;
			continue;
		}
		top->children--;
		if (depth == DEPTH_MAX)
			return jfr_bad(k->in, k->at, "metadata that nests too deep");
		r = read_element(k, c, top->class, &open[depth]);
		depth++;
	}
	return r;
}

static int find_metadata(struct jfr_chunk *k, struct jfr_event *out)
{
	struct cur c;
	int r;

	if (k->metadata_at < JFR_HEADER_SIZE || k->metadata_at >= k->bytes.len)
		return jfr_bad(k->in, k->at, "the chunk does not say where its metadata is");
	c = cur_of(k->bytes.ptr + k->metadata_at, k->bytes.len - (size_t)k->metadata_at);
	r = jfr_next_event(k, &c, out);
	if (r >= 0 && (r == 0 || out->type != TYPE_METADATA))
		return jfr_bad(k->in, k->at + k->metadata_at, "this is no metadata");
	return MIN(r, 0);
}

static int read_metadata(struct jfr_chunk *k)
{
	struct jfr_event event = { 0 };
	int r = find_metadata(k, &event);
	struct cur *c = &event.content;

	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++) /* start, duration, number of the metadata */
		ignore(jfr_number(k, c, JFR_LONG));
	r = read_strings(k, c);
	if (r == 0 && !c->bad)
		r = read_elements(k, c);
	if (r == 0 && c->bad)
		return jfr_bad(k->in, event.at, "malformed metadata");
	for (size_t i = 0; i < k->fields_count; i++)
		k->fields[i].class = jfr_find_class(k, k->fields[i].class_id);
	return r;
}

/* Constants */

static const struct {
	const char *class;
	const char *wants[JFR_SLOTS_MAX];
} pools[JFR_POOL_COUNT] = {
	[JFR_POOL_STRING] = { "java.lang.String", { NULL } },
	[JFR_POOL_SYMBOL] = { "jdk.types.Symbol", { [JFR_SYMBOL_TEXT] = "string" } },
	[JFR_POOL_CLASS] = { "java.lang.Class", { [JFR_CLASS_NAME] = "name" } },
	[JFR_POOL_METHOD] = { "jdk.types.Method",
			      { [JFR_METHOD_CLASS] = "type",
				[JFR_METHOD_NAME] = "name",
				[JFR_METHOD_DESCRIPTOR] = "descriptor" } },
	[JFR_POOL_FRAME_TYPE] = { "jdk.types.FrameType", { [JFR_FRAME_TYPE_TEXT] = "description" } },
	[JFR_POOL_THREAD] = { "java.lang.Thread",
			      { [JFR_THREAD_OS_NAME] = "osName",
				[JFR_THREAD_OS_ID] = "osThreadId",
				[JFR_THREAD_JAVA_NAME] = "javaName" } },
	[JFR_POOL_STACK] = { "jdk.types.StackTrace",
			     { [JFR_STACK_TRUNCATED] = "truncated", [JFR_STACK_FRAMES] = "frames" } },
};

static void plan_constants(struct jfr_chunk *k)
{
	static const char *const frame[JFR_SLOTS_MAX] = {
		[JFR_FRAME_METHOD] = "method", [JFR_FRAME_LINE] = "lineNumber", [JFR_FRAME_TYPE] = "type"
	};
	uint32_t stack_frame = JFR_NO_CLASS;

	for (size_t pool = 0; pool < JFR_POOL_COUNT; pool++)
		k->pools[pool].plan.class = JFR_NO_CLASS;
	for (uint32_t i = 0; i < k->classes_count; i++) {
		struct str name = jfr_name(k, k->classes[i].name);

		for (size_t pool = 0; pool < JFR_POOL_COUNT; pool++)
			if (str_eq(name, str_of(pools[pool].class)))
				jfr_plan_make(k, i, pools[pool].wants, JFR_SLOTS_MAX, &k->pools[pool].plan);
		if (str_eq(name, STR("jdk.types.StackFrame")))
			stack_frame = i;
	}
	jfr_plan_make(k, stack_frame, frame, JFR_SLOTS_MAX, &k->frame_plan);
}

struct jfr_constant *jfr_constant(struct jfr_chunk *k, enum jfr_pool pool, uint64_t key)
{
	uint32_t index;

	return u64map_get(&k->pools[pool].by_key, key, &index) == 0 ? &k->pools[pool].items[index] : NULL;
}

int jfr_constant_read(struct jfr_chunk *k, enum jfr_pool pool, const struct jfr_constant *constant,
		      struct jfr_slot *slots)
{
	struct cur c = cur_of(k->bytes.ptr + constant->at, k->bytes.len - constant->at), start = c;

	jfr_read(k, &c, &k->pools[pool].plan, slots);
	return c.bad || !jfr_take_work(k, &start, &c) ? jfr_bad(k->in, k->at + constant->at, "malformed constant") : 0;
}

/* A key that comes again has the last value. */
static int add_constant(struct jfr_chunk *k, struct jfr_constants *pool, uint64_t key, const struct cur *c)
{
	struct jfr_constant row = { .at = (uint32_t)((const char *)c->pos - k->bytes.ptr) };
	uint32_t index;
	int r;

	if (u64map_get(&pool->by_key, key, &index) == 0) {
		pool->items[index] = row;
		return 0;
	}
	r = array_grow(&pool->items, &pool->cap, pool->count, UINT32_MAX - 1);
	r = r ? r : u64map_put(&pool->by_key, key, (uint32_t)pool->count);
	if (r == 0)
		pool->items[pool->count++] = row;
	return jfr_failed(k->in, jfr_position(k, c), r);
}

static int read_constants(struct jfr_chunk *k, struct cur *c)
{
	uint32_t class = jfr_find_class(k, jfr_number(k, c, JFR_LONG));
	uint64_t count = jfr_count(k, c);
	struct jfr_constants *pool = NULL;
	int r = 0;

	if (class == JFR_NO_CLASS) {
		c->bad = true;
		return 0;
	}
	for (size_t i = 0; i < JFR_POOL_COUNT; i++)
		if (k->pools[i].plan.class == class)
			pool = &k->pools[i];
	for (uint64_t i = 0; r == 0 && i < count && !c->bad; i++) {
		uint64_t key = jfr_number(k, c, JFR_LONG);

		if (pool && !c->bad)
			r = add_constant(k, pool, key, c);
		jfr_skip_value(k, c, class);
		r = r ? r : jfr_step(k->in, k);
	}
	return r;
}

static int read_checkpoint(struct jfr_chunk *k, struct jfr_event *event)
{
	struct cur *c = &event->content;
	uint64_t count;
	int r = 0;

	for (int i = 0; i < 3; i++) /* start, duration, how far it is to the one before */
		ignore(jfr_number(k, c, JFR_LONG));
	ignore(cur_u8(c)); /* what kind of checkpoint it is */
	count = jfr_count(k, c);
	for (uint64_t i = 0; r == 0 && i < count && !c->bad; i++)
		r = read_constants(k, c);
	return r == 0 && c->bad ? jfr_bad(k->in, event->at, "malformed constants") : r;
}

int jfr_chunk_constants(struct jfr_chunk *k)
{
	struct cur c = jfr_events(k);
	struct jfr_event event;
	int r, ended = 0;

	plan_constants(k);
	for (r = 1; r > 0 && !ended;) {
		r = jfr_next_event(k, &c, &event);
		if (r > 0 && event.type == TYPE_CHECKPOINT)
			ended = read_checkpoint(k, &event);
		if (r > 0 && !ended)
			ended = jfr_step(k->in, k);
	}
	return ended ? ended : r;
}

int jfr_chunk_open(struct jfr_in *in, uint64_t at, struct jfr_chunk *k)
{
	struct str rest = str_skip(in->bytes, (size_t)at);
	int r;

	*k = (struct jfr_chunk){ .in = in, .at = at, .names = BUF_INIT(limit_of_sizes(rest.len, 3, 1)) };
	u64map_init(&k->class_by_id, CLASSES_MAX);
	for (size_t i = 0; i < JFR_POOL_COUNT; i++)
		u64map_init(&k->pools[i].by_key, UINT32_MAX);
	r = read_header(k, rest);
	r = r ? r : read_metadata(k);
	return r ? r : jfr_plan_events(k);
}
