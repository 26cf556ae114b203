/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file PHP? Its symbols say so, never its name: php, php-fpm, php-cgi, libphp.so in a web server or any other
 * program. They are dynamic ones even in stripped programs, since extensions are linked against them; a name with "php"
 * in it only makes us look at .symtab, too. */
#include <elf.h>

#include "base/cur.h"
#include "object/elf_find.h"
#include "runtime/php/php_int.h"

#define HYBRID 4 /* ZEND_VM_KIND_HYBRID: php-src, Zend/zend_vm_opcodes.h */
#define SEARCH_MAX MIB(64)
#define WINDOW KIB(64)
#define LOOP_MAX MIB(1) /* bytes of execute_ex: 42 KB were met */

#define PHP_SYMBOLS(X)                                \
	X(EXECUTE_EX, "execute_ex")                   \
	X(GLOBALS, "executor_globals")                \
	X(GLOBALS_OFFSET, "executor_globals_offset")  \
	X(TLS_OFFSET, "tsrm_get_ls_cache_tcb_offset") \
	X(VM_KIND, "zend_vm_kind")                    \
	X(REQUEST, "sapi_globals")                    \
	X(REQUEST_OFFSET, "sapi_globals_offset")      \
	X(MODULE, "sapi_module")                      \
	X(LINE, "zend_get_executed_lineno")           \
	X(FILE_NAME, "zend_get_executed_filename_ex") \
	X(PASS_TWO, "pass_two")

#define X(id, name) id,
enum symbol { PHP_SYMBOLS(X) SYMBOL_COUNT };
#undef X

static const char *const names[SYMBOL_COUNT] = {
#define X(id, name) [id] = (name),
	PHP_SYMBOLS(X)
#undef X
};

_Static_assert(SYMBOL_COUNT <= ELF_FIND_NAMES_MAX, "one pass finds them all");

struct probe {
	const struct elf *elf;
	struct elf_dynamic dynamic;
	bool has_dynamic;
	struct elf_found symbols[SYMBOL_COUNT]; /* info 0: not found */
};

void php_release(struct runtime_binary *binary)
{
	free(binary);
}

static bool has(const struct probe *p, enum symbol id)
{
	return p->symbols[id].info != 0;
}

static bool is_php(const struct probe *p)
{
	return has(p, EXECUTE_EX) && (has(p, GLOBALS) || has(p, GLOBALS_OFFSET));
}

/* ---- symbols ---- */

static own_frame int find_dynamic(struct probe *p)
{
	int r = elf_dynamic_read(p->elf, &p->dynamic);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG || r == -ENODATA ? 0 : r;
	p->has_dynamic = true;
	for (size_t i = 0; i < SYMBOL_COUNT; i++) {
		r = elf_dynamic_find(p->elf, &p->dynamic, names[i], &p->symbols[i]);
		if (r < 0 && r != -ENOENT && r != -EBADMSG && r != -ENODATA)
			return r;
		if (i == EXECUTE_EX && !has(p, EXECUTE_EX)) /* every file of the system comes here */
			return 0;
	}
	return 0;
}

static own_frame int find_static(struct probe *p)
{
	struct elf_found more[SYMBOL_COUNT] = { 0 };
	int r = elf_symtab_find(p->elf, names, SYMBOL_COUNT, more);

	if (r < 0)
		return r == -ENOMEM || r == -EIO ? r : 0;
	for (size_t i = 0; i < SYMBOL_COUNT; i++)
		if (!has(p, (enum symbol)i))
			p->symbols[i] = more[i];
	return 0;
}

/* The first bytes of a function; none when the file does not have it. */
static struct accessor_code code_of(const struct probe *p, enum symbol id, uint8_t room[ACCESSOR_BYTES_MAX])
{
	struct accessor_code code = { 0 };

	if (has(p, id))
		accessor_read(p->elf, p->symbols[id].address, p->symbols[id].size, room, &code);
	return code;
}

/* ---- version ---- */

static const char mark[] = "X-Powered-By: PHP/"; /* php-src, main/SAPI.h: SAPI_PHP_VERSION_HEADER */

#define MARK_SIZE (sizeof(mark) - 1)
#define TAIL 48 /* "7.0.33-0ubuntu0.16.04.16", and what is longer is cut */

/* "8.2.36", "8.5.0RC1", "8.4.11-dev". */
static bool parse_version(struct str text, struct php_binary *b, unsigned int numbers[3])
{
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		size_t start = at;

		numbers[i] = 0;
		while (at < text.len && at - start < 3 && text.ptr[at] >= '0' && text.ptr[at] <= '9')
			numbers[i] = numbers[i] * 10 + (unsigned int)(text.ptr[at++] - '0');
		if (at == start || numbers[i] > 255 || (i < 2 && (at >= text.len || text.ptr[at++] != '.')))
			return false;
	}
	for (; at < text.len; at++)
		if (text.ptr[at] <= ' ' || text.ptr[at] > '~')
			return false;
	snprintf(b->base.version, sizeof(b->base.version), STR_FMT, STR_ARG(text));
	return true;
}

static const uint8_t *find_mark(const uint8_t *bytes, size_t size)
{
	return memmem(bytes, size, mark, MARK_SIZE);
}

/* Return: 1: found; 0; -ENOMEM or the reader's error. */
static int search_segment(const struct probe *p, const struct elf_segment *s, uint64_t *left, struct php_binary *b,
			  unsigned int numbers[3])
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = reader_slice(&p->elf->in, s->offset, MIN(s->file_size, *left));
	int r = reader_window_init(&w, &in, WINDOW);

	*left -= in.size;
	for (uint64_t at = 0; r == 0 && at + MARK_SIZE < in.size; at += WINDOW - MARK_SIZE - TAIL) {
		size_t size = (size_t)MIN(in.size - at, (uint64_t)WINDOW), left_over;
		const uint8_t *bytes = reader_window_get(&w, at, size), *found;
		struct cur c;

		if (!bytes)
			return w.error == -ENODATA ? 0 : w.error;
		found = find_mark(bytes, size);
		if (!found)
			continue;
		left_over = size - (size_t)(found - bytes) - MARK_SIZE;
		if (left_over < TAIL && at + size < in.size) /* the next piece has all of it */
			continue;
		c = cur_of(found + MARK_SIZE, MIN(left_over, (size_t)TAIL));
		if (parse_version(cur_cstr(&c), b, numbers))
			return 1;
	}
	return r;
}

/* Return: 0 with the version, if there is one; -ENOMEM or the reader's error. */
static int find_version(const struct probe *p, struct php_binary *b)
{
	uint64_t left = SEARCH_MAX;
	unsigned int numbers[3];
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->elf->segment_count; i++) {
		const struct elf_segment *s = &p->elf->segments[i];

		if (s->type == PT_LOAD && !(s->flags & PF_W))
			r = search_segment(p, s, &left, b, numbers);
	}
	if (r < 0)
		return r;
	if (r == 0) {
		snprintf(b->base.refused, sizeof(b->base.refused), "its version cannot be found");
		return 0;
	}
	b->version = php_version_find(numbers[0], numbers[1]);
	if (!b->version)
		snprintf(b->base.refused, sizeof(b->base.refused), "version %s is not known", b->base.version);
	return 0;
}

/* ---- what is in it ---- */

/* zend_vm_kind() is `mov $4, %eax; ret`, or begins with endbr64. */
static bool is_hybrid(const struct probe *p)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa }, want[] = { 0xb8, HYBRID, 0, 0, 0, 0xc3 };
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code = code_of(p, VM_KIND, room);
	size_t skip =
		code.size >= sizeof(landing) && !memcmp(code.bytes, landing, sizeof(landing)) ? sizeof(landing) : 0;

	return p->elf->machine == EM_X86_64 && code.size >= skip + sizeof(want) &&
	       !memcmp(code.bytes + skip, want, sizeof(want));
}

static void find_threads(const struct probe *p, struct php_binary *b)
{
	uint8_t room[ACCESSOR_BYTES_MAX];
	struct accessor_code code = code_of(p, TLS_OFFSET, room);
	uint64_t slot;

	b->globals_offset = p->symbols[GLOBALS_OFFSET].address;
	b->request_offset = p->symbols[REQUEST_OFFSET].address;
	if (accessor_load(&code, &slot))
		b->tls = (struct accessor_tls){ .kind = ACCESSOR_TLS_SLOT, .value = slot };
	else
		snprintf(b->base.refused, sizeof(b->base.refused), "where its threads keep their data is not known");
}

static void find_loop(const struct probe *p, struct php_binary *b)
{
	const struct elf_found *s = &p->symbols[EXECUTE_EX];
	uint64_t offset;

	if (!s->size || s->size > LOOP_MAX || elf_offset_of(p->elf, s->address, &offset) < 0)
		return;
	b->loop = s->address;
	b->loop_size = s->size;
	b->base.loops[0] = (struct runtime_range){ offset, offset + s->size };
	b->base.loop_count = 1;
}

static struct php_code place_of(const struct probe *p, enum symbol id)
{
	return has(p, id) ? (struct php_code){ p->symbols[id].address, p->symbols[id].size } : (struct php_code){ 0 };
}

/* A table that disagrees with the code is refused: another build than its version says. Where that cannot be told, and
 * of versions that nobody tried, a process has to prove the rest (agree.c); with threads nobody can see from outside
 * where a script runs. */
static void check_table(const struct probe *p, struct php_binary *b)
{
	const struct php_code code[] = { [PHP_CODE_LINE] = place_of(p, LINE),
					 [PHP_CODE_FILE] = place_of(p, FILE_NAME),
					 [PHP_CODE_PASS] = place_of(p, PASS_TWO) };
	const struct php_version *v = b->version;
	const char *function = "";
	enum php_code_says says = php_code_says(p->elf, code, &v->layout, b->globals, &function);

	b->is_sure = v->is_tried && says == PHP_CODE_AGREES;
	if (says == PHP_CODE_DISAGREES || (says == PHP_CODE_UNSURE && b->globals_offset)) {
		b->version = NULL;
		snprintf(b->base.refused, sizeof(b->base.refused), "%s() is not that of version %u.%u", function,
			 v->major, v->minor);
	} else if (b->globals_offset && !v->is_tried) {
		b->version = NULL;
		snprintf(b->base.refused, sizeof(b->base.refused), "version %u.%u for threads was not tried", v->major,
			 v->minor);
	}
}

static void find_globals(const struct probe *p, struct php_binary *b)
{
	b->globals = p->symbols[GLOBALS].address;
	b->request = p->symbols[REQUEST].address;
	if (!p->has_dynamic) /* not moved */
		return;
	ignore(elf_dynamic_slot(p->elf, &p->dynamic, names[GLOBALS], &b->globals_slot) < 0);
	ignore(elf_dynamic_slot(p->elf, &p->dynamic, names[REQUEST], &b->request_slot) < 0);
}

static own_frame int fill(const struct probe *p, struct php_binary *b)
{
	int r = find_version(p, b);

	if (r < 0)
		return r;
	find_loop(p, b);
	b->is_hybrid = is_hybrid(p);
	b->module = p->symbols[MODULE].address;
	if (p->has_dynamic) /* without: not moved */
		ignore(elf_dynamic_slot(p->elf, &p->dynamic, names[MODULE], &b->module_slot) < 0);
	if (has(p, GLOBALS_OFFSET))
		find_threads(p, b);
	else
		find_globals(p, b);
	if (b->version && !b->base.refused[0])
		check_table(p, b);
	return 0;
}

static void binary_release(struct php_binary **b)
{
	free(*b);
}

int php_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	scoped(binary_release) struct php_binary *b = NULL;
	struct probe p = { .elf = file->elf };
	bool may_be;
	int r;

	if (!file->elf->is_64 || (file->elf->machine != EM_X86_64 && file->elf->machine != EM_AARCH64))
		return 0;
	r = find_dynamic(&p);
	may_be = is_php(&p) || str_search(str_base(file->path), STR("php")) >= 0;
	if (r == 0 && file->be_quick && may_be) /* all symbols, then up to SEARCH_MAX for the version */
		return -EAGAIN;
	if (r == 0 && !is_php(&p) && may_be)
		r = find_static(&p);
	if (r < 0 || !is_php(&p))
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	r = fill(&p, b);
	if (r < 0)
		return r;
	*out = &b->base;
	b = NULL;
	return 1;
}
