/* SPDX-License-Identifier: Apache-2.0 */
/* Two lists of frames, one byte or two each, put together. Whatever they are: no runtime frame is lost or changes its
 * order, and no native one but those that are folded. */
#include "fuzz.h"

#include "agent/mix.h"

#define STACK UINT64_C(0x7ffc00000000)
#define NATIVE_MAX 96
#define RUNTIME_MAX 160

struct lists {
	struct abi_frame native[NATIVE_MAX], runtime[RUNTIME_MAX];
	uint8_t roles[NATIVE_MAX];
	struct mix_input in;
};

/* The first byte says what is asked, the second how many of the others are native frames. */
static void draw(const uint8_t *data, size_t size, struct lists *l)
{
	size_t native = MIN(MIN((size_t)data[1], size), (size_t)NATIVE_MAX);
	uint32_t distance = 0;

	l->in = (struct mix_input){ .native = l->native,
				    .roles = l->roles,
				    .runtime = l->runtime,
				    .stack_pointer = data[0] & 1 ? STACK : 0,
				    .runtime_end = (uint8_t)((data[0] >> 4) % ABI_RUNTIME_END_COUNT),
				    .native_is_whole = data[0] & 2,
				    .keep_interpreter = data[0] & 4,
				    .only_runtime = data[0] & 8,
				    .begins_early = data[1] & 1 };
	data += 2;
	for (size_t i = 0; i < native; i++) {
		l->native[i] = (struct abi_frame){ .kind = ABI_FRAME_NATIVE,
						   .extra = data[i] == 0xff ? UINT32_MAX : distance };
		l->roles[i] = data[i] % 3;
		if (data[i] >= 0xf0) { /* a frame of a runtime in line; extra is no distance */
			l->roles[i] = data[i] & 1 ? MIX_STUB : MIX_IN_LINE;
			l->native[i].kind = ABI_FRAME_RUNTIME;
		}
		distance += data[i] >> 2;
	}
	for (size_t i = 0; i < MIN(size - native, (size_t)RUNTIME_MAX); i++) {
		uint8_t byte = data[native + i];
		bool is_end = (byte & 3) == 3;

		l->runtime[i] = (struct abi_frame){ .kind = is_end ? ABI_FRAME_ACTIVATION : ABI_FRAME_RUNTIME,
						    .flags = (byte & 3) == 2 ? ABI_FRAME_ENTRY : 0,
						    .runtime = ABI_RUNTIME_PYTHON,
						    .a = STACK + UINT64_C(32) * byte };
		l->in.runtime_count++;
	}
	l->in.native_count = native;
}

static bool is_shown(const struct lists *l, size_t native, bool has_frames)
{
	if (l->roles[native] == MIX_IN_LINE)
		return true;
	if (l->roles[native] == MIX_STUB)
		return l->in.keep_interpreter;
	if (l->in.only_runtime)
		return false;
	return l->roles[native] == MIX_NATIVE || l->in.keep_interpreter || !has_frames;
}

static void check(const struct lists *l, const struct mix_output *out)
{
	size_t native = 0, runtime = 0;
	bool has_frames = false;

	for (size_t i = 0; i < l->in.runtime_count; i++)
		has_frames |= l->runtime[i].kind == ABI_FRAME_RUNTIME;
	for (size_t i = 0; i < out->count; i++) {
		size_t at = out->frames[i] & ~MIX_RUNTIME;

		if (out->frames[i] & MIX_RUNTIME) {
			while (runtime < l->in.runtime_count && l->runtime[runtime].kind != ABI_FRAME_RUNTIME)
				runtime++;
			must(at == runtime++);
			continue;
		}
		while (native < l->in.native_count && !is_shown(l, native, has_frames))
			native++;
		must(at == native++);
	}
	for (; runtime < l->in.runtime_count; runtime++)
		must(l->runtime[runtime].kind == ABI_FRAME_ACTIVATION);
	for (; native < l->in.native_count; native++)
		must(!is_shown(l, native, has_frames));
	must(out->end < ABI_RUNTIME_END_COUNT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mix_output out;
	static struct lists l;

	if (size < 2)
		return 0;
	draw(data, size - 2, &l);
	mix_frames(&l.in, &out);
	check(&l, &out);
	return 0;
}
