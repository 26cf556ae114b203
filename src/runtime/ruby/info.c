/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a process, as gProfiler has it; it runs `ruby --version`, here nothing is run. */
#include "runtime/process_info.h"
#include "runtime/ruby/ruby_int.h"

int ruby_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	const struct ruby_binary *b = (const struct ruby_binary *)binary;
	const struct process_info_words words = { .version_key = STR("ruby_version"),
						  .version = str_of(b->description),
						  .library_key = STR("libruby_elfid"),
						  .library = STR("libruby") };

	return process_info_metadata(target, &words, json);
}
