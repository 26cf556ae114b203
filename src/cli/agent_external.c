/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_external.h"

#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/log.h"
#include "codec/json.h"

#define FILE_MAX_BYTES MIB(1)
#define AGE_MAX 300 /* seconds; source: gprofiler/metadata/external_metadata.py */

static bool is_object(struct str value)
{
	return value.len && value.ptr[0] == '{';
}

static int take(struct str text, struct buf *out)
{
	struct str object, key, value;

	if (json_value(&text, &object) < 0 || str_trim(text).len || !is_object(object))
		return -EBADMSG;
	while (json_member(&object, &key, &value)) {
		if (str_eq(key, STR("\"application\"")))
			log_warn("--external-metadata: what it says of applications is not used yet");
		if (!str_eq(key, STR("\"static\"")))
			continue;
		if (!is_object(value))
			return -EBADMSG;
		buf_clear(out);
		buf_adds(out, value);
	}
	return out->error;
}

int agent_external_read(const struct command *c, const char *path, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r == 0 && time(NULL) - st.st_mtime > AGE_MAX)
		return command_fail(c, "--external-metadata: '%s' was not written for %d seconds", path, AGE_MAX);
	r = r ? r : io_read_file(path, &text);
	r = r ? r : take(buf_str(&text), out);
	if (r == -EBADMSG)
		return command_fail(c, "--external-metadata: '%s' is no JSON object with an object \"static\"", path);
	return r < 0 ? command_fail(c, "--external-metadata: cannot read '%s': %s", path, strerror(-r)) : EXIT_DONE;
}
