/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to a process: where its code is, which objects describe the types of others, and whether its objects are
 * laid out as the tables say. Maps of V8 ("hidden classes") that describe V8's own types lie in pages that are read
 * only once the process has started up. */
#include <time.h>

#include "base/io.h"
#include "proc/maps.h"
#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define MAPS_TEXT_MAX MIB(16)
#define MAPS_LINE 64         /* bytes of them that cost as much as a read */
#define READ_ONLY_MAX MIB(4) /* of pages that are looked at for maps */
#define HEAP_PAGE KIB(256)   /* V8: kPageSizeBits 18 */
#define HEAP_PAGES_MAX 3584  /* looked at for the proof in one try, 896 MiB: they lie at random places */
#define PROOF_SFIS 4096      /* SharedFunctionInfos that functions are looked for of; most may have none that lives */
#define PROOF_JUDGED 4096    /* SharedFunctionInfos that are looked at */
#define PROOF_FEW 8
#define PROOF_NAMED 64
#define PROOF_POSITIONS 4
#define PROOF_SCRIPTS 64    /* whose numbers are compared, ... */
#define PROOF_SCRIPTS_FEW 4 /* ... and so many are looked for */
#define YOUNG_NS NSEC_PER_SEC
#define TYPES_BYTES_MAX MIB(64) /* of read-only pages */
/* In units of nodejs_read(): of one try, and of all tries of a process and those that it was forked from. */
#define TRY_MAX (1U << 18)
#define EFFORT_MAX (1U << 23)

/* ---- what is kept ---- */

int nodejs_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out)
{
	struct nodejs_process *p = calloc(1, sizeof(*p));

	(void)target;
	if (!p)
		return -ENOMEM;
	p->layout = ((const struct nodejs_binary *)binary)->layout;
	*out = p;
	return 0;
}

int nodejs_learn_process(const struct runtime_target *target, const void *info, void **out)
{
	struct nodejs_process *p = calloc(1, sizeof(*p));

	(void)info;
	if (!p || !target->of_file) {
		free(p);
		return -ENOMEM;
	}
	p->layout = ((const struct nodejs_process *)target->of_file)->layout;
	*out = p;
	return 0;
}

void nodejs_unlearn(void *learnt)
{
	struct nodejs_process *p = learnt;

	nodejs_scripts_drop(p);
	free(p);
}

/* ---- maps of V8's types ---- */

struct types { /* tagged addresses; 0: not found */
	uint64_t sfi, bytecode, code;
};

static uint64_t word_of(const uint8_t *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static void take_map(const struct nodejs_layout *l, uint16_t type, uint64_t tagged, struct types *out)
{
	if (type == l->type_sfi)
		out->sfi = tagged;
	if (type == l->type_bytecode)
		out->bytecode = tagged;
	if (type == (l->version.stream_code ? l->type_stream : l->type_code))
		out->code = tagged;
}

/* A page of maps: the map of maps is its own map. */
static void find_in_page(const struct nodejs_layout *l, const uint8_t *bytes, size_t size, uint64_t address,
			 struct types *out)
{
	uint64_t meta = 0;

	for (size_t at = 0; at + 64 <= size && !meta; at += 8)
		if (word_of(bytes, at) == address + at + ABI_NODEJS_TAG)
			meta = address + at + ABI_NODEJS_TAG;
	for (size_t at = 0; meta && at + 64 <= size; at += 8) {
		uint16_t type;

		if (word_of(bytes, at) != meta)
			continue;
		memcpy(&type, bytes + at + l->map_type, sizeof(type));
		take_map(l, type, address + at + ABI_NODEJS_TAG, out);
	}
}

static int read_pages(const struct nodejs_heap *h, uint64_t address, size_t size, uint8_t *bytes)
{
	for (size_t at = 0; at < size; at += KIB(64)) {
		size_t part = MIN(size - at, (size_t)KIB(64));
		int r = nodejs_read(h, bytes + at, (uint32_t)part, address + at);

		if (r < 0)
			return r;
	}
	return 0;
}

static int find_types(const struct nodejs_heap *h, struct str maps, struct types *out)
{
	scoped(freep) uint8_t *bytes = malloc(READ_ONLY_MAX);
	struct maps_line m;
	uint64_t all = 0;

	if (!bytes)
		return -ENOMEM;
	*out = (struct types){ 0 };
	while (maps.len) {
		uint64_t size;

		if (maps_next(&maps, &m) != 1 || m.inode || m.path.len || !m.readable || m.writable || m.executable)
			continue;
		size = m.end - m.start;
		if (size > READ_ONLY_MAX)
			continue;
		all += size;
		if (all > TYPES_BYTES_MAX)
			break;
		if (read_pages(h, m.start, size, bytes) == 0)
			find_in_page(h->layout, bytes, size, m.start, out);
	}
	return out->sfi && out->bytecode && out->code ? 0 : -EAGAIN;
}

/* ---- the proof ---- */

struct script {
	uint64_t tagged, id;
};

struct proof {
	const struct nodejs_heap *heap;
	const struct types *types;
	uint64_t sfis[2 * PROOF_SFIS]; /* tagged, by their hash; 0: free */
	size_t sfi_count, judged, wrong, named, with_name, with_bytecode, with_positions, functions;
	struct script scripts[PROOF_SCRIPTS];
	size_t script_count, script_wrong;
	struct buf text, table, bytecode;
};

/* Are the entries of a table at bytecodes? That tells where both lie, and how a table is written. */
static bool fits(struct proof *p, uint64_t table, uint64_t bytecode)
{
	buf_clear(&p->table);
	buf_clear(&p->bytecode);
	return nodejs_bytes(p->heap, table, NODEJS_LINES_TABLE_MAX, &p->table) == 0 &&
	       nodejs_bytecode(p->heap, bytecode, &p->bytecode) == 0 &&
	       nodejs_positions_fit(p->heap->layout, cur_of(p->bytecode.ptr, p->bytecode.len),
				    cur_of(p->table.ptr, p->table.len));
}

/* Is there a table of positions, or something that stands for one that is not made yet? */
static bool has_table(struct proof *p, uint64_t bytecode)
{
	const struct nodejs_layout *l = p->heap->layout;
	uint64_t table;
	int type;

	if (nodejs_word(p->heap, bytecode - ABI_NODEJS_TAG + l->version.bytecode_positions, &table) < 0)
		return false;
	if (!(table & ABI_NODEJS_TAG))
		return true;
	type = nodejs_type(p->heap, table);
	if (type == l->type_bytes || (l->type_trusted_bytes && type == l->type_trusted_bytes)) {
		p->with_positions++;
		return fits(p, table, bytecode);
	}
	return type > l->first_nonstring && type != l->type_array; /* undefined or the exception object */
}

/* Numbers are small integers above 0, another one for each script. Each thread's heap counts for itself: what lies in
 * one page is of one heap. */
static void judge_script(struct proof *p, uint64_t tagged)
{
	const struct nodejs_layout *l = p->heap->layout;
	bool is_wrong;
	uint64_t id;

	if (!l->script_id || p->script_count == PROOF_SCRIPTS || !walk_nodejs_is_object(tagged))
		return;
	for (size_t i = 0; i < p->script_count; i++)
		if (p->scripts[i].tagged == tagged)
			return;
	if (nodejs_type(p->heap, tagged) != l->type_script ||
	    nodejs_word(p->heap, tagged - ABI_NODEJS_TAG + (uint64_t)l->script_id, &id) < 0)
		return;
	is_wrong = (uint32_t)id || (int64_t)id <= 0;
	for (size_t i = 0; i < p->script_count; i++)
		is_wrong |= p->scripts[i].id == id && p->scripts[i].tagged / HEAP_PAGE == tagged / HEAP_PAGE;
	p->script_wrong += is_wrong;
	p->scripts[p->script_count++] = (struct script){ tagged, id };
}

/* An offset that is not proven is not used. */
static bool has_ids(const struct proof *p)
{
	bool differ = false;

	for (size_t i = 1; i < p->script_count; i++)
		differ = differ || p->scripts[i].id != p->scripts[0].id;
	return differ && p->script_wrong * 8 <= p->script_count;
}

/* A function that has baseline code: of that kind, with the function's bytecode, with a table. */
static bool is_baseline(struct proof *p, uint64_t code)
{
	const struct nodejs_layout *l = p->heap->layout;
	uint64_t at = code - ABI_NODEJS_TAG, bytecode, table;
	uint32_t flags;
	int type;

	if (nodejs_read(p->heap, &flags, sizeof(flags), at + l->version.code_flags) < 0 ||
	    nodejs_word(p->heap, at + l->version.code_deopt, &bytecode) < 0 ||
	    nodejs_word(p->heap, at + l->version.code_positions, &table) < 0)
		return false;
	type = nodejs_type(p->heap, table);
	return (flags >> l->version.kind_shift & l->version.kind_mask) == l->version.kind_baseline &&
	       nodejs_type(p->heap, bytecode) == l->type_bytecode &&
	       (type == l->type_bytes || (l->type_trusted_bytes && type == l->type_trusted_bytes));
}

static void judge_sfi(struct proof *p, uint64_t at)
{
	const struct nodejs_layout *l = p->heap->layout;
	__u64 words[ABI_NODEJS_SFI_WORDS] = { 0 };
	uint64_t script, data;
	struct nodejs_function f;
	int type;

	if (nodejs_read(p->heap, words, ABI_NODEJS_SFI_BYTES, at) < 0)
		return;
	buf_clear(&p->text);
	script = words[l->sfi_script / 8];
	data = words[l->version.sfi_data / 8];
	if (nodejs_function_read(p->heap, words, &p->text, &f) < 0 || !walk_nodejs_is_object(script)) {
		p->wrong++;
		return;
	}
	p->named++;
	p->with_name += !str_eq(str_n(p->text.ptr + f.name_at, f.name_len), STR(NODEJS_ANONYMOUS));
	if (!(data & ABI_NODEJS_TAG))
		return;
	type = nodejs_type(p->heap, data);
	if (type == l->type_code && l->version.kind_baseline != NODEJS_NO_KIND && !is_baseline(p, data))
		p->wrong++;
	if (type != l->type_bytecode)
		return;
	if (!has_table(p, data))
		p->wrong++;
	else if (f.script) /* one with bytecode belongs to a script, unless a debugger is at work */
		p->with_bytecode++;
}

/* The place of @tagged, or a free one. At most half of them are in use. */
static uint64_t *place_of(struct proof *p, uint64_t tagged)
{
	size_t i = (size_t)(tagged * 0x9e3779b97f4a7c15ULL >> 32) % ARRAY_SIZE(p->sfis);

	while (p->sfis[i] && p->sfis[i] != tagged)
		i = (i + 1) % ARRAY_SIZE(p->sfis);
	return &p->sfis[i];
}

static void add_sfi(struct proof *p, uint64_t tagged)
{
	uint64_t *place = place_of(p, tagged);

	if (*place || p->sfi_count == PROOF_SFIS)
		return;
	*place = tagged;
	p->sfi_count++;
}

/* What points to a SharedFunctionInfo where functions do is a function. */
static void count_functions(struct proof *p, const uint8_t *bytes, size_t size)
{
	const struct nodejs_layout *l = p->heap->layout;

	for (size_t at = (size_t)l->function_shared; at + 8 <= size && p->functions < PROOF_FEW; at += 8) {
		uint64_t word = word_of(bytes, at), map = word_of(bytes, at - (size_t)l->function_shared);
		uint16_t type;

		if (!walk_nodejs_is_object(word) || !walk_nodejs_is_object(map) || !*place_of(p, word) ||
		    nodejs_read(p->heap, &type, sizeof(type), map - ABI_NODEJS_TAG + (uint64_t)l->map_type) < 0)
			continue;
		/* Classes, constructors with a prototype ... have types that follow. */
		p->functions += type >= l->type_function && type < l->type_function + 20;
	}
}

static void judge_page(struct proof *p, const uint8_t *bytes, size_t size, uint64_t address)
{
	for (size_t at = 0; at + ABI_NODEJS_SFI_BYTES <= size && *p->heap->left; at += 8) {
		bool enough = p->with_bytecode >= PROOF_FEW && p->with_positions >= PROOF_POSITIONS &&
			      p->named >= PROOF_NAMED && p->with_name >= PROOF_FEW;

		if (word_of(bytes, at) != p->types->sfi)
			continue;
		add_sfi(p, address + at + ABI_NODEJS_TAG);
		judge_script(p, word_of(bytes, at + (size_t)p->heap->layout->sfi_script));
		if (enough || p->judged >= PROOF_JUDGED)
			continue;
		p->judged++;
		judge_sfi(p, address + at);
	}
	count_functions(p, bytes, size);
}

static bool has_enough(const struct proof *p)
{
	return !p->heap->layout->script_id || p->script_count >= PROOF_SCRIPTS_FEW;
}

static bool is_proven(const struct proof *p)
{
	return p->named >= PROOF_FEW && p->with_bytecode >= PROOF_FEW && p->with_positions >= PROOF_POSITIONS &&
	       p->with_name >= PROOF_FEW && p->functions >= PROOF_FEW && p->wrong * 8 <= p->named;
}

/* May a heap's pages lie there? */
static bool has_heap(const struct maps_line *m)
{
	return !m->inode && !m->path.len && m->readable && m->writable && !m->executable && m->start % HEAP_PAGE == 0;
}

static size_t count_pages(struct str maps)
{
	struct maps_line m;
	size_t count = 0;

	while (maps.len)
		if (maps_next(&maps, &m) == 1 && has_heap(&m))
			count += (size_t)((m.end - m.start) / HEAP_PAGE);
	return count;
}

/* Is there more to look for, and may it be? */
static bool goes_on(const struct proof *p, size_t pages)
{
	return pages < HEAP_PAGES_MAX && *p->heap->left && !(is_proven(p) && has_enough(p));
}

/* @try: where a heap has more pages than are looked at, each try begins behind those of the one before. *ids: whether
 * scripts have their numbers where the layout says. Return: 0; -EAGAIN: too little is there, EFFORT_MAX bounds the
 * tries; -ENOTSUP: it is laid out in another way. */
static int prove(const struct nodejs_heap *h, const struct types *types, struct str maps, uint64_t try, bool *ids)
{
	size_t all = count_pages(maps), skip = all > HEAP_PAGES_MAX ? (size_t)(try * HEAP_PAGES_MAX % all) : 0;
	scoped(freep) uint8_t *bytes = malloc(HEAP_PAGE);
	scoped(freep) struct proof *p = calloc(1, sizeof(*p));
	struct maps_line m;
	size_t pages = 0;
	int r;

	if (!bytes || !p)
		return -ENOMEM;
	p->heap = h;
	p->types = types;
	p->text = (struct buf)BUF_INIT(MIB(1));
	p->table = (struct buf)BUF_INIT(NODEJS_LINES_TABLE_MAX);
	p->bytecode = (struct buf)BUF_INIT(NODEJS_LINES_TABLE_MAX);
	while (maps.len && goes_on(p, pages)) {
		if (maps_next(&maps, &m) != 1 || !has_heap(&m))
			continue;
		for (uint64_t at = m.start; at + HEAP_PAGE <= m.end && goes_on(p, pages); at += HEAP_PAGE) {
			if (skip) {
				skip--;
				continue;
			}
			pages++;
			if (read_pages(h, at, HEAP_PAGE, bytes) == 0)
				judge_page(p, bytes, HEAP_PAGE, at);
		}
	}
	if (is_proven(p))
		r = 0;
	else if (!*h->left) /* what was not read any more is not wrong */
		r = -EAGAIN;
	else
		r = p->wrong * 8 <= p->named ? -EAGAIN : -ENOTSUP;
	*ids = has_ids(p);
	buf_release(&p->text);
	buf_release(&p->table);
	buf_release(&p->bytecode);
	return r;
}

/* ---- attach ---- */

static int read_maps(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *text,
		     struct nodejs_maps *out)
{
	const struct nodejs_binary *b = (const struct nodejs_binary *)binary;
	uint64_t builtins = b->builtins + target->bias;
	int r = 0;

	if (b->builtins_pointer) /* a wrong one is no harm: nothing is there, then */
		r = target->read(target->self, &builtins, sizeof(builtins), b->builtins_pointer + target->bias);
	if (r == 0)
		r = io_read_file_at(target->proc_dir, "maps", text);
	if (r < 0)
		return r;
	nodejs_maps_read(buf_str(text), builtins, b->builtins_size, b->here + target->bias, out);
	nodejs_maps_prove(target, builtins, out);
	return 0;
}

static void fill_info(const struct nodejs_layout *l, const struct types *types, const struct nodejs_maps *maps,
		      struct abi_nodejs *out)
{
	*out = (struct abi_nodejs){
		.version_major = l->version.major,
		.version_minor = l->version.minor,
		.sfi_map = types->sfi,
		.bytecode_map = types->bytecode,
		.code_map = types->code,
		.fp_marker = l->fp_marker,
		.fp_function = l->fp_function,
		.fp_bytecode_array = l->fp_bytecode_array,
		.fp_bytecode_offset = l->fp_bytecode_offset,
		.fp_target = 24,
		.function_shared = (uint16_t)l->function_shared,
		.sfi_data = l->version.sfi_data,
		.sfi_name = (uint16_t)l->sfi_name,
		.sfi_script = (uint16_t)l->sfi_script,
		.bytecode_data = (uint16_t)l->bytecode_data,
		.frame_builtin_exit = (uint8_t)l->frame_builtin_exit,
		.frame_wasm = (uint8_t)l->frame_wasm,
		.frame_regexp = (uint8_t)l->frame_regexp,
		.code_start = l->version.code_start,
		.code_size = l->version.code_size,
		.stream_start = (uint8_t)l->stream_start,
		.baseline_pair = l->version.baseline_pair,
	};
	if (l->version.own_maps && l->map_type == ABI_NODEJS_MAP_TYPE) {
		out->type_sfi = (uint16_t)l->type_sfi;
		out->type_bytecode = (uint16_t)l->type_bytecode;
	}
	nodejs_take_builtins(maps, out);
}

/* Less than a second old: memory for code may still come. With --jitless it never does. (After an exec of an old
 * process the rest of attaching says that it is too early.) */
static bool is_young(const struct runtime_target *target)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec < target->start_ns + YOUNG_NS;
}

int nodejs_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct nodejs_binary *b = (const struct nodejs_binary *)binary;
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_TEXT_MAX);
	uint64_t left = TRY_MAX;
	const struct nodejs_heap heap = { .target = target, .layout = &b->layout, .left = &left };
	struct nodejs_maps maps;
	struct abi_nodejs out;
	struct types types;
	bool ids = false;
	int r = target->effort && *target->effort >= EFFORT_MAX ? -ENOTSUP : read_maps(binary, target, &text, &maps);

	if (r == 0 && (!maps.builtin_count || (maps.range_count < 2 && is_young(target)))) /* it makes code later */
		r = -EAGAIN;
	if (r == 0)
		r = find_types(&heap, buf_str(&text), &types);
	if (r == 0)
		r = prove(&heap, &types, buf_str(&text), target->effort ? *target->effort / TRY_MAX : 0, &ids);
	if (target->effort)
		*target->effort += TRY_MAX - left + text.len / MAPS_LINE;
	if (r < 0)
		return r;
	fill_info(&b->layout, &types, &maps, &out);
	out.script_id = ids ? (uint8_t)b->layout.script_id : 0;
	out.start_ns = target->start_ns;
	out.exec_id = target->exec_id;
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}

int nodejs_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
		struct abi_code_range *ranges)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_TEXT_MAX);
	struct nodejs_maps maps;
	int r = read_maps(binary, target, &text, &maps);

	if (r < 0)
		return r;
	nodejs_take_builtins(&maps, info);
	memcpy(ranges, maps.ranges, sizeof(maps.ranges));
	return (int)maps.range_count;
}
