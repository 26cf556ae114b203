/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. */
#include "runtime/php/php_int.h"
#include "runtime/thread_place.h"

#define GLOBALS_OFFSET_MAX MIB(16) /* of executor_globals or sapi_globals among a thread's data: 13,424 were met */

/* A variable of a library may be a copy in the program that uses it: the library's slot says so. */
static uint64_t find_variable(const struct runtime_target *t, uint64_t at, uint64_t slot)
{
	uint64_t moved;

	return slot && thread_read_u64(t, slot + t->bias, &moved) == 0 && moved ? moved : at + t->bias;
}

static int find_globals(const struct php_binary *b, const struct runtime_target *t, struct abi_php *out)
{
	uint64_t current;

	out->globals = find_variable(t, b->globals, b->globals_slot);
	if (b->request)
		out->request = find_variable(t, b->request, b->request_slot);
	return thread_read_u64(t, out->globals + out->layout.current, &current); /* it is there */
}

static int find_threads(const struct php_binary *b, const struct runtime_target *t, struct abi_php *out)
{
	struct thread_variable variable;
	uint64_t offset, request;
	int r = thread_read_u64(t, b->globals_offset + t->bias, &offset);

	if (r < 0)
		return r;
	if (!offset) /* it is set when PHP starts up */
		return -EAGAIN;
	thread_variable_find(t, &b->tls, 0, &variable);
	if (variable.kind != THREAD_VARIABLE_STATIC || !variable.at)
		return -EAGAIN;
	if (variable.at > 0 || offset > GLOBALS_OFFSET_MAX)
		return -ENOTSUP;
	if (b->request_offset && thread_read_u64(t, b->request_offset + t->bias, &request) == 0 &&
	    request <= GLOBALS_OFFSET_MAX)
		out->request = request;
	out->tls_offset = offset;
	out->tls_at = variable.at;
	out->flags |= ABI_PHP_THREADS;
	return 0;
}

int php_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct php_binary *b = (const struct php_binary *)binary;
	struct abi_php out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	int r;

	if (!b->version || (!b->globals && !b->globals_offset))
		return -ENOTSUP;
	out.layout = b->version->layout;
	if (b->loop_size) {
		out.loop_low = b->loop + target->bias;
		out.loop_size = b->loop_size;
		out.body = out.loop_low + out.loop_size / 2;
	}
	if (b->is_hybrid)
		out.flags |= ABI_PHP_R14_R15;
	r = b->globals ? find_globals(b, target, &out) : find_threads(b, target, &out);
	if (r < 0)
		return r;
	if (!b->version->is_tried) {
		if (out.flags & ABI_PHP_THREADS) /* which of them runs a script is not to be seen from here */
			return -ENOTSUP;
		r = php_agrees(target, &out);
		if (r <= 0)
			return r < 0 ? r : -ENOTSUP;
	}
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}
