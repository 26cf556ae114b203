/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/threads.h"

#include "base/utf8.h"
#include "runtime/java/lines.h"

#define STREAM_MAX KIB(2)
#define SLOTS 6 /* of a field, 16 bits each, up to 20. Source: OpenJDK 17, share/oops/fieldInfo.hpp */
#define TAG_BITS 2
#define TAG_OFFSET 1 /* an offset is known, it is no type */
#define ACCESS_STATIC 8
#define HAS_VALUE 1 /* from 21 on. Source: OpenJDK 21, share/oops/fieldInfo.hpp, FieldFlags */
#define HAS_GENERIC 4
#define HAS_GROUP 16
#define HEADER_MAX 16
#define USER_MAX 0x7ffffffff000ULL

/* ---- fields of a class ---- */

struct field {
	uint32_t name, signature, offset, access;
};

struct class
{
	uint64_t pool;
	uint32_t pool_length;
	struct cur fields;
	uint32_t count;
};

static bool next_packed(struct class *c, struct field *out)
{
	uint16_t slots[SLOTS];
	uint32_t packed;

	for (size_t i = 0; i < SLOTS; i++)
		slots[i] = cur_le16(&c->fields);
	packed = (uint32_t)slots[5] << 16 | slots[4];
	*out = (struct field){ slots[1], slots[2], packed >> TAG_BITS, slots[0] };
	return !c->fields.bad && (packed & ((1 << TAG_BITS) - 1)) == TAG_OFFSET;
}

/* Source: OpenJDK 21 and 25, share/oops/fieldInfo.inline.hpp, FieldInfoReader::read_field_info(). */
static bool next_streamed(struct class *c, struct field *out)
{
	uint32_t flags;

	out->name = java_number(&c->fields, true);
	out->signature = java_number(&c->fields, true);
	out->offset = java_number(&c->fields, true);
	out->access = java_number(&c->fields, true);
	flags = java_number(&c->fields, true);
	for (uint32_t bit = HAS_VALUE; bit <= HAS_GROUP; bit <<= 2)
		if (flags & bit)
			ignore(java_number(&c->fields, true)); /* it sticks */
	return !c->fields.bad;
}

static int read_array(const struct java_process *p, uint64_t at, uint32_t width, uint8_t room[STREAM_MAX],
		      struct class *out)
{
	uint32_t length, size;
	int r = java_read(&p->memory, &length, sizeof(length), at);

	if (r < 0)
		return r;
	if (length > STREAM_MAX / width)
		return -EBADMSG;
	size = length * width;
	r = size ? java_read(&p->memory, room, size, at + p->layout->array_first) : 0;
	out->fields = cur_of(room, size);
	return r;
}

static int open_class(const struct java_process *p, uint64_t class, uint8_t room[STREAM_MAX], struct class *out)
{
	const struct java_layout *l = p->layout;
	bool is_stream = l->class_field_count == JAVA_NONE;
	uint16_t count = 0;
	uint64_t at;
	int r = java_read_word(&p->memory, class + l->class_constants, &out->pool);

	r = r ? r : java_read(&p->memory, &out->pool_length, sizeof(out->pool_length), out->pool + l->pool_length);
	r = r ? r : java_read_word(&p->memory, class + l->class_fields, &at);
	r = r ? r : read_array(p, at, is_stream ? 1 : 2, room, out);
	if (r == 0 && !is_stream)
		r = java_read(&p->memory, &count, sizeof(count), class + l->class_field_count);
	out->count = count;
	if (r == 0 && is_stream) {
		out->count = java_number(&out->fields, true);
		ignore(java_number(&out->fields, true)); /* those that the VM has added; they come last */
	}
	return r ? r : out->fields.bad || out->count > JAVA_FIELDS_MAX ? -EBADMSG : 0;
}

/* The text of the pool's entry @index. */
static bool is_text(const struct java_process *p, const struct class *c, uint32_t index, struct str want)
{
	const struct java_layout *l = p->layout;
	uint64_t symbol;
	uint16_t length;
	char text[32];

	return index && index < c->pool_length && want.len <= sizeof(text) &&
	       java_read_word(&p->memory, c->pool + l->pool_header + 8ULL * index, &symbol) == 0 &&
	       java_read(&p->memory, &length, sizeof(length), symbol + l->symbol_length) == 0 && length == want.len &&
	       java_read(&p->memory, text, length, symbol + l->symbol_body) == 0 && str_eq(str_n(text, length), want);
}

uint16_t java_field_find(const struct java_process *p, uint64_t class, struct str name, struct str signature,
			 uint16_t *lowest)
{
	uint16_t found = JAVA_NONE, low = JAVA_NONE;
	uint8_t room[STREAM_MAX];
	struct class c = { 0 };
	int r = open_class(p, class, room, &c);

	if (lowest)
		*lowest = JAVA_NONE;
	for (uint32_t i = 0; r == 0 && i < c.count; i++) {
		struct field f;

		if (!(p->layout->class_field_count == JAVA_NONE ? next_streamed(&c, &f) : next_packed(&c, &f)))
			return JAVA_NONE;
		if (f.access & ACCESS_STATIC || f.offset >= JAVA_NONE)
			continue;
		low = MIN(low, (uint16_t)f.offset);
		if (found == JAVA_NONE && is_text(p, &c, f.name, name) && is_text(p, &c, f.signature, signature))
			found = (uint16_t)f.offset;
	}
	if (lowest)
		*lowest = low;
	return found;
}

int java_threads_learn(const struct java_process *p, struct java_layout *l)
{
	uint64_t thread, string;
	int r;

	if (!l->thread_class || !l->string_class || l->class_fields == JAVA_NONE || l->array_first == JAVA_NONE)
		return -ENOTSUP;
	r = java_read_word(&p->memory, l->thread_class + p->bias, &thread);
	r = r ? r : java_read_word(&p->memory, l->string_class + p->bias, &string);
	if (r < 0)
		return r;
	if (!thread || !string)
		return -EAGAIN;
	l->thread_name = java_field_find(p, thread, STR("name"), STR("Ljava/lang/String;"), NULL);
	if (l->version == 8) {
		l->string_value = java_field_find(p, string, STR("value"), STR("[C"), &l->object_header);
		return 0;
	}
	l->string_value = java_field_find(p, string, STR("value"), STR("[B"), &l->object_header);
	l->string_coder = java_field_find(p, string, STR("coder"), STR("B"), NULL);
	return 0;
}

/* ---- threads ---- */

struct heap { /* how references are written */
	uint64_t base;
	uint32_t shift;
};

struct path { /* what led to a name */
	uint64_t thread, name, value;
	uint32_t tid, length;
	uint8_t coder; /* 1: UTF-16 */
};

/* Return: 0: there is none, or it cannot be read. */
static uint64_t reference(const struct java_process *p, const struct heap *h, uint64_t thread, uint64_t at)
{
	bool is_compressed = h->base || h->shift || thread >> 32 == 0;
	uint64_t value = 0;

	if (java_read(&p->memory, &value, is_compressed ? 4 : 8, at) < 0 || !value)
		return 0;
	value = is_compressed ? h->base + (value << h->shift) : value;
	return value & 7 || value > USER_MAX ? 0 : value;
}

static int read_thread_object(const struct java_process *p, uint64_t thread, uint64_t *out)
{
	uint64_t at = thread + p->layout->thread_object, object;
	int r = java_read_word(&p->memory, at, &object);

	if (r == 0 && p->layout->flags & JAVA_LAYOUT_OOP_HANDLES)
		r = java_read_word(&p->memory, object, &object);
	if (r == 0 && (!object || object & 7 || object > USER_MAX))
		r = -ENOENT;
	*out = object;
	return r;
}

static int follow(const struct java_process *p, const struct heap *h, uint64_t thread, struct path *out)
{
	const struct java_layout *l = p->layout;
	struct path found = { .coder = l->string_coder == JAVA_NONE };
	uint64_t os;
	int r = java_read_word(&p->memory, thread + l->thread_os, &os);

	r = r ? r : java_read(&p->memory, &found.tid, sizeof(found.tid), os + l->os_id);
	r = r ? r : read_thread_object(p, thread, &found.thread);
	if (r < 0)
		return r;
	found.name = reference(p, h, found.thread, found.thread + l->thread_name);
	found.value = found.name ? reference(p, h, found.thread, found.name + l->string_value) : 0;
	if (!found.value)
		return -ENOENT;
	if (l->string_coder != JAVA_NONE)
		r = java_read(&p->memory, &found.coder, 1, found.name + l->string_coder);
	r = r ? r : java_read(&p->memory, &found.length, sizeof(found.length), found.value + l->object_header);
	if (r == 0 && (found.coder > 1 || found.length > INT32_MAX ||
		       (found.coder && l->string_coder != JAVA_NONE && found.length & 1)))
		r = -EBADMSG;
	*out = found;
	return r;
}

/* Where the elements of an array begin, of a size below 8. From 23 on right behind the length. Source: OpenJDK 17 and
 * 25, share/oops/arrayOop.hpp, base_offset_in_bytes(). */
static uint32_t first_element(const struct java_layout *l)
{
	uint32_t end = l->object_header + 4U;

	return l->version >= 23 ? end : (end + 7) & ~7U;
}

static void add_bytes(struct buf *out, const uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		utf8_add(out, bytes[i] ? bytes[i] : 0xfffd);
}

static void add_units(struct buf *out, const uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t unit = java_u16(bytes, i * 2UL), low = i + 1 < count ? java_u16(bytes, (i + 1) * 2UL) : 0;

		if (unit >= 0xd800 && unit < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
			i++;
		}
		utf8_add(out, unit ? unit : 0xfffd);
	}
}

static bool is_same(const struct path *a, const struct path *b)
{
	return a->thread == b->thread && a->name == b->name && a->value == b->value && a->tid == b->tid &&
	       a->length == b->length && a->coder == b->coder;
}

static int read_name(const struct java_process *p, const struct heap *h, uint64_t thread, struct buf *out,
		     uint32_t *tid)
{
	const struct java_layout *l = p->layout;
	uint8_t bytes[2 * JAVA_THREAD_UNITS_MAX];
	struct path path, again;
	uint32_t width, units;
	int r = follow(p, h, thread, &path);

	if (r < 0)
		return r;
	width = path.coder ? 2 : 1;
	units = MIN(l->string_coder == JAVA_NONE ? path.length : path.length / width, (uint32_t)JAVA_THREAD_UNITS_MAX);
	r = units ? java_read(&p->memory, bytes, units * width, path.value + first_element(l)) : 0;
	r = r ? r : follow(p, h, thread, &again);
	if (r == 0 && !is_same(&path, &again))
		r = -EAGAIN;
	if (r < 0)
		return r;
	if (path.coder)
		add_units(out, bytes, units);
	else
		add_bytes(out, bytes, units);
	*tid = path.tid;
	return out->error;
}

/* A collector may move it meanwhile: then once more. Return: what each() said. */
static int tell(const struct java_process *p, const struct heap *h, uint64_t thread, runtime_thread_fn *each, void *ctx)
{
	scoped(buf_release) struct buf name = BUF_INIT(4 * JAVA_THREAD_UNITS_MAX);
	uint32_t tid = 0;
	int r = -EAGAIN;

	for (int i = 0; i < 3 && r == -EAGAIN; i++)
		r = read_name(p, h, thread, &name, &tid);
	if (r == -ENOMEM)
		return r;
	return r == 0 && tid ? each(ctx, tid, buf_str(&name)) : 0;
}

static int each_of_chain(const struct java_process *p, const struct heap *h, uint64_t at, runtime_thread_fn *each,
			 void *ctx)
{
	int r = 0;

	for (size_t i = 0; at && i < JAVA_THREADS_MAX && r == 0; i++) {
		r = tell(p, h, at, each, ctx);
		if (java_read_word(&p->memory, at + p->layout->list_threads, &at) < 0)
			break; /* that thread has ended */
	}
	return r;
}

static int each_of_list(const struct java_process *p, const struct heap *h, uint64_t list, runtime_thread_fn *each,
			void *ctx)
{
	const struct java_layout *l = p->layout;
	uint64_t threads, at;
	uint32_t length = 0;
	int r = l->list_length == JAVA_NONE ? -ENOTSUP
					    : java_read(&p->memory, &length, sizeof(length), list + l->list_length);

	r = r ? r : java_read_word(&p->memory, list + l->list_threads, &threads);
	for (uint32_t i = 0; r == 0 && i < MIN(length, (uint32_t)JAVA_THREADS_MAX); i++) {
		r = java_read_word(&p->memory, threads + 8ULL * i, &at);
		r = r ? r : tell(p, h, at, each, ctx);
	}
	return r;
}

static bool knows_fields(const struct java_layout *l)
{
	return l->thread_name != JAVA_NONE && l->string_value != JAVA_NONE && l->object_header <= HEADER_MAX &&
	       (l->version == 8 || l->string_coder != JAVA_NONE);
}

int java_threads_each(const struct java_process *p, runtime_thread_fn *each, void *ctx)
{
	const struct java_layout *l = p->layout;
	struct heap h = { 0 };
	uint64_t first;
	int r;

	if (!knows_fields(l) || !l->oop_base || !l->oop_shift)
		return -ENOTSUP;
	r = java_read_word(&p->memory, l->oop_base + p->bias, &h.base);
	r = r ? r : java_read(&p->memory, &h.shift, sizeof(h.shift), l->oop_shift + p->bias);
	r = r ? r : java_read_word(&p->memory, l->threads + p->bias, &first);
	if (r < 0 || h.shift > 7)
		return r < 0 ? r : -EBADMSG;
	return l->flags & JAVA_LAYOUT_THREAD_CHAIN ? each_of_chain(p, &h, first, each, ctx)
						   : each_of_list(p, &h, first, each, ctx);
}

int java_thread_names(const struct runtime_target *target, const void *info, runtime_thread_fn *each, void *ctx)
{
	const struct java_process p = java_process_of(target);
	struct java_layout *l = p.layout ? target->of_process : NULL; /* the same, to be changed */

	(void)info;
	if (!l)
		return -ENOTSUP;
	/* A JVM can be walked before it has loaded java.lang.Thread: then the layout was learnt too early for this. */
	if (!knows_fields(l)) {
		int r = java_threads_learn(&p, l);

		if (r < 0)
			return r;
	}
	return java_threads_each(&p, each, ctx);
}
