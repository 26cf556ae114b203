/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/u64map.h"

#define PROCESSES_MAX 65536 /* that have runtimes; further ones are not chosen */

struct candidate {
	uint64_t start_ns, samples; /* samples: since processes were chosen last */
	uint32_t pid;
	uint16_t runtime;
	bool is_chosen;
};

struct choice {
	struct choice_config cfg;
	struct candidate *items;
	size_t count, cap;
	struct u64map index; /* runtime << 32 | pid -> index */
	size_t chosen[ABI_RUNTIME_COUNT];
	uint64_t first_ns; /* time of the first sample with frames of a runtime; 0: there was none */
	bool has_chosen;
};

int choice_new(const struct choice_config *cfg, struct choice **out)
{
	struct choice *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->cfg = *cfg;
	u64map_init(&c->index, PROCESSES_MAX);
	*out = c;
	return 0;
}

void choice_free(struct choice *c)
{
	if (!c)
		return;
	u64map_release(&c->index);
	free(c->items);
	free(c);
}

static uint64_t key_of(uint16_t runtime, uint32_t pid)
{
	return (uint64_t)runtime << 32 | pid;
}

static int add(struct choice *c, uint64_t key, uint32_t *out)
{
	int r = array_grow(&c->items, &c->cap, c->count, PROCESSES_MAX);

	r = r ? r : u64map_put(&c->index, key, (uint32_t)c->count);
	if (r < 0)
		return r;
	c->items[c->count] = (struct candidate){ 0 };
	*out = (uint32_t)c->count++;
	return 0;
}

/* Once processes were chosen, a new one takes a place that is free. */
static struct candidate *get(struct choice *c, const struct abi_sample *sample, uint16_t runtime)
{
	uint64_t key = key_of(runtime, sample->pid);
	struct candidate *item;
	uint32_t at;

	if (u64map_get(&c->index, key, &at) < 0 && add(c, key, &at) < 0)
		return NULL;
	item = &c->items[at];
	if (item->pid == sample->pid && item->start_ns == sample->process_start_ns)
		return item;
	c->chosen[runtime] -= item->is_chosen; /* its number is another process's now */
	*item = (struct candidate){ .start_ns = sample->process_start_ns, .pid = sample->pid, .runtime = runtime };
	item->is_chosen = c->has_chosen && c->chosen[runtime] < c->cfg.process_max;
	c->chosen[runtime] += item->is_chosen;
	return item;
}

/* Runtime by runtime; in each the most samples first, and of equal ones the oldest process. */
static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->runtime != b->runtime)
		return a->runtime < b->runtime ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

void choice_cut(struct choice *c)
{
	size_t kept = 0;

	if (!c->first_ns) /* nobody was seen: the look begins later */
		return;
	c->has_chosen = true;
	if (!c->count)
		return;
	qsort(c->items, c->count, sizeof(*c->items), compare);
	u64map_clear(&c->index);
	memset(c->chosen, 0, sizeof(c->chosen));
	for (size_t i = 0; i < c->count; i++) {
		struct candidate item = c->items[i];

		if (!item.samples) /* it has ended, or waits */
			continue;
		item.samples = 0;
		item.is_chosen = c->chosen[item.runtime] < c->cfg.process_max;
		c->chosen[item.runtime] += item.is_chosen;
		c->items[kept] = item;
		must(u64map_put(&c->index, key_of(item.runtime, item.pid), (uint32_t)kept++) == 0); /* it had room */
	}
	c->count = kept;
}

static bool is_among_most(struct choice *c, const struct abi_sample *sample, uint16_t runtime)
{
	struct candidate *item;

	if (!c->first_ns)
		c->first_ns = sample->header.time_ns;
	/* Samples of several CPUs are not in the order of their times. */
	if (!c->has_chosen && sample->header.time_ns >= c->first_ns &&
	    sample->header.time_ns - c->first_ns >= c->cfg.look_ns)
		choice_cut(c);
	item = get(c, sample, runtime);
	if (!item)
		return false;
	item->samples++;
	return item->is_chosen;
}

bool choice_takes(struct choice *c, const struct abi_sample *sample, uint64_t boot_ns)
{
	uint16_t runtime = sample->runtime_count ? sample->frames[sample->frame_count].runtime : 0;

	if (!sample->runtime_count || runtime >= ABI_RUNTIME_COUNT || !(c->cfg.runtimes >> runtime & 1))
		return true;
	if (boot_ns < sample->process_start_ns + c->cfg.age_min_ns)
		return false;
	return !c->cfg.process_max || is_among_most(c, sample, runtime);
}
