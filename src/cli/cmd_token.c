/* SPDX-License-Identifier: Apache-2.0 */
/* hearth token create|list|revoke: who may use a collector. A running one sees the change within a second. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/serve_options.h"
#include "collector/tokens.h"

struct config {
	const char *data_dir, *scope, *name;
};

static const struct opt options[] = {
	{ "data-dir", 0, OPT_PATH, .at = offsetof(struct config, data_dir), .arg = "DIR",
	  .help = "the store's directory (default: /var/lib/hearth for root, otherwise $XDG_STATE_HOME/hearth)" },
	{ "scope", 0, OPT_TEXT, .at = offsetof(struct config, scope), .fallback = "ingest", .arg = "LIST",
	  .help = "create: what it may do, of ingest, read and admin (which is everything), with commas" },
	{ "name", 0, OPT_TEXT, .at = offsetof(struct config, name), .arg = "TEXT",
	  .help = "create: what it is for; list shows it" },
	{ 0 },
};

struct session {
	const struct config *config;
	unsigned int scopes; /* as checked */
	struct buf folder, path, out;
	struct token_edit edit;
};

static void session_release(struct session *s)
{
	buf_release(&s->folder);
	buf_release(&s->path);
	buf_release(&s->out);
	token_edit_release(&s->edit);
}

static int fail(const struct session *s, int r)
{
	return command_fail(&command_token, "%s: %s", s->path.ptr, strerror(-r));
}

static int load(struct session *s, bool writes)
{
	const char *path = buf_cstr(&s->path);
	int r = writes ? token_edit_begin(&s->edit, path, true) : token_edit_read(&s->edit, path);

	if (r == -EBADMSG)
		return command_fail(&command_token, "%s: line %u cannot be read", s->path.ptr, s->edit.line);
	return r < 0 ? fail(s, r) : EXIT_DONE;
}

static int save(struct session *s)
{
	int r = token_edit_save(&s->edit);

	return r < 0 ? fail(s, r) : EXIT_DONE;
}

static int usage(const char *why)
{
	command_fail(&command_token, "%s", why);
	return EXIT_USAGE;
}

/* Each verb is checked before anything is made or read. */

static int check_create(struct session *s, const char *operand)
{
	if (operand)
		return usage("create takes no operand");
	if (token_scopes_parse(str_of(s->config->scope), &s->scopes) < 0)
		return usage("--scope: of ingest, read, admin");
	return str_of(s->config->name).len > TOKEN_NAME_MAX ? usage("--name is too long") : EXIT_DONE;
}

static int check_list(struct session *s, const char *operand)
{
	(void)s;
	return operand ? usage("list takes no operand") : EXIT_DONE;
}

static int check_revoke(struct session *s, const char *operand)
{
	(void)s;
	return operand ? EXIT_DONE : usage("revoke needs the ID that list shows");
}

static int create(struct session *s, const char *operand)
{
	int r = token_edit_add(&s->edit, str_of(s->config->name), s->scopes,
			       clock_wall_ns(&clock_system) / NSEC_PER_SEC, &s->out);

	(void)operand;
	if (r == -EOVERFLOW)
		return command_fail(&command_token, "there are %d tokens, no more fit", TOKENS_MAX);
	if (r < 0)
		return command_fail(&command_token, "%s", r == -E2BIG ? "--name is too long" : strerror(-r));
	buf_addc(&s->out, '\n');
	r = save(s);
	return r == EXIT_DONE ? command_print(&command_token, &s->out) : r;
}

static int list(struct session *s, const char *operand)
{
	(void)operand;
	for (size_t i = 0; i < s->edit.list.count; i++) {
		const struct token *t = &s->edit.list.items[i];

		buf_addf(&s->out, "%s ", t->id);
		token_scopes_write(t->scopes, &s->out);
		buf_addc(&s->out, ' ');
		clock_add_iso(&s->out, t->created_s * NSEC_PER_SEC);
		buf_addf(&s->out, "Z %s\n", t->name);
	}
	return command_print(&command_token, &s->out);
}

static int revoke_token(struct session *s, const char *operand)
{
	if (token_edit_revoke(&s->edit, str_of(operand), NULL) < 0)
		return command_fail(&command_token, "there is no token %s", operand);
	return save(s);
}

static const struct verb {
	const char *name;
	int (*check)(struct session *s, const char *operand);
	int (*run)(struct session *s, const char *operand);
	bool makes, writes; /* the folder; the file */
} verbs[] = { { "create", check_create, create, true, true },
	      { "list", check_list, list, false, false },
	      { "revoke", check_revoke, revoke_token, false, true } };

static int make_folder(struct session *s)
{
	if (mkdir(buf_cstr(&s->folder), 0700) < 0 && errno != EEXIST)
		return command_fail(&command_token, "%s: %s", s->folder.ptr, strerror(errno));
	return EXIT_DONE;
}

static int run_verb(const struct config *config, const struct verb *verb, const char *operand)
{
	scoped(session_release) struct session s = { .config = config,
						     .folder = BUF_INIT(KIB(16)),
						     .path = BUF_INIT(KIB(16)),
						     .out = BUF_INIT(MIB(1)),
						     .edit = TOKEN_EDIT_INIT };
	int r = verb->check(&s, operand);

	serve_data_dir(config->data_dir, &s.folder);
	buf_addf(&s.path, "%s/tokens", buf_cstr(&s.folder));
	if (r == EXIT_DONE && verb->makes)
		r = make_folder(&s);
	r = r ? r : command_become_owner(&command_token, buf_cstr(&s.folder));
	if (r == EXIT_DONE && !verb->makes && access(buf_cstr(&s.path), F_OK) < 0 && errno == ENOENT)
		return verb->run(&s, operand); /* no token: nothing to lock, and nothing is made */
	r = r ? r : load(&s, verb->writes);
	return r ? r : verb->run(&s, operand);
}

static int run(void *config, int operand_count, char **operands)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(operands[0], verbs[i].name) == 0)
			return run_verb(config, &verbs[i], operand_count > 1 ? operands[1] : NULL);
	command_fail(&command_token, "%s is none of create, list, revoke", operands[0]);
	return EXIT_USAGE;
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = { "hearth token create --scope ingest --name agents",
					"make a token for agents; it is shown once",
					"hearth token revoke 0123456789abcdef", "end one", NULL };

const struct command command_token = {
	.name = "token",
	.summary = "make, list and revoke the collector's tokens",
	.operands = "create|list|revoke [ID]",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = 2,
	.run = run,
};
