/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of Ruby and Perl over the memory of processes that waited in a known stack (tests/walk/recorded.rb, .pl),
 * as tests/walk/interpreter_record wrote it down: all frames in their order, names, lines, and the end. */
#include "support.h"

#include <linux/types.h>

#include "../walk/pieces.h"
#include "base/io.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"
#include "walk/walk.h"

static void note_perl_name(struct walk *w);
#define walk_perl_seen(w) note_perl_name(w)
#include "walk/walk_perl.h"
#include "walk/walk_ruby.h"

struct recording {
	struct buf bytes;
	struct pieces pieces;
	struct walk_world world;
	struct walk walk;
	uint8_t info[RUNTIME_INFO_MAX];
};

static struct recording *opened(const char *name, size_t info_size, bool has_thread)
{
	struct recording *r = calloc(1, sizeof(*r));
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[1024];
	struct cur in;

	assert_non_null(r);
	r->bytes = (struct buf)BUF_INIT(KIB(64));
	snprintf(path, sizeof(path), "%s/tests/corpus/%s", root ? root : ".", name);
	print_message("  %s\n", name);
	assert_int_equal(io_read_file(path, &r->bytes), 0);
	in = cur_of(r->bytes.ptr, r->bytes.len);
	memcpy(r->info, cur_bytes(&in, info_size), info_size);
	r->walk.tp = cur_le64(&in);
	if (has_thread)
		walk_sample(&r->walk)->pid = walk_sample(&r->walk)->tid = (uint32_t)cur_le64(&in);
	r->walk.count = (uint32_t)cur_le64(&in);
	pieces_take(&in, &r->pieces);
	assert_in_range(r->pieces.count, 10, PIECES_MAX - 1);
	r->world = (struct walk_world){ .read = pieces_read, .self = &r->pieces };
	r->walk.world = &r->world;
	return r;
}

static void closed(struct recording *r)
{
	buf_release(&r->bytes);
	free(r);
}

/* ---- Ruby ---- */

static const struct {
	const char *name;
	int32_t line; /* 0: a C function */
	bool ends;    /* an activation of the loop */
	bool ends_up_to_3_2;
} ruby_frames[] = { /* leaf first */
		    { "sleep", 0, false },
		    { "wait_here", 19, false },
		    { "rescue in caught", 7, true },
		    { "eval", 0, false },
		    { "rescue in caught", 13, false },
		    { "caught", 10, false },
		    { "block in deep", 7, true },
		    { "each", 0, false },
		    { "deep", 7, false },
		    { "deep", 7, false },
		    { "deep", 7, false },
		    { "block in <class:Shop>", 4, false, true },
		    { "<main>", 23, true }
};

static void assert_ruby_frame(struct recording *r, uint32_t index)
{
	const struct abi_ruby_layout *l = &((const struct abi_ruby *)(const void *)r->info)->layout;
	bool is_before_3_3 = l->version_major < 3 || l->version_minor < 3;
	const struct runtime_target target = { .read = pieces_read_target, .self = &r->pieces };
	const struct abi_frame *frame = &r->walk.frames[r->walk.count + index];
	scoped(buf_release) struct buf room = BUF_INIT(MIB(1)), bare = BUF_INIT(KIB(4));
	struct runtime_function f = { 0 };

	assert_int_equal(frame->runtime, ABI_RUNTIME_RUBY);
	assert_int_equal((frame->flags & ABI_FRAME_ENTRY) != 0,
			 ruby_frames[index].ends || (ruby_frames[index].ends_up_to_3_2 && is_before_3_3));
	assert_int_equal(ruby_read_name(&target, r->info, frame->a, frame->b, &room, &f), 0);
	ruby_plain(f.name, &bare);
	assert_string_equal(buf_cstr(&bare), ruby_frames[index].name);
	assert_int_equal(ruby_line(&f, frame->extra), ruby_frames[index].line);
}

static void ruby_stacks(void **state)
{
	static const char *const names[] = { "walk_ruby/recorded_2.7.4", "walk_ruby/recorded_3.1.2",
					     "walk_ruby/recorded_3.3.8" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct recording *r = opened(names[i], sizeof(struct abi_ruby), false);
		size_t turns = 0;

		walk_ruby_start(&r->walk, (const struct abi_ruby *)(const void *)r->info, 0);
		while (walk_ruby_step(&r->walk) == WALK_MORE)
			assert_true(turns++ < ABI_FRAMES_MAX);
		assert_int_equal(r->walk.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(r->walk.runtime_count, ARRAY_SIZE(ruby_frames));
		for (uint32_t k = 0; k < r->walk.runtime_count; k++)
			assert_ruby_frame(r, k);
		closed(r);
	}
}

/* ---- Perl ---- */

static const struct {
	const char *package, *name; /* package NULL: no sub */
	uint64_t key;               /* of what is none */
	uint32_t line;
	bool ends;
} perl_frames[] = { /* leaf first */
		    { "main", "wait_here", 0, 27, false },
		    { NULL, NULL, ABI_PERL_KEY_EVAL, 1, false },
		    { "Shop", "__ANON__", 0, 18, false },
		    { "Shop", "__ANON__", 0, 19, true }, /* the block of first(), called from C */
		    { "Shop", "compare", 0, 19, true },  /* the sort block is no frame, but a stack info */
		    { "Shop", "deep", 0, 13, false },
		    { "Shop", "deep", 0, 12, false },
		    { "Shop", "deep", 0, 12, false },
		    { "Shop", "AUTOLOAD", 0, 9, false },
		    { NULL, NULL, ABI_PERL_KEY_MAIN, 30, true }
};

#define TEXT_MAX (8 * WALK_PERL_HEK_WORDS)

static struct { /* of each frame, leaf first */
	char package[TEXT_MAX], name[TEXT_MAX];
} seen[ARRAY_SIZE(perl_frames)];

static void read_text(struct walk *w, uint64_t at, char out[TEXT_MAX])
{
	char hek[TEXT_MAX];
	uint32_t size;

	out[0] = 0;
	if (!at)
		return;
	assert_int_equal(walk_read(w, hek, sizeof(hek), at), 0);
	memcpy(&size, hek + ABI_PERL_HEK_LENGTH, sizeof(size));
	assert_true(size < TEXT_MAX - ABI_PERL_HEK_TEXT);
	memcpy(out, hek + ABI_PERL_HEK_TEXT, size);
	out[size] = 0;
}

/* Where the kernel takes the texts along. */
static void note_perl_name(struct walk *w)
{
	assert_true(w->runtime_count < ARRAY_SIZE(seen));
	if (walk_perl_state(w)->key < ABI_PERL_KEY_SUBS)
		return;
	read_text(w, walk_perl_more(w)->package, seen[w->runtime_count].package);
	read_text(w, walk_perl_more(w)->name, seen[w->runtime_count].name);
}

static void assert_perl_frame(const struct recording *r, uint32_t index)
{
	const struct abi_frame *frame = &r->walk.frames[r->walk.count + index];

	assert_int_equal(frame->runtime, ABI_RUNTIME_PERL);
	assert_int_equal(frame->kind, ABI_FRAME_RUNTIME);
	assert_int_equal((frame->flags & ABI_FRAME_ENTRY) != 0, perl_frames[index].ends);
	assert_int_equal(frame->extra, perl_frames[index].line);
	assert_int_not_equal(frame->b, ABI_PERL_NO_COOKIE);
	if (perl_frames[index].package) {
		assert_true(frame->a >= ABI_PERL_KEY_SUBS);
		assert_string_equal(seen[index].package, perl_frames[index].package);
		assert_string_equal(seen[index].name, perl_frames[index].name);
	} else {
		assert_int_equal(frame->a, perl_frames[index].key);
	}
}

static void perl_stacks(void **state)
{
	static const char *const names[] = { "walk_perl/recorded_5.32", "walk_perl/recorded_5.36",
					     "walk_perl/recorded_5.36_plain", "walk_perl/recorded_5.40",
					     "walk_perl/recorded_5.42" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct recording *r = opened(names[i], sizeof(struct abi_perl), true);
		size_t turns = 0;

		walk_perl_start(&r->walk, (const struct abi_perl *)(const void *)r->info, 0);
		while (walk_perl_step(&r->walk) == WALK_MORE)
			assert_true(turns++ < WALK_PERL_TURNS);
		assert_int_equal(r->walk.runtime_end, ABI_RUNTIME_END_WHOLE);
		assert_int_equal(r->walk.runtime_count, ARRAY_SIZE(perl_frames));
		for (uint32_t k = 0; k < r->walk.runtime_count; k++)
			assert_perl_frame(r, k);
		closed(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ruby_stacks),
		cmocka_unit_test(perl_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
