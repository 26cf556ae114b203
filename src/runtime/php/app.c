/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a worker of php-fpm belongs to: it writes that over its arguments. Source: php-src,
 * sapi/fpm/fpm/fpm_env.c, fpm_env_setproctitle(), and fpm_children.c. */
#include "base/utf8.h"
#include "runtime/php/php_int.h"
#include "runtime/process_info.h"

#define ARGV_MAX KIB(4)
#define WORKER STR("php-fpm: pool ")
#define NAME STR("php-fpm: ")

int php_pool(struct str argv, struct buf *out)
{
	ptrdiff_t end = str_find(argv, '\0');
	struct str title = str_trim(end < 0 ? argv : str_first(argv, (size_t)end)), pool;

	if (!str_starts(title, WORKER))
		return -ENOENT;
	pool = str_trim(str_skip(title, WORKER.len));
	if (!pool.len || !utf8_valid(pool))
		return -ENOENT;
	for (size_t i = 0; i < pool.len; i++)
		if ((uint8_t)pool.ptr[i] < ' ' || pool.ptr[i] == 0x7f)
			return -ENOENT;
	buf_adds(out, NAME);
	buf_adds(out, pool);
	return out->error;
}

int php_application(const struct runtime_target *target, struct buf *out)
{
	scoped(buf_release) struct buf argv = BUF_INIT(ARGV_MAX);
	int r = process_info_argv(target->proc_dir, ARGV_MAX, &argv);

	return r < 0 ? r : php_pool(buf_str(&argv), out);
}

int php_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	const struct process_info_words words = { .version_key = STR("php_version"),
						  .version = str_of(binary->version),
						  .library_key = STR("libphp_elfid"),
						  .library = STR("libphp") };

	return process_info_metadata(target, &words, json);
}
