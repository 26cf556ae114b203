/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cur.h"
#include "fake_runtime.h"
#include "object/elf_find.h"

struct fake_inline_state fake_inline_state;

struct inline_binary {
	struct runtime_binary base;
	uint64_t state;
};

static int inline_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	static const char *const name = "fake_inline_state";
	struct elf_found found = { 0 };
	struct inline_binary *b;
	int r = elf_symtab_find(file->elf, &name, 1, &found);

	if (r != 1)
		return r < 0 && r != -ENOENT ? r : 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->state = found.address;
	snprintf(b->base.version, sizeof(b->base.version), "1");
	*out = &b->base;
	return 1;
}

static void inline_release(struct runtime_binary *binary)
{
	free(binary);
}

static int inline_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct inline_binary *b = (const struct inline_binary *)binary;
	struct abi_fake out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	struct fake_inline_state state;
	int r = target->read(target->self, &state, sizeof(state), b->state + target->bias);

	if (r < 0)
		return r;
	if (!state.ready)
		return -EAGAIN;
	if (state.version != 1)
		return -ENOTSUP;
	out.low = state.low;
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}

/* Where things are in every process of the file: here one word, elsewhere tables that take thousands of reads. */
static int inline_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out)
{
	uint64_t *state = malloc(sizeof(*state));

	(void)target;
	if (!state)
		return -ENOMEM;
	*state = ((const struct inline_binary *)binary)->state;
	*out = state;
	return 0;
}

static int inline_learn_process(const struct runtime_target *target, const void *info, void **out)
{
	uint64_t *epoch_at = malloc(sizeof(*epoch_at));

	(void)info;
	if (!epoch_at)
		return -ENOMEM;
	*epoch_at = *(const uint64_t *)target->of_file + target->bias + offsetof(struct fake_inline_state, epoch);
	*out = epoch_at;
	return 0;
}

static void inline_unlearn(void *learnt)
{
	free(learnt);
}

static int inline_epoch(const struct runtime_target *target, const void *info, uint64_t *out)
{
	(void)info;
	if (!target->of_process)
		return -ENOENT;
	return target->read(target->self, out, sizeof(*out), *(const uint64_t *)target->of_process);
}

static int inline_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
		       struct abi_code_range *ranges)
{
	struct abi_fake *fake = info;
	const struct inline_binary *b = (const struct inline_binary *)binary;
	struct fake_inline_state state;
	int r = target->read(target->self, &state, sizeof(state), b->state + target->bias);

	if (r < 0)
		return r;
	if (state.hides)
		return -EAGAIN;
	fake->low = state.low;
	ranges[0] = (struct abi_code_range){ .low = state.low, .size = state.size };
	return state.size ? 1 : 0;
}

static enum walk_next inline_step(struct walk *w, const void *info)
{
	return walk_fake_step(w, info);
}

#define CODE_SIZE_MAX KIB(4)

static int inline_read_code(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			    struct buf *room, struct runtime_function *out)
{
	struct fake_code head, again;
	int r = target->read(target->self, &head, sizeof(head), key);
	char *bytes = NULL;

	(void)info;
	if (r < 0)
		return r;
	if (head.cookie != cookie)
		return -ESTALE;
	if (head.size > CODE_SIZE_MAX)
		return -EBADMSG;
	bytes = buf_reserve(room, head.size);
	if (!bytes)
		return room->error;
	r = target->read(target->self, bytes, head.size, key + offsetof(struct fake_code, bytes));
	if (r == 0 && !target->in_epoch) {
		r = target->read(target->self, &again, sizeof(again), key);
		if (r == 0 && again.cookie != cookie)
			r = -ESTALE;
	}
	if (r < 0)
		return r;
	buf_commit(room, head.size);
	*out = (struct runtime_function){ .name = STR("compiled"),
					  .lines = { (const uint8_t *)room->ptr, head.size },
					  .lines_whole = head.size };
	return 0;
}

/* One range of a table. Return: how many functions it has. */
static size_t take_range(struct cur *c, uint32_t *first, uint32_t *last, struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	size_t count = 0;
	unsigned int told;

	*first = cur_le16(c);
	*last = cur_le16(c);
	told = cur_u8(c);
	for (; told && !c->bad; told--) {
		int32_t line = (int32_t)cur_le32(c), first_line = (int32_t)cur_le32(c);
		uint8_t size = cur_u8(c);
		const uint8_t *name = cur_bytes(c, size);

		if (c->bad || count == RUNTIME_EXPAND_MAX)
			continue;
		out[count++] = (struct runtime_shown){
			.function = { .name = str_n((const char *)name, size), .first_line = first_line },
			.line = line,
		};
	}
	return c->bad ? 0 : count;
}

size_t fake_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		   struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	struct cur c = cur_of(code->lines.bytes, code->lines.size);

	if (is_return && !position--)
		return 0;
	while (c.pos < c.end && !c.bad) {
		uint32_t first, last;
		size_t count = take_range(&c, &first, &last, out);

		if (position < first || position > last)
			continue;
		for (size_t i = 0; i < count; i++) /* its compiler describes calls alone */
			out[i].is_vague = !is_return;
		return count;
	}
	return 0;
}

/* It names the first thread of each process, as if the process said so. */
static int inline_thread_names(const struct runtime_target *target, const void *info, runtime_thread_fn *each,
			       void *ctx)
{
	(void)info;
	return each(ctx, target->pid, STR(FAKE_THREAD_NAME));
}

const char *const runtime_modes_inline[] = { "auto", "disabled", "none", NULL };
static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_inline), "a way for each word");

const struct runtime fake_inline = {
	.name = "inline",
	.title = "Inline",
	.id = FAKE_INLINE,
	.ways = ways,
	.kind = MODEL_KIND_JAVA,
	.error_kind = MODEL_KIND_JAVA,
	.in_line = true,
	.probe = inline_probe,
	.release = inline_release,
	.attach = inline_attach,
	.learn_file = inline_learn_file,
	.learn_process = inline_learn_process,
	.unlearn = inline_unlearn,
	.epoch = inline_epoch,
	.sync = inline_sync,
	.code_moves = true,
	.walk_step = inline_step,
	.read_code = inline_read_code,
	.expand = fake_expand,
	.thread_names = inline_thread_names,
};
