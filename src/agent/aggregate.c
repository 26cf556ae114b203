/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/aggregate.h"

#include <fcntl.h>

#include "base/array.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* About 64 bytes a stack node and 48 a frame with their indexes: the whole stays below 110 MiB at the very worst. */
#define FRAMES_MAX (512u << 10)
#define STACKS_MAX (1u << 20)
#define PROCESSES_MAX (256u << 10)
#define SAMPLES_MAX (512u << 10)
#define FUNCTIONS_MAX (256u << 10)
#define ORIGINS_MAX 256u
#define BASES_MAX (256u << 10)
#define PENDING_MAX (64u << 10)
#define SHOWN_MAX (512u << 10)
#define STRING_BYTES_MAX MIB(16)
#define METADATA_BYTES_MAX MIB(32)

int aggregate_new(struct aggregate **out)
{
	struct aggregate *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	intern_init(&a->strings, STRING_BYTES_MAX);
	intern_init(&a->metadata, METADATA_BYTES_MAX);
	u64map_init(&a->frame_index, FRAMES_MAX);
	u64map_init(&a->stack_index, STACKS_MAX);
	u64map_init(&a->process_index, PROCESSES_MAX);
	u64map_init(&a->program_index, PROCESSES_MAX);
	u64map_init(&a->base_index, BASES_MAX);
	u64map_init(&a->request_index, AGGREGATE_REQUESTS_MAX + 1);
	u64map_init(&a->request_shares, 2 * AGGREGATE_REQUESTS_MAX);
	u64map_init(&a->sample_index, SAMPLES_MAX);
	u64map_init(&a->function_index, FUNCTIONS_MAX);
	u64map_init(&a->function_numbers, FUNCTIONS_MAX);
	u64map_init(&a->pending_index, PENDING_MAX);
	r = array_grow(&a->stacks, &a->stack_cap, 0, STACKS_MAX);
	if (r == 0)
		r = array_grow(&a->origins, &a->origin_cap, 0, ORIGINS_MAX);
	if (r < 0) {
		aggregate_free(a);
		return r;
	}
	a->origins[a->origin_count++] = (struct aggregate_origin){ 0, -1 };
	a->stacks[a->stack_count++] = (struct aggregate_stack){ 0, AGGREGATE_NO_FRAME };
	*out = a;
	return 0;
}

void aggregate_free(struct aggregate *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->process_count; i++)
		closep(&a->processes[i].perf_map_fd);
	for (size_t i = 0; i < a->origin_count; i++)
		closep(&a->origins[i].root_fd);
	intern_release(&a->strings);
	intern_release(&a->metadata);
	free(a->frames);
	free(a->stacks);
	free(a->processes);
	free(a->samples);
	free(a->functions);
	free(a->origins);
	free(a->pending);
	free(a->shown);
	free(a->ticks);
	free(a->bases);
	free(a->requests);
	u64map_release(&a->base_index);
	u64map_release(&a->request_index);
	u64map_release(&a->request_shares);
	u64map_release(&a->frame_index);
	u64map_release(&a->stack_index);
	u64map_release(&a->process_index);
	u64map_release(&a->program_index);
	u64map_release(&a->sample_index);
	u64map_release(&a->function_index);
	u64map_release(&a->function_numbers);
	u64map_release(&a->pending_index);
	free(a);
}

void aggregate_freep(struct aggregate **a)
{
	aggregate_free(*a);
}

typedef bool equal_fn(const void *table, uint32_t index, const void *row);

/* The index of the row equal to @row, or -ENOENT with *key at the free place for it: hashes that meet by chance are
 * told apart by comparing, and the next one takes the next key. */
static int find(const struct u64map *index, const void *table, const void *row, equal_fn *equal, uint64_t *key,
		uint32_t *out)
{
	for (;; ++*key) {
		uint32_t at;

		if (u64map_get(index, *key, &at) < 0)
			return -ENOENT;
		if (!equal(table, at, row))
			continue;
		*out = at;
		return 0;
	}
}

static bool process_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_process *a = (const struct aggregate_process *)table + index, *b = row;

	return a->pid == b->pid && a->start_ns == b->start_ns && a->generation == b->generation && a->comm == b->comm &&
	       a->container == b->container;
}

static uint64_t program_key(uint32_t pid, uint32_t exec_id)
{
	return (uint64_t)pid << 32 | exec_id;
}

/* The row that comes next becomes the first of its program. @out: what its next_same is. */
static int chain_program(struct aggregate *a, const struct aggregate_process *row, uint32_t *out)
{
	uint64_t key = program_key(row->pid, row->exec_id);
	uint32_t first;

	*out = u64map_get(&a->program_index, key, &first) == 0 ? first + 1 : 0;
	return u64map_put(&a->program_index, key, (uint32_t)a->process_count);
}

int aggregate_add_process(struct aggregate *a, const struct aggregate_process *row, uint32_t *out)
{
	const uint64_t words[] = { row->pid, row->start_ns, row->generation, row->comm, row->container };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	uint32_t same = 0;
	int r;

	if (find(&a->process_index, a->processes, row, process_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->processes, &a->process_cap, a->process_count, PROCESSES_MAX);
	if (r == 0)
		r = u64map_put(&a->process_index, key, (uint32_t)a->process_count);
	if (r == 0)
		r = chain_program(a, row, &same);
	if (r < 0)
		return r;
	a->processes[a->process_count] = *row;
	a->processes[a->process_count].next_same = same;
	*out = (uint32_t)a->process_count++;
	return 0;
}

void aggregate_end_program(struct aggregate *a, const struct program *program, uint64_t born_ns, uint64_t ended_ns)
{
	uint32_t at, next;

	if (u64map_get(&a->program_index, program_key(program->pid, program->exec_id), &at) < 0)
		return;
	for (next = at + 1; next; next = a->processes[next - 1].next_same) {
		struct aggregate_process *row = &a->processes[next - 1];

		if (row->start_ns != program->start_ns)
			continue;
		row->born_ns = born_ns;
		row->ended_ns = ended_ns;
	}
}

bool aggregate_is_short(const struct aggregate_process *row, uint64_t short_ns)
{
	return row->may_be_short && row->born_ns && row->ended_ns && row->ended_ns < row->born_ns + short_ns;
}

uint64_t aggregate_undecided_ns(const struct aggregate *a, uint64_t short_ns)
{
	uint64_t until_ns = 0;

	for (size_t i = 0; i < a->process_count; i++)
		if (a->processes[i].may_be_short && a->processes[i].born_ns && !a->processes[i].ended_ns)
			until_ns = MAX(until_ns, a->processes[i].born_ns + short_ns);
	return until_ns;
}

static bool frame_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_frame *a = (const struct aggregate_frame *)table + index, *b = row;

	return a->kind == b->kind && a->flags == b->flags && a->owner == b->owner && a->at == b->at;
}

int aggregate_add_frame(struct aggregate *a, const struct aggregate_frame *row, uint32_t *out)
{
	const uint64_t words[] = { (uint64_t)row->kind << 40 | (uint64_t)row->flags << 32 | row->owner, row->at };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	int r;

	if (find(&a->frame_index, a->frames, row, frame_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->frames, &a->frame_cap, a->frame_count, FRAMES_MAX);
	if (r == 0)
		r = u64map_put(&a->frame_index, key, (uint32_t)a->frame_count);
	if (r < 0)
		return r;
	a->frames[a->frame_count] = *row;
	*out = (uint32_t)a->frame_count++;
	return 0;
}

static bool function_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_function *a = (const struct aggregate_function *)table + index, *b = row;

	return a->name == b->name && a->file == b->file && a->version == b->version && a->origin == b->origin &&
	       a->first_line == b->first_line && a->first_column == b->first_column && a->map_id == b->map_id &&
	       a->name_column == b->name_column && a->kind == b->kind && a->runtime == b->runtime &&
	       a->shown == b->shown;
}

int aggregate_add_function(struct aggregate *a, const struct aggregate_function *row, uint32_t *out)
{
	const uint64_t words[] = { (uint64_t)row->name << 32 | row->file,
				   (uint64_t)row->version << 32 | row->origin,
				   (uint64_t)(uint32_t)row->first_line << 32 | (uint32_t)row->first_column,
				   row->map_id,
				   (uint64_t)(uint32_t)row->name_column,
				   (uint64_t)row->shown << 16 | (uint64_t)row->kind << 8 | row->runtime };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	int r;

	if (find(&a->function_index, a->functions, row, function_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->functions, &a->function_cap, a->function_count, FUNCTIONS_MAX);
	if (r == 0)
		r = u64map_put(&a->function_index, key, (uint32_t)a->function_count);
	if (r < 0)
		return r;
	a->functions[a->function_count] = *row;
	*out = (uint32_t)a->function_count++;
	return 0;
}

static bool pending_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_pending *a = (const struct aggregate_pending *)table + index, *b = row;

	return a->program.pid == b->program.pid && a->program.exec_id == b->program.exec_id &&
	       a->program.start_ns == b->program.start_ns && a->key == b->key && a->cookie == b->cookie &&
	       a->position == b->position && a->process == b->process && a->runtime == b->runtime &&
	       a->flags == b->flags;
}

int aggregate_add_pending(struct aggregate *a, const struct aggregate_pending *row, uint32_t *out)
{
	const uint64_t words[] = { (uint64_t)row->program.pid << 32 | row->program.exec_id,
				   row->program.start_ns,
				   row->key,
				   row->cookie,
				   (uint64_t)row->position << 32 | row->process,
				   (uint64_t)row->flags << 16 | row->runtime };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	int r;

	if (find(&a->pending_index, a->pending, row, pending_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->pending, &a->pending_cap, a->pending_count, PENDING_MAX);
	if (r == 0)
		r = u64map_put(&a->pending_index, key, (uint32_t)a->pending_count);
	if (r < 0)
		return r;
	a->pending[a->pending_count] = *row;
	a->unsettled++;
	*out = (uint32_t)a->pending_count++;
	return 0;
}

int aggregate_show(struct aggregate *a, struct aggregate_pending *pending, const struct aggregate_shown *shown,
		   size_t count)
{
	size_t before = a->shown_count;

	for (size_t i = 0; i < count; i++) {
		int r = array_grow(&a->shown, &a->shown_cap, a->shown_count, SHOWN_MAX);

		if (r < 0) {
			a->shown_count = before;
			return r;
		}
		a->shown[a->shown_count++] = shown[i];
	}
	pending->first_shown = (uint32_t)before;
	pending->shown_count = (uint32_t)count;
	return 0;
}

bool aggregate_is_vague(const struct aggregate *a, const struct aggregate_frame *f)
{
	const struct aggregate_pending *p = f->at == AGGREGATE_PENDING ? &a->pending[f->owner] : NULL;

	return p && p->shown_count && a->shown[p->first_shown].is_vague;
}

size_t aggregate_functions(const struct aggregate *a, const struct aggregate_frame *f)
{
	return f->at == AGGREGATE_PENDING ? MAX(a->pending[f->owner].shown_count, 1u) : 1;
}

unsigned aggregate_runtime(const struct aggregate *a, const struct aggregate_frame *f)
{
	return f->at == AGGREGATE_PENDING ? a->pending[f->owner].runtime : a->functions[f->owner].runtime;
}

uint64_t aggregate_place_at(const struct aggregate_place *place)
{
	return (uint64_t)(uint32_t)place->column << 32 | (uint32_t)place->line;
}

const struct aggregate_function *aggregate_function(const struct aggregate *a, const struct aggregate_frame *f,
						    size_t index, struct aggregate_place *place)
{
	static const struct aggregate_function lost = { .kind = AGGREGATE_FUNCTION_LOST };
	const struct aggregate_pending *p;

	if (f->at != AGGREGATE_PENDING) {
		*place = (struct aggregate_place){ (int32_t)(uint32_t)f->at, (int32_t)(f->at >> 32) };
		return &a->functions[f->owner];
	}
	p = &a->pending[f->owner];
	if (p->shown_count) {
		must(index < p->shown_count);
		*place = a->shown[p->first_shown + index].place;
		return &a->functions[a->shown[p->first_shown + index].function];
	}
	*place = p->place;
	/* What was inlined into it is not known: the function alone would seem to call what that calls. */
	return p->function == AGGREGATE_NO_FUNCTION || (p->flags & ABI_FRAME_COMPILED && !p->is_settled)
		       ? &lost
		       : &a->functions[p->function];
}

int aggregate_add_origin(struct aggregate *a, uint32_t number, int root_fd, uint32_t *out)
{
	int r;

	for (uint32_t i = 0; i < a->origin_count; i++) {
		if (a->origins[i].number != number)
			continue;
		if (root_fd >= 0 && a->origins[i].root_fd < 0) /* the first one was gone already */
			a->origins[i].root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
		*out = i;
		return 0;
	}
	r = array_grow(&a->origins, &a->origin_cap, a->origin_count, ORIGINS_MAX);
	if (r < 0)
		return r;
	if (root_fd >= 0)
		root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0); /* -1: what the file's path says has to do */
	a->origins[a->origin_count] = (struct aggregate_origin){ number, root_fd };
	*out = (uint32_t)a->origin_count++;
	return 0;
}

static uint64_t request_key(const struct aggregate_request *row)
{
	return (uint64_t)row->script << 32 | row->path;
}

/* Rows are shared as buffers are in a switch: somebody may take one while he has less than REQUEST_SHARE times what is
 * left. So one alone gets four fifths, two get four ninths each, and who comes after them finds less each time. Users
 * share the table, and containers share what is left to their user. */
#define REQUEST_SHARE 4
#define ALL_CONTAINERS UINT32_MAX

static uint64_t share_key(uint32_t user, uint32_t container)
{
	return (uint64_t)user << 32 | container;
}

static uint32_t share_of(const struct aggregate *a, uint32_t user, uint32_t container)
{
	uint32_t count = 0;

	ignore(u64map_get(&a->request_shares, share_key(user, container), &count));
	return count;
}

static bool has_share_left(const struct aggregate *a, const struct aggregate_owner *owner)
{
	size_t taken = a->request_count - (a->request_other != 0);
	size_t limit = REQUEST_SHARE * (AGGREGATE_REQUESTS_MAX - taken);
	uint32_t of_user = share_of(a, owner->user, ALL_CONTAINERS);

	if (of_user >= limit)
		return false;
	return !owner->container || share_of(a, owner->user, owner->container) < REQUEST_SHARE * (limit - of_user);
}

static int take_share(struct aggregate *a, const struct aggregate_owner *owner)
{
	int r = u64map_put(&a->request_shares, share_key(owner->user, ALL_CONTAINERS),
			   share_of(a, owner->user, ALL_CONTAINERS) + 1);

	if (r == 0 && owner->container)
		r = u64map_put(&a->request_shares, share_key(owner->user, owner->container),
			       share_of(a, owner->user, owner->container) + 1);
	return r;
}

static int add_request_row(struct aggregate *a, struct str script, struct str path, uint32_t *out)
{
	struct aggregate_request row;
	int r = intern_add(&a->strings, script, &row.script);

	if (r == 0)
		r = intern_add(&a->strings, path, &row.path);
	if (r == 0)
		r = array_grow(&a->requests, &a->request_cap, a->request_count, AGGREGATE_REQUESTS_MAX + 1);
	if (r == 0)
		r = u64map_put(&a->request_index, request_key(&row), (uint32_t)a->request_count);
	if (r < 0)
		return r;
	a->requests[a->request_count++] = row;
	*out = (uint32_t)a->request_count;
	return 0;
}

int aggregate_add_request(struct aggregate *a, const struct aggregate_owner *owner, struct str script, struct str path,
			  uint32_t *out)
{
	const struct str other = STR("(other)");
	struct aggregate_request row;
	uint32_t at;
	int r = 0;

	if (intern_find(&a->strings, script, &row.script) == 0 && intern_find(&a->strings, path, &row.path) == 0 &&
	    u64map_get(&a->request_index, request_key(&row), &at) == 0) {
		*out = at + 1;
		return 0;
	}
	if (has_share_left(a, owner)) {
		r = take_share(a, owner);
		return r < 0 ? r : add_request_row(a, script, path, out);
	}
	if (!a->request_other) /* texts without a row are not kept: they have no end */
		r = add_request_row(a, other, other, &a->request_other);
	if (r == 0)
		*out = a->request_other;
	return r;
}

static uint64_t base_key(uint32_t process, uint32_t file)
{
	return (uint64_t)process << 32 | file;
}

bool aggregate_has_base(const struct aggregate *a, uint32_t process, uint32_t file, uint64_t offset)
{
	uint32_t at;

	if (u64map_get(&a->base_index, base_key(process, file), &at) < 0)
		return false;
	for (at++; at; at = a->bases[at - 1].next)
		if (offset >= a->bases[at - 1].first && offset < a->bases[at - 1].end)
			return true;
	return false;
}

int aggregate_add_base(struct aggregate *a, const struct aggregate_base *row)
{
	uint64_t key = base_key(row->process, row->file);
	uint32_t before;
	int r = array_grow(&a->bases, &a->base_cap, a->base_count, BASES_MAX);

	if (r < 0)
		return r;
	a->bases[a->base_count] = *row;
	a->bases[a->base_count].next = u64map_get(&a->base_index, key, &before) == 0 ? before + 1 : 0;
	r = u64map_put(&a->base_index, key, (uint32_t)a->base_count);
	a->base_count += r == 0;
	return r;
}

int aggregate_add_stack(struct aggregate *a, uint32_t parent, uint32_t frame, uint32_t *out)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	int r;

	must(parent < a->stack_count && frame < a->frame_count);
	if (u64map_get(&a->stack_index, key, out) == 0)
		return 0;
	r = array_grow(&a->stacks, &a->stack_cap, a->stack_count, STACKS_MAX);
	if (r == 0)
		r = u64map_put(&a->stack_index, key, (uint32_t)a->stack_count);
	if (r < 0)
		return r;
	a->stacks[a->stack_count] = (struct aggregate_stack){ parent, frame };
	*out = (uint32_t)a->stack_count++;
	return 0;
}

static bool sample_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_sample *a = (const struct aggregate_sample *)table + index, *b = row;

	return a->stack == b->stack && a->process == b->process && a->tid == b->tid &&
	       a->thread_name == b->thread_name && a->user_end == b->user_end && a->has_user == b->has_user &&
	       a->runtime_end == b->runtime_end && a->guessed == b->guessed && a->kernel_cut == b->kernel_cut &&
	       a->is_wait == b->is_wait && a->by_chain == b->by_chain && a->request == b->request &&
	       a->root_frame == b->root_frame;
}

/* Without room for its time a sample is counted all the same. */
static void note_time(struct aggregate *a, const struct aggregate_sample *sample, uint64_t time_ns)
{
	uint64_t tick = time_ns > a->start_ns ? (time_ns - a->start_ns) / AGGREGATE_TICK_NS : 0;

	if (array_grow(&a->ticks, &a->tick_cap, a->tick_count, AGGREGATE_TICKS_MAX) < 0) {
		a->untimed++;
		return;
	}
	a->ticks[a->tick_count++] = (struct aggregate_tick){ .sample = (uint32_t)(sample - a->samples),
							     .tick = (uint32_t)MIN(tick, (uint64_t)UINT32_MAX) };
}

static void count_one(struct aggregate *a, struct aggregate_sample *sample, uint64_t wait_ns, uint64_t time_ns)
{
	sample->count++;
	if (!sample->is_wait) {
		a->total++;
		if (a->with_times)
			note_time(a, sample, time_ns);
		return;
	}
	sample->wait_ns += wait_ns;
	a->waits++;
}

int aggregate_add_sample(struct aggregate *a, const struct aggregate_sample *row, uint64_t time_ns)
{
	const uint64_t words[] = { (uint64_t)row->stack << 32 | row->process,
				   (uint64_t)row->tid << 32 | row->thread_name,
				   (uint64_t)row->root_frame << 32 | (uint64_t)row->by_chain << 31 |
					   (uint64_t)row->runtime_end << 19 | (uint64_t)row->guessed << 18 |
					   (uint64_t)row->is_wait << 17 | (uint64_t)row->kernel_cut << 16 |
					   (uint64_t)row->has_user << 8 | row->user_end,
				   row->request };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	uint32_t at;
	int r;

	must(row->stack < a->stack_count && row->process < a->process_count);
	if (find(&a->sample_index, a->samples, row, sample_equal, &key, &at) == 0) {
		count_one(a, &a->samples[at], row->wait_ns, time_ns);
		return 0;
	}
	r = array_grow(&a->samples, &a->sample_cap, a->sample_count, SAMPLES_MAX);
	if (r == 0)
		r = u64map_put(&a->sample_index, key, (uint32_t)a->sample_count);
	if (r < 0)
		return r;
	a->samples[a->sample_count] = *row;
	a->samples[a->sample_count].count = 0;
	a->samples[a->sample_count].wait_ns = 0;
	count_one(a, &a->samples[a->sample_count++], row->wait_ns, time_ns);
	return 0;
}
