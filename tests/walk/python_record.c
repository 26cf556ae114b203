/* SPDX-License-Identifier: Apache-2.0 */
/* python_record TARGET LOAD FOLDER: walks the main thread of every interpreter that python_programs() finds, stopped in
 * the middle of a load, and writes what the walk read of its memory to FOLDER/VERSION-LOAD: seeds for fuzz_walk_python.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "python_process.h"
#include "recorder.h"
#include "walk/walk_python.h"

#define RECORDING_MAX KIB(64)

struct recorder {
	pid_t pid;
	struct buf out;
};

static int recorded_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorder *r = self;
	int result = recorder_read(r->pid, dst, size, at);

	if (result == 0)
		recorder_put_piece(&r->out, at, dst, size);
	return result;
}

static int record(struct recorder *r, const struct python_process *p, struct walk *w)
{
	struct walk_world world = { .read = recorded_read, .self = r };
	uint64_t head[3] = { p->self, (uint64_t)p->pid, 2 };

	recorder_put(&r->out, &p->info, sizeof(p->info));
	recorder_put(&r->out, head, sizeof(head));
	w->world = &world;
	w->tp = p->self;
	w->tid = 0;
	w->count = 2;
	walk_python_start(w, &p->info, 0);
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++)
		if (walk_python_step(w) != WALK_MORE)
			break;
	return r->out.error;
}

static int record_program(const struct python_program *program, char **argv)
{
	static struct walk walk;
	scoped(buf_release) struct buf out = BUF_INIT(RECORDING_MAX);
	struct recorder r = { .out = out };
	struct python_process p;
	char path[512];
	int result = python_start(program, argv[1], argv[2], 10, &p);

	if (result < 0)
		return result;
	usleep(300000);
	kill(p.pid, SIGSTOP);
	waitpid(p.pid, NULL, WUNTRACED);
	r.pid = p.pid;
	result = record(&r, &p, &walk);
	out = r.out;
	snprintf(path, sizeof(path), "%s/%s-%s", argv[3], program->version, argv[2]);
	if (result == 0)
		result = recorder_write(path, &out);
	printf("%s: end %d, %u frames, %zu bytes: %d\n", path, walk.runtime_end, walk.runtime_count, out.len, result);
	python_end(&p);
	return result;
}

int main(int argc, char **argv)
{
	static struct python_program programs[PYTHONS_MAX];
	size_t count = argc == 4 ? python_programs(programs) : 0;
	int failed = !count;

	for (size_t i = 0; i < count; i++)
		failed |= record_program(&programs[i], argv) < 0;
	return failed;
}
