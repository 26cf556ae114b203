/* SPDX-License-Identifier: Apache-2.0 */
/* The legacy forms of pprof: which one it is, and from the samples read to the model.
 * Source of the forms and of the corrections: google/pprof profile/legacy_profile.go, profile/profile.go (2025-06);
 * gperftools docs/cpuprofile-fileformat.html (2.15). */
#include "codec/pprof_legacy_int.h"

#include "base/array.h"
#include "codec/gzip.h"
#include "codec/pprof.h"

#define LEGACY_STEPS 4096 /* frames between two looks at the limits */
#define ROWS_MAX ((size_t)UINT32_MAX - 1)

int legacy_bad_line(const struct legacy *in, const struct legacy_line *line, const char *reason)
{
	codec_fail(in->error, line->number, true, "%s", reason);
	return -EBADMSG;
}

int legacy_failed(const struct legacy *in, int r)
{
	if (r < 0 && r != -ECANCELED)
		codec_fail(in->error, 0, false, "%s", r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

int legacy_next_line(const struct legacy *in, struct legacy_line *line)
{
	if (!line->rest.len || !str_next(&line->rest, '\n', &line->text)) {
		line->text = STR("");
		return 0;
	}
	line->number++;
	if (line->text.len > LEGACY_LINE_MAX) {
		codec_fail(in->error, line->number, true, "line longer than %zu bytes", LEGACY_LINE_MAX);
		return -E2BIG;
	}
	if (line->text.len && line->text.ptr[line->text.len - 1] == '\r')
		line->text.len--;
	return 1;
}

bool legacy_is_map_start(struct str line)
{
	return str_search(line, STR("--- Memory map: ---")) >= 0 || str_search(line, STR("MAPPED_LIBRARIES:")) >= 0;
}

/* Samples */

int legacy_begin_sample(struct legacy *in, const struct legacy_sample *row)
{
	int r = array_grow(&in->samples, &in->samples_cap, in->samples_count, ROWS_MAX);

	if (r == 0 && in->limits->samples_max && in->samples_count == in->limits->samples_max)
		r = -E2BIG;
	if (r < 0)
		return legacy_failed(in, r);
	in->samples[in->samples_count] = *row;
	in->samples[in->samples_count].first_frame = in->frames_count;
	in->samples[in->samples_count++].frame_count = 0;
	return 0;
}

static int find_place(struct legacy *in, uint64_t address, uint32_t *out)
{
	int r;

	if (u64map_get(&in->places_by_address, address, out) == 0)
		return 0;
	r = array_grow(&in->places, &in->places_cap, in->places_count, ROWS_MAX);
	r = r ? r : u64map_put(&in->places_by_address, address, (uint32_t)in->places_count);
	if (r < 0)
		return r;
	*out = (uint32_t)in->places_count;
	in->places[in->places_count++] = (struct legacy_place){ .address = address };
	return 0;
}

static int step(struct legacy *in)
{
	size_t size = in->places_cap * sizeof(*in->places) + in->places_by_address.cap * 16 +
		      in->frames_cap * sizeof(*in->frames) + in->samples_cap * sizeof(*in->samples);

	if (++in->steps % LEGACY_STEPS)
		return 0;
	if (codec_stopped(in->limits, 0))
		return -ECANCELED;
	return in->limits->memory_max && size > in->limits->memory_max / 2 ? -E2BIG : 0;
}

int legacy_add_frame(struct legacy *in, uint64_t address)
{
	struct legacy_sample *sample = &in->samples[in->samples_count - 1];
	uint32_t place = 0;
	int r = step(in);

	if (r == 0 && in->limits->depth_max && sample->frame_count == in->limits->depth_max) {
		sample->is_cut = true;
		return 0;
	}
	r = r ? r : find_place(in, address, &place);
	r = r ? r : array_grow(&in->frames, &in->frames_cap, in->frames_count, ROWS_MAX);
	if (r < 0)
		return legacy_failed(in, r);
	in->frames[in->frames_count++] = place;
	sample->frame_count++;
	return 0;
}

void legacy_drop_second(struct legacy *in, struct legacy_sample *s)
{
	if (s->frame_count < 2)
		return;
	in->frames[s->first_frame + 1] =
		in->frames[s->first_frame]; /* the leaf moves up: no need to touch the callers */
	s->first_frame++;
	s->frame_count--;
}

void legacy_drop_doubled_leaves(struct legacy *in)
{
	for (size_t i = 0; i < in->samples_count; i++) {
		struct legacy_sample *s = &in->samples[i];
		const uint32_t *frames;

		if (s->frame_count < 2)
			continue;
		frames = in->frames + s->first_frame;
		if (in->places[frames[0]].address == in->places[frames[1]].address + 1)
			legacy_drop_second(in, s);
	}
}

/* Into the model */

static int add_mapping(struct legacy *in, uint32_t index, uint32_t *out)
{
	const struct legacy_mapping *from = &in->mappings[index];
	struct model_mapping row = { .start = from->start, .limit = from->limit, .file_offset = from->offset };
	int r = model_add_string(in->m, legacy_str(in, from->file), &row.filename);

	r = r ? r : model_add_string(in->m, legacy_str(in, from->build_id), &row.build_id);
	return r ? r : model_add_mapping(in->m, &row, out);
}

static int add_mappings(struct legacy *in, uint32_t *rows)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < in->mappings_count; i++)
		r = add_mapping(in, i, &rows[i + 1]);
	return r;
}

static int add_sample(struct legacy *in, const struct legacy_sample *s, const uint32_t *mapping_rows,
		      uint32_t bytes_key)
{
	struct model_label label = { .key = bytes_key, .is_number = true, .number = s->block_size };
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	int r = model_add_label_set(in->m, &label, s->block_size ? 1 : 0, &row.label_set);

	for (size_t i = s->frame_count; r == 0 && i > 0; i--) {
		struct legacy_place *place = &in->places[in->frames[s->first_frame + i - 1]];
		struct model_location location = { .address = place->address, .mapping = mapping_rows[place->mapping] };

		if (!place->location)
			r = model_add_location(in->m, &location, NULL, &place->location);
		r = r ? r : model_add_stack(in->m, row.stack, place->location, &row.stack);
	}
	if (r == 0 && s->is_cut)
		r = model_add_string(in->m, STR(CODEC_STACK_CUT), &row.end);
	return r ? r : model_add_sample(in->m, &row, s->values);
}

static int fill_model(struct legacy *in)
{
	scoped(freep) uint32_t *mapping_rows = calloc(in->mappings_count + 1, sizeof(*mapping_rows));
	uint32_t bytes_key;
	int r = mapping_rows ? 0 : -ENOMEM;

	r = r ? r : add_mappings(in, mapping_rows);
	r = r ? r : model_add_string(in->m, STR("bytes"), &bytes_key);
	for (size_t i = 0; r == 0 && i < in->samples_count; i++)
		r = add_sample(in, &in->samples[i], mapping_rows, bytes_key);
	return legacy_failed(in, r);
}

/* Frames of the profiler itself, by the kind of profile: pprof hides them once they have names. Which functions those
 * are: google/pprof, see above. */
#define DROP_ALLOC                                                                                                  \
	"calloc|cfree|malloc|free|(do_)?memalign|(__)?posix_memalign|p?valloc|realloc|tcmalloc::.*|"                \
	"tc_(calloc|cfree|malloc|free|memalign|posix_memalign|pvalloc|valloc|realloc|(new|delete)(array)?|"         \
	"new(array)?_nothrow)|malloc_zone_(malloc|calloc|valloc|realloc|memalign|free)|runtime\\..*|BaseArena::.*|" \
	"(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|MallocedMemBlock::MallocedMemBlock|_M_allocate|"     \
	"__builtin_(vec_)?(delete|new)|__gnu_cxx::new_allocator::allocate|__libc_malloc|__malloc_alloc_template::"  \
	"allocate|"                                                                                                 \
	"allocate|cpp_alloc|operator new(\\[\\])?|simple_alloc::allocate"
#define KEEP_ALLOC "runtime\\.(panic|reflectcall|call[0-9]*)"
#define DROP_LOCK                                                                                                \
	"(base::)?(RecordLockProfileData|Submit(Mutex|SpinLock)ProfileData).*|"                                  \
	"((base::)?Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*|" \
	"(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*"
#define DROP_CPU "ProfileData::(Add|prof_handler)|CpuProfiler::prof_handler|__pthread_sighandler|__restore"

static int set_dropped_frames(struct legacy *in)
{
	struct str type = model_string(in->m, in->m->value_types[0].type), drop = STR(DROP_CPU), keep = STR("");
	int r;

	if (str_eq(type, STR("objects")) || str_eq(type, STR("alloc_objects"))) {
		drop = STR(DROP_ALLOC);
		keep = STR(KEEP_ALLOC);
	} else if (str_eq(type, STR("contentions")) && in->m->value_type_count == 2) {
		drop = STR(DROP_LOCK);
	}
	r = model_add_string(in->m, drop, &in->m->drop_frames);
	return legacy_failed(in, r ? r : model_add_string(in->m, keep, &in->m->keep_frames));
}

static void legacy_release(struct legacy *in)
{
	u64map_release(&in->places_by_address);
	free(in->places);
	free(in->frames);
	free(in->samples);
	free(in->mappings);
	buf_release(&in->text);
}

static int read_form(struct legacy *in)
{
	if (legacy_cpu_is(in->bytes))
		return legacy_cpu_read(in);
	if (legacy_text_is(in->bytes))
		return legacy_text_read(in);
	codec_fail(in->error, 0, false, "%s", in->bytes.len ? "none of pprof's legacy forms" : "empty input file");
	return -EBADMSG;
}

static int decode_plain(struct str bytes, const struct codec_limits *limits, struct window *out,
			struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(legacy_release) struct legacy in = {
		.bytes = bytes, .limits = limits, .error = error, .text = BUF_INIT(LEGACY_TEXT_MAX)
	};
	int r = window_init(&w, LEGACY_TEXT_MAX + LEGACY_LINE_MAX + KIB(64));

	u64map_init(&in.places_by_address, ROWS_MAX);
	if (r < 0)
		return legacy_failed(&in, r);
	in.m = w.model;
	in.m->memory_max = limits->memory_max;
	r = read_form(&in);
	r = r ? r : fill_model(&in);
	r = r ? r : set_dropped_frames(&in);
	if (r < 0)
		return r;
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(buf_release) struct buf room = BUF_INIT(0);
	struct str plain = bytes;
	int r = gzip_is(bytes) ? codec_unpack(bytes, limits, PPROF_EXPANDED_MAX, &room, &plain, error) : 0;

	return r ? r : decode_plain(plain, limits, out, error);
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

static int sniff(struct str bytes)
{
	return legacy_cpu_is(bytes) || legacy_text_is(str_first(bytes, KIB(4)));
}

static const char *const suffixes[] = { ".prof", ".heap", ".cpu", NULL };

const struct codec codec_legacy = {
	.name = "legacy",
	.suffixes = suffixes,
	.help = "pprof's older inputs: CPU profiles of gperftools, heap, contention, thread and count texts (only "
		"read)",
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
