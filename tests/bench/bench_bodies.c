/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_bodies.h"

#include "codec/pprof.h"

#define FUNCTIONS 8000

static uint64_t next_random(uint64_t *state) /* xorshift64, G. Marsaglia 2003 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t mix(uint64_t a, uint64_t b) /* the end of MurmurHash3 (A. Appleby, public domain) over both */
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;

	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static int frame(struct model *m, uint32_t mapping, uint64_t base, uint64_t number, uint32_t *out)
{
	struct model_function function = { .start_line = (int64_t)(number % 900) };
	struct model_location location = { .mapping = mapping, .line_count = 1, .address = base + number * 48 };
	struct model_line line = { .line = (int64_t)(number % 900 + number % 40) };
	char name[96];
	int size = snprintf(name, sizeof(name), "example.com/service/internal/package%llu.(*Type%llu).Method%llu",
			    (unsigned long long)number % 120, (unsigned long long)number % 700,
			    (unsigned long long)number);
	int r = model_add_string(m, str_n(name, (size_t)size), &function.name);

	function.system_name = function.name;
	size = snprintf(name, sizeof(name), "/src/service/internal/package%llu/file%llu.go",
			(unsigned long long)number % 120, (unsigned long long)number % 500);
	r = r ? r : model_add_string(m, str_n(name, (size_t)size), &function.filename);
	r = r ? r : model_add_function(m, &function, &line.function);
	return r ? r : model_add_location(m, &location, &line, out);
}

/* Stack @number of a service: the same in all of its profiles. */
static int stack(struct model *m, uint32_t mapping, uint64_t base, uint64_t service, uint64_t number, uint32_t *out)
{
	uint32_t node = 0, location;
	int r = 0;

	for (uint64_t depth = 0; r == 0 && depth < BODIES_DEPTH; depth++) {
		uint64_t who = depth < BODIES_SHARED ? number / BODIES_FAMILY : number;

		r = frame(m, mapping, base, mix(mix(service, who), depth) % FUNCTIONS, &location);
		r = r ? r : model_add_stack(m, node, location, &node);
	}
	*out = node;
	return r;
}

#define BASE_START UINT64_C(0x400000)

static int header(struct model *m, uint32_t *mapping)
{
	struct model_mapping row = { .start = BASE_START, .limit = BASE_START + MIB(8), .flags = MODEL_HAS_FUNCTIONS };
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	r = r ? r : model_add_value_type(m, STR("cpu"), STR("nanoseconds"));
	r = r ? r : model_add_string(m, STR("/srv/service"), &row.filename);
	r = r ? r : model_add_mapping(m, &row, mapping);
	m->period_type = m->value_types[1];
	m->period = 10000000;
	m->duration_ns = 10 * (int64_t)NSEC_PER_SEC;
	return r;
}

int bodies_service_init(struct bodies_service *base, uint64_t seed, uint64_t service, uint64_t stack_count)
{
	struct model *m = &base->m;
	uint32_t mapping;
	int r;

	*base = (struct bodies_service){ .seed = seed, .service = service, .stack_count = stack_count };
	r = model_init(m, MIB(64));
	base->stacks = calloc(stack_count, sizeof(*base->stacks));
	must(base->stacks);
	r = r ? r : header(m, &mapping);
	for (uint64_t i = 0; r == 0 && i < stack_count; i++)
		r = stack(m, mapping, BASE_START, service, i, &base->stacks[i]);
	for (unsigned int i = 0; r == 0 && i < BODIES_LABEL_SETS; i++) {
		struct model_label label = { 0 };
		char text[32];

		(void)snprintf(text, sizeof(text), "/api/%u", i);
		r = model_add_string(m, STR("endpoint"), &label.key);
		r = r ? r : model_add_string(m, str_of(text), &label.text);
		r = r ? r : model_add_label_set(m, &label, 1, &base->label_sets[i]);
	}
	return r;
}

void bodies_service_release(struct bodies_service *base)
{
	model_release(&base->m);
	free(base->stacks);
}

/* The binary lies elsewhere in every process. Nothing is looked up in @m any more. */
static void move_mapping(struct model *m, uint64_t by)
{
	m->mappings[1].start += by;
	m->mappings[1].limit += by;
	for (size_t i = 1; i < m->locations_count; i++)
		m->locations[i].address += by;
}

static int make_profile(struct bodies_service *base, uint64_t number, int64_t time_ns, struct model *m)
{
	uint64_t service = base->service;
	uint64_t state = mix(base->seed + service, number + 1) | 1;
	uint64_t share =
		base->share ? base->share * (67 + next_random(&state) % 67) / 100 : 25 + next_random(&state) % 42;
	int r = 0;

	base->m.samples_count = base->m.values_count = 0;
	base->m.time_ns = time_ns;
	for (uint64_t i = 0; r == 0 && i < base->stack_count; i++) {
		struct model_sample row = { .stack = base->stacks[i], .time_offset_ns = MODEL_NO_TIME };
		int64_t values[2] = { 1 + (int64_t)(next_random(&state) % 100 * (next_random(&state) % 100) / 100), 0 };

		values[1] = values[0] * 10000000;
		if (i % 7 == 0)
			row.label_set = base->label_sets[i % BODIES_LABEL_SETS];
		if (next_random(&state) % 100 < share)
			r = model_add_sample(&base->m, &row, values);
	}
	r = r ? r : model_merge(m, &base->m); /* leaves out what no sample uses */
	if (r == 0)
		move_mapping(m, mix(service, number) % 4096 * 4096);
	return r;
}

void bodies_upload(struct bodies_service *s, uint64_t number, int64_t time_ns, struct buf *out)
{
	scoped(window_release) struct window w = { 0 };

	must(window_init(&w, MIB(64)) == 0);
	must(make_profile(s, number, time_ns, w.model) == 0);
	must(pprof_encode_level(&w, 1, out) == 0);
}
