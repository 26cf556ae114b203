/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/info.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/java/flags.h"
#include "runtime/java/java_int.h"
#include "runtime/process_info.h"

#define TEXT_MAX KIB(8)
#define VERSION_MAX 512
#define FLAGS_ROOM 32 /* key, comma and what ends the object */

/* "OpenJDK 64-Bit Server VM (17.0.15+6) for linux-amd64 JRE ...": gProfiler runs `java -version` in the process's
 * container, nothing is run here. */
static int java_version(const struct runtime_target *target, struct buf *out)
{
	const struct java_process p = java_process_of(target);
	char text[VERSION_MAX];
	uint64_t at = 0;
	int r;

	if (!p.layout || !p.layout->vm_info)
		return -ENOTSUP;
	r = java_read_word(&p.memory, p.layout->vm_info + p.bias, &at);
	r = r ? r : java_text_read(&p, at, text, sizeof(text));
	if (r == 0)
		buf_adds(out, str_of(text));
	return r ? r : out->error;
}

static int library_id(const struct runtime_target *target, struct buf *out)
{
	return process_info_library_id(target, STR("libjvm.so"), out);
}

static void add_flags(const struct runtime_target *target, struct json_out *j)
{
	const struct java_process p = java_process_of(target);
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	struct json_out flags = { .out = &text };
	int r = p.layout ? java_flags_add(&p, str_of(java_collect_flags), &flags) : -ENOTSUP;

	if (r == 0 && text.len + FLAGS_ROOM > j->out->max - MIN(j->out->len, j->out->max))
		r = -E2BIG; /* they must not cost the others */
	if (r < 0) {
		buf_clear(&text);
		process_info_add(j, STR("jvm_flags"), &text, r);
		return;
	}
	json_out_key(j, STR("jvm_flags"));
	json_out_raw(j, buf_str(&text));
}

static int exe_path(const struct runtime_target *target, struct buf *out)
{
	return process_info_exe(target->proc_dir, out);
}

static int arch(const struct runtime_target *target, struct buf *out)
{
	return process_info_arch(target->proc_dir, out);
}

static int add_member(const struct runtime_target *target, struct json_out *j, struct str key,
		      int (*get)(const struct runtime_target *target, struct buf *out))
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	int r = get(target, &text);

	if (r == -ENOMEM || r == -ESRCH)
		return r;
	process_info_add(j, key, &text, r);
	return 0;
}

int java_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	struct runtime_target own = *target;
	struct json_out j = { .out = json };
	size_t before = json->len;
	struct java_layout layout;
	int r;

	if (!own.of_process && java_layout_of((const struct java_binary *)(const void *)binary, target, &layout) == 0)
		own.of_process = &layout;
	target = &own;
	json_out_begin(&j, '{');
	r = add_member(target, &j, STR("java_version"), java_version);
	r = r ? r : add_member(target, &j, STR("libjvm_elfid"), library_id);
	r = r ? r : add_member(target, &j, STR("exe"), exe_path);
	r = r ? r : add_member(target, &j, STR("execfn"), process_info_execfn);
	r = r ? r : add_member(target, &j, STR("arch"), arch);
	if (r == 0)
		add_flags(target, &j); /* last: what is left is theirs */
	json_out_end(&j, '}');
	if (r == 0 && faccessat(target->proc_dir, "stat", F_OK, 0) < 0) /* it ended meanwhile */
		r = -ESRCH;
	if (r < 0) {
		json->len = before;
		return r;
	}
	return json->error;
}
