/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"

#define MAGIC "hearth-spool 1"
#define SUFFIX ".profile"
#define NUMBER_DIGITS 20 /* so that names sort like numbers */
#define FILE_MAX GIB(1)
#define FILES_MAX ((size_t)1 << 20)

struct spool {
	int dir; /* its flock is the claim on it */
};

static uint64_t hash_of(const struct upload *u)
{
	XXH64_hash_t query = XXH3_64bits(u->query.ptr ? u->query.ptr : "", u->query.len);
	XXH64_hash_t key = XXH3_64bits_withSeed(u->key.ptr ? u->key.ptr : "", u->key.len, query);

	return XXH3_64bits_withSeed(u->body.ptr ? u->body.ptr : "", u->body.len, key);
}

void spool_encode(const struct upload *u, struct buf *out)
{
	buf_addf(out, MAGIC "\n" STR_FMT "\n" STR_FMT "\n%zu %016" PRIx64 "\n", STR_ARG(u->query), STR_ARG(u->key),
		 u->body.len, hash_of(u));
	buf_adds(out, u->body);
}

size_t spool_size(const struct upload *u)
{
	return sizeof(MAGIC) + u->query.len + u->key.len + u->body.len + 40;
}

static bool is_line_text(struct str s, size_t max)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] <= ' ' || (unsigned char)s.ptr[i] >= 0x7f)
			return false;
	return s.len <= max;
}

int spool_decode(struct str bytes, struct upload *out)
{
	struct upload u = { 0 };
	struct str magic, numbers, size_text;
	uint64_t size, hash;

	if (!str_next(&bytes, '\n', &magic) || !str_eq(magic, STR(MAGIC)))
		return -EBADMSG;
	if (!str_next(&bytes, '\n', &u.query) || !is_line_text(u.query, UPLOAD_QUERY_MAX))
		return -EBADMSG;
	if (!str_next(&bytes, '\n', &u.key) || !is_line_text(u.key, UPLOAD_KEY_MAX))
		return -EBADMSG;
	if (!str_next(&bytes, '\n', &numbers) || !str_next(&numbers, ' ', &size_text))
		return -EBADMSG;
	if (str_to_u64(size_text, 0, FILE_MAX, &size) < 0 || str_to_hex64(numbers, &hash) < 0)
		return -EBADMSG;
	u.body = bytes;
	if (u.body.len != size || hash_of(&u) != hash)
		return -EBADMSG;
	*out = u;
	return 0;
}

/* Makes every missing folder of @path. */
static int make_folders(const char *path)
{
	scoped(freep) char *copy = str_dup(str_of(path));

	if (!copy)
		return -ENOMEM;
	for (char *at = copy + 1; copy[0] && *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int name_number(struct str name, uint64_t *out)
{
	if (name.len != NUMBER_DIGITS + strlen(SUFFIX) || !str_ends(name, STR(SUFFIX)))
		return -EBADMSG;
	return str_to_u64(str_first(name, NUMBER_DIGITS), 0, UINT64_MAX, out);
}

struct found {
	uint64_t number;
	size_t size;
};

static int by_number(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Files that were being written when a run was killed are removed. */
static int list_files(struct spool *s, struct found **found, size_t *count)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t cap = 0;

	if (!dir) {
		int r = -errno;

		closep(&fd);
		return r;
	}
	for (const struct dirent *e; (e = readdir(dir));) {
		struct found file;
		struct stat st;
		int r;

		if (str_ends(str_of(e->d_name), STR(SUFFIX ".tmp")))
			ignore(unlinkat(s->dir, e->d_name, 0)); /* it stays in the way of nobody */
		if (name_number(str_of(e->d_name), &file.number) < 0)
			continue;
		if (fstatat(s->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		file.size = (size_t)st.st_size;
		r = array_grow(found, &cap, *count, FILES_MAX);
		if (r < 0)
			return r;
		(*found)[(*count)++] = file;
	}
	return 0;
}

static int tell_files(struct spool *s, spool_found_fn *tell, void *ctx)
{
	scoped(freep) struct found *found = NULL;
	size_t count = 0;
	int r = list_files(s, &found, &count);

	if (r < 0)
		return r;
	if (count)
		qsort(found, count, sizeof(*found), by_number);
	for (size_t i = 0; i < count && r == 0; i++)
		r = tell(ctx, found[i].number, found[i].size);
	return r;
}

static void spool_freep(struct spool **s)
{
	spool_close(*s);
}

int spool_open(const char *path, spool_found_fn *found, void *ctx, struct buf *why, struct spool **out)
{
	scoped(spool_freep) struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->dir = -1;
	r = make_folders(path);
	if (r == 0)
		s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && s->dir < 0)
		r = -errno;
	if (r == 0 && flock(s->dir, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r == 0)
		r = tell_files(s, found, ctx);
	if (r < 0) {
		buf_addf(why, "%s: %s", path, r == -EWOULDBLOCK ? "in use by another process" : strerror(-r));
		return r;
	}
	*out = s;
	s = NULL;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	closep(&s->dir);
	free(s);
}

struct file_name {
	char text[NUMBER_DIGITS + sizeof(SUFFIX ".tmp")];
};

static struct file_name name_of(uint64_t number, const char *suffix)
{
	struct file_name name;

	(void)snprintf(name.text, sizeof(name.text), "%020" PRIu64 "%s", number, suffix);
	return name;
}

static int write_temporary(struct spool *s, const char *name, const struct buf *bytes)
{
	scoped(closep) int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, bytes->ptr, bytes->len);
	return r == 0 && fdatasync(fd) < 0 ? -errno : r;
}

int spool_write(struct spool *s, uint64_t number, const struct upload *u)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(FILE_MAX);
	struct file_name name = name_of(number, SUFFIX), temporary = name_of(number, SUFFIX ".tmp");
	int r;

	spool_encode(u, &bytes);
	if (bytes.error)
		return bytes.error;
	r = write_temporary(s, temporary.text, &bytes);
	if (r == 0 && renameat(s->dir, temporary.text, s->dir, name.text) < 0)
		r = -errno;
	if (r < 0)
		ignore(unlinkat(s->dir, temporary.text, 0)); /* removed at the next start otherwise */
	else if (fsync(s->dir) < 0)
		r = -errno;
	if (r < 0)
		ignore(unlinkat(s->dir, name.text,
				0)); /* not kept here: a caller that keeps it elsewhere would send it twice */
	return r;
}

int spool_read(struct spool *s, uint64_t number, struct buf *bytes, struct upload *out)
{
	struct file_name name = name_of(number, SUFFIX);
	scoped(closep) int fd = openat(s->dir, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (fd < 0)
		return -errno;
	r = io_read_fd(fd, bytes);
	return r < 0 ? r : spool_decode(buf_str(bytes), out);
}

int spool_remove(struct spool *s, uint64_t number)
{
	struct file_name name = name_of(number, SUFFIX);

	return unlinkat(s->dir, name.text, 0) < 0 ? -errno : 0;
}
