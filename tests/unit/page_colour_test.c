/* SPDX-License-Identifier: Apache-2.0 */
/* Frames have the colours that the page gives them: the page's own module is asked. */
#include "support.h"

#include <math.h>
#include <unistd.h>

#include "render/page_colour.h"

static const char *const names[] = {
	"main",
	"std::vector<int>::push_back(int const&)",
	"core::fmt::write",
	"<alloc::vec::Vec<T> as core::ops::Drop>::drop",
	"tokio::runtime::block_on::{{closure}}",
	"serde::de::h0123456789abcdef",
	"a$LT$b$GT$",
	"[unknown]",
	"0x7f0012ab",
	"0x",
	"do_syscall_64_[k]",
	"x._[j]",
	"inlined_[i]",
	"c1_[1]",
	"interpreted_[0]",
	"run (/srv/app.py:3)_[p]",
	"method_[pn]",
	"missing_[pe]",
	"each_[rb]",
	"f_[php]",
	"M.N_[net]",
	"A::b_[perl]",
	"gr\xc3\xbc\xc3\x9f",
	"\xf0\x9f\x94\xa5 hot",
	"a name with blanks",
};

/* Return: the answers of the page's module, a line "hue saturation lightness" each. */
static bool ask_page(const struct tree *t, struct buf *out)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	scoped(buf_release) struct buf script = BUF_INIT(MIB(1)), command = BUF_INIT(KIB(8));
	char path[] = "/tmp/hearth-colour-XXXXXX.mjs", bytes[1024];
	int fd = mkstemps(path, 4);
	FILE *pipe;
	size_t n;

	assert_true(root && fd >= 0);
	buf_addf(&script, "import { COLOURS, Colours } from '%s/web/colour.js';\nconst names = [], kinds = [];\n",
		 root);
	for (uint32_t f = 0; f < t->frame_count; f++) {
		struct str name = tree_frame_text(t, f);

		buf_addf(&script, "names.push(Buffer.from([");
		for (size_t i = 0; i < name.len; i++)
			buf_addf(&script, "%u,", (unsigned char)name.ptr[i]);
		buf_addf(&script, "]).toString()); kinds.push('" STR_FMT "');\n",
			 STR_ARG(tree_kind_name(t->frames[f].kind)));
	}
	buf_addf(&script,
		 "const frames = { count: names.length, own: names.length, shared: {}, module: names.map(() => 0),"
		 " kind: (f) => kinds[f], name: (f) => names[f], moduleName: () => '' };\n"
		 "const colours = new Colours(frames, 'kind');\n"
		 "for (let f = 0; f <= names.length; f++)\n"
		 "	console.log(COLOURS[colours.of(f)].match(/[\\d.]+/g).join(' '));\n");
	assert_int_equal(write(fd, script.ptr, script.len), (ssize_t)script.len);
	(void)close(fd);
	buf_addf(&command, "node %s", path);
	pipe = popen(buf_cstr(&command), "r");
	assert_non_null(pipe);
	while ((n = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
		buf_add(out, bytes, n);
	n = (size_t)pclose(pipe);
	(void)unlink(path);
	return n == 0;
}

static double channel(double hue, double saturation, double lightness, double n)
{
	const double k = fmod(n + hue / 30, 12), a = saturation * fmin(lightness, 1 - lightness);

	return 255 * (lightness - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1)));
}

static void colours_are_those_of_the_page(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1)), answers = BUF_INIT(MIB(1));
	struct tree t = { 0 };
	struct page_colours *colours;
	struct str rest, line;
	uint64_t bad_line;

	(void)state;
	if (system("node --version >/dev/null 2>&1") != 0) {
		print_message("needs node\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		buf_addf(&text, "process;%s %zu\n", names[i], i + 1);
	assert_int_equal(tree_from_folded(buf_str(&text), NULL, &t, &bad_line), 0);
	assert_true(t.frame_count >= ARRAY_SIZE(names));
	colours = page_colours_new(&t);
	assert_non_null(colours);
	assert_true(ask_page(&t, &answers));
	rest = buf_str(&answers);
	for (uint32_t f = 0; f <= t.frame_count; f++) {
		struct page_colour c = page_colours_of(colours, &t, f);
		double hue, saturation, lightness;

		assert_true(str_next(&rest, '\n', &line));
		assert_int_equal(sscanf(line.ptr, "%lf %lf %lf", &hue, &saturation, &lightness), 3);
		assert_true(fabs(c.red - channel(hue, saturation / 100, lightness / 100, 0)) < 1);
		assert_true(fabs(c.green - channel(hue, saturation / 100, lightness / 100, 8)) < 1);
		assert_true(fabs(c.blue - channel(hue, saturation / 100, lightness / 100, 4)) < 1);
	}
	page_colours_free(colours);
	tree_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colours_are_those_of_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
