/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_runtime.h"

#include <inttypes.h>

#include "object/elf_find.h"

struct fake_state fake_runtime_state;

struct fake_binary {
	struct runtime_binary base;
	uint64_t state;
};

/* The table: which versions there are, and where they keep the first frame. */
static const struct {
	uint64_t version;
	size_t top;
} fake_versions[] = {
	{ 1, offsetof(struct fake_state, top) },
};

static int fake_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	static const char *const name = "fake_runtime_state";
	struct elf_found found = { 0 };
	struct fake_binary *b;
	int r = elf_symtab_find(file->elf, &name, 1, &found);

	if (r != 1)
		return r < 0 && r != -ENOENT ? r : 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->state = found.address;
	b->base.loop_count = 1;
	b->base.loops[0] = (struct runtime_range){ 1, 2 };
	snprintf(b->base.version, sizeof(b->base.version), "1");
	*out = &b->base;
	return 1;
}

static void fake_release(struct runtime_binary *binary)
{
	free(binary);
}

static int fake_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct fake_binary *b = (const struct fake_binary *)binary;
	struct fake_info out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	struct fake_state state;
	int r = target->read(target->self, &state, sizeof(state), b->state + target->bias);

	if (r < 0)
		return r;
	if (!state.ready)
		return -EAGAIN;
	for (size_t i = 0; i < ARRAY_SIZE(fake_versions); i++) {
		if (fake_versions[i].version != state.version)
			continue;
		out.version = (uint32_t)state.version;
		out.top = b->state + target->bias + fake_versions[i].top;
		memcpy(info, &out, sizeof(out));
		return (int)sizeof(out);
	}
	return -ENOTSUP;
}

/* The walker: in a file of walk/ when BPF runs it, too. Its end is set first for what may stop it anywhere. */
enum walk_next fake_walk_start(struct walk *w, const void *info)
{
	const struct fake_info *i = info;

	w->runtime_end = ABI_RUNTIME_END_READ_FAILED;
	if (walk_read(w, &w->state[0][0], sizeof(uint64_t), i->top))
		return WALK_DONE;
	if (w->state[0][0])
		return WALK_MORE;
	w->runtime_end = ABI_RUNTIME_END_NO_STATE;
	return WALK_DONE;
}

enum walk_next fake_walk_step(struct walk *w, const void *info)
{
	struct abi_frame *out;
	struct fake_frame frame;

	(void)info;
	if (walk_read(w, &frame, sizeof(frame), w->state[0][0]))
		return WALK_DONE;
	out = walk_push_runtime(w, ABI_FRAME_RUNTIME, FAKE_RUNTIME);
	if (!out) /* which says why */
		return WALK_DONE;
	out->flags = ABI_FRAME_ENTRY; /* each call is an activation of its own */
	out->a = frame.function;
	out->b = FAKE_BEHIND_COOKIE;
	w->state[0][0] = frame.caller;
	if (frame.caller)
		return WALK_MORE;
	w->runtime_end = ABI_RUNTIME_END_WHOLE;
	return WALK_DONE;
}

static int fake_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out)
{
	buf_add(room, bytes, size);
	if (room->error)
		return room->error;
	*out = (struct runtime_function){ .name = buf_str(room), .first_line = 1 };
	return 0;
}

static int32_t fake_line(const struct runtime_function *function, uint32_t position)
{
	return function->first_line + (int32_t)position;
}

static int fake_application(const struct runtime_target *target, struct buf *out)
{
	buf_addf(out, "fake: pid %" PRIu32, target->pid);
	return 0;
}

static int fake_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	(void)target;
	buf_addf(json, "{\"fake_version\":\"%s\"}", binary->version);
	return 0;
}

/* Its options: in the registry the words are those of runtime_modes_NAME. */
const char *const runtime_modes_fake[] = { "auto", "disabled", "none", NULL };
static const enum runtime_way ways[] = { RUNTIME_WAY_AUTO, RUNTIME_WAY_OFF, RUNTIME_WAY_OFF };

_Static_assert(ARRAY_SIZE(ways) + 1 == ARRAY_SIZE(runtime_modes_fake), "a way for each word");

const struct runtime fake_runtime = {
	.name = "fake",
	.title = "Fake",
	.id = FAKE_RUNTIME,
	.ways = ways,
	.kind = MODEL_KIND_PYTHON,
	.error_kind = MODEL_KIND_PYTHON_ERROR,
	.probe = fake_probe,
	.release = fake_release,
	.attach = fake_attach,
	.decode_name = fake_decode_name,
	.line = fake_line,
	.application = fake_application,
	.metadata = fake_metadata,
};
