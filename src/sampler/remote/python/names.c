// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/python/names.h"

#include "runtime/python/text.h"
#include "sampler/remote/memory.h"
#include "walk/walk_python.h"

#define SENT_MAX 262144
#define OBJECT_TYPE 8 /* ob_type: CPython 2.7 to 3.14, release builds */

struct remote_names {
	struct u64map sent; /* hash of process, key and cookie -> 1 */
	struct remote_memory *memory;
	uint64_t record[(sizeof(struct abi_name) + ABI_NAME_BYTES_MAX) / 8];
};

int remote_names_new(struct remote_names **out)
{
	struct remote_names *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	u64map_init(&n->sent, SENT_MAX);
	r = remote_memory_new(&n->memory);
	if (r < 0) {
		free(n);
		return r;
	}
	*out = n;
	return 0;
}

void remote_names_free(struct remote_names *n)
{
	if (!n)
		return;
	u64map_release(&n->sent);
	remote_memory_free(n->memory);
	free(n);
}

static const struct abi_python *info_of(const struct remote_process *p)
{
	return (const struct abi_python *)p->info;
}

static uint64_t sent_key(const struct remote_process *p, const struct abi_frame *f)
{
	uint64_t hash = walk_python_mix(p->start_ns, (uint64_t)p->pid << 32 | p->exec_id);

	return walk_python_mix(walk_python_mix(hash, f->a), f->b);
}

void remote_names_sent(struct remote_names *n, const struct remote_process *p, const struct abi_frame *frame)
{
	uint64_t key = sent_key(p, frame);

	if (u64map_put(&n->sent, key, 1) == -E2BIG) { /* full: begin again */
		u64map_clear(&n->sent);
		ignore(u64map_put(&n->sent, key, 1)); /* without memory: it is sent again */
	}
}

void remote_names_forget(struct remote_names *n)
{
	u64map_clear(&n->sent);
}

/* ---- one code object ---- */

static int read_now(void *memory, void *dst, uint32_t size, uint64_t at)
{
	return remote_memory_now(memory, dst, size, at);
}

static struct python_memory memory_of(struct remote_names *n)
{
	return (struct python_memory){ .read = read_now, .self = n->memory };
}

struct code { /* what is read of a code object */
	__u64 words[ABI_PYTHON_CODE_BYTES / 8];
	uint64_t file, name, lines;
	int32_t first_line;
	bool is_qualified;
};

/* Return: 0; -ESTALE: another one lies there; -errno. */
static int read_code(struct remote_names *n, const struct abi_python *info, const struct abi_frame *f, struct code *out)
{
	const struct abi_python_layout *l = &info->layout;
	struct code c = { 0 };
	int r = remote_memory_now(n->memory, c.words, sizeof(c.words),
				  f->a + l->code_filename - ABI_PYTHON_CODE_BEFORE);

	if (r < 0)
		return r;
	if (walk_python_cookie(l, c.words) != f->b)
		return -ESTALE;
	r = remote_memory_now(n->memory, &c.first_line, sizeof(c.first_line), f->a + l->code_first_line);
	if (r < 0)
		return r;
	c.file = walk_python_word_of(l, c.words, l->code_filename);
	c.is_qualified = l->code_qualname != ABI_PYTHON_NONE;
	c.name = walk_python_word_of(l, c.words, c.is_qualified ? l->code_qualname : l->code_name);
	c.lines = walk_python_word_of(l, c.words, l->code_lines);
	*out = c;
	return 0;
}

static bool still_there(struct remote_names *n, const struct abi_python *info, const struct abi_frame *f)
{
	struct code again;

	return read_code(n, info, f, &again) == 0;
}

/* Return: where the next text goes; @sent: bytes that are there now, 0 when they cannot be read. */
static size_t add_bytes(struct remote_names *n, const struct python_text *text, uint32_t max, uint8_t *to,
			uint16_t *sent)
{
	const struct python_memory memory = memory_of(n);

	*sent = (uint16_t)MAX(python_text_copy(&memory, text, max, to), (int64_t)0);
	return align_up(*sent, 8);
}

/* Fills the record's bytes. Return: how many. */
static size_t fill_name(struct remote_names *n, const struct abi_python *info, const struct code *c, uint8_t *bytes)
{
	const struct python_memory memory = memory_of(n);
	struct python_text file = { 0 }, name = { 0 }, lines = { 0 }; /* of which nothing is sent when it is none */
	struct abi_python_name head = { .first_line = c->first_line,
					.is_qualified = c->is_qualified,
					.version_minor = info->layout.version_minor,
					.version_major = info->layout.version_major };
	size_t at = sizeof(head);

	ignore(python_text_find(&memory, info, c->file, &file));
	ignore(python_text_find(&memory, info, c->name, &name));
	ignore(python_bytes_find(&memory, &info->layout, c->lines, &lines));
	at += add_bytes(n, &file, ABI_PYTHON_FILE_BYTES, bytes + at, &head.file_sent);
	at += add_bytes(n, &name, ABI_PYTHON_NAME_BYTES, bytes + at, &head.name_sent);
	at += add_bytes(n, &lines, ABI_PYTHON_LINES_BYTES, bytes + at, &head.lines_sent);
	head.lines_at = lines.at;
	head.file_size = file.size;
	head.name_size = name.size;
	head.lines_size = lines.size;
	head.file_text = head.file_sent || !file.size ? file.form : ABI_PYTHON_TEXT_NONE;
	head.name_text = head.name_sent || !name.size ? name.form : ABI_PYTHON_TEXT_NONE;
	memcpy(bytes, &head, sizeof(head));
	return at;
}

/* A stack that changed while it was read may hold an address where no code object lies: all code objects of a process
 * have one type, and the first frame that two reads agreed on says which. */
static bool has_code_type(struct remote_names *n, struct remote_process *p, const struct abi_frame *f)
{
	uint64_t type;

	if (remote_memory_now(n->memory, &type, sizeof(type), f->a + OBJECT_TYPE) < 0)
		return false;
	if (!p->code_type && !(f->flags & ABI_FRAME_GUESSED))
		p->code_type = type;
	return type == p->code_type;
}

const struct abi_name *remote_names_read(struct remote_names *n, struct remote_process *p,
					 const struct abi_frame *frame, uint64_t now_ns)
{
	struct abi_name *record = (struct abi_name *)n->record;
	uint64_t key = sent_key(p, frame);
	struct code code;
	uint32_t value;
	size_t size;

	if (frame->b == ABI_PYTHON_NO_COOKIE || u64map_get(&n->sent, key, &value) == 0)
		return NULL;
	memset(n->record, 0, sizeof(n->record));
	n->memory->pid = p->pid;
	if (!has_code_type(n, p, frame) || read_code(n, info_of(p), frame, &code) < 0)
		return NULL;
	size = fill_name(n, info_of(p), &code, record->bytes);
	if (!still_there(n, info_of(p), frame))
		return NULL;
	record->header = (struct abi_header){ .type = ABI_RECORD_NAME, .version = ABI_VERSION, .time_ns = now_ns };
	record->header.size = (uint32_t)align_up(sizeof(*record) + size, 8);
	record->process_start_ns = p->start_ns;
	record->key = frame->a;
	record->cookie = frame->b;
	record->pid = p->pid;
	record->exec_id = p->exec_id;
	record->bytes_size = (uint32_t)size;
	record->runtime = ABI_RUNTIME_PYTHON;
	return record;
}
