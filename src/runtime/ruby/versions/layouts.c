/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ruby/versions/layouts.h"

#define NONE ABI_RUBY_NONE

#define THREAD(ec, back, running) \
	.ec_thread = (ec), .thread_ec = (back), .thread_ractor = 24, .ractor_running = (running)

#define LINES(entries, count, index, bytes, at)                                                                   \
	.body_lines = (entries), .body_lines_count = (count), .body_lines_index = (index), .line_bytes = (bytes), \
	.line_at = (at)

#define NUMBER(a, b) .version_major = (a), .version_minor = (b)

/* struct RClass of 32 bytes, and behind it rb_classext_t: as.singleton_class.attached_object, classpath; FL_SINGLETON.
 * Sources: internal/class.h, include/ruby/internal/fl_type.h of 3.3 and 3.4. */
#define CLASSES(bit) .class_path = 32 + 120, .class_object = 32 + 96, .singleton = (bit)
#define NO_CLASSES .class_path = NONE, .class_object = NONE

#define UP_TO_2_7 (ABI_RUBY_TAGGED_LINE | ABI_RUBY_EARLY_FRAMES)

/* running_ec of the ractor: OpenTelemetry's eBPF profiler, interpreter/ruby; of 3.1 and 3.3 seen at work. */
static const struct ruby_version versions[] = {
	{ 2,
	  5,
	  true,
	  { .frame_size = 48,
	    THREAD(72, 32, NONE),
	    LINES(112, 200, NONE, 12, 4),
	    .flags = UP_TO_2_7 | ABI_RUBY_LINES_BY_ARRAY,
	    NO_CLASSES,
	    NUMBER(2, 5) } },
	{ 2,
	  6,
	  true,
	  { .frame_size = 56,
	    THREAD(56, 32, NONE),
	    LINES(120, 136, 144, 8, 0),
	    .flags = UP_TO_2_7,
	    NO_CLASSES,
	    NUMBER(2, 6) } },
	{ 2,
	  7,
	  true,
	  { .frame_size = 56,
	    THREAD(56, 32, NONE),
	    LINES(120, 136, 144, 8, 0),
	    .flags = UP_TO_2_7,
	    NO_CLASSES,
	    NUMBER(2, 7) } },
	{ 3,
	  0,
	  true,
	  { .frame_size = 56,
	    THREAD(56, 40, 0x208),
	    LINES(120, 136, 144, 8, 0),
	    .flags = ABI_RUBY_TAGGED_LINE,
	    NO_CLASSES,
	    NUMBER(3, 0) } },
	{ 3,
	  1,
	  true,
	  { .frame_size = 64,
	    THREAD(48, 40, 0x208),
	    LINES(120, 136, 144, 12, 0),
	    .flags = ABI_RUBY_TAGGED_LINE,
	    NO_CLASSES,
	    NUMBER(3, 1) } },
	{ 3,
	  2,
	  true,
	  { .frame_size = 64,
	    THREAD(48, 48, 0x208),
	    LINES(112, 128, 136, 12, 0),
	    .flags = ABI_RUBY_LONG_STRINGS,
	    NO_CLASSES,
	    NUMBER(3, 2) } },
	{ 3,
	  3,
	  true,
	  { .frame_size = 56,
	    THREAD(48, 48, 0x180),
	    LINES(112, 128, 136, 12, 0),
	    .flags = ABI_RUBY_LONG_STRINGS,
	    CLASSES(12),
	    NUMBER(3, 3) } },
	{ 3,
	  4,
	  true,
	  { .frame_size = 56,
	    THREAD(48, 48, 0x180),
	    LINES(112, 128, 136, 12, 0),
	    .flags = ABI_RUBY_LONG_STRINGS | ABI_RUBY_MERGED_RESCUE,
	    CLASSES(13),
	    NUMBER(3, 4) } },
	{ 4,
	  0,
	  false,
	  { .frame_size = 56,
	    THREAD(48, 48, NONE),
	    LINES(112, 128, 136, 12, 0),
	    .flags = ABI_RUBY_LONG_STRINGS | ABI_RUBY_MERGED_RESCUE,
	    NO_CLASSES,
	    NUMBER(4, 0) } },
};

const struct ruby_version *ruby_version_at(size_t index)
{
	return index < ARRAY_SIZE(versions) ? &versions[index] : NULL;
}

const struct ruby_version *ruby_version_find(unsigned int major, unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
