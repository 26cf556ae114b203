/* SPDX-License-Identifier: Apache-2.0 */
/* A whole session over a recording: placing, execs, ends of stacks, windows, counters. */
#include "support.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/session.h"
#include "sampler/recording.h"

#define PID 4242
#define START_NS 1000

static int known_function_for_the_test(void)
{
	return 7;
}

struct self_text {
	uint64_t start, end, offset, inode;
	uint32_t device_major, device_minor;
	char path[256];
};

static int find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct self_text *out = ctx;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;
		uint64_t at = (uint64_t)(uintptr_t)known_function_for_the_test;

		if (p->p_type != PT_LOAD || at < start || at >= start + p->p_memsz)
			continue;
		out->start = start & ~UINT64_C(4095);
		out->end = (start + p->p_memsz + 4095) & ~UINT64_C(4095);
		out->offset = p->p_offset & ~UINT64_C(4095);
		return 1;
	}
	return 0;
}

static struct self_text self_text(void)
{
	struct self_text out = { 0 };
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", out.path, sizeof(out.path) - 1);

	assert_true(n > 0);
	assert_int_equal(stat(out.path, &st), 0);
	out.inode = st.st_ino;
	out.device_major = major(st.st_dev);
	out.device_minor = minor(st.st_dev);
	assert_int_equal(dl_iterate_phdr(find_text, &out), 1);
	return out;
}

static void add_mapping(struct recording *r, uint64_t time_ns, const struct self_text *text)
{
	const struct abi_mapping map = {
		.header = { .type = ABI_RECORD_MAPPING, .version = ABI_VERSION, .time_ns = time_ns },
		.process_start_ns = START_NS, .start = text->start, .end = text->end, .file_offset = text->offset,
		.inode = text->inode, .device_major = text->device_major, .device_minor = text->device_minor, .pid = PID,
	};

	assert_int_equal(recording_add_mapping(r, &map, str_of(text->path)), 0);
}

static void add_event(struct recording *r, uint64_t time_ns, uint16_t type)
{
	const struct abi_process event = {
		.header = { .type = type, .version = ABI_VERSION, .size = sizeof(event), .time_ns = time_ns },
		.process_start_ns = START_NS, .pid = PID, .comm = "testee",
	};

	assert_int_equal(recording_add(r, &event.header), 0);
}

union one_frame_sample {
	struct abi_sample sample;
	uint8_t room[sizeof(struct abi_sample) + sizeof(struct abi_frame)];
};

static void add_sample(struct recording *r, uint64_t time_ns, uint64_t address, const char *comm)
{
	union one_frame_sample record = {
		.sample = { .header = { .type = ABI_RECORD_SAMPLE, .version = ABI_VERSION, .size = sizeof(record),
					.time_ns = time_ns },
			    .process_start_ns = START_NS, .pid = PID, .tid = PID, .frame_count = 1,
			    .user_end = ABI_END_NO_FRAME_POINTER, .thread_name = "worker;1" },
	};

	record.sample.frames[0] = (struct abi_frame){ .kind = ABI_FRAME_USER, .a = address };
	(void)snprintf(record.sample.comm, sizeof(record.sample.comm), "%s", comm);
	assert_int_equal(recording_add(r, &record.sample.header), 0);
}

struct seen {
	size_t windows, known, unknown, cut;
	uint64_t samples, complete, unnamed;
};

static void on_window(void *ctx, const struct window *w)
{
	struct seen *seen = ctx;
	const struct model *m = w->model;

	seen->windows++;
	seen->samples += window_counter(w, STR("samples"));
	seen->complete += window_counter(w, STR("complete"));
	seen->unnamed += window_counter(w, STR("unnamed_frames"));
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		scoped(buf_release) struct buf name = BUF_INIT(KIB(4));
		size_t count = (size_t)model_values(m, s)[0];

		model_frame_name(m, m->stacks[s->stack].location, 0, &name);
		if (str_eq(buf_str(&name), STR("known_function_for_the_test")))
			seen->known += count;
		else
			seen->unknown += count;
		if (str_eq(model_string(m, s->end), STR("cut:no-frame-pointer")))
			seen->cut += count;
		assert_int_equal(m->processes[s->process].pid, PID);
		assert_true(str_eq(model_string(m, m->threads[s->thread].name), STR("worker;1")));
		assert_int_equal(model_values(m, s)[1], model_values(m, s)[0] * (int64_t)(NSEC_PER_SEC / 99));
	}
}

static void replay(const char *path, struct seen *seen)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	const struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
					    .sampling = { .frequency_hz = 99, .recording = path, .host_root = "" },
					    .clock = &clock_system, .host_root = "", .on_window = on_window, .ctx = seen };
	struct session *s = NULL;
	int r;

	*seen = (struct seen){ 0 };
	assert_int_equal(session_open(&cfg, &why, &s), 0);
	assert_int_equal(session_start(s), 0);
	do
		r = session_step(s, 10);
	while (r >= 0);
	assert_int_equal(r, -ENODATA);
	assert_int_equal(session_stop(s), 0);
	assert_int_equal(session_stop(s), 0); /* a second stop does nothing */
	session_close(s);
}

/* The same address before and after an exec: the name of the old program must not be given to the new one. */
static void an_exec_ends_the_old_names(void **state)
{
	char path[] = "/tmp/hearth-session-XXXXXX";
	const struct self_text text = self_text();
	uint64_t address = (uint64_t)(uintptr_t)known_function_for_the_test;
	struct recording *r = NULL;
	struct seen seen;

	(void)state;
	assert_int_equal(known_function_for_the_test(), 7);
	close(mkstemp(path));
	assert_int_equal(recording_create(path, &r), 0);
	add_mapping(r, 10, &text);
	for (uint64_t i = 0; i < 5; i++)
		add_sample(r, 20 + i, address, "before");
	add_event(r, 30, ABI_RECORD_EXEC);
	for (uint64_t i = 0; i < 3; i++)
		add_sample(r, 40 + i, address, "after");
	add_event(r, 50, ABI_RECORD_EXIT);
	assert_int_equal(recording_close(r), 0);
	replay(path, &seen);
	unlink(path);
	assert_int_equal(seen.windows, 1);
	assert_int_equal(seen.samples, 8);
	assert_int_equal(seen.known, 5);
	assert_int_equal(seen.unknown, 3);
	assert_int_equal(seen.unnamed, 3);
	assert_int_equal(seen.cut, 8);
	assert_int_equal(seen.complete, 0);
}

static void a_bad_recording_is_refused(void **state)
{
	static const char *const contents[] = { "", "hearth", "something else entirely" };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		char path[] = "/tmp/hearth-session-XXXXXX";
		int fd = mkstemp(path);
		const struct session_config cfg = { .sampler = sampler_find(STR("recorded")),
						    .sampling = { .frequency_hz = 99, .recording = path, .host_root = "" },
						    .clock = &clock_system, .host_root = "" };
		struct session *s = NULL;

		assert_true(write(fd, contents[i], strlen(contents[i])) >= 0);
		close(fd);
		buf_clear(&why);
		assert_true(session_open(&cfg, &why, &s) < 0);
		assert_true(why.len > 0);
		assert_null(s);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exec_ends_the_old_names),
		cmocka_unit_test(a_bad_recording_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
