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

/** token_make - a new secret, and its row. Return: 0 or -errno. */
int token_make(struct str name, unsigned int scopes, uint64_t now_s, struct token *out, struct buf *secret) warn_unused;

/**
 * token_allows - whether @secret is a token with @scope; admin has all of them. Takes equally long for all that are
 * wrong. Return: 0, -EACCES (no such token), -EPERM (a token without that scope).
 */
int token_allows(const struct token_list *l, struct str secret, enum token_scope scope) warn_unused;

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
/** token_file_reload - read it now, changed or not. Return: 0, or -errno: the old ones stay. */
int token_file_reload(struct token_file *f) warn_unused;
