/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/tokens.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

#define FILE_MAX MIB(1)
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

int token_allows(const struct token_list *l, struct str secret, enum token_scope scope)
{
	uint8_t hash[TOKEN_HASH_SIZE];
	unsigned int found = 0, scopes = 0;
	int r = hash_of(secret, hash);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->count; i++) {
		unsigned int same = gnutls_memcmp(hash, l->items[i].hash, sizeof(hash)) == 0;

		found |= same;
		scopes |= same ? l->items[i].scopes : 0;
	}
	if (!found)
		return -EACCES;
	return scopes & (scope | TOKEN_ADMIN) ? 0 : -EPERM;
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

int token_file_reload(struct token_file *f)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = look(f, true);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}
