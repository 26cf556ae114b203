/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two directions of the pprof codec. */
#pragma once

#include "codec/pprof.h"

/* Field numbers of profile.proto (google/pprof proto/profile.proto, 2024-05). */
enum pprof_profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_KEEP_FRAMES = 8,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	PROFILE_DOC_URL = 15,
};

enum pprof_sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum pprof_label_field { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3, LABEL_NUM_UNIT = 4 };
enum pprof_mapping_field {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS =
		7, /* 8, 9, 10: file names, line numbers, inlined frames; in model_mapping_flags' order */
	MAPPING_HAS_INLINE_FRAMES = 10,
};
enum pprof_location_field {
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LOCATION_IS_FOLDED = 5,
};
enum pprof_line_field { LINE_FUNCTION_ID = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum pprof_function_field {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
	FUNCTION_KIND = 100, /* ours: kind + 1, where the mapping does not tell it; other readers skip it */
};

/* Sample labels that are processes and threads (docs/formats/pprof.md): texts by name, then numbers by name. */
#define PPROF_LABELS(X)           \
	X(APP_ID, "appid")        \
	X(COMM, "comm")           \
	X(CONTAINER, "container") \
	X(STACK_END, "stack_end") \
	X(THREAD, "thread")       \
	X(PID, "pid")             \
	X(TID, "tid")

#define X(id, name) PPROF_LABEL_##id,
enum pprof_label { PPROF_LABELS(X) PPROF_LABEL_COUNT };
#undef X
#define PPROF_LABEL_FIRST_NUMBER PPROF_LABEL_PID /* those before are text */

struct str pprof_label_name(enum pprof_label label);
