/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: tokens with scopes, kept hashed in one file of the data directory that is read again when it
 * changes. A token is 256 random bits, so a plain SHA-256 of it is enough: nobody can try them all. docs/collector.md
 * shows the file. */
#pragma once

#include "base/buf.h"

enum token_scope { TOKEN_INGEST = 1, TOKEN_READ = 2, TOKEN_ADMIN = 4 };

#define TOKENS_MAX 1024
#define TOKEN_NAME_MAX 64
#define TOKEN_HASH_SIZE 32

struct token {
	char id[17]; /* 16 hex digits: the front of the hash; what `hearth token revoke` takes */
	unsigned int scopes;
	uint64_t created_s;
	char name[TOKEN_NAME_MAX + 1];
	uint8_t hash[TOKEN_HASH_SIZE];
};

struct token_list {
	struct token *items;
	size_t count, cap;
};

void token_list_release(struct token_list *l); /* a zeroed one is fine */
/** token_list_parse - the file's text. Return: 0; -EBADMSG (@line: which), -E2BIG, -ENOMEM. */
int token_list_parse(struct str text, struct token_list *out, unsigned int *line) warn_unused;
void token_list_write(const struct token_list *l, struct buf *out);

/** token_scopes_parse - "ingest,read". Return: 0 or -EBADMSG. */
int token_scopes_parse(struct str text, unsigned int *out) warn_unused;
void token_scopes_write(unsigned int scopes, struct buf *out);

/** token_request_parse - {"name": TEXT, "scopes": [NAME...]}: what a page asks for. Return: 0 or -EBADMSG. */
int token_request_parse(struct str json, struct buf *name, unsigned int *scopes) warn_unused;

/** token_make - a new secret, and its row. Return: 0 or -errno. */
int token_make(struct str name, unsigned int scopes, uint64_t now_s, struct token *out, struct buf *secret) warn_unused;

/**
 * token_allows - whether @secret is a token with @scope; admin has all of them. Takes equally long for all that are
 * wrong. Return: 0, -EACCES (no such token), -EPERM (a token without that scope).
 */
int token_allows(const struct token_list *l, struct str secret, enum token_scope scope) warn_unused;

/* Changing the file: locked, read, changed, written, and only then in force. */
struct token_edit {
	struct token_list list;
	unsigned int line; /* which one could not be read */
	char *path;
	int lock_fd;
};

#define TOKEN_EDIT_INIT       \
	{                     \
		.lock_fd = -1 \
	}

/**
 * token_edit_begin - lock @path and read it; without a file there are no tokens
 * @wait: for another writer; otherwise a moment
 *
 * token_edit_release() when done, also on failure. Return: 0, -EBADMSG (a line cannot be read), -EWOULDBLOCK (another
 * one is at it), -E2BIG, -errno.
 */
int token_edit_begin(struct token_edit *e, const char *path, bool wait) warn_unused;
/** token_edit_read - the same without a lock, only to look. */
int token_edit_read(struct token_edit *e, const char *path) warn_unused;
/** token_edit_add - a new one, as token_make(). Return: the same; -EOVERFLOW: there are TOKENS_MAX. */
int token_edit_add(struct token_edit *e, struct str name, unsigned int scopes, uint64_t now_s,
		   struct buf *secret) warn_unused;
/** token_edit_revoke - Return: 0, or -ENOENT. *out: the one that goes; may be NULL. */
int token_edit_revoke(struct token_edit *e, struct str id, struct token *out) warn_unused;
/** token_edit_save - when it returns 0, the file is durable, and only its owner may read it. */
int token_edit_save(struct token_edit *e) warn_unused;
void token_edit_release(struct token_edit *e);

/* The file of a running server. */
struct token_file;

int token_file_open(const char *path, struct token_file **out) warn_unused; /* it need not exist */
void token_file_close(struct token_file *f);                                /* NULL is fine */
/** token_file_allows - as token_allows(), after a look whether the file has changed (at most once a second). */
int token_file_allows(struct token_file *f, struct str secret, enum token_scope scope) warn_unused;
/** token_file_any - whether there is a token at all. */
bool token_file_any(struct token_file *f);
/** token_file_asks - whether there is a file, or was one since open: then a token is asked for, even if none is valid.
 */
bool token_file_asks(struct token_file *f);
/** token_file_path - borrowed. */
const char *token_file_path(const struct token_file *f);
/** token_file_find - the token of @secret. Return: 0 or -EACCES. */
int token_file_find(struct token_file *f, struct str secret, struct token *out) warn_unused;
/** token_file_list - a copy of all. Return: 0 or -ENOMEM. */
int token_file_list(struct token_file *f, struct token_list *out) warn_unused;
/** token_file_reload - read it now, changed or not. Return: 0, or -errno: the old ones stay. */
int token_file_reload(struct token_file *f) warn_unused;
