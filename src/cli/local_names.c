/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local_names.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/io.h"
#include "codec/jitdump.h"
#include "symbol/symbol.h"

#define TABLES_MAX MIB(256) /* of symbols: one command runs, not an agent */
#define DESCRIPTORS_MAX 256
#define FILES_MAX 65536
#define JITDUMPS_MAX 256
#define JITDUMP_FILE_MAX MIB(512)
#define JITDUMP_TABLES_MAX MIB(64)
#define KERNEL_NOTES "/sys/kernel/notes"
#define KERNEL STR("[kernel.kallsyms]")

enum known { NOT_ASKED, IS_SAME, IS_OTHER };

struct named_file {
	uint32_t id; /* of files; 0: not here, or another build */
};

struct named_jit {
	struct jitdump dump;
	bool is_read;
};

struct local_names {
	struct code_names names;
	struct files *files;
	struct symbols *symbols;
	struct intern keys;      /* path and build id */
	struct named_file *rows; /* by id of keys - 1 */
	size_t row_count, row_cap;
	struct intern dumps; /* paths */
	struct named_jit jits[JITDUMPS_MAX];
	size_t jit_count;
	enum known kernel;
	uint64_t kernel_text;                             /* that the answer is about */
	uint64_t other_files, unmarked_files, other_jits; /* unmarked: without a build id in the recording */
	bool kernel_asked;
};

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

static bool has_build_id(int fd, const struct stat *st, struct str want)
{
	const struct reader in = { .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)st->st_size };
	scoped(elf_release) struct elf elf = { 0 };
	uint8_t id[ELF_BUILD_ID_MAX];
	int r = elf_parse(&in, &elf);

	r = r < 0 ? r : elf_build_id(&elf, id);
	return r > 0 && str_eq(str_n((const char *)id, (size_t)r), want);
}

/* A recording may name any path: only regular files are opened. */
static int open_file(const char *path, struct stat *st)
{
	scoped(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);

	return path_fd < 0 ? -errno : io_open_regular(path_fd, st);
}

/* Return: 0 and *id, -ENOENT when it is not the file that is wanted, or -ENOMEM. */
static int try_path(struct local_names *n, const char *path, const struct code_place *place, uint32_t *id)
{
	struct file_key key;
	struct stat st;
	scoped(closep) int fd = open_file(path, &st);
	int r;

	if (fd < 0 || !has_build_id(fd, &st, place->build_id))
		return -ENOENT;
	file_key_of(&st, &key);
	r = files_add(n->files, fd, &key, str_of(path), id);
	if (r == 0)
		fd = -1; /* moved */
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}

/* ~/.debug/.build-id/ab/cdef.../elf: linux 6.1, tools/perf/util/build-id.c, build_id_cache__linkname(). */
static int try_cache(struct local_names *n, const struct code_place *place, uint32_t *id)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	const char *home = getenv("HOME");

	if (!home || place->build_id.len < 2)
		return -ENOENT;
	buf_addf(&path, "%s/.debug/.build-id/", home);
	for (size_t i = 0; i < place->build_id.len; i++)
		buf_addf(&path, i == 0 ? "%02x/" : "%02x", (unsigned int)(uint8_t)place->build_id.ptr[i]);
	buf_adds(&path, STR("/elf"));
	return path.error ? -ENOENT : try_path(n, buf_cstr(&path), place, id);
}

static int find_file(struct local_names *n, const struct code_place *place, uint32_t *id)
{
	scoped(freep) char *path = NULL;
	int r;

	if (!place->build_id.len)
		return -ENOENT;
	path = str_dup(place->path);
	if (!path)
		return -ENOMEM;
	r = path[0] == '/' ? try_path(n, path, place, id) : -ENOENT;
	return r == -ENOENT ? try_cache(n, place, id) : r;
}

/* Each file is looked for once. */
static int get_file(struct local_names *n, const struct code_place *place, uint32_t *id)
{
	scoped(buf_release) struct buf key = BUF_INIT(KIB(80));
	uint32_t row = 0, found = 0;
	int r;

	buf_adds(&key, place->build_id);
	buf_addc(&key, '\0');
	buf_adds(&key, place->path);
	if (key.error)
		return key.error;
	if (intern_find(&n->keys, buf_str(&key), &row) == 0) {
		*id = n->rows[row - 1].id;
		return *id ? 0 : -ENOENT;
	}
	r = find_file(n, place, &found);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && place->build_id.len)
		n->other_files++;
	else if (r < 0)
		n->unmarked_files++;
	r = array_grow(&n->rows, &n->row_cap, n->row_count, FILES_MAX);
	r = r ? r : intern_add(&n->keys, buf_str(&key), &row);
	if (r < 0)
		return r == -E2BIG ? -ENOENT : r;
	n->rows[n->row_count++].id = found;
	*id = found;
	return found ? 0 : -ENOENT;
}

static int answer(const struct symbol *symbol, struct code_name *out)
{
	if (!symbol->has_name)
		return -ENOENT;
	*out = (struct code_name){ .name = symbol->name, .system_name = symbol->system_name };
	return 0;
}

static int find_native(struct local_names *n, const struct code_place *place, struct code_name *out)
{
	struct symbol symbol;
	uint32_t id = 0;
	int r = get_file(n, place, &id);

	r = r ? r : symbols_native(n->symbols, id, place->address, place->is_return, &symbol);
	return r ? r : answer(&symbol, out);
}

static bool is_running_kernel(struct str build_id)
{
	scoped(buf_release) struct buf notes = BUF_INIT(ELF_NOTES_MAX);
	uint8_t id[ELF_BUILD_ID_MAX];
	int r;

	if (!build_id.len || io_read_file(KERNEL_NOTES, &notes) < 0)
		return false;
	r = elf_notes_build_id(notes.ptr, notes.len, id);
	return r > 0 && str_eq(str_n((const char *)id, (size_t)r), build_id);
}

/* The same build lies elsewhere after each boot: what was at _text must begin there now, too. */
static int judge_kernel(struct local_names *n, const struct code_place *place)
{
	struct symbol symbol;
	int r;

	if (n->kernel != NOT_ASKED && n->kernel_text == place->kernel_text)
		return 0;
	n->kernel = IS_OTHER;
	n->kernel_text = place->kernel_text;
	if (!place->kernel_text || !is_running_kernel(place->build_id))
		return 0;
	r = symbols_kernel(n->symbols, place->kernel_text, false, &symbol);
	if (r == 0 && symbol.has_name && symbol.start == place->kernel_text && str_eq(symbol.module, KERNEL))
		n->kernel = IS_SAME;
	return r;
}

/* "/lib/modules/6.1/kernel/fs/nf-x.ko.xz" and "[nf_x]" are one. */
static bool is_module(struct str path, struct str module)
{
	struct str name = str_base(path);
	ptrdiff_t dot = str_find(name, '.');

	if (module.len < 2 || str_eq(path, module))
		return module.len >= 2;
	module = str_n(module.ptr + 1, module.len - 2);
	name = dot < 0 ? name : str_first(name, (size_t)dot);
	if (name.len != module.len)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] != module.ptr[i] && !(name.ptr[i] == '-' && module.ptr[i] == '_'))
			return false;
	return true;
}

static int find_kernel(struct local_names *n, const struct code_place *place, struct code_name *out)
{
	struct symbol symbol;
	int r = judge_kernel(n, place);

	n->kernel_asked = true;
	if (r < 0 || n->kernel != IS_SAME)
		return r < 0 ? r : -ENOENT;
	r = symbols_kernel(n->symbols, place->address, place->is_return, &symbol);
	if (r < 0)
		return r;
	return is_module(place->path, symbol.module) ? answer(&symbol, out) : -ENOENT;
}

/* "jit-123.dump" must be what process 123 wrote. */
static bool is_of_pid(struct str path, uint32_t pid)
{
	struct str base = str_base(path), number;
	uint64_t named;

	if (!str_starts(base, STR("jit-")) || !str_ends(base, STR(".dump")) || base.len < 10)
		return false;
	number = str_n(base.ptr + 4, base.len - 9);
	return str_to_u64(number, 0, UINT32_MAX, &named) == 0 && named == pid;
}

static int read_dump(struct named_jit *jit, const char *path)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(JITDUMP_FILE_MAX);
	struct stat st;
	scoped(closep) int fd = open_file(path, &st);
	int r = fd < 0 ? fd : io_read_fd(fd, &bytes);

	return r < 0 ? r : jitdump_parse(buf_str(&bytes), JITDUMP_TABLES_MAX, &jit->dump);
}

static int get_jit(struct local_names *n, struct str path, struct named_jit **out)
{
	scoped(freep) char *text = NULL;
	struct named_jit *jit;
	uint32_t row = 0;
	int r;

	if (intern_find(&n->dumps, path, &row) == 0) {
		*out = &n->jits[row - 1];
		return n->jits[row - 1].is_read ? 0 : -ENOENT;
	}
	if (n->jit_count == JITDUMPS_MAX || path.ptr[0] != '/')
		return -ENOENT;
	text = str_dup(path);
	r = text ? intern_add(&n->dumps, path, &row) : -ENOMEM;
	if (r < 0)
		return r == -E2BIG ? -ENOENT : r;
	jit = &n->jits[n->jit_count++];
	r = read_dump(jit, text);
	if (r == 0 && !is_of_pid(path, jit->dump.pid))
		jitdump_release(&jit->dump);
	else
		jit->is_read = r == 0;
	n->other_jits += !jit->is_read;
	*out = jit;
	return r == -ENOMEM ? r : jit->is_read ? 0 : -ENOENT;
}

static int find_jit(struct local_names *n, const struct code_place *place, struct code_name *out)
{
	struct jitdump_hit hit;
	struct named_jit *jit = NULL;
	int r = place->path.len ? get_jit(n, place->path, &jit) : -ENOENT;

	if (r == 0)
		r = jitdump_find(&jit->dump, place->address - (place->is_return ? 1 : 0), place->time_ns, &hit);
	if (r == 0)
		*out = (struct code_name){ .name = hit.name, .file = hit.file, .line = hit.line };
	return r;
}

static int find(void *ctx, const struct code_place *place, struct code_name *out)
{
	switch (place->kind) {
	case CODE_FILE:
		return find_native(ctx, place, out);
	case CODE_KERNEL:
		return find_kernel(ctx, place, out);
	default:
		return find_jit(ctx, place, out);
	}
}

int local_names_open(struct local_names **out)
{
	const struct symbols_config cfg = { .host_root = "",
					    .memory_max = TABLES_MAX,
					    .descriptor_max = DESCRIPTORS_MAX };
	struct local_names *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->names = (struct code_names){ .ctx = n, .find = find };
	intern_init(&n->keys, MIB(64));
	intern_init(&n->dumps, MIB(1));
	r = files_open(DESCRIPTORS_MAX, &n->files);
	r = r ? r : symbols_open(&cfg, n->files, &n->symbols);
	if (r < 0)
		local_names_close(n);
	else
		*out = n;
	return r;
}

void local_names_close(struct local_names *n)
{
	if (!n)
		return;
	symbols_close(n->symbols);
	files_close(n->files);
	for (size_t i = 0; i < n->jit_count; i++)
		jitdump_release(&n->jits[i].dump);
	intern_release(&n->keys);
	intern_release(&n->dumps);
	free(n->rows);
	free(n);
}

const struct code_names *local_names_get(const struct local_names *n)
{
	return &n->names;
}

const char *local_names_note(const struct local_names *n, char room[LOCAL_NAMES_NOTE])
{
	scoped(buf_release) struct buf text = BUF_INIT(LOCAL_NAMES_NOTE);

	if (n->other_files)
		buf_addf(&text, ", %llu files that are not here as they were recorded",
			 (unsigned long long)n->other_files);
	if (n->unmarked_files)
		buf_addf(&text, ", %llu files without a build id (perf record --buildid-mmap)",
			 (unsigned long long)n->unmarked_files);
	if (n->other_jits)
		buf_addf(&text, ", %llu jitdumps that cannot be read", (unsigned long long)n->other_jits);
	if (n->kernel_asked && n->kernel != IS_SAME)
		buf_adds(&text, STR(", the kernel: another one or another boot, or no rights"));
	room[0] = '\0';
	if (text.len)
		(void)snprintf(room, LOCAL_NAMES_NOTE, "without names: %s", buf_cstr(&text) + 2); /* behind ", " */
	return room;
}
