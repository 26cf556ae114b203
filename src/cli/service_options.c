/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service_options.h"

#include "base/io.h"

int service_rules_load(const struct command *c, const char *path, struct service_rules **out)
{
	scoped(buf_release) struct buf text = BUF_INIT(SERVICE_RULES_SIZE_MAX + 1), why = BUF_INIT(KIB(1));
	int r = path ? io_read_file(path, &text) : 1;

	if (r == 0)
		r = service_rules_parse(buf_str(&text), &why, out);
	if (r >= 0)
		return EXIT_DONE;
	if (r == -E2BIG && !why.len)
		buf_adds(&why, STR("larger than 1 MiB"));
	return command_fail(c, "--service-rules: %s: %s", path, why.len ? buf_cstr(&why) : strerror(-r));
}
