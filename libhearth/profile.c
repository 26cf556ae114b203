/* SPDX-License-Identifier: Apache-2.0 */
#include "libhearth/profile.h"

#include <inttypes.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/random.h"
#include "base/u64map.h"
#include "codec/pprof.h"
#include "object/demangle.h"

#define STRINGS_MAX MIB(64)
#define LOCATIONS_MAX ((size_t)1 << 20)
#define MAPS_AGAIN_NS (100 * NSEC_PER_MSEC)
#define GZIP_LEVEL 3

struct profile {
	struct window window;
	struct places places;
	struct u64map locations; /* address -> location */
	uint32_t *mappings;      /* by place: mapping of the model + 1, or 0 */
	size_t mapping_cap;
	uint32_t process;
	unsigned int frequency_hz;
	uint64_t maps_read_ns, cpu_start_ns;
	uint64_t samples, lost;
	struct sampler_totals before;
};

static uint64_t process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	window_release(&p->window);
	places_release(&p->places);
	u64map_release(&p->locations);
	free(p->mappings);
	free(p);
}

static void profile_freep(struct profile **p)
{
	profile_free(*p);
}

static int start_model(struct profile *p)
{
	struct model *m = p->window.model;
	struct model_process row = { .pid = (uint32_t)getpid() };
	scoped(buf_release) struct buf comm = BUF_INIT(KIB(4));
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	if (r == 0)
		r = model_add_value_type(m, STR("cpu"), STR("nanoseconds"));
	if (r == 0)
		r = model_add_string(m, STR("cpu"), &m->period_type.type);
	if (r == 0)
		r = model_add_string(m, STR("nanoseconds"), &m->period_type.unit);
	m->period = (int64_t)(NSEC_PER_SEC / p->frequency_hz);
	if (r == 0 && io_read_file("/proc/self/comm", &comm) == 0)
		r = model_add_string(m, str_trim(buf_str(&comm)), &row.comm);
	return r < 0 ? r : model_add_process(m, &row, &p->process);
}

int profile_open(unsigned int frequency_hz, struct profile **out)
{
	scoped(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->frequency_hz = frequency_hz;
	u64map_init(&p->locations, LOCATIONS_MAX);
	r = window_init(&p->window, STRINGS_MAX);
	if (r == 0)
		r = start_model(p);
	if (r == 0)
		r = places_read(&p->places);
	if (r < 0)
		return r;
	p->window.start_ns = clock_wall_ns(&clock_system);
	p->maps_read_ns = clock_monotonic_ns(&clock_system);
	p->cpu_start_ns = process_cpu_ns();
	sampler_totals(&p->before);
	*out = p;
	p = NULL;
	return 0;
}

uint64_t profile_start_ns(const struct profile *p)
{
	return p->window.start_ns;
}

/* An address that nothing covers: a library that was loaded meanwhile. */
static void read_maps_again(struct profile *p)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system);

	if (now_ns - p->maps_read_ns < MAPS_AGAIN_NS)
		return;
	p->maps_read_ns = now_ns;
	ignore(places_read(&p->places)); /* what was known stays known */
}

static ptrdiff_t find_place(struct profile *p, uint64_t address)
{
	ptrdiff_t at = places_find(&p->places, address);

	if (at >= 0)
		return at;
	read_maps_again(p);
	return places_find(&p->places, address);
}

static int get_mapping(struct profile *p, size_t at, uint32_t *out)
{
	struct place *place = &p->places.items[at];
	struct model_mapping row = { .start = place->start, .limit = place->end, .file_offset = place->offset };
	struct model *m = p->window.model;
	int r;

	while (p->mapping_cap <= at) {
		size_t cap = MAX(2 * p->mapping_cap, at + 64);
		uint32_t *longer = realloc(p->mappings, cap * sizeof(*longer));

		if (!longer)
			return -ENOMEM;
		memset(longer + p->mapping_cap, 0, (cap - p->mapping_cap) * sizeof(*longer));
		p->mappings = longer;
		p->mapping_cap = cap;
	}
	if (p->mappings[at]) {
		*out = p->mappings[at] - 1;
		return 0;
	}
	places_open(place);
	row.flags = place->elf.segment_count ? MODEL_HAS_FUNCTIONS : 0;
	r = model_add_string(m, str_of(place->path), &row.filename);
	if (r == 0)
		r = model_add_string(m, str_of(place->build_id), &row.build_id);
	if (r == 0)
		r = model_add_mapping(m, &row, out);
	if (r == 0)
		p->mappings[at] = *out + 1;
	return r;
}

/* Without a name the location has no line, and is shown as file and offset. */
static int add_location(struct profile *p, size_t at, uint64_t address, uint32_t *out)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(8)), readable = BUF_INIT(DEMANGLE_TEXT_MAX + KIB(8));
	struct model *m = p->window.model;
	struct model_location row = { .address = address };
	struct model_function function = { 0 };
	struct model_line line = { 0 };
	int r = get_mapping(p, at, &row.mapping);

	if (r < 0)
		return r;
	if (places_name(&p->places.items[at], address, &name) < 0)
		return model_add_location(m, &row, NULL, out);
	demangle_add(buf_str(&name), &readable);
	if (readable.error)
		return readable.error;
	r = model_add_string(m, buf_str(&name), &function.system_name);
	if (r == 0)
		r = model_add_string(m, buf_str(&readable), &function.name);
	if (r == 0)
		r = model_add_function(m, &function, &line.function);
	row.line_count = 1;
	return r < 0 ? r : model_add_location(m, &row, &line, out);
}

/* Return: 1 and *out; 0 when @address is no code: it came from no frame. */
static int get_location(struct profile *p, uint64_t address, uint32_t *out)
{
	ptrdiff_t at;
	int r;

	if (u64map_get(&p->locations, address, out) == 0)
		return 1;
	at = find_place(p, address);
	if (at < 0)
		return 0;
	r = add_location(p, (size_t)at, address, out);
	if (r == 0)
		r = u64map_put(&p->locations, address, *out);
	return r < 0 ? r : 1;
}

/* Frame pointers are guesses: a compiler may have used the register for something else. No stack is called complete. */
static const char *const end_names[] = {
	[SAMPLE_ROOT] = "guessed",
	[SAMPLE_NO_CALLER] = "cut:no-frame-pointer",
	[SAMPLE_UNREADABLE] = "cut:read-failed",
	[SAMPLE_FRAME_LIMIT] = "cut:frame-limit",
};

/* The leaf, its caller when only the stack's words know it, then the chain of frame pointers. */
static int get_locations(struct profile *p, const struct sample *s, uint32_t locations[SAMPLE_FRAMES_MAX + 1],
			 size_t *count)
{
	ptrdiff_t leaf = s->frame_count ? find_place(p, s->frames[0]) : -1;
	uint64_t caller;
	int r = 1;

	for (size_t i = 0; i < s->frame_count && r == 1; i++) {
		r = get_location(p, s->frames[i] - (i > 0), &locations[*count]);
		*count += r == 1;
		if (i || r < 1 || leaf < 0 || !places_caller(&p->places.items[leaf], s, &caller))
			continue;
		r = get_location(p, caller - 1, &locations[*count]);
		*count += r == 1;
	}
	return r;
}

static int add_stack(struct profile *p, const struct sample *s, struct model_sample *row)
{
	uint32_t locations[SAMPLE_FRAMES_MAX + 1];
	const char *end = end_names[s->end];
	size_t count = 0;
	int r = get_locations(p, s, locations, &count);

	if (r < 0)
		return r;
	if (r == 0)
		end = "cut:no-mapping";
	for (row->stack = 0; count > 0; count--) {
		r = model_add_stack(p->window.model, row->stack, locations[count - 1], &row->stack);
		if (r < 0)
			return r;
	}
	return model_add_string(p->window.model, str_of(end), &row->end);
}

static int add_sample(struct profile *p, const struct sample *s)
{
	struct model *m = p->window.model;
	struct model_sample row = { .process = p->process, .time_offset_ns = MODEL_NO_TIME };
	struct model_thread thread = { .process = p->process, .tid = (uint32_t)s->tid };
	const int64_t values[] = { s->count, (int64_t)s->count * m->period };
	int r = model_add_string(m, str_of(s->thread_name), &thread.name);

	if (r == 0)
		r = model_add_thread(m, &thread, &row.thread);
	if (r == 0)
		r = add_stack(p, s, &row);
	return r < 0 ? r : model_add_sample(m, &row, values);
}

void profile_add(void *profile, const struct sample *sample)
{
	struct profile *p = profile;
	struct stack_range stack;

	if (!places_stack(&p->places, sample->sp, &stack))
		read_maps_again(p);
	if (places_stack(&p->places, sample->sp, &stack))
		sampler_stack(sample->tid, stack.start, stack.end);
	if (add_sample(p, sample) < 0)
		p->lost += sample->count;
	else
		p->samples += sample->count;
}

static int describe(struct profile *p, const struct window_label *labels, size_t label_count)
{
	struct window *w = &p->window;
	struct sampler_totals now;
	struct utsname host;
	int r = uname(&host) < 0 ? -errno : window_set_text(&w->host, str_of(host.nodename));

	sampler_totals(&now);
	w->end_ns = clock_wall_ns(&clock_system);
	w->frequency_hz = p->frequency_hz;
	w->model->time_ns = (int64_t)w->start_ns;
	w->model->duration_ns = (int64_t)(w->end_ns - w->start_ns);
	if (r == 0)
		r = window_set_text(&w->agent_version, STR(HEARTH_VERSION));
	if (r == 0)
		r = window_set_text(&w->sampler, STR("libhearth"));
	if (r == 0)
		r = window_set_text(&w->unwinder, STR("fp"));
	for (size_t i = 0; i < label_count && r == 0; i++)
		r = window_add_label(w, str_of(labels[i].key), str_of(labels[i].value));
	if (r == 0)
		r = window_set_counter(w, STR("samples"), p->samples);
	if (r == 0)
		r = window_set_counter(w, STR("lost_ring_full"), now.lost - p->before.lost);
	if (r == 0)
		r = window_set_counter(w, STR("lost_aggregate"), p->lost);
	if (r == 0)
		r = window_set_counter(w, STR("missed_threads"), now.missed_threads - p->before.missed_threads);
	return r < 0 ? r : window_set_counter(w, STR("process_cpu_ns"), process_cpu_ns() - p->cpu_start_ns);
}

int profile_finish(struct profile *p, const struct window_label *labels, size_t label_count, struct buf *out,
		   uint64_t *samples)
{
	int r = describe(p, labels, label_count);

	if (r == 0)
		r = model_coalesce(p->window.model);
	if (r < 0)
		return r;
	*samples = p->samples;
	return pprof_encode_level(&p->window, GZIP_LEVEL, out);
}
