/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "collector/tokens.h"

static void make(struct token_list *l, struct buf *secret, unsigned int scopes)
{
	l->items = realloc(l->items, (l->count + 1) * sizeof(*l->items));
	assert_non_null(l->items);
	assert_int_equal(token_make(STR("my agents"), scopes, 1700000000, &l->items[l->count], secret), 0);
	l->count++;
}

static void allows_by_scope(void **state)
{
	scoped(token_list_release) struct token_list l = { 0 };
	scoped(buf_release) struct buf ingest = BUF_INIT(256), admin = BUF_INIT(256);

	(void)state;
	make(&l, &ingest, TOKEN_INGEST);
	make(&l, &admin, TOKEN_ADMIN);
	assert_false(str_eq(buf_str(&ingest), buf_str(&admin)));
	assert_int_equal(ingest.len, 7 + 64);
	assert_int_equal(token_allows(&l, buf_str(&ingest), TOKEN_INGEST), 0);
	assert_int_equal(token_allows(&l, buf_str(&ingest), TOKEN_READ), -EPERM);
	assert_int_equal(token_allows(&l, buf_str(&admin), TOKEN_READ), 0);
	assert_int_equal(token_allows(&l, STR("hearth_"), TOKEN_READ), -EACCES);
	assert_int_equal(token_allows(&l, STR(""), TOKEN_READ), -EACCES);
	ingest.ptr[ingest.len - 1] ^= 1;
	assert_int_equal(token_allows(&l, buf_str(&ingest), TOKEN_INGEST), -EACCES);
}

static void reads_what_it_wrote(void **state)
{
	scoped(token_list_release) struct token_list l = { 0 }, again = { 0 };
	scoped(buf_release) struct buf secret = BUF_INIT(256), text = BUF_INIT(KIB(4));
	unsigned int line;

	(void)state;
	make(&l, &secret, TOKEN_INGEST | TOKEN_READ);
	token_list_write(&l, &text);
	assert_null(strstr(buf_cstr(&text), buf_cstr(&secret))); /* the secret is not kept */
	assert_int_equal(token_list_parse(buf_str(&text), &again, &line), 0);
	assert_int_equal(again.count, 1);
	assert_string_equal(again.items[0].name, "my agents");
	assert_string_equal(again.items[0].id, l.items[0].id);
	assert_int_equal(token_allows(&again, buf_str(&secret), TOKEN_READ), 0);
}

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void rejects_bad_files(void **state)
{
	static const struct {
		const char *text;
		unsigned int line;
	} cases[] = { { "rubbish", 1 },          { "# x\n\n" HASH " nobody 1 a", 3 },
		      { HASH " ingest x a", 1 }, { HASH "0 ingest 1 a", 1 },
		      { HASH " ingest", 1 },     { "zz" HASH " ingest 1 a", 1 } };
	unsigned int line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct token_list l = { 0 };
		struct cur c = guard_page(cases[i].text, strlen(cases[i].text));

		print_message("  %s\n", cases[i].text);
		assert_int_equal(token_list_parse(cur_rest(&c), &l, &line), -EBADMSG);
		assert_int_equal(line, cases[i].line);
		assert_null(l.items);
	}
}

static void watches_its_file(void **state)
{
	scoped(token_list_release) struct token_list l = { 0 };
	scoped(buf_release) struct buf secret = BUF_INIT(256), text = BUF_INIT(KIB(4));
	char path[] = "/tmp/hearth-tokens-XXXXXX";
	int fd = mkstemp(path);
	struct token_file *f;

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(token_file_open(path, &f), 0); /* it need not be there */
	assert_false(token_file_any(f));
	assert_false(token_file_asks(f));
	make(&l, &secret, TOKEN_READ);
	token_list_write(&l, &text);
	assert_int_equal(io_replace_file(path, text.ptr, text.len), 0);
	assert_int_equal(token_file_reload(f), 0);
	assert_true(token_file_any(f));
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), 0);
	assert_int_equal(io_replace_file(path, "rubbish", 7), 0);
	assert_int_equal(token_file_reload(f), -EBADMSG);
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), 0); /* the old ones stay */
	(void)unlink(path);
	assert_int_equal(token_file_reload(f), 0);
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), -EACCES);
	assert_false(token_file_any(f));
	assert_true(token_file_asks(f)); /* a file that went away opens nothing */
	token_file_close(f);
}

/* The last token was revoked. */
static void no_token_is_not_no_file(void **state)
{
	char path[] = "/tmp/hearth-tokens-XXXXXX";
	int fd = mkstemp(path);
	struct token_file *f;

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(token_file_open(path, &f), 0);
	assert_false(token_file_any(f));
	assert_true(token_file_asks(f));
	assert_int_equal(token_file_allows(f, STR(""), TOKEN_READ), -EACCES);
	token_file_close(f);
	(void)unlink(path);
}

/* A file that could not be read for lack of memory or descriptors is read later, although it has not changed. */
static void reads_again_what_it_could_not(void **state)
{
	scoped(token_list_release) struct token_list l = { 0 };
	scoped(buf_release) struct buf secret = BUF_INIT(256), text = BUF_INIT(KIB(4));
	char path[] = "/tmp/hearth-tokens-XXXXXX";
	struct rlimit before, none;
	int fd = mkstemp(path);
	struct token_file *f;

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(token_file_open(path, &f), 0);
	make(&l, &secret, TOKEN_READ);
	token_list_write(&l, &text);
	assert_int_equal(io_replace_file(path, text.ptr, text.len), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(token_file_reload(f), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), -EACCES); /* it looks once a second */
	(void)usleep(1050000);
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), 0);
	token_file_close(f);
	(void)unlink(path);
}

/* As after chown and chmod: size and time of the content are the old ones. */
static void looks_at_the_time_of_change(void **state)
{
	scoped(token_list_release) struct token_list l = { 0 };
	scoped(buf_release) struct buf secret = BUF_INIT(256), text = BUF_INIT(KIB(4)), rubbish = BUF_INIT(KIB(4));
	char path[] = "/tmp/hearth-tokens-XXXXXX";
	int fd = mkstemp(path);
	struct token_file *f;
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	make(&l, &secret, TOKEN_READ);
	token_list_write(&l, &text);
	for (size_t i = 0; i < text.len; i++)
		buf_addc(&rubbish, '#');
	assert_int_equal(pwrite(fd, rubbish.ptr, rubbish.len, 0), (ssize_t)rubbish.len);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(token_file_open(path, &f), 0);
	assert_false(token_file_any(f));
	(void)usleep(1050000);
	assert_int_equal(pwrite(fd, text.ptr, text.len, 0), (ssize_t)text.len);
	assert_int_equal(futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
	assert_int_equal(token_file_allows(f, buf_str(&secret), TOKEN_READ), 0);
	token_file_close(f);
	(void)close(fd);
	(void)unlink(path);
}

static void reads_requests(void **state)
{
	static const struct {
		const char *text, *name;
		unsigned int scopes; /* 0: refused */
	} cases_of[] = {
		{ "{\"name\": \"a b\", \"scopes\": [\"ingest\", \"admin\"]}", "a b", TOKEN_INGEST | TOKEN_ADMIN },
		{ "{\"scopes\":[\"read\"],\"more\":{\"x\":[1]}}", "", TOKEN_READ },
		{ "{\"name\": \"\\u202e<b>\", \"scopes\": [\"read\"]}", "\xe2\x80\xae<b>", TOKEN_READ },
		{ "{\"name\": \"a\", \"name\": \"b\", \"scopes\": [\"read\"]}", "b", TOKEN_READ },
		{ "{\"name\": \"a\", \"scopes\": []}", NULL, 0 },
		{ "{\"name\": \"a\"}", NULL, 0 },
		{ "{\"name\": \"a\", \"scopes\": \"read\"}", NULL, 0 },
		{ "{\"name\": 5, \"scopes\": [\"read\"]}", NULL, 0 },
		{ "{\"scopes\": [\"root\"]}", NULL, 0 },
		{ "{\"scopes\": [\"read\", \"root\"]}", NULL, 0 },
		{ "{\"scopes\": [7]}", NULL, 0 },
		{ "[\"read\"]", NULL, 0 },
		{ "", NULL, 0 },
		{ "{", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases_of); i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));
		unsigned int scopes = 99;
		int r = token_request_parse(str_of(cases_of[i].text), &name, &scopes);

		print_message("  %s\n", cases_of[i].text);
		assert_int_equal(r, cases_of[i].scopes ? 0 : -EBADMSG);
		assert_int_equal(scopes, cases_of[i].scopes ? cases_of[i].scopes : 99);
		if (r == 0)
			assert_string_equal(buf_cstr(&name), cases_of[i].name);
	}
}

static void changes_its_file(void **state)
{
	char folder[] = "/tmp/hearth-edit-XXXXXX", path[64], lock[80];
	scoped(buf_release) struct buf secret = BUF_INIT(256), other = BUF_INIT(256), text = BUF_INIT(KIB(4));
	struct token gone;
	struct stat st;
	char id[sizeof(gone.id)];

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/tokens", folder);
	(void)snprintf(lock, sizeof(lock), "%s.lock", path);
	{
		scoped(token_edit_release) struct token_edit e = TOKEN_EDIT_INIT;
		scoped(token_edit_release) struct token_edit second = TOKEN_EDIT_INIT;

		assert_int_equal(token_edit_begin(&e, path, true), 0);
		assert_int_equal(token_edit_add(&e, STR("a\nb"), TOKEN_READ, 5, &secret), 0);
		assert_int_equal(token_edit_add(&e, STR("c"), TOKEN_ADMIN, 6, &other), 0);
		assert_int_equal(token_edit_begin(&second, path, false), -EWOULDBLOCK); /* one at a time */
		assert_int_equal(stat(path, &st), -1); /* nothing is in force before it is saved */
		assert_int_equal(token_edit_save(&e), 0);
		memcpy(id, e.list.items[0].id, sizeof(id));
	}
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(io_read_file(path, &text), 0);
	assert_true(str_search(buf_str(&text), buf_str(&secret)) < 0); /* the secret is not kept */
	{
		scoped(token_edit_release) struct token_edit e = TOKEN_EDIT_INIT;

		assert_int_equal(token_edit_begin(&e, path, false), 0);
		assert_int_equal(e.list.count, 2);
		assert_string_equal(e.list.items[0].name, "a?b"); /* one line each */
		assert_int_equal(token_allows(&e.list, buf_str(&secret), TOKEN_READ), 0);
		assert_int_equal(token_edit_revoke(&e, STR("none"), NULL), -ENOENT);
		assert_int_equal(token_edit_revoke(&e, str_of(id), &gone), 0);
		assert_string_equal(gone.name, "a?b");
		assert_int_equal(token_edit_save(&e), 0);
	}
	{
		scoped(token_edit_release) struct token_edit e = TOKEN_EDIT_INIT;

		assert_int_equal(token_edit_read(&e, path), 0);
		assert_int_equal(e.list.count, 1);
		assert_int_equal(token_allows(&e.list, buf_str(&secret), TOKEN_READ), -EACCES);
		assert_int_equal(token_allows(&e.list, buf_str(&other), TOKEN_READ), 0);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(rmdir(folder), 0); /* nothing else is left there */
}

static int parse_one(void *ctx)
{
	struct token_list l = { 0 };
	unsigned int line;
	int r = token_list_parse(STR(HASH " ingest 1 a\n"), &l, &line);

	(void)ctx;
	token_list_release(&l);
	return r;
}

static void survives_no_memory(void **state)
{
	(void)state;
	for_each_failing_allocation(parse_one, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allows_by_scope),
		cmocka_unit_test(reads_what_it_wrote),
		cmocka_unit_test(rejects_bad_files),
		cmocka_unit_test(watches_its_file),
		cmocka_unit_test(no_token_is_not_no_file),
		cmocka_unit_test(reads_again_what_it_could_not),
		cmocka_unit_test(looks_at_the_time_of_change),
		cmocka_unit_test(reads_requests),
		cmocka_unit_test(changes_its_file),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
