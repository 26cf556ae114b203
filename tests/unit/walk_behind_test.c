/* SPDX-License-Identifier: Apache-2.0 */
/* Several runtimes of one process, walked behind the native frames: each finds the place of its own, and the ends of
 * all become one. */
#include "support.h"

#include <linux/types.h>

#include "walk/walk.h"

#define NATIVE 5

struct turn { /* what one walker says */
	uint32_t frames;
	uint8_t end;
};

#define WHOLE ABI_RUNTIME_END_WHOLE
#define NO_STATE ABI_RUNTIME_END_NO_STATE
#define NONE ABI_RUNTIME_END_NONE
#define GAP ABI_RUNTIME_END_GAP
#define UNPAIRED ABI_RUNTIME_END_UNPAIRED
#define READ_FAILED ABI_RUNTIME_END_READ_FAILED

static const struct {
	struct turn turns[3];
	uint32_t frames;
	uint8_t end;
} cases[] = {
	{ { { 0, NONE }, { 0, NONE }, { 0, NONE } }, 0, NONE },
	{ { { 3, WHOLE }, { 0, NO_STATE }, { 0, NO_STATE } }, 3, WHOLE },
	{ { { 0, NO_STATE }, { 3, WHOLE }, { 0, NO_STATE } }, 3, WHOLE },
	{ { { 0, NO_STATE }, { 0, NO_STATE }, { 3, GAP } }, 3, GAP },
	{ { { 0, NONE }, { 2, WHOLE }, { 0, NONE } }, 2, WHOLE },
	{ { { 0, NO_STATE }, { 0, NONE }, { 0, NO_STATE } }, 0, NO_STATE },
	{ { { 2, WHOLE }, { 3, WHOLE }, { 0, NO_STATE } }, 5, UNPAIRED },
	{ { { 0, READ_FAILED }, { 0, NO_STATE }, { 0, NO_STATE } }, 0, READ_FAILED },
	{ { { 0, READ_FAILED }, { 3, WHOLE }, { 0, NONE } }, 3, UNPAIRED },
	{ { { 0, NO_STATE }, { 0, READ_FAILED }, { 0, NO_STATE } }, 0, READ_FAILED },
	{ { { 0, WHOLE }, { 0, NO_STATE }, { 0, NONE } }, 0, WHOLE },
};

static void push(struct walk *w, const struct turn *t, uint16_t runtime)
{
	for (uint32_t i = 0; i < t->frames; i++) {
		struct abi_frame *f = walk_push_runtime(w, ABI_FRAME_RUNTIME, runtime);

		assert_non_null(f);
		f->a = i;
	}
	if (t->end != NONE)
		w->runtime_end = t->end;
}

static void ends_do_not_overwrite_each_other(void **state)
{
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t at = NATIVE;

		w->count = NATIVE;
		w->runtime_count = 0;
		w->runtime_end = NONE;
		for (uint16_t k = 0; k < 3; k++) {
			walk_set_aside(w);
			assert_int_equal(w->runtime_count, 0);
			assert_int_equal(w->runtime_end, NONE);
			push(w, &cases[i].turns[k], (uint16_t)(k + 1));
			walk_put_back(w);
			assert_int_equal(w->count, NATIVE);
		}
		assert_int_equal(w->runtime_count, cases[i].frames);
		assert_int_equal(w->runtime_end, cases[i].end);
		for (uint16_t k = 0; k < 3; k++)
			for (uint32_t n = 0; n < cases[i].turns[k].frames; n++, at++) {
				assert_int_equal(w->frames[at].runtime, k + 1);
				assert_int_equal(w->frames[at].a, n);
			}
	}
	free(w);
}

/* The second one may take back what it pushed, and no more. */
static void a_walk_anew_keeps_the_others(void **state)
{
	static const struct turn first = { 4, WHOLE }, second = { 7, GAP };
	struct walk *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	w->count = NATIVE;
	walk_set_aside(w);
	push(w, &first, 1);
	walk_put_back(w);
	walk_set_aside(w);
	push(w, &second, 2);
	w->runtime_count = 0;
	w->runtime_end = NO_STATE;
	walk_put_back(w);
	assert_int_equal(w->count, NATIVE);
	assert_int_equal(w->runtime_count, 4);
	assert_int_equal(w->runtime_end, WHOLE);
	assert_int_equal(w->frames[NATIVE].runtime, 1);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_do_not_overwrite_each_other),
		cmocka_unit_test(a_walk_anew_keeps_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
