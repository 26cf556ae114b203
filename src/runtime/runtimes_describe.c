/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called, for people: its application by the main program's runtime, its metadata by all of them. */
#include "runtime/runtimes_int.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/json.h"
#include "object/elf_find.h"
#include "proc/proc_read.h"

/* ---- which one is the main program's ---- */

static bool holds(const struct runtimes_attached *a, uint64_t address)
{
	const struct elf *file = &a->probed->segments;

	for (size_t i = 0; i < file->segment_count; i++)
		if (address - a->bias - file->segments[i].address < file->segments[i].memory_size)
			return true;
	return false;
}

static bool is_linked(const struct runtimes_attached *a, const struct elf *program)
{
	return program && elf_needs(program, str_base(str_of(a->probed->path))) == 1;
}

const struct runtimes_attached *runtimes_main_of(const struct runtimes_attached *attached, size_t count, uint64_t entry,
						 const struct elf *program)
{
	for (size_t i = 0; i < count; i++)
		if (entry && holds(&attached[i], entry))
			return &attached[i];
	for (size_t i = 0; i < count; i++)
		if (is_linked(&attached[i], program))
			return &attached[i];
	return NULL;
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(const int *)self, dst, size, offset);
}

static const struct runtimes_attached *read_main(const struct runtimes_entry *e, int dir)
{
	scoped(closep) int path = openat(dir, "exe", O_PATH | O_CLOEXEC);
	scoped(elf_release) struct elf program = { 0 };
	struct reader in = { .read = read_fd };
	bool is_read = false;
	uint64_t entry = 0;
	struct stat st;
	scoped(closep) int fd = path < 0 ? -1 : io_open_regular(path, &st);

	ignore(proc_auxv(dir, AT_ENTRY, &entry) < 0); /* then entry stays 0 */
	if (fd >= 0) {
		in.self = &fd;
		in.size = (uint64_t)st.st_size;
		is_read = elf_parse(&in, &program) == 0;
	}
	return runtimes_main_of(e->attached, e->attached_count, entry, is_read ? &program : NULL);
}

/* Where there is one alone, nothing has to be read. */
static const struct runtimes_attached *find_main(const struct runtimes_entry *e, int dir)
{
	return e->attached_count == 1 ? &e->attached[0] : read_main(e, dir);
}

/* ---- application ---- */

static int ask_application(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, int dir,
			   struct buf *out)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	struct runtime_target target = runtimes_target(r, e, a, dir);

	return runtime->application ? runtime->application(&target, out) : -ENOENT;
}

/* Where no runtime is the main program's (a server that loads several), the first one that can tell. */
static int find_application(struct runtimes *r, struct runtimes_entry *e, const struct runtimes_attached *main, int dir,
			    struct buf *out)
{
	int result = -ENOENT;

	for (size_t i = 0; result == -ENOENT && i < e->attached_count; i++)
		if (!main || main == &e->attached[i])
			result = ask_application(r, e, &e->attached[i], dir, out);
	if (result < 0)
		buf_clear(out);
	return result;
}

/* ---- metadata ---- */

static bool has_member(struct str object, struct str key)
{
	struct str rest = object, other, value;

	while (json_member(&rest, &other, &value) == 1)
		if (str_eq(other, key))
			return true;
	return false;
}

/* The value behind blanks, which has to be an object and all of @text. Return: 0 or -EBADMSG. */
static int whole_object(struct str text, struct str *out)
{
	struct str rest = text;

	if (json_value(&rest, out) < 0 || str_trim(rest).len || !out->len || out->ptr[0] != '{')
		return -EBADMSG;
	return 0;
}

static void add_member(struct str key, struct str value, bool *is_first, struct buf *out)
{
	buf_adds(out, *is_first ? STR("") : STR(", "));
	buf_adds(out, key);
	buf_adds(out, STR(": "));
	buf_adds(out, value);
	*is_first = false;
}

int runtimes_join_metadata(struct str first, struct str second, struct buf *out)
{
	struct str rest, key, value, object;
	const size_t before = out->len;
	bool is_first = true;

	if (!first.len || !second.len) {
		buf_adds(out, first.len ? first : second);
		return out->error;
	}
	if (whole_object(first, &first) < 0 || whole_object(second, &object) < 0)
		return -EBADMSG;
	buf_addc(out, '{');
	for (rest = first; json_member(&rest, &key, &value) == 1;)
		add_member(key, value, &is_first, out);
	for (rest = object; json_member(&rest, &key, &value) == 1;)
		if (!has_member(first, key))
			add_member(key, value, &is_first, out);
	buf_addc(out, '}');
	if (out->error)
		out->len = before;
	return out->error;
}

/* What does not fit or is no object is left out. */
static void add_metadata(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, int dir,
			 struct buf *all)
{
	scoped(buf_release) struct buf one = BUF_INIT(all->max), joined = BUF_INIT(all->max);
	const struct runtime_binary *binary = a->probed->binary;
	struct runtime_target target = runtimes_target(r, e, a, dir);

	if (!binary->runtime->metadata || binary->runtime->metadata(binary, &target, &one) < 0 || one.error)
		return;
	if (runtimes_join_metadata(buf_str(all), buf_str(&one), &joined) < 0)
		return;
	buf_clear(all);
	buf_adds(all, buf_str(&joined));
}

/* ---- both ---- */

static char *take_text(struct buf *text)
{
	size_t len;

	if (text->error || !text->len || !buf_cstr(text)[0])
		return NULL;
	return buf_take(text, &len);
}

/* Those that have not started up are asked when they have. */
static size_t settled_count(const struct runtimes_entry *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->attached_count; i++)
		count += e->attached[i].state != RUNTIMES_PENDING;
	return count;
}

void runtimes_want_description(struct runtimes *r, const struct runtimes_entry *e)
{
	struct runtimes_message *m;

	if (!r->cfg.want_application || settled_count(e) <= e->described_count)
		return;
	m = runtimes_message_new(RUNTIMES_DESCRIBE, &e->key, 0);
	if (m)
		ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_ALL)); /* then it has no description */
}

void runtimes_describe(struct runtimes *r, const struct program *process)
{
	struct runtimes_entry *e = runtimes_entry_find(r, process);
	scoped(buf_release) struct buf application = BUF_INIT(RUNTIMES_TEXT_MAX);
	scoped(buf_release) struct buf metadata = BUF_INIT(e ? runtimes_metadata_room(r, e) : 0);
	const size_t settled = e ? settled_count(e) : 0;
	scoped(closep) int dir = settled && settled > e->described_count ? runtimes_open_process(r, process) : -1;
	const struct runtimes_attached *main;
	char *texts[2];

	if (dir < 0)
		return;
	main = find_main(e, dir);
	ignore(find_application(r, e, main, dir, &application) < 0); /* then it is empty */
	for (size_t i = 0; i < e->attached_count; i++)
		if (main == &e->attached[i])
			add_metadata(r, e, &e->attached[i], dir, &metadata);
	for (size_t i = 0; i < e->attached_count; i++)
		if (main != &e->attached[i] && e->attached[i].state != RUNTIMES_PENDING)
			add_metadata(r, e, &e->attached[i], dir, &metadata);
	texts[0] = take_text(&application);
	texts[1] = take_text(&metadata);
	pthread_mutex_lock(&r->lock);
	free(e->application);
	e->application = texts[0];
	runtimes_set_metadata(r, e, texts[1]);
	e->described_count = settled;
	pthread_mutex_unlock(&r->lock);
}
