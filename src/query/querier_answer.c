/* SPDX-License-Identifier: Apache-2.0 */
/* Answers. Numbers and names are those of api/querier/v1/querier.proto, api/types/v1/types.proto and
 * api/google/v1/profile.proto of github.com/grafana/pyroscope. */
#include "query/querier_answer.h"

static const struct proto_field label_pair_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "name" },
	{ .number = 2, .kind = PROTO_TEXT, .name = "value" },
};

static const struct proto_message label_pair = PROTO_TABLE(label_pair_fields);

static const struct proto_field profile_type_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "ID" },
	{ .number = 2, .kind = PROTO_TEXT, .name = "name" },
	{ .number = 4, .kind = PROTO_TEXT, .name = "sample_type", .json = "sampleType" },
	{ .number = 5, .kind = PROTO_TEXT, .name = "sample_unit", .json = "sampleUnit" },
	{ .number = 6, .kind = PROTO_TEXT, .name = "period_type", .json = "periodType" },
	{ .number = 7, .kind = PROTO_TEXT, .name = "period_unit", .json = "periodUnit" },
};

static const struct proto_message profile_type = PROTO_TABLE(profile_type_fields);

static const struct proto_field profile_types_fields[] = {
	{ .number = 1,
	  .kind = PROTO_MESSAGE,
	  .name = "profile_types",
	  .json = "profileTypes",
	  .repeated = true,
	  .message = &profile_type },
};

static const struct proto_message profile_types = PROTO_TABLE(profile_types_fields);

static const struct proto_field names_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "names", .repeated = true },
};

static const struct proto_message names = PROTO_TABLE(names_fields);

static const struct proto_field labels_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "labels", .repeated = true, .message = &label_pair },
};

static const struct proto_message labels = PROTO_TABLE(labels_fields);

static const struct proto_field series_fields[] = {
	{ .number = 2,
	  .kind = PROTO_MESSAGE,
	  .name = "labels_set",
	  .json = "labelsSet",
	  .repeated = true,
	  .message = &labels },
};

static const struct proto_message series = PROTO_TABLE(series_fields);

static const struct proto_field level_fields[] = {
	{ .number = 1, .kind = PROTO_INT, .name = "values", .repeated = true },
};

static const struct proto_message level = PROTO_TABLE(level_fields);

static const struct proto_field flame_graph_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "names", .repeated = true },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "levels", .repeated = true, .message = &level },
	{ .number = 3, .kind = PROTO_INT, .name = "total" },
	{ .number = 4, .kind = PROTO_INT, .name = "max_self", .json = "maxSelf" },
};

static const struct proto_message flame_graph = PROTO_TABLE(flame_graph_fields);

static const struct proto_field flame_graph_diff_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "names", .repeated = true },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "levels", .repeated = true, .message = &level },
	{ .number = 3, .kind = PROTO_INT, .name = "total" },
	{ .number = 4, .kind = PROTO_INT, .name = "max_self", .json = "maxSelf" },
	{ .number = 5, .kind = PROTO_INT, .name = "leftTicks" },
	{ .number = 6, .kind = PROTO_INT, .name = "rightTicks" },
};

static const struct proto_message flame_graph_diff = PROTO_TABLE(flame_graph_diff_fields);

static const struct proto_field value_type_fields[] = {
	{ .number = 1, .kind = PROTO_INT, .name = "type" },
	{ .number = 2, .kind = PROTO_INT, .name = "unit" },
};

static const struct proto_message value_type = PROTO_TABLE(value_type_fields);

static const struct proto_field label_fields[] = {
	{ .number = 1, .kind = PROTO_INT, .name = "key" },
	{ .number = 2, .kind = PROTO_INT, .name = "str" },
	{ .number = 3, .kind = PROTO_INT, .name = "num" },
	{ .number = 4, .kind = PROTO_INT, .name = "num_unit", .json = "numUnit" },
};

static const struct proto_message label = PROTO_TABLE(label_fields);

static const struct proto_field sample_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "location_id", .json = "locationId", .repeated = true },
	{ .number = 2, .kind = PROTO_INT, .name = "value", .repeated = true },
	{ .number = 3, .kind = PROTO_MESSAGE, .name = "label", .repeated = true, .message = &label },
};

static const struct proto_message sample = PROTO_TABLE(sample_fields);

static const struct proto_field mapping_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "id" },
	{ .number = 2, .kind = PROTO_UINT, .name = "memory_start", .json = "memoryStart" },
	{ .number = 3, .kind = PROTO_UINT, .name = "memory_limit", .json = "memoryLimit" },
	{ .number = 4, .kind = PROTO_UINT, .name = "file_offset", .json = "fileOffset" },
	{ .number = 5, .kind = PROTO_INT, .name = "filename" },
	{ .number = 6, .kind = PROTO_INT, .name = "build_id", .json = "buildId" },
	{ .number = 7, .kind = PROTO_BOOL, .name = "has_functions", .json = "hasFunctions" },
	{ .number = 8, .kind = PROTO_BOOL, .name = "has_filenames", .json = "hasFilenames" },
	{ .number = 9, .kind = PROTO_BOOL, .name = "has_line_numbers", .json = "hasLineNumbers" },
	{ .number = 10, .kind = PROTO_BOOL, .name = "has_inline_frames", .json = "hasInlineFrames" },
};

static const struct proto_message mapping = PROTO_TABLE(mapping_fields);

static const struct proto_field line_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "function_id", .json = "functionId" },
	{ .number = 2, .kind = PROTO_INT, .name = "line" },
};

static const struct proto_message line = PROTO_TABLE(line_fields);

static const struct proto_field location_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "id" },
	{ .number = 2, .kind = PROTO_UINT, .name = "mapping_id", .json = "mappingId" },
	{ .number = 3, .kind = PROTO_UINT, .name = "address" },
	{ .number = 4, .kind = PROTO_MESSAGE, .name = "line", .repeated = true, .message = &line },
	{ .number = 5, .kind = PROTO_BOOL, .name = "is_folded", .json = "isFolded" },
};

static const struct proto_message location = PROTO_TABLE(location_fields);

static const struct proto_field function_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "id" },
	{ .number = 2, .kind = PROTO_INT, .name = "name" },
	{ .number = 3, .kind = PROTO_INT, .name = "system_name", .json = "systemName" },
	{ .number = 4, .kind = PROTO_INT, .name = "filename" },
	{ .number = 5, .kind = PROTO_INT, .name = "start_line", .json = "startLine" },
};

static const struct proto_message function = PROTO_TABLE(function_fields);

static const struct proto_field profile_fields[] = {
	{ .number = 1,
	  .kind = PROTO_MESSAGE,
	  .name = "sample_type",
	  .json = "sampleType",
	  .repeated = true,
	  .message = &value_type },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "sample", .repeated = true, .message = &sample },
	{ .number = 3, .kind = PROTO_MESSAGE, .name = "mapping", .repeated = true, .message = &mapping },
	{ .number = 4, .kind = PROTO_MESSAGE, .name = "location", .repeated = true, .message = &location },
	{ .number = 5, .kind = PROTO_MESSAGE, .name = "function", .repeated = true, .message = &function },
	{ .number = 6, .kind = PROTO_TEXT, .name = "string_table", .json = "stringTable", .repeated = true },
	{ .number = 7, .kind = PROTO_INT, .name = "drop_frames", .json = "dropFrames" },
	{ .number = 8, .kind = PROTO_INT, .name = "keep_frames", .json = "keepFrames" },
	{ .number = 9, .kind = PROTO_INT, .name = "time_nanos", .json = "timeNanos" },
	{ .number = 10, .kind = PROTO_INT, .name = "duration_nanos", .json = "durationNanos" },
	{ .number = 11, .kind = PROTO_MESSAGE, .name = "period_type", .json = "periodType", .message = &value_type },
	{ .number = 12, .kind = PROTO_INT, .name = "period" },
	{ .number = 13, .kind = PROTO_INT, .name = "comment", .repeated = true },
	{ .number = 14, .kind = PROTO_INT, .name = "default_sample_type", .json = "defaultSampleType" },
};

static const struct proto_message profile = PROTO_TABLE(profile_fields);

static const struct proto_field pprof_profile_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "profile", .message = &profile },
};

static const struct proto_message pprof_profile = PROTO_TABLE(pprof_profile_fields);

static const struct proto_field merged_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "flamegraph", .message = &flame_graph },
	{ .number = 5, .kind = PROTO_MESSAGE, .name = "pprof", .message = &pprof_profile },
};

static const struct proto_message merged = PROTO_TABLE(merged_fields);

static const struct proto_field compared_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "flamegraph", .message = &flame_graph_diff },
};

static const struct proto_message compared = PROTO_TABLE(compared_fields);

static const struct proto_field point_fields[] = {
	{ .number = 1, .kind = PROTO_DOUBLE, .name = "value" },
	{ .number = 2, .kind = PROTO_INT, .name = "timestamp" },
};

static const struct proto_message point = PROTO_TABLE(point_fields);

static const struct proto_field time_series_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "labels", .repeated = true, .message = &label_pair },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "points", .repeated = true, .message = &point },
};

static const struct proto_message time_series = PROTO_TABLE(time_series_fields);

static const struct proto_field time_series_set_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "series", .repeated = true, .message = &time_series },
};

static const struct proto_message time_series_set = PROTO_TABLE(time_series_set_fields);

static const struct proto_field stats_fields[] = {
	{ .number = 1, .kind = PROTO_BOOL, .name = "data_ingested", .json = "dataIngested" },
	{ .number = 2, .kind = PROTO_INT, .name = "oldest_profile_time", .json = "oldestProfileTime" },
	{ .number = 3, .kind = PROTO_INT, .name = "newest_profile_time", .json = "newestProfileTime" },
};

static const struct proto_message stats = PROTO_TABLE(stats_fields);

static const struct proto_field scope_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "component_type", .json = "componentType" },
	{ .number = 2, .kind = PROTO_UINT, .name = "component_count", .json = "componentCount" },
	{ .number = 3, .kind = PROTO_UINT, .name = "block_count", .json = "blockCount" },
	{ .number = 4, .kind = PROTO_UINT, .name = "series_count", .json = "seriesCount" },
	{ .number = 5, .kind = PROTO_UINT, .name = "profile_count", .json = "profileCount" },
	{ .number = 6, .kind = PROTO_UINT, .name = "sample_count", .json = "sampleCount" },
	{ .number = 7, .kind = PROTO_UINT, .name = "index_bytes", .json = "indexBytes" },
	{ .number = 8, .kind = PROTO_UINT, .name = "profile_bytes", .json = "profileBytes" },
	{ .number = 9, .kind = PROTO_UINT, .name = "symbol_bytes", .json = "symbolBytes" },
};

static const struct proto_message scope = PROTO_TABLE(scope_fields);

static const struct proto_field impact_fields[] = {
	{ .number = 2, .kind = PROTO_UINT, .name = "total_bytes_in_time_range", .json = "totalBytesInTimeRange" },
	{ .number = 3, .kind = PROTO_UINT, .name = "total_queried_series", .json = "totalQueriedSeries" },
	{ .number = 4, .kind = PROTO_BOOL, .name = "deduplication_needed", .json = "deduplicationNeeded" },
};

static const struct proto_message impact = PROTO_TABLE(impact_fields);

static const struct proto_field analysis_fields[] = {
	{ .number = 1,
	  .kind = PROTO_MESSAGE,
	  .name = "query_scopes",
	  .json = "queryScopes",
	  .repeated = true,
	  .message = &scope },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "query_impact", .json = "queryImpact", .message = &impact },
};

static const struct proto_message analysis = PROTO_TABLE(analysis_fields);

const struct proto_message *const querier_profile = &profile;

const struct proto_message *querier_answer(enum querier_method method)
{
	static const struct proto_message *const answers[] = {
		[QUERIER_PROFILE_TYPES] = &profile_types,
		[QUERIER_LABEL_NAMES] = &names,
		[QUERIER_LABEL_VALUES] = &names,
		[QUERIER_SERIES] = &series,
		[QUERIER_MERGE_STACKTRACES] = &merged,
		[QUERIER_MERGE_SPAN_PROFILE] = &merged,
		[QUERIER_MERGE_PROFILE] = &profile,
		[QUERIER_SELECT_SERIES] = &time_series_set,
		[QUERIER_DIFF] = &compared,
		[QUERIER_STATS] = &stats,
		[QUERIER_ANALYZE] = &analysis,
	};

	static_assert(ARRAY_SIZE(answers) == QUERIER_METHODS, "one for each");
	return answers[method];
}
