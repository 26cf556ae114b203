/* SPDX-License-Identifier: Apache-2.0 */
/* Two lists, one stack. In pictures, leaf first:
 *
 *	native    n    of a library        i  of the interpreter   L  of its loop; each has 10 words of stack
 *	          J    of a runtime in line                        s  of one of its stubs; where they are is not known
 *	runtime   a-z  a frame             .  behind it: the outermost of its activation
 *	          0-9  the end of an activation, on the stack of that native frame        ?  on no frame's stack
 *	want      as above; native frames that are left keep their letter */
#include "support.h"

#include "agent/mix.h"

#define STACK UINT64_C(0x7ffc00000000)
#define WORDS 10

struct picture {
	const char *name, *native, *runtime, *want;
	uint8_t end, want_end;
	bool cut; /* the native walk did not reach its root */
	bool keep, only;
	uint8_t surplus, shortage;
	bool no_distances;
	bool early; /* a runtime whose activations begin before their loops */
};

struct lists {
	struct abi_frame native[64], runtime[64];
	uint8_t roles[64];
	char letters[64];
	struct mix_input in;
};

static uint8_t role_of(char letter)
{
	switch (letter) {
	case 'L':
		return MIX_LOOP;
	case 'i':
		return MIX_INTERPRETER;
	case 'J':
		return MIX_IN_LINE;
	case 's':
		return MIX_STUB;
	default:
		return MIX_NATIVE;
	}
}

static void draw_native(struct lists *l, const struct picture *p)
{
	for (const char *c = p->native; *c; c++, l->in.native_count++) {
		l->native[l->in.native_count] =
			(struct abi_frame){ .kind = ABI_FRAME_NATIVE,
					    .extra = p->no_distances ? 0 : (uint32_t)l->in.native_count * WORDS };
		l->roles[l->in.native_count] = role_of(*c);
		if (*c == 'J' || *c == 's') /* where it is in its code: here less than any distance */
			l->native[l->in.native_count] = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME, .extra = 1 };
	}
}

static void draw_runtime(struct lists *l, const char *text)
{
	uint8_t other = 0;

	for (const char *c = text; *c; c++) {
		size_t at = l->in.runtime_count;

		if (*c == '.') {
			l->runtime[at - 1].flags |= ABI_FRAME_ENTRY;
			continue;
		}
		if (*c == '/') {
			other = ABI_FRAME_OTHER_STACK;
			continue;
		}
		l->runtime[at] =
			(struct abi_frame){ .kind = ABI_FRAME_RUNTIME, .flags = other, .runtime = ABI_RUNTIME_PYTHON };
		other = 0;
		l->letters[at] = *c;
		if (*c == '?' || (*c >= '0' && *c <= '9')) {
			l->runtime[at].kind = ABI_FRAME_ACTIVATION;
			l->runtime[at].a = *c == '?' ? 16 : STACK + UINT64_C(8) * WORDS * (uint64_t)(*c - '0') + 24;
		}
		l->in.runtime_count++;
	}
}

static void draw(const struct picture *p, struct lists *l)
{
	*l = (struct lists){ .in = { .stack_pointer = STACK,
				     .runtime_end = p->end,
				     .native_is_whole = !p->cut,
				     .keep_interpreter = p->keep,
				     .only_runtime = p->only,
				     .begins_early = p->early } };
	draw_native(l, p);
	draw_runtime(l, p->runtime);
	l->in.native = l->native;
	l->in.roles = l->roles;
	l->in.runtime = l->runtime;
}

#define W ABI_RUNTIME_END_WHOLE
#define NONE ABI_RUNTIME_END_NONE
#define NO_STATE ABI_RUNTIME_END_NO_STATE
#define GAP ABI_RUNTIME_END_GAP
#define LIMIT ABI_RUNTIME_END_FRAME_LIMIT
#define UNPAIRED ABI_RUNTIME_END_UNPAIRED
#define NOT_READY ABI_RUNTIME_END_NOT_READY

static const struct picture pictures[] = {
	{ "no runtime", "nnin", "", "nnin", .want_end = NONE },
	{ "nothing at all", "", "", "", .want_end = NONE },
	/* up to 3.10: every frame is an activation */
	{ "two activations", "iLiLin", "a.b.", "abn", .end = W, .want_end = W },
	{ "native code between them", "nLnnLin", "a.b.", "nannbn", .end = W, .want_end = W },
	{ "and kept", "niLiLin", "a.b.", "niaLibLin", .end = W, .want_end = W, .keep = true },
	{ "a loop that has no frame yet", "LnLin", "a.", "nan", .end = W, .want_end = W, .surplus = 1 },
	{ "or has called something already", "iLnLin", "a.", "nan", .end = W, .want_end = W, .surplus = 1 },
	{ "two without a frame", "LnLnLin", "a.", "nnan", .end = W, .want_end = UNPAIRED, .surplus = 2 },
	{ "more frames than loops", "nLn", "a.b.", "nabn", .end = W, .want_end = UNPAIRED, .shortage = 1 },
	{ "far more", "nLnLn", "a.b.c.d.", "nabcndn", .end = W, .want_end = UNPAIRED, .shortage = 2 },
	{ "frames without any loop", "nn", "a.b.", "nnab", .end = W, .want_end = UNPAIRED, .shortage = 2 },
	{ "no native frame", "", "a.b.", "ab", .end = W, .want_end = UNPAIRED, .cut = true, .shortage = 2 },
	/* Ruby, PHP, Perl: an activation is listed before its loop is called */
	{ "the innermost one has no loop yet", "nLnLn", "a.b.c.", "nabncn", .end = W, .want_end = W, .early = true,
	  .shortage = 1 },
	{ "nor any loop at all", "nn", "a.", "nna", .end = W, .want_end = W, .early = true, .shortage = 1 },
	{ "all have one", "nLnLn", "a.b.", "nanbn", .end = W, .want_end = W, .early = true },
	{ "a loop that is being left", "LnLn", "a.", "nan", .end = W, .want_end = W, .early = true, .surplus = 1 },
	{ "two without a loop", "nLn", "a.b.c.", "nabcn", .end = W, .want_end = UNPAIRED, .early = true,
	  .shortage = 2 },
	{ "early, and the native walk is short", "nLn", "a.b.", "nanb", .end = W, .want_end = UNPAIRED, .early = true,
	  .cut = true, .shortage = 1 },
	{ "early, and its list is cut", "nLnLn", "a.b.", "nanbn", .end = LIMIT, .want_end = LIMIT, .early = true },
	/* PHP: a fiber has a native stack of its own */
	{ "callers on another stack", "nLn", "ab./cd.e.", "nabncde", .end = W, .want_end = W, .early = true },
	{ "and one that has no loop yet", "nLn", "a.b./cd.", "nabncd", .end = W, .want_end = W, .early = true,
	  .shortage = 1 },
	{ "a fiber that has just begun", "nLn", "/a.b.", "nLnab", .end = W, .want_end = W, .early = true,
	  .surplus = 1 },
	{ "a fiber's walk is short", "nLn", "ab./c.", "nabnc", .end = W, .want_end = UNPAIRED, .early = true,
	  .cut = true },
	/* 3.11: several frames in one activation */
	{ "calls that need no native ones", "nLinLin", "abc.de.", "nabcnden", .end = W, .want_end = W },
	{ "not ended, but whole", "nLnLin", "a.bc", "nanbcn", .end = W, .want_end = W },
	{ "one that is being left", "nLnLin", "ab.", "nnabn", .end = W, .want_end = W, .surplus = 1 },
	{ "a gap", "nLnLin", "ab.", "nnabn", .end = GAP, .want_end = GAP, .surplus = 1 },
	/* 3.12 on: addresses say where */
	{ "addresses", "nLnLin", "ab1c3", "nabncn", .end = W, .want_end = W },
	{ "an activation that is just a shim", "LnLin", "0c2", "ncn", .end = W, .want_end = W },
	{ "a loop that has no shim yet", "LnLin", "c2", "ncn", .end = W, .want_end = W, .surplus = 1 },
	{ "one in the middle that has none", "nLnLnLin", "a1c5", "nanncn", .end = W, .want_end = GAP, .surplus = 1 },
	{ "the native walk is short: addresses do", "nLnLi", "a1b3c?", "nanbc", .end = W, .want_end = UNPAIRED,
	  .cut = true, .shortage = 1 },
	{ "a short native walk with all addresses in it", "nLnLi", "a1b3", "nanb", .end = W, .want_end = W,
	  .cut = true },
	{ "an address that is no loop's", "nLnLin", "a2b3", "nanbn", .end = W, .want_end = W },
	{ "addresses out of order: counted", "nLnLin", "a3b1", "nanbn", .end = W, .want_end = W },
	{ "no distances: counted", "LnLin", "c2", "ncn", .end = W, .want_end = W, .surplus = 1, .no_distances = true },
	/* 3.11: the innermost activation has an address */
	{ "the innermost one says where", "nLnLin", "ab.1cd.", "nabncdn", .end = W, .want_end = W },
	{ "a loop before it", "LnLnLin", "a.2b.", "nanbn", .end = W, .want_end = W, .surplus = 1 },
	{ "alone, behind a loop that has just begun", "LnLin", "ab.2", "nabn", .end = W, .want_end = W, .surplus = 1 },
	{ "another interpreter runs inside: its callers are missing", "LnLin", "ab.0", "abnn", .end = W,
	  .want_end = GAP, .surplus = 1 },
	{ "likewise, in two activations", "LnLnLin", "a.0b.", "anbnn", .end = W, .want_end = GAP, .surplus = 1 },
	{ "more than there are loops", "nLn", "a.1b.", "nanb", .end = W, .want_end = UNPAIRED, .shortage = 1 },
	{ "the native walk is short, but the leaf is certain", "nLnLi", "a.1b.c.", "nanbc", .end = W, .want_end = W,
	  .cut = true, .shortage = 1 },
	{ "its address is no loop's: counted", "LnLin", "a.1b.", "anbn", .end = W, .want_end = W },
	/* not whole */
	{ "the native walk is short", "nLnLn", "a.b.c.", "nanbnc", .end = W, .want_end = UNPAIRED, .cut = true,
	  .shortage = 1 },
	{ "the frames are", "nLnLnLin", "a.b.", "nanbnn", .end = LIMIT, .want_end = LIMIT, .surplus = 1 },
	{ "in the middle of an activation", "nLnLnLin", "a1bc", "nanbcnn", .end = LIMIT, .want_end = LIMIT,
	  .surplus = 1 },
	/* no frames */
	{ "met too late", "nLiLin", "", "nLiLin", .end = NONE, .want_end = NOT_READY, .surplus = 2 },
	{ "the very first frame begins", "Liin", "", "Liin", .end = W, .want_end = W, .surplus = 1 },
	{ "a thread without a state, in the loop", "nLin", "", "nLin", .end = NO_STATE, .want_end = GAP, .surplus = 1 },
	{ "a thread that runs no Python", "niin", "", "niin", .end = NO_STATE, .want_end = NO_STATE },
	{ "just a shim", "Lin", "0", "Lin", .end = W, .want_end = W },
	/* a runtime in line */
	{ "in line", "nJnJsn", "", "nJnJn", .want_end = NONE },
	{ "in line, stubs and all", "nJnJsn", "", "nJnJsn", .want_end = NONE, .keep = true },
	{ "in line, nothing native", "nJsnJn", "", "JJ", .want_end = NONE, .only = true },
	{ "beside one behind", "JLinJLin", "a.b.", "JanJbn", .end = W, .want_end = W },
	{ "beside one without frames", "JLin", "", "JLin", .end = NONE, .want_end = NOT_READY, .surplus = 1 },
	{ "loops called by it: addresses", "nLJLin", "a1b3", "naJbn", .end = W, .want_end = W },
	{ "and the loop has no shim yet", "LJsnLin", "b4", "Jnbn", .end = W, .want_end = W, .surplus = 1 },
	{ "it is the outermost", "nLJ", "a1", "naJ", .end = W, .want_end = W, .cut = true },
	/* nothing native */
	{ "only runtime frames", "nLnLin", "a.b.", "ab", .end = W, .want_end = W, .only = true },
	{ "only, and none", "nnin", "", "", .end = NONE, .want_end = NONE, .only = true },
};

static void check_text(const struct lists *l, const char *native, const struct mix_output *out, const char *want)
{
	char text[130] = { 0 };

	assert_true(out->count < sizeof(text));
	for (size_t i = 0; i < out->count; i++) {
		uint32_t at = out->frames[i];

		text[i] = at & MIX_RUNTIME ? l->letters[at & ~MIX_RUNTIME] : native[at];
	}
	assert_string_equal(text, want);
}

static void stacks_are_put_together(void **state)
{
	static struct mix_output out;
	struct lists l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pictures); i++) {
		const struct picture *p = &pictures[i];

		print_message("  %s\n", p->name);
		draw(p, &l);
		mix_frames(&l.in, &out);
		check_text(&l, p->native, &out, p->want);
		assert_int_equal(out.end, p->want_end);
		assert_int_equal(out.surplus, p->surplus);
		assert_int_equal(out.shortage, p->shortage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
