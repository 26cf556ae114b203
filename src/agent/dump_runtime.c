/* SPDX-License-Identifier: Apache-2.0 */
/* Which runtime a process runs, found out at once, and the names of its functions. */
#include "agent/dump_int.h"

#include <elf.h>

#include "proc/proc_read.h"
#include "runtime/file_elf.h"

static int read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return world_live_read(self, dst, size, at);
}

/* A file may be mapped in many places. */
static bool is_probed(const struct dumper *d, uint32_t file_id)
{
	uint32_t unused;

	return u64map_get(&d->probed, file_id, &unused) == 0;
}

/* Return: 1: it is a runtime; 0; -ENOMEM. A file that cannot be read is none. */
static int probe(struct dumper *d, const struct file_elf *o, const struct mapping *m, bool is_program)
{
	struct runtime_file file = { .elf = &o->elf,
				     .path = str_of(o->view.path ? o->view.path : ""),
				     .is_program = is_program };
	const struct runtime *runtime;

	for (size_t i = 0; (runtime = runtime_at(i)); i++) {
		struct runtime_binary *binary = NULL;
		int r = d->cfg->without_runtimes & 1U << runtime->id ? 0 : runtime->probe(&file, &binary);

		if (r != 1) {
			if (r == -ENOMEM)
				return r;
			continue;
		}
		binary->runtime = runtime;
		d->runtimes[d->runtime_count++] = (struct dump_runtime){
			.file_id = m->file_id, .mapping = m, .is_program = is_program, .binary = binary
		};
		return 1;
	}
	return 0;
}

/* Return: 0 or -ENOMEM. */
static int take_runtime(struct dumper *d, const struct runtime_binary *binary)
{
	int r = intern_add(&d->out->strings, str_of(binary->runtime->name), &d->out->runtime);

	d->runtime = binary->runtime;
	d->outside = remote_reader_find(d->runtime->id);
	if (r == 0)
		r = intern_add(&d->out->strings, str_of(binary->runtime->title), &d->out->title);
	if (r == 0)
		r = intern_add(&d->out->strings, str_of(binary->version), &d->out->version);
	if (r == 0 && d->outside)
		r = d->outside->open(&d->walker);
	d->process->runtime = d->runtime->id;
	memcpy(d->process->info, d->info, sizeof(d->process->info));
	return r == 0 && d->runtime->in_line ? dump_sync(d, binary) : r;
}

static int attach(struct dumper *d, struct dump_runtime *found, const struct file_elf *o)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	const struct runtime_binary *binary = found->binary;
	bool is_read = binary->runtime->in_line || remote_reader_find(binary->runtime->id);
	uint64_t address;
	char why[RUNTIME_WHY_MAX] = "";
	int r = elf_address_of(&o->elf, found->mapping->offset, &address);

	d->target.why = why;
	d->target.bias = found->mapping->start - address;
	if (r == 0) /* frames of the others are had by sampling alone */
		r = binary->refused[0] || !is_read ? -ENOTSUP : dump_learn(d, found);
	if (r == 0)
		r = binary->runtime->attach(binary, &d->target, d->info);
	d->target.why = NULL;
	if (r > 0)
		return take_runtime(d, binary);
	if (d->runtime)
		return 0;
	buf_addf(&text, "no %s frames: %s", binary->runtime->name,
		 binary->refused[0] ? binary->refused
		 : !is_read         ? "they are not read from outside yet; hearth record shows them"
		 : r == -EAGAIN     ? "it has not started up yet"
		 : why[0]           ? why
				    : strerror(-r));
	return intern_add(&d->out->strings, buf_str(&text), &d->out->remark);
}

/* A process may run two, one of them within the other. Frames of one are shown, and it is said when the other runs,
 * too. */
static int leave_out(struct dumper *d, struct dump_runtime *found, const struct file_elf *o)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	const struct runtime *runtime = found->binary->runtime;
	struct runtime_target target = d->target;
	uint64_t info[RUNTIME_INFO_MAX / 8], address;

	if (runtime == d->runtime || found->binary->refused[0] ||
	    elf_address_of(&o->elf, found->mapping->offset, &address) < 0)
		return 0;
	target.bias = found->mapping->start - address;
	if (runtime->learn_file && runtime->learn_file(found->binary, &target, &found->learnt) < 0)
		return 0;
	target.of_file = found->learnt;
	if (runtime->attach(found->binary, &target, info) <= 0)
		return 0;
	buf_addf(&text, "no %s frames: those of %s are shown; --no-%s shows the others", runtime->title,
		 d->runtime->title, d->runtime->name);
	return intern_add(&d->out->strings, buf_str(&text), &d->out->remark);
}

static int attach_or_leave_out(struct dumper *d, struct dump_runtime *found)
{
	scoped(file_elf_release) struct file_elf o = { .view.fd = -1 };

	if (file_elf_open(d->files, found->file_id, &o) < 0)
		return 0;
	return d->runtime ? leave_out(d, found, &o) : attach(d, found, &o);
}

/* The program's own goes first, then what was loaded first: libraries are mapped from above. */
static int attach_first(struct dumper *d)
{
	int r = 0;

	for (size_t i = 0; i < d->runtime_count && r == 0; i++)
		if (d->runtimes[i].is_program)
			r = attach_or_leave_out(d, &d->runtimes[i]);
	for (size_t i = d->runtime_count; i-- > 0 && r == 0;)
		if (!d->runtimes[i].is_program)
			r = attach_or_leave_out(d, &d->runtimes[i]);
	return r;
}

/* The file that the process began in; 0: not known. */
static uint32_t program_file(const struct dumper *d)
{
	const struct mapping *m = NULL;
	uint64_t entry;

	if (proc_auxv(d->process->dir, AT_ENTRY, &entry) == 0)
		m = mappings_find(&d->maps, entry);
	return m ? m->file_id : 0;
}

int dump_find_runtime(struct dumper *d)
{
	uint32_t program = program_file(d);

	d->target = (struct runtime_target){ .pid = d->process->pid,
					     .start_ns = d->process->start_ns,
					     .exec_id = d->process->exec_id,
					     .read = read_target,
					     .self = &d->process->pid, /* struct world_live */
					     .host_root = d->cfg->host_root,
					     .proc_dir = d->process->dir };
	for (size_t i = 0; i < d->maps.count && d->runtime_count < DUMP_RUNTIMES_MAX; i++) {
		const struct mapping *m = &d->maps.items[i];
		scoped(file_elf_release) struct file_elf o = { .view.fd = -1 };
		int r;

		if (!m->file_id || m->kind != PROC_PLACE_FILE || is_probed(d, m->file_id) ||
		    file_elf_open(d->files, m->file_id, &o) < 0)
			continue;
		r = u64map_put(&d->probed, m->file_id, 1);
		if (r == 0)
			r = probe(d, &o, m, m->file_id == program);
		if (r < 0)
			return r;
	}
	return attach_first(d);
}

void dump_release_runtimes(struct dumper *d)
{
	dump_release_learnt(d);
	for (size_t i = 0; i < d->runtime_count; i++)
		d->runtimes[i].binary->runtime->release(d->runtimes[i].binary);
}

enum mix_role dump_role(const struct dumper *d, const struct abi_frame *f)
{
	uint64_t at = f->b - (f->flags & ABI_FRAME_RETURN ? 1 : 0);

	if (f->kind == ABI_FRAME_RUNTIME)
		return f->flags & ABI_FRAME_INTERNAL ? MIX_STUB : MIX_IN_LINE;
	if (f->kind != ABI_FRAME_NATIVE || !d->runtime)
		return MIX_NATIVE;
	for (size_t i = 0; i < d->runtime_count; i++) {
		const struct runtime_binary *binary = d->runtimes[i].binary;

		if (d->runtimes[i].file_id != f->a || binary->runtime != d->runtime)
			continue;
		for (size_t k = 0; k < binary->loop_count; k++)
			if (at >= binary->loops[k].start && at < binary->loops[k].end)
				return MIX_LOOP;
		return MIX_INTERPRETER;
	}
	return MIX_NATIVE;
}

/* As the walk met it: what it is qualified by is not known later, nor is any name of some runtimes. */
static int decode_name(struct dumper *d, const struct abi_frame *f, struct buf *room, struct runtime_function *out)
{
	const struct abi_name *name = d->outside->name(d->walker, d->process, f, 0);

	return name ? d->runtime->decode_name(name->bytes, name->bytes_size, room, out) : -ENOENT;
}

/* Texts and table in full. */
static int read_name(struct dumper *d, const struct abi_frame *f, struct buf *room, struct runtime_function *out)
{
	return d->runtime->read_name ? d->runtime->read_name(&d->target, d->info, f->a, f->b, room, out) : -ENOTSUP;
}

static bool is_whole(const struct runtime_function *f)
{
	return !f->is_cut && f->lines.size >= f->lines_whole;
}

int dump_runtime_frame(struct dumper *d, const struct abi_frame *f, struct dump_frame *out)
{
	scoped(buf_release) struct buf room = BUF_INIT(MIB(16)), more = BUF_INIT(MIB(16));
	struct runtime_function met = { 0 }, function = { 0 };
	int r, m;

	*out = (struct dump_frame){ .kind = DUMP_RUNTIME, .guessed = (f->flags & ABI_FRAME_GUESSED) != 0 };
	m = decode_name(d, f, &more, &met);
	r = m == 0 && is_whole(&met) ? -EALREADY : read_name(d, f, &room, &function);
	if (r < 0 && m == 0)
		function = met;
	else if (m == 0 && !met.is_cut)
		function.name = met.name;
	r = m == 0 ? 0 : r;
	if (r == 0)
		r = dump_name(d, function.name, &out->name);
	if (r == 0)
		r = dump_name(d, function.file, &out->file);
	if (r == 0) {
		out->line = d->runtime->line ? d->runtime->line(&function, f->extra) : 0;
		out->first_line = function.first_line;
	}
	return r == -ENOMEM ? r : 0; /* it could not be read: it stays without a name */
}
