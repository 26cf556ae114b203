/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/ruby/reader.h"

#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"
#include "sampler/remote/steps.h"

static void seen(struct walk *w);
#define walk_ruby_seen(w) seen(w)
#include "walk/walk_ruby.h"

static void start(struct walk *w, const void *info, uint64_t process)
{
	walk_ruby_start(w, info, process);
}

/* The context and the frames change with every call; what frames point at stays while they live. */
static enum remote_kind kind_of(const struct walk *w, uint32_t size)
{
	const struct walk_ruby *p = (const struct walk_ruby *)w->state[ABI_RUNTIME_RUBY];

	if (p->phase == WALK_RUBY_FIND)
		return size == ABI_RUBY_EC_BYTES ? REMOTE_HEAD : REMOTE_EARLY;
	return size == WALK_RUBY_WINDOW_BYTES ? REMOTE_FRAME : REMOTE_LATE;
}

static bool needs_pointer(const void *info)
{
	(void)info;
	return true;
}

static size_t add_lines(const struct runtime_function *f, struct abi_ruby_name *head, struct buf *out)
{
	const uint8_t *bytes = f->lines.bytes;
	struct ruby_lines table;
	size_t left;

	if (f->lines.size <= sizeof(table))
		return 0;
	memcpy(&table, bytes, sizeof(table));
	head->lines_count = table.count;
	head->code_size = table.code_size;
	left = f->lines.size - sizeof(table);
	if (table.index_size > left || table.index_size > REMOTE_TABLE_MAX)
		return 0; /* whole or not at all */
	head->index_sent = remote_name_text(out, bytes + sizeof(table), table.index_size, table.index_size);
	bytes += sizeof(table) + table.index_size;
	return remote_name_text(out, bytes, left - table.index_size, REMOTE_TABLE_MAX - table.index_size);
}

static int add_record(const struct abi_ruby_layout *l, const struct runtime_function *f, struct buf *out)
{
	struct abi_ruby_name head = { .first_line = f->first_line,
				      .file_size = (uint32_t)f->file.len,
				      .name_size = (uint32_t)f->name.len,
				      .line_bytes = l->line_bytes,
				      .line_at = l->line_at,
				      .flags = l->flags,
				      .version_minor = l->version_minor,
				      .version_major = l->version_major };

	buf_add(out, &head, sizeof(head));
	head.file_sent = remote_name_text(out, f->file.ptr, f->file.len, REMOTE_TEXT_MAX);
	head.name_sent = remote_name_text(out, f->name.ptr, f->name.len, REMOTE_TEXT_MAX);
	head.lines_sent = (uint16_t)add_lines(f, &head, out);
	if (out->error)
		return out->error;
	memcpy(out->ptr, &head, sizeof(head));
	return 0;
}

static int read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return remote_name_read(self, dst, size, at);
}

/* Which class its method is of is known now and not later. Names of C functions stay: whoever shows them reads them. */
static void seen(struct walk *w)
{
	const struct runtime_target target = {
		.pid = walk_sample(w)->pid, .read = read_target, .self = w, .proc_dir = -1
	};
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1)), bytes = BUF_INIT(ABI_NAME_BYTES_MAX);
	uint64_t key = w->scratch[WALK_RUBY_IDENTITY], cookie = walk_ruby_state(w)->cookie;
	const struct abi_ruby *info = walk_ruby_info(w);
	struct runtime_function function = { 0 };
	uint8_t *to;

	if (!remote_name_wanted(w, key, cookie) ||
	    ruby_read_name_of(&target, info, key, cookie, w->scratch[WALK_RUBY_OWNER], &room, &function) < 0 ||
	    add_record(&info->layout, &function, &bytes) < 0)
		return;
	to = remote_name_bytes(w, bytes.len);
	if (!to)
		return;
	memcpy(to, bytes.ptr, bytes.len);
	remote_name_keep(w, key, cookie);
}

static const struct remote_steps steps = {
	.runtime = ABI_RUNTIME_RUBY,
	.start = start,
	.step = walk_ruby_step,
	.kind_of = kind_of,
	.needs_pointer = needs_pointer,
};

static int open_reader(struct remote_walker **out)
{
	return remote_steps_open(&steps, out);
}

const struct remote_reader remote_ruby_reader = { .runtime = ABI_RUNTIME_RUBY,
						  .open = open_reader,
						  REMOTE_STEPS_READER };
