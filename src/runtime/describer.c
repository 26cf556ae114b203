/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/describer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/u64map.h"
#include "proc/proc_read.h"
#include "proc/program_hash.h"
#include "runtime/go_info.h"
#include "runtime/launched.h"
#include "runtime/process_info.h"

#define PROGRAMS_MAX 65536
#define PLAIN_MAX 4096
#define TEXT_MAX KIB(16)
#define END_PATIENCE_NS (2 * NSEC_PER_SEC)

struct known {
	struct program key;
	char *exe;                    /* until it was looked at */
	char *application, *metadata; /* NULL: nothing is told */
	bool is_done;
};

struct describer {
	struct describer_config cfg; /* never changed after open */
	char *host_root;
	pthread_t thread;
	struct buf scratch;  /* the thread's */
	struct u64map plain; /* the thread's: hashes of files that are no Go programs */

	pthread_mutex_t lock; /* guards what follows; never held while files are read */
	pthread_cond_t wake;
	bool ends;
	struct known **items;
	size_t count, cap;
	size_t next;         /* items before it were looked at */
	struct u64map index; /* hash of the program -> items */
	uint64_t seed;
};

static void known_free(struct known *k)
{
	free(k->exe);
	free(k->application);
	free(k->metadata);
	free(k);
}

static struct known *find(const struct describer *d, const struct program *p, uint32_t *index)
{
	return u64map_get(&d->index, program_hash(p, d->seed), index) < 0 ? NULL : d->items[*index];
}

/* ---- the thread's ---- */

static int read_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct program *p = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv((pid_t)p->pid, &to, 1, &from, 1, 0);

	return n < 0 ? -errno : n == (ssize_t)size ? 0 : -EFAULT;
}

/* Return: a descriptor of /proc/PID, when it still runs that program. */
static int open_program(struct describer *d, const struct program *p, const char *exe)
{
	scoped(closep) int dir = proc_dir_open(d->host_root, p->pid);
	scoped(freep) char *now = NULL;
	struct proc_facts facts;
	int r;

	if (dir < 0 || proc_facts_read(dir, p->start_ns, &d->scratch, &facts) < 0)
		return -ESRCH;
	now = proc_link_read(dir, "exe");
	if (!now || strcmp(now, exe) != 0)
		return -ESRCH;
	r = dir;
	dir = -1;
	return r;
}

static char *taken(struct buf *text)
{
	size_t size;

	return text->error || !text->len || !buf_cstr(text)[0] ? NULL : buf_take(text, &size);
}

static char *application_of(struct describer *d, int dir, const char *exe)
{
	scoped(buf_release) struct buf argv = BUF_INIT(LAUNCHED_ARGV_MAX), id = BUF_INIT(TEXT_MAX);
	scoped(closep) int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped(freep) char *cwd = process_info_link(dir, "cwd");
	const struct target_files files = target_files_below(&root);
	struct launched l = { .exe = str_of(exe),
			      .cwd = str_of(cwd),
			      .files = &files,
			      .environment = process_info_environment,
			      .proc_dir = dir,
			      .wants_argument = d->cfg.wants_argument,
			      .ctx = d->cfg.ctx,
			      .with_spark = d->cfg.with_spark };

	if (process_info_argv(dir, LAUNCHED_ARGV_MAX, &argv) < 0)
		return NULL;
	l.argv = buf_str(&argv);
	return launched_app_id(&l, &id) == 0 ? taken(&id) : NULL;
}

/* A build starts the same few programs again and again. Return: 0 when it cannot be told. */
static uint64_t file_hash(const struct describer *d, int dir)
{
	struct stat st;
	uint64_t words[6];

	if (fstatat(dir, "exe", &st, 0) < 0)
		return 0;
	words[0] = st.st_dev;
	words[1] = st.st_ino;
	words[2] = (uint64_t)st.st_size;
	words[3] = (uint64_t)st.st_mtim.tv_sec;
	words[4] = (uint64_t)st.st_ctim.tv_sec;
	words[5] = (uint64_t)st.st_ctim.tv_nsec;
	return XXH3_64bits_withSeed(words, sizeof(words), d->seed);
}

static void remember_plain(struct describer *d, uint64_t hash)
{
	if (u64map_put(&d->plain, hash, 1) == 0)
		return;
	u64map_clear(&d->plain);
	ignore(u64map_put(&d->plain, hash, 1)); /* out of memory: it is looked at again */
}

static char *metadata_of(struct describer *d, int dir, struct program *p)
{
	scoped(buf_release) struct buf json = BUF_INIT(TEXT_MAX);
	uint64_t hash = file_hash(d, dir);
	uint32_t is_plain;
	int r;
	const struct runtime_target target = { .pid = p->pid,
					       .exec_id = p->exec_id,
					       .start_ns = p->start_ns,
					       .read = read_memory,
					       .self = p,
					       .host_root = d->host_root,
					       .proc_dir = dir };

	if (hash && u64map_get(&d->plain, hash, &is_plain) == 0)
		return NULL;
	r = go_info_metadata(&target, &json);
	if (hash && (r == -ENOENT || r == -EBADMSG) && file_hash(d, dir) == hash) /* no exec in between */
		remember_plain(d, hash);
	return r == 0 ? taken(&json) : NULL;
}

/* With the lock held; releases it while reading. */
static void look_at(struct describer *d, struct known *k)
{
	struct program key = k->key;
	scoped(freep) char *exe = k->exe;
	char *application = NULL, *metadata = NULL;
	uint32_t index;
	int dir;

	k->exe = NULL;
	pthread_mutex_unlock(&d->lock);
	dir = exe ? open_program(d, &key, exe) : -ESRCH;
	if (dir >= 0 && launched_is_known(str_of(exe)))
		application = application_of(d, dir, exe);
	else if (dir >= 0)
		metadata = metadata_of(d, dir, &key);
	closep(&dir);
	pthread_mutex_lock(&d->lock);
	k = find(d, &key, &index); /* it may be forgotten by now */
	if (k && !k->is_done) {
		k->application = application;
		k->metadata = metadata;
		k->is_done = true;
		return;
	}
	free(application);
	free(metadata);
}

static void *run(void *ctx)
{
	struct describer *d = ctx;

	pthread_mutex_lock(&d->lock);
	while (!d->ends) {
		if (d->next >= d->count)
			pthread_cond_wait(&d->wake, &d->lock);
		else if (d->items[d->next]->is_done || !d->items[d->next]->exe)
			d->next++;
		else
			look_at(d, d->items[d->next]);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* ---- the reader's ---- */

static void release(struct describer *d)
{
	for (size_t i = 0; i < d->count; i++)
		known_free(d->items[i]);
	free(d->items);
	u64map_release(&d->index);
	u64map_release(&d->plain);
	buf_release(&d->scratch);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->wake);
	free(d->host_root);
	free(d);
}

int describer_open(const struct describer_config *cfg, struct describer **out)
{
	struct describer *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	d->scratch = (struct buf)BUF_INIT(KIB(64));
	d->seed = random_u64();
	u64map_init(&d->index, PROGRAMS_MAX);
	u64map_init(&d->plain, PLAIN_MAX);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	d->host_root = str_dup(str_of(cfg->host_root ? cfg->host_root : ""));
	r = d->host_root ? -pthread_create(&d->thread, NULL, run, d) : -ENOMEM;
	if (r < 0) {
		release(d);
		return r;
	}
	*out = d;
	return 0;
}

void describer_close(struct describer *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ends = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	if (thread_join(d->thread, END_PATIENCE_NS) == 0) /* else it hangs in a page of a process, or in a file */
		release(d);
}

static int add(struct describer *d, const struct program *p, const char *exe)
{
	struct known *k;
	int r = d->count >= PROGRAMS_MAX ? -ENOSPC : array_grow(&d->items, &d->cap, d->count, PROGRAMS_MAX);

	if (r < 0)
		return r;
	k = calloc(1, sizeof(*k));
	if (k)
		k->exe = str_dup(str_of(exe));
	if (!k || !k->exe || u64map_put(&d->index, program_hash(p, d->seed), (uint32_t)d->count) < 0) {
		if (k)
			known_free(k);
		return -ENOMEM;
	}
	k->key = *p;
	d->items[d->count++] = k;
	pthread_cond_signal(&d->wake);
	return -EAGAIN;
}

int describer_get(struct describer *d, const struct program *p, const char *exe, struct str *application,
		  struct str *metadata_json)
{
	const struct known *k;
	uint32_t index;
	int r = 0;

	pthread_mutex_lock(&d->lock);
	k = find(d, p, &index);
	if (!k)
		r = add(d, p, exe);
	else if (!k->is_done)
		r = -EAGAIN;
	*application = r == 0 ? str_of(k->application) : STR("");
	*metadata_json = r == 0 ? str_of(k->metadata) : STR("");
	pthread_mutex_unlock(&d->lock);
	return r;
}

void describer_forget(struct describer *d, const struct program *p)
{
	struct known *k;
	uint32_t index;

	pthread_mutex_lock(&d->lock);
	k = find(d, p, &index);
	if (k) {
		ignore(u64map_remove(&d->index, program_hash(p, d->seed)));
		d->count--;
		if (index != d->count) { /* the last one takes its place, and may not have been looked at */
			d->items[index] = d->items[d->count];
			must(u64map_put(&d->index, program_hash(&d->items[index]->key, d->seed), index) == 0);
		}
		d->next = MIN(d->next, (size_t)index);
		known_free(k);
	}
	pthread_mutex_unlock(&d->lock);
}
