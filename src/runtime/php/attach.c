/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. */
#include "runtime/php/php_int.h"
#include "runtime/thread_place.h"

#define SERVER_BYTES 16            /* of a name; those that count are shorter */
#define GLOBALS_OFFSET_MAX MIB(16) /* of executor_globals or sapi_globals among a thread's data: 13,424 were met */

/* A variable of a library may be a copy in the program that uses it: the library's slot says so. */
static uint64_t find_variable(const struct runtime_target *t, uint64_t at, uint64_t slot)
{
	uint64_t moved;

	return slot && thread_read_u64(t, slot + t->bias, &moved) == 0 && moved ? moved : at + t->bias;
}

/* Does sapi_globals tell of what is answered now? Its pointers stay where they are when their memory is freed, but in
 * servers that clear them. Who else runs PHP (mod_php, `php -S`, embedded, uwsgi) is not asked. Sources: php-src,
 * sapi/fpm/fpm/fpm_main.c and sapi/cgi/cgi_main.c, behind fastcgi_request_done; sapi/cli/php_cli.c, do_php_cli(), which
 * frees the path when the script has ended; main/SAPI.h: sapi_module begins with its name.
 * Return: 1, with flags for @out; 0: it does not, or that is not known; -EAGAIN: PHP has not started up. */
static int tells_requests(const struct php_binary *b, const struct runtime_target *t, uint32_t *flags)
{
	static const struct {
		char name[SERVER_BYTES];
		uint32_t flags;
	} known[] = { { "fpm-fcgi", 0 }, { "cgi-fcgi", ABI_PHP_STALE }, { "cli", ABI_PHP_STALE } };
	uint64_t name;
	char text[SERVER_BYTES];

	if (!b->module)
		return 0;
	if (thread_read_u64(t, find_variable(t, b->module, b->module_slot), &name) < 0)
		return 0;
	if (!name)
		return -EAGAIN;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		uint32_t size = (uint32_t)strlen(known[i].name) + 1;

		if (t->read(t->self, text, size, name) < 0 || memcmp(text, known[i].name, size) != 0)
			continue;
		*flags |= known[i].flags;
		return 1;
	}
	return 0;
}

static int find_globals(const struct php_binary *b, const struct runtime_target *t, struct abi_php *out)
{
	uint64_t current;
	int r = b->request ? tells_requests(b, t, &out->flags) : 0;

	if (r < 0)
		return r;
	out->globals = find_variable(t, b->globals, b->globals_slot);
	if (r)
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
	r = b->request_offset ? tells_requests(b, t, &out->flags) : 0;
	if (r < 0)
		return r;
	if (r && thread_read_u64(t, b->request_offset + t->bias, &request) == 0 && request <= GLOBALS_OFFSET_MAX)
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
	if (!b->is_sure) { /* without threads: probe.c */
		r = php_agrees(target, &out);
		if (r <= 0)
			return r < 0 ? r : -ENOTSUP;
	}
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}
