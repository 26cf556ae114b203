/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of the sampler that needs no rights: records, recordings, CPU lists, kernel versions, the registry. */
#include "support.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/bpf_load.h"
#include "sampler/cpus.h"
#include "sampler/probe.h"
#include "sampler/recording.h"
#include "sampler/sampler.h"

/* ---- CPU lists ---- */

static void cpu_lists(void **state)
{
	static const struct {
		const char *text;
		int want;
		unsigned int has, has_not;
	} cases[] = {
		{ "0\n", 1, 0, 1 },
		{ "0-3", 4, 3, 4 },
		{ "0,2-3,8191\n", 4, 8191, 1 },
		{ "1,1", 1, 1, 0 },
		{ "", -EBADMSG, 0, 0 },
		{ "\n", -EBADMSG, 0, 0 },
		{ "0,", -EBADMSG, 0, 0 },
		{ "-", -EBADMSG, 0, 0 },
		{ "3-1", -ERANGE, 0, 0 },
		{ "8192", -ERANGE, 0, 0 },
		{ "0-99999999999999999999", -ERANGE, 0, 0 },
		{ "0-1-2", -EBADMSG, 0, 0 },
		{ "0 1", -EBADMSG, 0, 0 },
		{ "a", -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cpus set = { 0 };
		struct cur in = guard_page(cases[i].text, strlen(cases[i].text));
		int r = cpus_parse(cur_rest(&in), &set);

		print_message("  %s\n", cases[i].text);
		assert_true(cases[i].want < 0 ? r < 0 : r == cases[i].want);
		assert_int_equal(cpus_has(&set, cases[i].has), cases[i].want > 0);
		assert_false(cpus_has(&set, cases[i].has_not) && cases[i].has_not != cases[i].has);
	}
}

/* ---- kernel versions ---- */

static void kernel_versions(void **state)
{
	static const struct {
		const char *release, *version, *signature;
		unsigned int major, minor, patch;
		int verdict;
	} cases[] = {
		{ "6.18.44-fc", "#1 SMP", "", 6, 18, 44, 0 },
		{ "6.1.0-44-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.164-1 (2026-01-01)", "", 6, 1, 164, 0 },
		{ "6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", "", 6, 1, 27, -EDEADLK },
		{ "5.15.0-100-generic", "#110-Ubuntu SMP", "Ubuntu 5.15.0-100.110-generic 5.15.143\n", 5, 15, 143, 0 },
		{ "5.10.0", "", "", 5, 10, 0, 0 },
		{ "5.9.16", "", "", 5, 9, 16, -ENOTSUP },
		{ "4.19.0-27-amd64", "#1 SMP Debian 4.19.316-1", "", 4, 19, 316, -ENOTSUP },
		{ "5.18.19", "", "", 5, 18, 19, 0 },
		{ "5.19.0", "", "", 5, 19, 0, -EDEADLK },
		{ "6.0.12", "", "", 6, 0, 12, -EDEADLK },
		{ "6.1.35", "", "", 6, 1, 35, -EDEADLK },
		{ "6.1.36", "", "", 6, 1, 36, 0 },
		{ "6.2.16", "", "", 6, 2, 16, -EDEADLK },
		{ "6.3.9", "", "", 6, 3, 9, -EDEADLK },
		{ "6.3.10", "", "", 6, 3, 10, 0 },
		{ "6.4-rc1", "", "", 6, 4, 0, 0 },
		{ "10.0.1", "", "", 10, 0, 1, 0 },
	};
	struct probe_kernel k = { 1, 2, 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].release);
		assert_int_equal(probe_kernel_parse(str_of(cases[i].release), str_of(cases[i].version),
						    str_of(cases[i].signature), &k),
				 0);
		assert_int_equal(k.major, cases[i].major);
		assert_int_equal(k.minor, cases[i].minor);
		assert_int_equal(k.patch, cases[i].patch);
		assert_int_equal(probe_kernel_verdict(&k), cases[i].verdict);
	}
	assert_int_equal(probe_kernel_parse(STR("six"), STR(""), STR(""), &k), -EBADMSG);
	assert_int_equal(probe_kernel_parse(STR("6"), STR("Debian x"), STR(" "), &k), -EBADMSG);
	assert_int_equal(k.major, 10); /* untouched */
}

static void facts_are_whole(void **state)
{
	struct probe_fact *facts = calloc(PROBE_FACT_MAX, sizeof(*facts));
	struct probe_config cfg = { .host_root = "", .program = "/usr/bin/hearth" };
	size_t count;

	(void)state;
	assert_non_null(facts);
	count = probe_run(&cfg, facts);
	assert_int_equal(count, 17);
	for (size_t i = 0; i < count; i++) {
		assert_true(facts[i].value[0]);
		assert_int_equal(facts[i].ok, !facts[i].remedy[0]);
		assert_ptr_equal(probe_find(facts, count, facts[i].name), &facts[i]);
	}
	assert_null(probe_find(facts, count, "no-such-fact"));
	free(facts);
}

/* ---- ring size ---- */

static void ring_sizes(void **state)
{
	static const struct {
		uint32_t frequency;
		size_t asked;
		unsigned int cpus;
		size_t want;
	} cases[] = {
		{ 1, 0, 1, KIB(256) },       { 11, 0, 1, KIB(256) },        { 99, 0, 2, MIB(2) },
		{ 1000, 0, 128, MIB(8) },    { 99, 5000, 2, 8192 },         { 99, 1, 2, 4096 },
		{ 99, MIB(16), 2, MIB(16) }, { 99, SIZE_MAX, 2, MIB(256) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sampler_config cfg = { .frequency_hz = cases[i].frequency, .ring_bytes = cases[i].asked };

		assert_int_equal(bpf_ring_bytes(&cfg, cases[i].cpus), cases[i].want);
	}
}

/* ---- records ---- */

union two_frames {
	struct abi_sample sample;
	uint8_t bytes[sizeof(struct abi_sample) + 2 * sizeof(struct abi_frame)];
};

static union two_frames good_sample(void)
{
	static const struct abi_frame frames[2] = {
		{ .kind = ABI_FRAME_KERNEL, .a = 1 },
		{ .kind = ABI_FRAME_USER, .a = 2, .flags = ABI_FRAME_RETURN },
	};
	union two_frames u = {
		.sample = {
			.header = { .type = ABI_RECORD_SAMPLE, .version = ABI_VERSION, .size = sizeof(u) },
			.pid = 10, .tid = 11, .frame_count = 2, .kernel_count = 1, .comm = "a", .thread_name = "b",
			.user_end = ABI_END_UNPROVEN_ROOT,
		},
	};

	memcpy(u.bytes + sizeof(u.sample), frames, sizeof(frames));
	return u;
}

static const struct abi_process good_process = {
	.header = { .type = ABI_RECORD_FORK, .version = ABI_VERSION, .size = sizeof(struct abi_process) },
	.pid = 10,
	.parent_pid = 9,
	.comm = "sh",
};

static int check(const void *bytes, size_t size)
{
	struct cur in = guard_page(bytes, size);

	return abi_record_check(in.pos, size);
}

#define SPOIL(name, change)                                                 \
	do {                                                                \
		print_message("  %s\n", name);                              \
		spoilt = good_sample();                                     \
		spoilt.change;                                              \
		assert_int_equal(check(&spoilt, sizeof(spoilt)), -EBADMSG); \
	} while (0)

static void samples_are_judged(void **state)
{
	union two_frames good = good_sample(), spoilt;

	(void)state;
	assert_int_equal(check(&good, sizeof(good)), sizeof(good));
	for (size_t size = 0; size < sizeof(good); size++)
		assert_int_equal(check(&good, size), -EBADMSG);
	SPOIL("type", sample.header.type = 77);
	SPOIL("version", sample.header.version = ABI_VERSION + 1);
	SPOIL("size beyond", sample.header.size += 8);
	SPOIL("size odd", sample.header.size -= 1);
	SPOIL("size short", sample.header.size -= 8);
	SPOIL("size zero", sample.header.size = 0);
	SPOIL("frames missing", sample.frame_count = 3);
	SPOIL("frames too many", sample.frame_count = 65535);
	SPOIL("frames too few", sample.frame_count = 1);
	SPOIL("kernel frames beyond", sample.kernel_count = 3);
	SPOIL("user frame called kernel's", sample.kernel_count = 2);
	SPOIL("kernel frame called user's", sample.kernel_count = 0);
	SPOIL("pid zero", sample.pid = 0);
	SPOIL("pid too large", sample.pid = 1U << 31);
	SPOIL("tid zero", sample.tid = 0);
	SPOIL("flags", sample.flags = 0x8000);
	SPOIL("end", sample.user_end = ABI_END_COUNT);
	SPOIL("trigger", sample.trigger = ABI_TRIGGER_COUNT);
	SPOIL("stack id of a tick", sample.stack_id = 1);
	SPOIL("request without key", sample.flags = ABI_SAMPLE_REQUEST);
	SPOIL("request of a switch", sample.flags = ABI_SAMPLE_REQUEST; spoilt.sample.stack_id = 1;
	      spoilt.sample.trigger = ABI_TRIGGER_SWITCH);
	SPOIL("switch without stack id", sample.trigger = ABI_TRIGGER_SWITCH);
	SPOIL("comm without end", sample.comm[0] = 'x'; memset(spoilt.sample.comm, 'x', ABI_COMM_SIZE));
	SPOIL("thread name without end", sample.comm[0] = 'x'; memset(spoilt.sample.thread_name, 'x', ABI_COMM_SIZE));
	SPOIL("frame kind", sample.frames[1].kind = 9);
	SPOIL("frame flags", sample.frames[1].flags = 0x80);
	SPOIL("frame runtime", sample.frames[1].runtime = 1);
	SPOIL("kernel frame extra", sample.frames[0].extra = 1);
	SPOIL("runtime frames missing", sample.runtime_count = 1);
	SPOIL("runtime end", sample.runtime_end = ABI_RUNTIME_END_COUNT);
	SPOIL("reserved", sample.reserved = 1);
	SPOIL("frame offset", sample.frames[1].b = 1);
}

#define SPOIL_REQUEST(name, change)                                         \
	do {                                                                \
		print_message("  %s\n", name);                              \
		spoilt = good;                                              \
		spoilt.change;                                              \
		assert_int_equal(check(&spoilt, sizeof(spoilt)), -EBADMSG); \
	} while (0)

static void requests_are_judged(void **state)
{
	const struct abi_request good = {
		.header = { .type = ABI_RECORD_REQUEST, .version = ABI_VERSION, .size = sizeof(good) },
		.pid = 10,
		.key = 5,
		.script = "/srv/a.php",
		.path = "/shop",
	};
	struct abi_request spoilt;
	union two_frames of_request = good_sample();

	(void)state;
	assert_int_equal(check(&good, sizeof(good)), sizeof(good));
	of_request.sample.flags = ABI_SAMPLE_REQUEST;
	of_request.sample.request_key = 5;
	assert_int_equal(check(&of_request, sizeof(of_request)), sizeof(of_request));
	SPOIL_REQUEST("size", header.size -= 8);
	SPOIL_REQUEST("pid zero", pid = 0);
	SPOIL_REQUEST("key zero", key = 0);
	SPOIL_REQUEST("script without end", script[0] = 'x'; memset(spoilt.script, 'x', sizeof(spoilt.script)));
	SPOIL_REQUEST("path without end", path[0] = 'x'; memset(spoilt.path, 'x', sizeof(spoilt.path)));
	SPOIL_REQUEST("more behind the end", path[20] = 'x');
	SPOIL_REQUEST("a query string", path[2] = '?');
}

static void frames_in_line_are_judged(void **state)
{
	static const struct {
		const char *name;
		struct abi_frame frame;
		size_t at;
		bool fits;
	} cases[] = {
		{ "as it is", { .kind = ABI_FRAME_RUNTIME, .runtime = 1, .extra = 7, .a = 1, .b = 2 }, 1, true },
		{ "all flags",
		  { .kind = ABI_FRAME_RUNTIME,
		    .runtime = ABI_RUNTIME_COUNT - 1,
		    .flags = ABI_FRAME_RETURN | ABI_FRAME_GUESSED | ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL },
		  1,
		  true },
		{ "among the kernel's", { .kind = ABI_FRAME_RUNTIME, .runtime = 1 }, 0, false },
		{ "of no runtime", { .kind = ABI_FRAME_RUNTIME }, 1, false },
		{ "of one that cannot be", { .kind = ABI_FRAME_RUNTIME, .runtime = ABI_RUNTIME_COUNT }, 1, false },
		{ "an entry", { .kind = ABI_FRAME_RUNTIME, .runtime = 1, .flags = ABI_FRAME_ENTRY }, 1, false },
		{ "a gap", { .kind = ABI_FRAME_RUNTIME, .runtime = 1, .flags = ABI_FRAME_GAP }, 1, false },
		{ "an activation", { .kind = ABI_FRAME_ACTIVATION, .runtime = 1 }, 1, false },
		{ "a native one that is compiled",
		  { .kind = ABI_FRAME_NATIVE, .flags = ABI_FRAME_COMPILED },
		  1,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		union two_frames u = good_sample();

		print_message("  %s\n", cases[i].name);
		memcpy(u.bytes + sizeof(u.sample) + cases[i].at * sizeof(struct abi_frame), &cases[i].frame,
		       sizeof(struct abi_frame));
		assert_int_equal(check(&u, sizeof(u)), cases[i].fits ? (int)sizeof(u) : -EBADMSG);
	}
}

/* The largest sample there can be. The caller frees it. */
static struct abi_sample *largest_sample(void)
{
	struct abi_sample *sample = calloc(1, ABI_SAMPLE_SIZE_MAX);
	struct abi_raw raw = { .regs = { 1, 2, 3 }, .pc = 4, .sp = 5, .stack_size = ABI_STACK_LONG_MAX, .is_leaf = 1 };
	uint8_t *tail = (uint8_t *)sample + sizeof(*sample) + ABI_FRAMES_MAX * sizeof(struct abi_frame);

	assert_non_null(sample);
	*sample = good_sample().sample;
	sample->header.size = (uint32_t)ABI_SAMPLE_SIZE_MAX;
	sample->frame_count = ABI_FRAMES_MAX;
	sample->kernel_count = 0;
	sample->flags = ABI_SAMPLE_RAW | ABI_SAMPLE_ASK;
	sample->user_end = ABI_END_NO_TABLE;
	for (size_t i = 0; i < ABI_FRAMES_MAX; i++)
		sample->frames[i] = (struct abi_frame){ .kind = ABI_FRAME_NATIVE, .a = i, .b = i };
	raw.vma.kind = ABI_VMA_FILE;
	memcpy(tail, &raw, sizeof(raw));
	memset(tail + sizeof(raw), 0xa5, ABI_STACK_LONG_MAX);
	return sample;
}

#define SPOIL_RAW(name, change)                                                 \
	do {                                                                    \
		print_message("  %s\n", name);                                  \
		memcpy(&raw, tail, sizeof(raw));                                \
		raw.change;                                                     \
		memcpy(tail, &raw, sizeof(raw));                                \
		assert_int_equal(check(sample, ABI_SAMPLE_SIZE_MAX), -EBADMSG); \
		memcpy(tail, &good, sizeof(good));                              \
	} while (0)

static void raw_samples_are_judged(void **state)
{
	struct abi_sample *sample = largest_sample();
	uint8_t *tail = (uint8_t *)&sample->frames[ABI_FRAMES_MAX];
	struct abi_raw good, raw;

	(void)state;
	memcpy(&good, tail, sizeof(good));
	assert_int_equal(check(sample, ABI_SAMPLE_SIZE_MAX), ABI_SAMPLE_SIZE_MAX);
	assert_int_equal(check(sample, ABI_SAMPLE_SIZE_MAX - 8), -EBADMSG);
	SPOIL_RAW("stack longer than the record", stack_size += 8);
	SPOIL_RAW("stack shorter than the record", stack_size -= 8);
	SPOIL_RAW("stack too long", stack_size = UINT32_MAX - 7);
	SPOIL_RAW("kind of mapping", vma.kind = ABI_VMA_FILE + 1);
	SPOIL_RAW("reserved", vma.reserved = 1);
	SPOIL_RAW("return", is_return = 2);
	SPOIL_RAW("leaf", is_leaf = 2);
	SPOIL_RAW("guessed", guessed = 2);
	SPOIL_RAW("signal", at_signal = 2);
	sample->flags = 0;
	assert_int_equal(check(sample, ABI_SAMPLE_SIZE_MAX), -EBADMSG);
	free(sample);
}

static void processes_are_judged(void **state)
{
	struct abi_process p = good_process;

	(void)state;
	assert_int_equal(check(&p, sizeof(p)), sizeof(p));
	p.pid = 0;
	assert_int_equal(check(&p, sizeof(p)), -EBADMSG);
	p = good_process;
	memset(p.comm, 'x', sizeof(p.comm));
	assert_int_equal(check(&p, sizeof(p)), -EBADMSG);
	p = good_process;
	p.header.size -= 8;
	assert_int_equal(check(&p, sizeof(p)), -EBADMSG);
}

/* ---- recordings ---- */

struct seen {
	int samples, processes, mappings;
	struct str path;
	char path_bytes[64];
};

static void see_sample(void *ctx, const struct abi_sample *sample)
{
	struct seen *seen = ctx;
	union two_frames good = good_sample();

	assert_memory_equal(sample, &good, sizeof(good));
	seen->samples++;
}

static void see_process(void *ctx, const struct abi_process *event)
{
	struct seen *seen = ctx;

	assert_memory_equal(event, &good_process, sizeof(good_process));
	seen->processes++;
}

static void see_mapping(void *ctx, const struct abi_mapping *map)
{
	struct seen *seen = ctx;

	assert_true(map->path_size < sizeof(seen->path_bytes));
	memcpy(seen->path_bytes, map->path, map->path_size);
	seen->path = str_n(seen->path_bytes, map->path_size);
	seen->mappings++;
}

static void temp_path(char out[32])
{
	int fd;

	memcpy(out, "/tmp/hearth-rec-XXXXXX", sizeof("/tmp/hearth-rec-XXXXXX"));
	fd = mkstemp(out);
	assert_true(fd >= 0);
	close(fd);
}

static int write_recording(const char *path, int samples)
{
	struct abi_mapping map = { .pid = 10, .start = 0x1000, .end = 0x2000 };
	union two_frames good = good_sample();
	struct recording *rec;
	int r = recording_create(path, &rec);

	if (r < 0)
		return r;
	r = recording_add(rec, &good_process.header);
	if (!r)
		r = recording_add_mapping(rec, &map, STR("/usr/bin/x y"));
	for (int i = 0; i < samples && !r; i++)
		r = recording_add(rec, &good.sample.header);
	if (r < 0) {
		ignore(recording_close(rec)); /* the first failure counts */
		return r;
	}
	return recording_close(rec);
}

static int replay(const char *path, struct seen *seen, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *recorded = sampler_find(STR("recorded"));
	struct sampler_config cfg = { .recording = path };
	struct sampler_events events = { see_sample, see_process, see_mapping, seen };
	struct buf why = BUF_INIT(KIB(4));
	struct sampler_state *s;
	int r = recorded->open(&cfg, &why, &s);

	buf_release(&why);
	if (r < 0)
		return r;
	assert_int_equal(recorded->poll(s, 0, &events), 0); /* not started */
	assert_int_equal(recorded->start(s), 0);
	do
		r = recorded->poll(s, 0, &events);
	while (r > 0);
	assert_int_equal(recorded->fd(s), -1);
	recorded->counters(s, counters);
	recorded->close(s);
	return r;
}

static void recordings_replay(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct seen seen = { 0 };
	struct stat st;
	char path[32];

	(void)state;
	temp_path(path);
	assert_int_equal(write_recording(path, 3000), 0); /* more than one buffer */
	assert_int_equal(replay(path, &seen, counters), -ENODATA);
	assert_int_equal(seen.samples, 3000);
	assert_int_equal(seen.processes, 1);
	assert_int_equal(seen.mappings, 1);
	assert_true(str_eq(seen.path, STR("/usr/bin/x y")));
	assert_int_equal(counters[ABI_COUNTER_SAMPLES], 3000);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);

	print_message("  cut in the last record\n");
	seen = (struct seen){ 0 };
	assert_int_equal(truncate(path, st.st_size - 5), 0);
	assert_int_equal(replay(path, &seen, counters), -ENODATA);
	assert_int_equal(seen.samples, 2999);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 1);

	print_message("  cut in the header\n");
	assert_int_equal(truncate(path, 10), 0);
	assert_int_equal(replay(path, &seen, counters), -EBADMSG);
	unlink(path);
	assert_int_equal(replay(path, &seen, counters), -ENOENT);
}

static void see_largest(void *ctx, const struct abi_sample *sample)
{
	struct seen *seen = ctx;
	struct abi_sample *largest = largest_sample();

	assert_int_equal(sample->header.size, ABI_SAMPLE_SIZE_MAX);
	assert_memory_equal(sample, largest, ABI_SAMPLE_SIZE_MAX);
	free(largest);
	seen->samples++;
}

static void raw_samples_replay(void **state)
{
	const struct sampler *recorded = sampler_find(STR("recorded"));
	struct abi_sample *largest = largest_sample();
	struct seen seen = { 0 };
	struct sampler_events events = { see_largest, see_process, see_mapping, &seen };
	struct buf why = BUF_INIT(KIB(4));
	struct sampler_state *s;
	struct recording *rec;
	char path[32];
	struct sampler_config cfg = { .recording = path };

	(void)state;
	temp_path(path);
	assert_int_equal(recording_create(path, &rec), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(recording_add(rec, &largest->header), 0);
	assert_int_equal(recording_close(rec), 0);
	assert_int_equal(recorded->open(&cfg, &why, &s), 0);
	assert_int_equal(recorded->start(s), 0);
	assert_int_equal(recorded->poll(s, 0, &events), 20);
	assert_int_equal(recorded->poll(s, 0, &events), -ENODATA);
	assert_int_equal(seen.samples, 20);
	recorded->close(s);
	buf_release(&why);
	free(largest);
	unlink(path);
}

static int record_and_replay(void *ctx)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct seen seen = { 0 };
	int r = write_recording(ctx, 2);

	if (r < 0)
		return r;
	r = replay(ctx, &seen, counters);
	return r == -ENODATA ? 0 : r;
}

static void recordings_out_of_memory(void **state)
{
	char path[32];

	(void)state;
	temp_path(path);
	for_each_failing_allocation(record_and_replay, path);
	unlink(path);
}

/* ---- the registry ---- */

static void registry(void **state)
{
	struct sampler_config cfg = { .frequency_hz = 99, .poll_interval_ms = 100, .recording = "/" };
	struct buf why = BUF_INIT(KIB(4));
	const struct sampler *chosen = NULL;

	(void)state;
	assert_string_equal(sampler_at(0)->name, "bpf");
	assert_ptr_equal(sampler_find(STR("perf")), sampler_at(1));
	assert_ptr_equal(sampler_find(STR("remote")), sampler_at(2));
	assert_ptr_equal(sampler_find(STR("recorded")), sampler_at(3));
	assert_null(sampler_find(STR("record")));
	assert_null(sampler_at(4));
	assert_int_equal(sampler_choose(&cfg, &why, &chosen), 0);
	assert_string_equal(chosen->name, "recorded");
	assert_true(str_eq(buf_str(&why), STR("recorded: taken"))); /* nothing else was tried */
	buf_clear(&why);
	cfg.recording = "/no/such/file";
	assert_int_equal(sampler_choose(&cfg, &why, &chosen), -ENOTSUP);
	assert_true(str_search(buf_str(&why), STR("/no/such/file")) > 0);
	buf_release(&why);
}

/* Seeds of an earlier form of the records would leave fuzz_record without anything to change. */
static void seeds_have_every_type(void **state)
{
	static uint8_t bytes[KIB(8)];
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	unsigned counts[ABI_RECORD_REQUEST + 1] = { 0 };
	const uint8_t *record;
	char path[1024];
	struct cur in;
	FILE *file;
	int r;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/corpus/record/all", root ? root : ".");
	file = fopen(path, "rbe");
	assert_non_null(file);
	in = cur_of(bytes, fread(bytes, 1, sizeof(bytes), file));
	fclose(file);
	assert_int_equal(recording_header(&in), 0);
	while ((r = recording_next(&in, &record)) > 0) {
		struct abi_header header;

		memcpy(&header, record, sizeof(header));
		assert_in_range(header.type, 1, ABI_RECORD_REQUEST);
		counts[header.type]++;
	}
	assert_int_equal(r, 0);
	for (size_t type = 1; type < ARRAY_SIZE(counts); type++)
		assert_int_not_equal(counts[type], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_have_every_type),
		cmocka_unit_test(cpu_lists),
		cmocka_unit_test(kernel_versions),
		cmocka_unit_test(facts_are_whole),
		cmocka_unit_test(ring_sizes),
		cmocka_unit_test(samples_are_judged),
		cmocka_unit_test(requests_are_judged),
		cmocka_unit_test(frames_in_line_are_judged),
		cmocka_unit_test(processes_are_judged),
		cmocka_unit_test(recordings_replay),
		cmocka_unit_test(recordings_out_of_memory),
		cmocka_unit_test(raw_samples_are_judged),
		cmocka_unit_test(raw_samples_replay),
		cmocka_unit_test(registry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
