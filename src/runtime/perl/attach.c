/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. What is handed on was tried first: the chain of stack infos must lead to
 * the program's, which says so of itself. */
#include "base/cur.h"
#include "proc/maps.h"
#include "runtime/perl/perl_int.h"
#include "runtime/target_files.h"
#include "runtime/thread_place.h"

#define INFOS_MAX 64
#define INFO_TYPE_MAIN 1 /* PERLSI_MAIN: cop.h */
#define TRIES_MAX 64     /* of a process that is up and does not look as its version should */
#define GLIBC_KEYS 784   /* runtime/thread_place.h says where these come from */
#define GLIBC_BLOCKS 1296
#define GLIBC_BLOCK_KEYS 32
#define GLIBC_KEY_SIZE 16
#define GLIBC_KEY_VALUE 8
#define MUSL_KEYS 128
#define MAPS_MAX KIB(256) /* bytes that are looked through for the C library */

struct attach {
	const struct perl_binary *binary;
	const struct runtime_target *target;
	struct abi_perl *out;
};

static int read_u64(const struct attach *a, uint64_t at, uint64_t *out)
{
	return thread_read_u64(a->target, at, out);
}

static uint64_t in_process(const struct attach *a, uint64_t address)
{
	return address + a->target->bias;
}

/* ---- does it look as its version should? ---- */

struct info { /* a PERL_SI */
	uint64_t contexts, previous;
	int32_t index, max, type;
};

static int read_info(const struct attach *a, uint64_t at, struct info *out)
{
	uint8_t bytes[ABI_PERL_INFO_BYTES];
	struct cur c = cur_of(bytes, sizeof(bytes)), type = c;
	int r = a->target->read(a->target->self, bytes, sizeof(bytes), at);

	if (r < 0)
		return r == -EFAULT ? -EAGAIN : r;
	ignore(cur_bytes(&c, ABI_PERL_INFO_CONTEXTS) == NULL); /* it sticks */
	out->contexts = cur_le64(&c);
	out->previous = cur_le64(&c);
	cur_le64(&c);
	out->index = (int32_t)cur_le32(&c);
	out->max = (int32_t)cur_le32(&c);
	ignore(cur_bytes(&type, a->out->layout.info_type) == NULL); /* it sticks */
	out->type = (int32_t)cur_le32(&type);
	return c.bad || type.bad ? -ENOTSUP : 0;
}

static bool is_plausible(const struct info *i)
{
	return i->contexts && !(i->contexts & 7) && i->max > 0 && i->index >= -1 && i->index <= i->max;
}

/* The outermost stack info is the program's. Return: 0; -EAGAIN: it is not, or not yet; -errno. */
static int check_chain(const struct attach *a, uint64_t at)
{
	struct info info;

	for (size_t i = 0; i < INFOS_MAX; i++) {
		int r = at && !(at & 7) ? read_info(a, at, &info) : -EAGAIN;

		if (r < 0)
			return r;
		if (!is_plausible(&info))
			return -EAGAIN;
		if (!info.previous)
			return info.type == INFO_TYPE_MAIN ? 0 : -EAGAIN;
		at = info.previous;
	}
	return -EAGAIN;
}

/* ---- where a thread keeps its interpreter ---- */

/* By the name of the dynamic loader; untried. */
static bool is_musl(const struct attach *a)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	struct maps_line line;
	struct str rest;

	if (a->target->proc_dir < 0 || target_read_head(a->target->proc_dir, "maps", MAPS_MAX, &text) < 0)
		return false;
	rest = buf_str(&text);
	for (int r = 1; r;) {
		r = maps_next(&rest, &line);
		if (r == 1 && str_starts(str_base(line.path), STR("ld-musl-")))
			return true;
	}
	return false;
}

static int use_key(const struct attach *a, uint32_t key)
{
	struct abi_perl *out = a->out;

	if (key >= THREAD_KEYS_MAX)
		return -EAGAIN;
	out->flags |= ABI_PERL_THREADS;
	if (is_musl(a)) {
		out->flags |= ABI_PERL_KEY_INDIRECT;
		out->key_at = MUSL_KEYS;
		out->key_offset = key * 8;
	} else if (key < GLIBC_BLOCK_KEYS) {
		out->key_at = GLIBC_KEYS + (int64_t)key * GLIBC_KEY_SIZE + GLIBC_KEY_VALUE;
	} else {
		out->flags |= ABI_PERL_KEY_INDIRECT;
		out->key_at = GLIBC_BLOCKS + (int64_t)(key / GLIBC_BLOCK_KEYS) * 8;
		out->key_offset = key % GLIBC_BLOCK_KEYS * GLIBC_KEY_SIZE + GLIBC_KEY_VALUE;
	}
	return 0;
}

static int find_threads(const struct attach *a, uint64_t *info)
{
	uint64_t interpreter = 0, word;
	int r = read_u64(a, in_process(a, a->binary->interpreter), &interpreter);

	if (r == 0 && !interpreter)
		return -EAGAIN;
	if (r == 0)
		r = read_u64(a, in_process(a, a->binary->thread_key), &word);
	if (r == 0)
		r = use_key(a, (uint32_t)word);
	a->out->first = interpreter;
	return r < 0 ? r : read_u64(a, interpreter + a->out->layout.interp_cop + ABI_PERL_INTERP_INFO, info);
}

static int find_variables(const struct attach *a, uint64_t *info)
{
	a->out->cop = in_process(a, a->binary->cop);
	a->out->info = in_process(a, a->binary->info);
	return read_u64(a, a->out->info, info);
}

/* A process that starts up is asked again. One that never looks right is another build than its version says. */
static int try_again(const struct attach *a)
{
	if (!a->target->effort)
		return -EAGAIN;
	return ++*a->target->effort > TRIES_MAX ? -ENOTSUP : -EAGAIN;
}

int perl_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct perl_binary *b = (const struct perl_binary *)binary;
	struct abi_perl out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	struct attach a = { .binary = b, .target = target, .out = &out };
	uint64_t first = 0;
	int r;

	if (!b->version || b->base.refused[0])
		return -ENOTSUP;
	out.layout = b->version->layout;
	out.layout.version = b->minor;
	out.layout.subversion = b->micro;
	if (b->version->aux_in_body)
		out.flags |= ABI_PERL_AUX_IN_BODY;
	r = b->thread_key ? find_threads(&a, &first) : find_variables(&a, &first);
	if (r == 0 && !first)
		return -EAGAIN;
	if (r == 0)
		r = check_chain(&a, first);
	if (r < 0)
		return r == -EAGAIN && first ? try_again(&a) : r;
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}
