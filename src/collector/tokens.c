/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/tokens.h"

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "codec/json.h"

#define FILE_MAX MIB(1)
#define LOCK_TRIES 100
#define LOCK_PAUSE_US 10000
#define HEADER "# hearth tokens: hash scopes created name. Made by hearth token; secrets are not kept.\n"

static const struct {
	const char *name;
	enum token_scope scope;
} scope_names[] = { { "ingest", TOKEN_INGEST }, { "read", TOKEN_READ }, { "admin", TOKEN_ADMIN } };

void token_list_release(struct token_list *l)
{
	free(l->items);
	*l = (struct token_list){ 0 };
}

int token_scopes_parse(struct str text, unsigned int *out)
{
	struct str rest = text, piece;
	unsigned int scopes = 0;

	while (str_next(&rest, ',', &piece)) {
		unsigned int before = scopes;

		for (size_t i = 0; i < ARRAY_SIZE(scope_names); i++)
			if (str_eq(piece, str_of(scope_names[i].name)))
				scopes |= scope_names[i].scope;
		if (scopes == before)
			return -EBADMSG;
	}
	*out = scopes;
	return 0;
}

void token_scopes_write(unsigned int scopes, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(scope_names); i++) {
		if (!(scopes & scope_names[i].scope))
			continue;
		buf_addf(out, "%s%s", any ? "," : "", scope_names[i].name);
		any = true;
	}
}

static void add_hex(struct buf *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_addf(out, "%02x", bytes[i]);
}

static int hash_parse(struct str text, uint8_t out[TOKEN_HASH_SIZE])
{
	if (text.len != 2 * TOKEN_HASH_SIZE)
		return -EBADMSG;
	for (size_t i = 0; i < TOKEN_HASH_SIZE; i++) {
		uint64_t byte;

		if (str_to_hex64(str_n(text.ptr + 2 * i, 2), &byte) < 0)
			return -EBADMSG;
		out[i] = (uint8_t)byte;
	}
	return 0;
}

static void set_id(struct token *t)
{
	for (size_t i = 0; i < 8; i++)
		(void)snprintf(t->id + 2 * i, 3, "%02x", t->hash[i]);
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static int line_parse(struct str line, struct token *out)
{
	struct str rest = line, hash, scopes, created;
	struct token t = { 0 };

	if (!str_next(&rest, ' ', &hash) || !str_next(&rest, ' ', &scopes) || !str_next(&rest, ' ', &created))
		return -EBADMSG;
	if (hash_parse(hash, t.hash) < 0 || token_scopes_parse(scopes, &t.scopes) < 0 ||
	    str_to_u64(created, 0, UINT64_MAX, &t.created_s) < 0 || rest.len > TOKEN_NAME_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < rest.len; i++) {
		if (is_control(rest.ptr[i]))
			return -EBADMSG;
		t.name[i] = rest.ptr[i];
	}
	set_id(&t);
	*out = t;
	return 0;
}

int token_list_parse(struct str text, struct token_list *out, unsigned int *line_number)
{
	scoped(token_list_release) struct token_list list = { 0 };
	struct str rest = text, line;
	int r = 0;

	*line_number = 0;
	while (r == 0 && str_next(&rest, '\n', &line)) {
		++*line_number;
		line = str_trim(line);
		if (!line.len || line.ptr[0] == '#')
			continue;
		r = array_grow(&list.items, &list.cap, list.count, TOKENS_MAX);
		r = r ? r : line_parse(line, &list.items[list.count]);
		list.count += r == 0;
	}
	if (r < 0)
		return r;
	*out = list;
	list = (struct token_list){ 0 }; /* moved out */
	return 0;
}

void token_list_write(const struct token_list *l, struct buf *out)
{
	buf_adds(out, STR(HEADER));
	for (size_t i = 0; i < l->count; i++) {
		add_hex(out, l->items[i].hash, TOKEN_HASH_SIZE);
		buf_addc(out, ' ');
		token_scopes_write(l->items[i].scopes, out);
		buf_addc(out, ' ');
		buf_addu64(out, l->items[i].created_s);
		buf_addf(out, " %s\n", l->items[i].name);
	}
}

static int parse_scopes(struct str list, unsigned int *out)
{
	struct str key, value;

	if (!list.len || list.ptr[0] != '[')
		return -EBADMSG;
	while (json_member(&list, &key, &value) == 1) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
		unsigned int scope;

		if (json_text(value, &text) < 0 || text.error || token_scopes_parse(buf_str(&text), &scope) < 0)
			return -EBADMSG;
		*out |= scope;
	}
	return *out ? 0 : -EBADMSG;
}

int token_request_parse(struct str json, struct buf *name, unsigned int *scopes)
{
	struct str rest = json, object, key, value;
	unsigned int found = 0;
	int r = 0;

	if (json_value(&rest, &object) < 0 || !object.len || object.ptr[0] != '{')
		return -EBADMSG;
	while (r == 0 && json_member(&object, &key, &value) == 1) {
		if (str_eq(key, STR("\"name\""))) {
			buf_clear(name);
			r = json_text(value, name);
		} else if (str_eq(key, STR("\"scopes\""))) {
			r = parse_scopes(value, &found);
		}
	}
	if (r < 0 || name->error || !found)
		return -EBADMSG;
	*scopes = found;
	return 0;
}

static int hash_of(struct str secret, uint8_t out[TOKEN_HASH_SIZE])
{
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, secret.ptr ? secret.ptr : "", secret.len, out) < 0 ? -EIO : 0;
}

int token_make(struct str name, unsigned int scopes, uint64_t now_s, struct token *out, struct buf *secret)
{
	struct token t = { .scopes = scopes, .created_s = now_s };
	uint8_t random[32];
	size_t at = secret->len;
	int r;

	if (name.len > TOKEN_NAME_MAX)
		return -E2BIG;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	buf_adds(secret, STR("hearth_"));
	add_hex(secret, random, sizeof(random));
	gnutls_memset(random, 0, sizeof(random));
	if (secret->error)
		return secret->error;
	r = hash_of(str_skip(buf_str(secret), at), t.hash);
	if (r < 0)
		return r;
	for (size_t i = 0; i < name.len; i++) /* one line, one word after the other */
		t.name[i] = is_control(name.ptr[i]) ? '?' : name.ptr[i];
	set_id(&t);
	*out = t;
	return 0;
}

/* Takes equally long for all that are wrong. Return: 0, -EACCES, -errno. */
static int find(const struct token_list *l, struct str secret, struct token *out)
{
	uint8_t hash[TOKEN_HASH_SIZE];
	size_t found = l->count;
	int r = hash_of(secret, hash);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->count; i++)
		found = gnutls_memcmp(hash, l->items[i].hash, sizeof(hash)) == 0 ? i : found;
	if (found == l->count)
		return -EACCES;
	*out = l->items[found];
	return 0;
}

int token_allows(const struct token_list *l, struct str secret, enum token_scope scope)
{
	struct token token;
	int r = find(l, secret, &token);

	if (r < 0)
		return r;
	return token.scopes & (scope | TOKEN_ADMIN) ? 0 : -EPERM;
}

/* Changing the file */

/* One writer at a time. */
static int lock_file(struct token_edit *e, bool wait)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	int r = -EWOULDBLOCK;

	buf_addf(&path, "%s.lock", e->path);
	if (path.error)
		return path.error;
	e->lock_fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (e->lock_fd < 0)
		return -errno;
	if (wait)
		return flock(e->lock_fd, LOCK_EX) < 0 ? -errno : 0;
	for (int i = 0; i < LOCK_TRIES && r == -EWOULDBLOCK; i++) {
		if (i)
			(void)usleep(LOCK_PAUSE_US);
		r = flock(e->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	}
	return r;
}

static int load_file(struct token_edit *e)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX);
	int r = io_read_file(e->path, &text);

	if (r == -ENOENT)
		return 0;
	return r ? r : token_list_parse(buf_str(&text), &e->list, &e->line);
}

int token_edit_begin(struct token_edit *e, const char *path, bool wait)
{
	int r;

	e->path = str_dup(str_of(path));
	r = e->path ? lock_file(e, wait) : -ENOMEM;
	return r ? r : load_file(e);
}

int token_edit_read(struct token_edit *e, const char *path)
{
	e->path = str_dup(str_of(path));
	return e->path ? load_file(e) : -ENOMEM;
}

void token_edit_release(struct token_edit *e)
{
	token_list_release(&e->list);
	free(e->path);
	closep(&e->lock_fd);
}

int token_edit_add(struct token_edit *e, struct str name, unsigned int scopes, uint64_t now_s, struct buf *secret)
{
	struct token_list *l = &e->list;
	int r = l->count == TOKENS_MAX ? -EOVERFLOW : array_grow(&l->items, &l->cap, l->count, TOKENS_MAX);

	r = r ? r : token_make(name, scopes, now_s, &l->items[l->count], secret);
	l->count += r == 0;
	return r;
}

int token_edit_revoke(struct token_edit *e, struct str id, struct token *out)
{
	struct token_list *l = &e->list;

	for (size_t i = 0; i < l->count; i++) {
		if (!str_eq(id, str_of(l->items[i].id)))
			continue;
		if (out)
			*out = l->items[i];
		memmove(&l->items[i], &l->items[i + 1], (l->count - i - 1) * sizeof(*l->items));
		l->count--;
		return 0;
	}
	return -ENOENT;
}

static int write_synced(const char *path, struct str text)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text.ptr, text.len);

	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

static int sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	scoped(freep) char *folder = slash ? str_dup(str_n(path, MAX((size_t)(slash - path), (size_t)1))) : NULL;

	return slash && !folder ? -ENOMEM : io_sync_folder(folder ? folder : ".");
}

int token_edit_save(struct token_edit *e)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX), fresh = BUF_INIT(KIB(16));
	scoped(freep) char *target = realpath(e->path, NULL); /* of a link, what it leads to */
	const char *path = target ? target : e->path;
	int r;

	token_list_write(&e->list, &text);
	buf_addf(&fresh, "%s.tmp-%d", path, (int)getpid());
	r = text.error ? text.error : fresh.error;
	if (r < 0)
		return r;
	(void)unlink(buf_cstr(&fresh)); /* of a process that had this number and was killed; we have the lock */
	r = write_synced(buf_cstr(&fresh), buf_str(&text));
	if (r == 0 && rename(buf_cstr(&fresh), path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(buf_cstr(&fresh));
	return r ? r : sync_folder_of(path); /* a revoked token does not come back */
}

/* The file of a running server */

struct token_file {
	pthread_mutex_t lock; /* guards all fields */
	char *path;
	struct token_list list;
	struct stat seen;     /* what was read; zeroed when reading failed for another reason than what is in it */
	int said;             /* error of the last read, or 0 */
	bool exists, existed; /* now; since open */
	uint64_t looked_ns;
};

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The time of the last change of owner and mode counts, too: they decide whether it can be read. */
static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       same_time(a->st_mtim, b->st_mtim) && same_time(a->st_ctim, b->st_ctim);
}

/* Whether an error is of what the file says: it stays until the file changes. Others may pass. */
static bool is_content(int error)
{
	return error == -EBADMSG || error == -E2BIG;
}

/* What cannot be read is tried again every second, and said once. The lock is held. */
static int read_list(struct token_file *f, struct token_list *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(FILE_MAX);
	unsigned int line = 0;
	int r = io_read_file(f->path, &text);

	r = r ? r : token_list_parse(buf_str(&text), out, &line);
	if (r < 0 && (is_content(r) || r != f->said))
		log_warn("tokens cannot be read, those known before stay", LOG_CSTR("file", f->path), LOG_ERR(r),
			 LOG_U64("line", line));
	f->said = r;
	return r;
}

/* @anew: read it whether it has changed or not. The lock is held. */
static int look(struct token_file *f, bool anew)
{
	struct token_list fresh = { 0 };
	struct stat st = { 0 };
	bool exists = stat(f->path, &st) == 0;
	int r = 0;

	if (!exists && errno != ENOENT)
		return -errno;
	if (!anew && exists == f->exists && (!exists || same_file(&st, &f->seen)))
		return 0;
	if (exists)
		r = read_list(f, &fresh);
	f->existed |= exists;
	f->exists = exists;
	f->seen = r == 0 || is_content(r) ? st : (struct stat){ 0 }; /* a bad file is complained about once */
	if (r < 0)
		return r;
	token_list_release(&f->list);
	f->list = fresh;
	return 0;
}

static void look_sometimes(struct token_file *f)
{
	uint64_t now = clock_monotonic_ns(&clock_system);

	if (now - f->looked_ns < NSEC_PER_SEC)
		return;
	f->looked_ns = now;
	ignore(look(f, false)); /* it was said; the old ones stay */
}

int token_file_open(const char *path, struct token_file **out)
{
	struct token_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	(void)pthread_mutex_init(&f->lock, NULL); /* no attributes: cannot fail on Linux */
	f->path = str_dup(str_of(path));
	r = f->path ? look(f, true) : -ENOMEM;
	if (r < 0) {
		token_file_close(f);
		return r;
	}
	f->looked_ns = clock_monotonic_ns(&clock_system);
	*out = f;
	return 0;
}

void token_file_close(struct token_file *f)
{
	if (!f)
		return;
	token_list_release(&f->list);
	(void)pthread_mutex_destroy(&f->lock);
	free(f->path);
	free(f);
}

int token_file_allows(struct token_file *f, struct str secret, enum token_scope scope)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	look_sometimes(f);
	r = token_allows(&f->list, secret, scope);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

bool token_file_any(struct token_file *f)
{
	bool any;

	(void)pthread_mutex_lock(&f->lock);
	look_sometimes(f);
	any = f->list.count > 0;
	(void)pthread_mutex_unlock(&f->lock);
	return any;
}

bool token_file_asks(struct token_file *f)
{
	bool asks;

	(void)pthread_mutex_lock(&f->lock);
	look_sometimes(f);
	asks = f->existed;
	(void)pthread_mutex_unlock(&f->lock);
	return asks;
}

const char *token_file_path(const struct token_file *f)
{
	return f->path;
}

int token_file_find(struct token_file *f, struct str secret, struct token *out)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	look_sometimes(f);
	r = find(&f->list, secret, out);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

int token_file_list(struct token_file *f, struct token_list *out)
{
	struct token_list copy = { 0 };

	(void)pthread_mutex_lock(&f->lock);
	look_sometimes(f);
	copy.items = calloc(f->list.count + 1, sizeof(*copy.items));
	if (copy.items && f->list.count) {
		memcpy(copy.items, f->list.items, f->list.count * sizeof(*copy.items));
		copy.count = copy.cap = f->list.count;
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (!copy.items)
		return -ENOMEM;
	*out = copy;
	return 0;
}

int token_file_reload(struct token_file *f)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = look(f, true);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}
