/* SPDX-License-Identifier: Apache-2.0 */
/* What perf script prints, in every layout: heads, frames, columns, limits. The texts are written by hand after
 * linux 6.1's tools/perf/builtin-script.c. */
#include "support.h"

#include "codec/perf_line.h"
#include "codec/perf_script.h"
#include "model/model.h"

#define OUT_MAX MIB(1)

static const struct {
	const char *line;
	enum perf_line kind;
	const char *want; /* "comm|pid|tid|cpu|time|period|event|rest", or "address|name|file|inlined" */
} lines[] = {
	/* the usual one, with -g: tid alone */
	{ "prog  1234 [003] 12345.678901:    5025125 cpu-clock:pppH: ", PERF_LINE_HEAD,
	  "prog|-|1234|3|12345678901000|5025125|cpu-clock:pppH|" },
	{ "my prog 2  1234/1235  [003] 1.000000001:  7 cycles: ", PERF_LINE_HEAD,
	  "my prog 2|1234|1235|3|1000000001|7|cycles|" },
	{ "V8 WorkerThread 25607 4794564.109216: cycles:", PERF_LINE_HEAD,
	  "V8 WorkerThread|-|25607|-|4794564109216000|-|cycles|" },
	{ "task 5 6 7 8 [000] 1.5: 9 ev:", PERF_LINE_HEAD, "task 5 6 7|-|8|0|1500000000|9|ev|" },
	{ ":-1    -1 [001] 2.000000: 1 ev:", PERF_LINE_HEAD, ":-1|-|-|1|2000000000|1|ev|" },
	{ "swapper     0 [001] 2.000000: sched:sched_switch: prev_comm=a b prev_pid=1 ==> next_pid=2", PERF_LINE_HEAD,
	  "swapper|-|0|1|2000000000|-|sched:sched_switch|prev_comm=a b prev_pid=1 ==> next_pid=2" },
	/* without -g: one line, comm in 16 columns */
	{ "              dd   42 [000] 3.000000:  1 cycles:  ffffffff8100 do_it+0x1 ([kernel.kallsyms])",
	  PERF_LINE_HEAD, "dd|-|42|0|3000000000|1|cycles|ffffffff8100 do_it+0x1 ([kernel.kallsyms])" },
	/* -F with fewer fields */
	{ "   1234 1.000000:   7 cycles: ", PERF_LINE_HEAD, "|-|1234|-|1000000000|7|cycles|" },
	{ "prog  1234 ", PERF_LINE_HEAD, "prog|-|1234|-|-|-||" },
	{ "prog 1.000000: cycles:", PERF_LINE_HEAD, "prog|-|-|-|1000000000|-|cycles|" },
	{ "prog  1234   250000 ", PERF_LINE_HEAD, "prog|-|1234|-|-|250000||" },
	{ "prog  1234     7f0012345678 main+0x1 (/bin/prog)", PERF_LINE_HEAD,
	  "prog|-|1234|-|-|-||7f0012345678 main+0x1 (/bin/prog)" },
	{ "two words", PERF_LINE_NAME_ALONE, "two words|-|-|-|-|-||" },
	{ "#x 12 [000] 1.0: 1 ev:", PERF_LINE_HEAD, "#x|-|12|0|1000000000|1|ev|" },
	/* others */
	{ "", PERF_LINE_BLANK, NULL },
	{ " \t", PERF_LINE_BLANK, NULL },
	{ "# hostname : box", PERF_LINE_COMMENT, NULL },
	{ "; a note", PERF_LINE_COMMENT, NULL },
	{ "# nrcpus online : 2", PERF_LINE_COMMENT, NULL },
	{ "prog 12 [000] 1.0: PERF_RECORD_MMAP2 12/12: [0x1(0x2) @ 0 fe:01 1 0]: r-xp /bin/a", PERF_LINE_RECORD, NULL },
	{ "prog 12 [000] 1.0: PERF_RECORD_COMM: prog:12/12", PERF_LINE_RECORD, NULL },
	{ "  something else", PERF_LINE_OTHER, NULL },
	/* frames */
	{ "\tffffffff81001234 do_syscall_64+0x3b ([kernel.kallsyms])", PERF_LINE_FRAME,
	  "ffffffff81001234|do_syscall_64|[kernel.kallsyms]|0" },
	{ "\t    7f0012345678 [unknown] ([unknown])", PERF_LINE_FRAME, "7f0012345678|[unknown]|[unknown]|0" },
	{ "\t    55d0 operator()(int (*)(char))+0x10 (/usr/bin/a (b)/c d (deleted))", PERF_LINE_FRAME,
	  "55d0|operator()(int (*)(char))|/usr/bin/a (b)/c d (deleted)|0" },
	{ "\t    55d0 f+0x10 (/tmp/open(paren)", PERF_LINE_FRAME, "55d0|f|/tmp/open(paren|0" },
	{ "\t    55d0 helper (inlined)", PERF_LINE_FRAME, "55d0|helper||1" },
	{ "\t    55d0 1 2 3: x 12 [000] 1.0: 1 ev:", PERF_LINE_FRAME, "55d0|1 2 3: x 12 [000] 1.0: 1 ev:||0" },
	{ "\t    55d0", PERF_LINE_FRAME, "55d0|||0" },
	{ "        55d0 main+0x1 (/bin/a)", PERF_LINE_FRAME, "55d0|main|/bin/a|0" },
	{ "\t    55d0 main+0x1 (/bin/a+0x12)", PERF_LINE_FRAME, "55d0|main|/bin/a|0" },
	{ "\t    55d0 a+b (/bin/a)", PERF_LINE_FRAME, "55d0|a+b|/bin/a|0" },
	{ "\t       0 ()", PERF_LINE_FRAME, "0|||0" },
};

static void add_number(struct buf *out, bool known, uint64_t value)
{
	if (known)
		buf_addf(out, "|%llu", (unsigned long long)value);
	else
		buf_adds(out, STR("|-"));
}

static void head_text(const struct perf_head *h, struct buf *out)
{
	buf_adds(out, h->comm);
	add_number(out, h->has_pid, h->pid);
	add_number(out, h->has_tid, h->tid);
	add_number(out, h->has_cpu, h->cpu);
	add_number(out, h->has_time, h->time_ns);
	add_number(out, h->has_period, h->period);
	buf_addf(out, "|" STR_FMT "|" STR_FMT, STR_ARG(h->event), STR_ARG(h->rest));
}

static void every_layout_of_a_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		scoped(buf_release) struct buf found = BUF_INIT(OUT_MAX);
		struct cur c = guard_page(lines[i].line, strlen(lines[i].line));
		struct perf_text text = { 0 };

		print_message("  %s\n", lines[i].line);
		assert_int_equal(perf_line_parse(cur_rest(&c), &text), lines[i].kind);
		if (lines[i].kind == PERF_LINE_FRAME)
			buf_addf(&found, "%llx|" STR_FMT "|" STR_FMT "|%d", (unsigned long long)text.frame.address,
				 STR_ARG(text.frame.name), STR_ARG(text.frame.dso), text.frame.is_inlined);
		else
			head_text(&text.head, &found);
		if (lines[i].want)
			assert_string_equal(buf_cstr(&found), lines[i].want);
	}
}

/* "comm pid/tid cpu@time values: frames" with the root first; inlined functions behind '>'. */
static void model_text(const struct model *m, struct buf *out)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		buf_addf(out, "%s" STR_FMT "/" STR_FMT, i ? " " : "", STR_ARG(model_string(m, m->value_types[i].type)),
			 STR_ARG(model_string(m, m->value_types[i].unit)));
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		const struct model_label_set *set = &m->label_sets[s->label_set];
		uint32_t path[32];
		size_t count = 0;

		buf_addf(out, "\n" STR_FMT " %u/%u", STR_ARG(model_string(m, m->processes[s->process].comm)),
			 m->processes[s->process].pid, m->threads[s->thread].tid);
		if (set->count)
			buf_addf(out, " cpu%lld", (long long)m->labels[set->first].number);
		if (s->time_offset_ns != MODEL_NO_TIME)
			buf_addf(out, " @%llu", (unsigned long long)s->time_offset_ns);
		for (size_t k = 0; k < m->value_type_count; k++)
			buf_addf(out, " %lld", (long long)model_values(m, s)[k]);
		buf_addc(out, ':');
		for (uint32_t node = s->stack; node && count < ARRAY_SIZE(path); node = m->stacks[node].parent)
			path[count++] = m->stacks[node].location;
		while (count-- > 0) {
			const struct model_location *location = &m->locations[path[count]];

			for (uint32_t k = location->line_count; k-- > 0;) {
				const struct model_line *line = &m->lines[location->first_line + k];

				buf_addc(out, k + 1 == location->line_count ? ' ' : '>');
				model_frame_name(m, path[count], k, out);
				if (line->line)
					buf_addf(out, "@" STR_FMT ":%lld",
						 STR_ARG(model_string(m, m->functions[line->function].filename)),
						 (long long)line->line);
			}
			buf_adds(out, model_kind_suffix(model_location_kind(m, path[count])));
		}
	}
	buf_addc(out, '\n');
}

static const struct {
	const char *name, *text, *want;
} files[] = {
	{ "call chains, two processes",
	  "# hostname : box\n#\nprog  10 [001] 5.000100:   250000 cpu-clock:pppH: \n"
	  "\tffffffff81000010 sys_read+0x1 ([kernel.kallsyms])\n\t    7f0000000010 read+0x11 (/lib/libc.so.6)\n"
	  "\t    5500000010 main+0x20 (/bin/prog)\n\n"
	  "my prog  11 [000] 5.000000:   750000 cpu-clock:pppH: \n\t    5500000011 main+0x21 (/bin/prog)\n\n",
	  "samples/count cpu-clock:pppH/nanoseconds\nprog 0/10 cpu1 @100000 1 250000: main read sys_read_[k]\n"
	  "my prog 0/11 cpu0 @0 1 750000: main\n" },
	{ "several events, without periods, CRLF, the last line cut",
	  "a 1/2 1.000000: cycles: \r\n\t10 f (/a)\r\n\r\na 1/3 2.000000: faults: \r\n\t10 g (/a)",
	  "samples/count cycles/count faults/count\na 1/2 @0 1 1 0: f\na 1/3 @1000000000 1 0 1: g\n" },
	{ "without chains",
	  "            a  1 [000] 1.000000: 3 cycles:      55d0 f+0x1 (/a)\n"
	  "            b  2 [000] 1.000000: 4 cycles:  ffffffff81000000 k+0x1 ([ext4])\n"
	  "            c  3 [000] 1.000000: 1 sched:x: pid=7 comm=d\n",
	  "samples/count cycles/count sched:x/count\na 0/1 cpu0 @0 1 3 0: f\nb 0/2 cpu0 @0 1 4 0: k_[k]\n"
	  "c 0/3 cpu0 @0 1 0 1:\n" },
	{ "inlined functions and source lines",
	  "a 1 1.0: 1 ev: \n\t10 in2 (inlined)\n\t10 in1\n  in.c:7 (inlined)\n\t10 f+0x1 (/a)\n  f.c:9\n\t20 main "
	  "(/a)\n\n",
	  "samples/count ev/count\na 0/1 @0 1 1: main f@f.c:9>in1@in.c:7>in2\n" },
	{ "what has no name is called after its file",
	  "a 1 1.0: 1 ev: \n\t10 [unknown] (/lib/libx.so)\n\t20 [unknown] ([unknown])\n\tffffffff81000000 [unknown] "
	  "([unknown])\n"
	  "\t30 lambda (/tmp/perf-1.map)\n\n",
	  "samples/count ev/count\na 0/1 @0 1 1: lambda [unknown]_[k] [unknown] [libx.so]\n" },
	{ "frames alone, and a comm alone", "\t10 f (/a)\n\t20 main (/a)\n\nprog \n\t10 f (/a)\n\n",
	  "samples/count\n 0/0 1: main f\nprog 0/0 1: f\n" },
	{ "an inlined function without the one around it", "a 1 1.0: ev: \n\t10 in (inlined)\n\n",
	  "samples/count ev/count\na 0/1 @0 1 1: [unknown]>in\n" },
	{ "hostile names", "a;b 1 1.0: 1 ev: \n\t10 x;y\x01\xff (/a;b)\n\n;c 2 1.0: 1 ev: \n\t10 \x1b[31m ( (x)\n\n",
	  "samples/count ev/count\na;b 0/1 @0 1 1: x;y\x01\xff\n;c 0/2 @0 1 1: \x1b[31m (\n" },
	{ "periods beyond 63 bits saturate, those of a column", "a 1 1.0: 18446744073709551615 ev: \n\n",
	  "samples/count ev/count\na 0/1 @0 1 9223372036854775807:\n" },
};

static int decode_text(const char *text, const struct codec_limits *limits, struct window *out,
		       struct codec_error *error)
{
	struct cur c = guard_page(text, strlen(text));

	return codec_perf_script.decode_limited(cur_rest(&c), limits, out, error);
}

static void every_layout_of_a_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf found = BUF_INIT(OUT_MAX);
		struct codec_error error = { 0 };

		print_message("  %s\n", files[i].name);
		assert_int_equal(decode_text(files[i].text, &(struct codec_limits){ 0 }, &w, &error), 0);
		assert_int_equal(error.left_out, 0);
		model_text(w.model, &found);
		assert_string_equal(buf_cstr(&found), files[i].want);
	}
}

static void is_known_by_content(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "prog  1234 [003] 12345.678901:    5025125 cpu-clock:pppH: \n", true },
		{ "# ========\n# hostname : a\n\nprog 1 1.0: ev: \n", true },
		{ "prog 1234 \n\t55d0 main (/a)\n", true },
		{ "prog 1234 \nmore\n", false },
		{ "main;f 12\n", false },
		{ "main;f 12 13\n", false },
		{ "heap profile: 1: 100 [1: 100] @ heapprofile\n", false },
		{ "--- contention:\n77 2 @ 0x11\n", false },
		{ "goroutine profile: total 7\n5 @ 0x43a1c5\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].text);
		assert_int_equal(codec_perf_script.sniff(str_of(cases[i].text)), cases[i].want);
	}
	assert_ptr_equal(codec_sniff(str_of(cases[0].text)), &codec_perf_script);
	assert_ptr_equal(codec_sniff(str_of(cases[2].text)), &codec_perf_script);
	assert_string_equal(codec_sniff(str_of(cases[4].text))->name, "folded");
	assert_string_equal(codec_sniff(str_of(cases[6].text))->name, "legacy");
}

static void what_cannot_be_read_is_counted(void **state)
{
	scoped(window_release) struct window w = { 0 }, none = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	assert_int_equal(decode_text("nonsense\na 1 1.0: 5 ev: \n  odd thing\n\nmore nonsense\n",
				     &(struct codec_limits){ 0 }, &w, &error),
			 0);
	assert_int_equal(w.model->samples_count, 1);
	assert_int_equal(error.left_out, 3);
	assert_int_equal(error.position, 1);
	error = (struct codec_error){ 0 };
	assert_int_equal(decode_text("nonsense\n", &(struct codec_limits){ 0 }, &none, &error), -EBADMSG);
	assert_string_equal(error.reason, "no sample begins like this");
	assert_int_equal(decode_text("# nothing\n", &(struct codec_limits){ 0 }, &none, &error), -EBADMSG);
	assert_null(none.model);
}

static void lost_samples_and_the_header_are_kept(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };

	(void)state;
	assert_int_equal(
		decode_text("# hostname : box\n# os release : 6.1.0\n# nrcpus online : 4\n# cmdline : perf record -g\n"
			    "a 1 1.0: 5 ev: \n\na 1 2.0: PERF_RECORD_LOST lost 12\na 1 3.5: 6 ev: \n\n",
			    &(struct codec_limits){ 0 }, &w, &error),
		0);
	assert_string_equal(w.host, "box");
	assert_string_equal(w.kernel_release, "6.1.0");
	assert_string_equal(w.command, "perf record -g");
	assert_int_equal(w.cpu_count, 4);
	assert_int_equal(window_counter(&w, STR("lost_by_perf")), 12);
	assert_int_equal(w.model->duration_ns, 2500000000);
}

static void more_events_than_columns(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	int64_t sum = 0;

	(void)state;
	for (int i = 0; i < 40; i++)
		buf_addf(&text, "a 1 1.0: 5 e%d: \n\n", i);
	assert_int_equal(decode_text(buf_cstr(&text), &(struct codec_limits){ 0 }, &w, &error), 0);
	assert_int_equal(w.model->value_type_count, MODEL_VALUE_TYPES_MAX);
	for (size_t i = 0; i < w.model->samples_count; i++)
		sum += model_values(w.model, &w.model->samples[i])[0];
	assert_int_equal(sum, 40);
	assert_int_equal(window_counter(&w, STR("samples_without_column")), 40 - (MODEL_VALUE_TYPES_MAX - 1));
	assert_string_equal(error.lost.text, "9 samples of further events have no column");
}

static int decode_failing(void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	int r = decode_text(ctx, &(struct codec_limits){ 0 }, &w, &error);

	assert_true(r == 0 || (r == -ENOMEM && !w.model));
	return r;
}

static void allocations_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		for_each_failing_allocation(decode_failing, (void *)files[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_of_a_line),
		cmocka_unit_test(every_layout_of_a_file),
		cmocka_unit_test(is_known_by_content),
		cmocka_unit_test(what_cannot_be_read_is_counted),
		cmocka_unit_test(lost_samples_and_the_header_are_kept),
		cmocka_unit_test(more_events_than_columns),
		cmocka_unit_test(allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
