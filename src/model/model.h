/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in memory: everything pprof can say, plus processes and threads. Tables are dense arrays; index 0 of
 * mappings, functions, locations, stacks, processes, threads and label sets means "none". Rows are interned: adding an
 * equal row gives the old index. Strings are ids of `strings`; id 0 is "". */
#pragma once

#include "base/buf.h"
#include "base/intern.h"

/* What produced a frame. Decides colour and, in .col, the suffix. Source: gProfiler, README.md. */
#define MODEL_KINDS(X)                                  \
	X(NATIVE, "native", "")                         \
	X(KERNEL, "kernel", "_[k]")                     \
	X(JIT, "jit", "")                               \
	X(PYTHON, "python", "_[p]")                     \
	X(PYTHON_NATIVE, "python-native", "_[pn]")      \
	X(PYTHON_ERROR, "python-error", "_[pe]")        \
	X(JAVA, "java", "_[j]")                         \
	X(JAVA_INLINED, "java-inlined", "_[i]")         \
	X(JAVA_C1, "java-c1", "_[1]")                   \
	X(JAVA_INTERPRETED, "java-interpreted", "_[0]") \
	X(RUBY, "ruby", "_[rb]")                        \
	X(PHP, "php", "_[php]")                         \
	X(DOTNET, "dotnet", "_[net]")                   \
	X(PERL, "perl", "_[perl]")                      \
	X(JAVASCRIPT, "javascript", "")

#define X(id, name, suffix) MODEL_KIND_##id,
enum model_kind { MODEL_KINDS(X) MODEL_KIND_COUNT };
#undef X

/* Language runtimes: the name that struct runtime has, what people call it, the kind of its functions, and of what
 * stands where they are not known. */
#define MODEL_RUNTIMES(X)                              \
	X("python", "Python", PYTHON, PYTHON_ERROR)    \
	X("java", "Java", JAVA, JAVA)                  \
	X("nodejs", "Node.js", JAVASCRIPT, JAVASCRIPT) \
	X("ruby", "Ruby", RUBY, RUBY)                  \
	X("php", "PHP", PHP, PHP)                      \
	X("perl", "Perl", PERL, PERL)

#define X(name, title, functions, errors) +1
enum { MODEL_RUNTIME_COUNT = MODEL_RUNTIMES(X) };
#undef X

struct model_runtime {
	struct str name, title;
	enum model_kind functions, errors;
};

/** model_runtime_at - one by one; NULL behind the last. */
const struct model_runtime *model_runtime_at(size_t index);
/** model_kind_is_function - are these functions of a language runtime, which their file and line tell apart? */
bool model_kind_is_function(enum model_kind kind);
/** model_kind_is_runtime - the same, or what stands in their place. */
bool model_kind_is_runtime(enum model_kind kind);

struct str model_kind_suffix(enum model_kind kind); /* as .col writes it */
/** model_kind_mapping - "[kernel.kallsyms]" or "[python]": the file name that stands for a kind in pprof; empty: native
 */
struct str model_kind_mapping(enum model_kind kind);
/** model_kind_of_mapping - the kind a mapping's file name stands for (docs/formats/pprof.md); native for real files. */
enum model_kind model_kind_of_mapping(struct str filename);
/** model_distribution_of_mapping - "requests==2.31.0" of "[python:requests==2.31.0]": the distribution of a mapping's
 * Python code; empty when the name has none. */
struct str model_distribution_of_mapping(struct str filename);

enum model_mapping_flags {
	MODEL_HAS_FUNCTIONS = 1,
	MODEL_HAS_FILENAMES = 2,
	MODEL_HAS_LINE_NUMBERS = 4,
	MODEL_HAS_INLINE_FRAMES = 8,
};

struct model_mapping {
	uint64_t start, limit, file_offset;
	uint32_t filename, build_id; /* strings; build id in lower-case hex */
	uint32_t flags;              /* not part of the identity: or-ed when equal rows meet */
};

struct model_function {
	uint32_t name, system_name, filename; /* strings; system_name is the mangled form, or equal to name */
	enum model_kind kind;
	int64_t start_line;
};

struct model_line {
	uint32_t function;
	int64_t line, column;
};

struct model_location {
	uint32_t mapping;
	uint32_t first_line, line_count; /* in model.lines; innermost inlined function first */
	bool is_folded;
	uint64_t address;
};

/* A stack is a path in a tree: the leaf's node. Node 0 is the empty stack above all roots. */
struct model_stack {
	uint32_t parent, location;
};

struct model_process {
	uint32_t pid;
	uint64_t start_ns;                /* CLOCK_BOOTTIME; 0 when unknown */
	uint32_t comm, container, app_id; /* strings */
	/* Strings: the service it belongs to, and what that is named after ("unit"). Not part of the identity. */
	uint32_t workload, service_kind;
	uint32_t app_metadata; /* index into model.app_metadata, 0: none */
};

struct model_thread {
	uint32_t process, tid;
	uint32_t name; /* string */
};

struct model_label {
	uint32_t key;
	uint32_t text; /* string label when is_number is false */
	bool is_number;
	int64_t number;
	uint32_t unit;
};

struct model_label_set {
	uint32_t first, count; /* in model.labels, kept in the order given */
};

struct model_value_type {
	uint32_t type, unit;
};

struct model_sample {
	uint32_t stack, process, thread, label_set;
	uint32_t first_value; /* in model.values: value_type_count of them */
	uint32_t end; /* string: "complete", "guessed", "cut:REASON" or "" when unknown (pprof label stack_end) */
	uint64_t time_offset_ns; /* from window start; UINT64_MAX: none */
};

#define MODEL_VALUE_TYPES_MAX 32
#define MODEL_LABELS_MAX 128 /* in one set */
#define MODEL_NO_TIME UINT64_MAX

#define MODEL_TABLE(type, name) \
	type *name;             \
	size_t name##_count, name##_cap

struct model_index; /* hash indexes of the interned tables; private to model.c */

struct model {
	struct intern strings;
	MODEL_TABLE(struct model_mapping, mappings);
	MODEL_TABLE(struct model_function, functions);
	MODEL_TABLE(struct model_line, lines);
	MODEL_TABLE(struct model_location, locations);
	MODEL_TABLE(struct model_stack, stacks);
	MODEL_TABLE(struct model_process, processes);
	MODEL_TABLE(struct model_thread, threads);
	MODEL_TABLE(struct model_label, labels);
	MODEL_TABLE(struct model_label_set, label_sets);
	MODEL_TABLE(struct model_sample, samples);
	MODEL_TABLE(int64_t, values);
	MODEL_TABLE(uint32_t, comments);     /* strings */
	MODEL_TABLE(uint32_t, app_metadata); /* strings: JSON objects; row 0 is none */
	struct model_value_type value_types[MODEL_VALUE_TYPES_MAX];
	size_t value_type_count;
	struct model_value_type period_type;
	int64_t period, time_ns, duration_ns;
	uint32_t drop_frames, keep_frames, default_type, doc_url; /* strings */
	struct model_index *index;
	size_t memory_max; /* bytes of tables and indexes; 0: no limit. What does not fit is -E2BIG */
	bool may_repeat;   /* functions and locations are not looked up when they are added: equal ones are two rows */
};

/** model_init - an empty profile; @byte_max bounds its strings. Return: 0 or -ENOMEM (then nothing needs releasing). */
int model_init(struct model *m, size_t byte_max) warn_unused;
void model_release(struct model *m); /* a zeroed struct is fine */
/** model_memory - bytes that tables and indexes take, with the room they have to grow. */
size_t model_memory(const struct model *m);
struct model_room { /* rows and bytes to come */
	size_t strings, string_bytes, functions, locations, lines;
};

/**
 * model_reserve - make room in an empty model for rows that are known to come, so that nothing is copied while it grows
 * What does not fit m->memory_max, or is not to be had, is left to grow: nothing fails.
 */
void model_reserve(struct model *m, const struct model_room *room);

/**
 * model_distinct - make equal functions, locations and stacks one row again, in a model whose rows may repeat
 * Return: 0 or -ENOMEM: nothing changed. One without m->may_repeat is left as it is.
 */
int model_distinct(struct model *m) warn_unused;

/** model_trim - free the room kept for further rows. A model that rarely grows becomes a fifth smaller. */
void model_trim(struct model *m);

/* Every model_add_* returns 0 and *out, -ENOMEM, or -E2BIG over a limit; nothing changes on failure. */
int model_add_string(struct model *m, struct str s, uint32_t *out) warn_unused;
int model_add_value_type(struct model *m, struct str type, struct str unit) warn_unused; /* before any sample */
int model_add_comment(struct model *m, struct str text) warn_unused; /* kept in order, not interned */
int model_add_app_metadata(struct model *m, struct str json, uint32_t *out) warn_unused; /* "" is row 0 */
int model_add_mapping(struct model *m, const struct model_mapping *row, uint32_t *out) warn_unused;
int model_add_function(struct model *m, const struct model_function *row, uint32_t *out) warn_unused;
int model_add_location(struct model *m, const struct model_location *row, const struct model_line *lines,
		       uint32_t *out) warn_unused; /* row->first_line is ignored */

#define MODEL_FIND_MAX 16 /* memory accesses under way at once: about what a core keeps track of */

/** model_find_functions - the numbers of up to MODEL_FIND_MAX @rows, 0 for one that is not there. Faster in a large
 * model than one after the other. */
void model_find_functions(const struct model *m, const struct model_function *rows, size_t count, uint32_t *out);
/** model_find_locations - the same; @lines has the lines of all @rows, one row's behind the other's. */
void model_find_locations(const struct model *m, const struct model_location *rows, const struct model_line *lines,
			  size_t count, uint32_t *out);

/** model_add_stack - the child of @parent at @location. A stack is built from the root: start with parent 0. */
int model_add_stack(struct model *m, uint32_t parent, uint32_t location, uint32_t *out) warn_unused;

/**
 * model_append_stack - a child of @parent at @location that is known to be a new one
 * Without an index of stacks nothing is looked up and none is made: it is made by what looks for a stack first. With
 * one this is model_add_stack().
 */
int model_append_stack(struct model *m, uint32_t parent, uint32_t location, uint32_t *out) warn_unused;
/** model_copy_stacks - all stacks of @from, in a model that has none, and whose locations are the same ones. */
int model_copy_stacks(struct model *into, const struct model *from) warn_unused;
/** model_index_stacks - make the index that model_append_stack() left out. */
int model_index_stacks(struct model *m) warn_unused;

struct model_path {
	const uint32_t *locations; /* leaf first */
	uint32_t *nodes;           /* filled: the stacks on the way, root first; the last is the whole one */
	size_t count;
};

/** model_add_paths - model_add_stack() for all steps of several stacks, several times as fast in a large model. */
int model_add_paths(struct model *m, const struct model_path *paths, size_t count) warn_unused;
int model_add_process(struct model *m, const struct model_process *row, uint32_t *out) warn_unused;
int model_add_thread(struct model *m, const struct model_thread *row, uint32_t *out) warn_unused;
int model_add_label_set(struct model *m, const struct model_label *labels, size_t count, uint32_t *out) warn_unused;
/** model_sort_labels - texts by key, then numbers by key, otherwise in the order given: as pprof files have them. */
void model_sort_labels(const struct model *m, struct model_label *labels, size_t count);
/** model_add_sample - @values has value_type_count entries. Samples are kept in the order added, not interned. */
int model_add_sample(struct model *m, const struct model_sample *row, const int64_t *values) warn_unused;

static inline struct str model_string(const struct model *m, uint32_t id)
{
	return intern_get(&m->strings, id);
}

static inline const int64_t *model_values(const struct model *m, const struct model_sample *s)
{
	return m->values + s->first_value;
}

/**
 * model_value_index - the first column called @name
 * @name: its type's name, exactly; or, where no column is called so, NAME/UNIT: units tell two of one name apart
 *
 * Return: the column, or -1.
 */
int model_value_index(const struct model *m, struct str name);
/** model_column_like - the first column of @b with name and unit of column @i of @a. Return: it, or -1. */
int model_column_like(const struct model *a, size_t i, const struct model *b);
/** model_value_named - whether @text is NAME/UNIT of a column. */
bool model_value_named(struct str text, struct str name, struct str unit);

/** model_default_value - the column a viewer shows: default_type when it names one, otherwise the last, or the first
 * with its name and unit. */
size_t model_default_value(const struct model *m);

/** model_count_value - the column that collapsed stacks count by: samples/count, else the default. */
size_t model_count_value(const struct model *m);

/** model_location_kind - what produced @location: the kind of its physical function, else what its mapping stands for.
 */
enum model_kind model_location_kind(const struct model *m, uint32_t location);

/**
 * model_frame_name - append the name of one line of a location: its function, or "[module+0xoffset]" when it has no
 * lines (then @line is 0), "[unknown]" when nothing is known
 */
void model_frame_name(const struct model *m, uint32_t location, uint32_t line, struct buf *out);

/**
 * model_coalesce - add up samples that are equal in everything but values and time; order of first appearance. The time
 * offset stays where all added samples share it. Sums saturate.
 */
int model_coalesce(struct model *m) warn_unused;

/**
 * model_merge - add every sample of @from to @into, as pprof merges (docs/formats/pprof.md, "Merging")
 * @into: an empty model takes sample types, period type and the other header fields from @from. Mappings are matched by
 *	size, offset and build id (or file name), and addresses follow the mapping; two equal samples become one.
 *
 * A model that is to be compared with others is merged into an empty one first: that removes what no sample uses and
 * samples whose values are all zero. Time offsets are dropped: they count from another start. Samples of @into that
 * differ in nothing else become one.
 *
 * Return: 0; -EINVAL when sample or period types differ (nothing has changed); -ENOMEM or -E2BIG (then @into holds a
 * part of @from). Sums saturate.
 */
int model_merge(struct model *into, const struct model *from) warn_unused;

/**
 * model_merge_timed - the same into a model without samples, with their times: samples of different times stay apart
 * For a part of a profile, or a copy of it: both begin at the same moment.
 */
int model_merge_timed(struct model *into, const struct model *from) warn_unused;

/** model_sample_same - are two samples of a model equal in everything but values and time? */
bool model_sample_same(const struct model_sample *a, const struct model_sample *b);

struct model_hash {
	uint64_t high, low;
};

/**
 * model_keep_common - leave both profiles only the columns that both have, each once, in the order of @a, and no period
 * Two profiles that model_merge() refuses can be merged then. Return: 0, or -EINVAL when they share none (nothing has
 * changed).
 */
int model_keep_common(struct model *a, struct model *b) warn_unused;

/**
 * model_stack_hashes - the 128-bit identity of every stack, chained from the root over canonical frames (XXH3):
 * mapping (build id, else file name), address as an offset into its file, lines as (name, system name, file, start
 * line, line, column, kind). A mapping that only stands for a kind counts as none.
 * @out: stacks_count entries; entry 0 is the empty stack
 *
 * Return: 0 or -ENOMEM.
 */
int model_stack_hashes(const struct model *m, struct model_hash *out) warn_unused;
