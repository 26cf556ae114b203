/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two directions of the OTLP codec: field numbers, and what attributes are called.
 * Source: open-telemetry/opentelemetry-proto v1.10.0, profiles/v1development/profiles.proto, common/v1/common.proto,
 * resource/v1/resource.proto; names of attributes: open-telemetry/semantic-conventions, registry (2025-11). */
#pragma once

#include "codec/otlp.h"

enum otlp_data_field { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2 };

/* The tables of ProfilesDictionary by field number; the first row of each stands for "none". */
enum otlp_table {
	TABLE_MAPPING = 1,
	TABLE_LOCATION = 2,
	TABLE_FUNCTION = 3,
	TABLE_LINK = 4,
	TABLE_STRING = 5,
	TABLE_ATTRIBUTE = 6,
	TABLE_STACK = 7,
	TABLE_COUNT = 8,
};

enum otlp_resource_profiles_field { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPES = 2 };
enum otlp_resource_field { RESOURCE_ATTRIBUTES = 1, RESOURCE_DROPPED = 2 };
enum otlp_scope_profiles_field { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum otlp_scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2, SCOPE_ATTRIBUTES = 3 };
enum otlp_profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3, /* fixed64 */
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	PROFILE_DROPPED = 8,
	PROFILE_PAYLOAD_FORMAT = 9,
	PROFILE_PAYLOAD = 10,
	PROFILE_ATTRIBUTES = 11,
};
enum otlp_sample_field {
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES = 2,
	SAMPLE_LINK = 3,
	SAMPLE_VALUES = 4,
	SAMPLE_TIMES = 5, /* fixed64 */
};
enum otlp_value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum otlp_mapping_field {
	MAPPING_START = 1,
	MAPPING_LIMIT = 2,
	MAPPING_OFFSET = 3,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTES = 5,
};
enum otlp_stack_field { STACK_LOCATIONS = 1 };
enum otlp_location_field {
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
};
enum otlp_line_field { LINE_FUNCTION = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum otlp_function_field {
	FUNCTION_NAME = 1,
	FUNCTION_SYSTEM_NAME = 2,
	FUNCTION_FILENAME = 3,
	FUNCTION_START_LINE = 4,
};
enum otlp_link_field { LINK_TRACE = 1, LINK_SPAN = 2 };
enum otlp_attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };
enum otlp_key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2, KEY_VALUE_KEY_INDEX = 3 };
enum otlp_any_field {
	ANY_STRING = 1,
	ANY_BOOL = 2,
	ANY_INT = 3,
	ANY_DOUBLE = 4,
	ANY_ARRAY = 5,
	ANY_KVLIST = 6,
	ANY_BYTES = 7,
	ANY_STRING_INDEX = 8,
};
enum otlp_array_field { ARRAY_VALUES = 1 };

#define OTLP_TRACE_SIZE 16
#define OTLP_SPAN_SIZE 8

/* Attributes of a sample that are fields of its process, its thread and its end, numbers first, in the order in which
 * they are written. Those of no semantic convention are ours. */
#define OTLP_SLOTS(X)                          \
	X(PID, "process.pid")                  \
	X(TID, "thread.id")                    \
	X(START, "hearth.process.start_ns")    \
	X(COMM, "process.executable.name")     \
	X(THREAD, "thread.name")               \
	X(CONTAINER_NAME, "container.name")    \
	X(CONTAINER_ID, "container.id")        \
	X(APP_ID, "hearth.app_id")             \
	X(SERVICE_KIND, "hearth.service.kind") \
	X(STACK_END, "hearth.stack_end")

#define X(id, name) OTLP_##id,
enum otlp_slot { OTLP_SLOTS(X) OTLP_SLOT_COUNT };
#undef X
#define OTLP_FIRST_TEXT OTLP_COMM /* those before are numbers */

struct str otlp_slot_name(enum otlp_slot slot);
/** otlp_slot_max - the largest number a slot holds. */
int64_t otlp_slot_max(enum otlp_slot slot);

#define OTLP_HOST "host.name"
#define OTLP_SERVICE "service.name"
#define OTLP_TRACE_ID "trace_id" /* labels that are a link: 32 and 16 hexadecimal digits in small letters */
#define OTLP_SPAN_ID "span_id"
#define OTLP_FRAME_TYPE "profile.frame.type"
#define OTLP_FRAME_KINDS "hearth.frame.kinds" /* of each line, joined by commas, where the type does not tell */
#define OTLP_IS_FOLDED "pprof.location.is_folded"
#define OTLP_BUILD_ID "process.executable.build_id.gnu"
#define OTLP_BUILD_ID_GO "process.executable.build_id.go" /* only read */
#define OTLP_COMMENT "pprof.profile.comment"
#define OTLP_DOC_URL "pprof.profile.doc_url"
#define OTLP_DROP_FRAMES "pprof.profile.drop_frames"
#define OTLP_KEEP_FRAMES "pprof.profile.keep_frames"
#define OTLP_DEFAULT_TYPE "pprof.scope.default_sample_type"
#define OTLP_SCOPE "hearth" /* whose files these are */

/** otlp_flag_name - the attribute that stands for bit @bit of enum model_mapping_flags, 0 to 3. */
struct str otlp_flag_name(unsigned int bit);

/** otlp_frame_type - what profile.frame.type says of a kind. */
struct str otlp_frame_type(enum model_kind kind);
/** otlp_frame_kind - the kind that a frame type stands for. Return: false when it is not known. */
bool otlp_frame_kind(struct str type, enum model_kind *out);
/** otlp_kind_name - "java-inlined": what hearth.frame.kinds says of a kind. */
struct str otlp_kind_name(enum model_kind kind);
/** otlp_kind_find - Return: false when there is no such name. */
bool otlp_kind_find(struct str name, enum model_kind *out);

/** otlp_clean - @text itself when it is UTF-8, else a copy in @room with U+FFFD for what is not. */
struct str otlp_clean(struct str text, struct buf *room);

/** otlp_encode - codec_otlp.encode_as */
int otlp_encode(const struct window *w, const struct codec_options *options, struct buf *out) warn_unused;
