/* SPDX-License-Identifier: Apache-2.0 */
/* python_record TARGET LOAD FOLDER: walks the main thread of every interpreter that python_programs() finds, stopped in
 * the middle of a load, and writes what the walk read of its memory to FOLDER/VERSION-LOAD: seeds for fuzz_walk_python.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "python_process.h"
#include "walk/walk_python.h"

#define RECORDING_MAX KIB(64)

struct recorder {
	pid_t pid;
	struct buf out;
};

static void put(struct buf *out, const void *bytes, size_t size)
{
	static const uint8_t zeros[8];

	buf_add(out, bytes, size);
	buf_add(out, zeros, (8 - size % 8) % 8);
}

static int recorded_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorder *r = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	uint64_t head[2] = { at, size };

	if (process_vm_readv(r->pid, &to, 1, &from, 1, 0) != (ssize_t)size)
		return -EFAULT;
	put(&r->out, head, sizeof(head));
	put(&r->out, dst, size);
	return 0;
}

static int record(struct recorder *r, const struct python_process *p, struct walk *w)
{
	struct walk_world world = { .read = recorded_read, .self = r };
	uint64_t head[3] = { p->self, (uint64_t)p->pid, 2 };

	put(&r->out, &p->info, sizeof(p->info));
	put(&r->out, head, sizeof(head));
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

static int write_file(const char *path, const struct buf *bytes)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : io_write_all(fd, bytes->ptr, bytes->len);
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
		result = write_file(path, &out);
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
