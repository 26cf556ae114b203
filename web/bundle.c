/* SPDX-License-Identifier: Apache-2.0 */
#include "web/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES_MAX 200
#define NAME_MAX_ 64

enum module_state { MODULE_BEGUN, MODULE_WRITTEN };

struct module {
	char name[NAME_MAX_]; /* without .js */
	enum module_state state;
};

struct bundle {
	const char *folder; /* with its slash, or "" */
	struct module modules[MODULES_MAX];
	size_t count;
	struct text out;
};

static _Noreturn void refuse(const char *name, const char *why, const char *line, size_t len)
{
	fprintf(stderr, "embed: %s.js: %s: %.*s\n", name, why, (int)len, line);
	exit(1);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

static void add_module(struct bundle *b, const char *name, size_t len);

/* import { a, b } from './x.js';  becomes  const { a, b } = $x; with that module before this one. */
static void add_import(struct bundle *b, struct text *body, const char *importer, const char *line, size_t len)
{
	const char *open = memchr(line, '{', len), *close = memchr(line, '}', len), *from;
	size_t name_len = 0;

	if (!open || !close || memchr(line, '\'', (size_t)(close - line)) || strncmp(close, "} from './", 10) != 0)
		refuse(importer, "not a form of import that can be bundled", line, len);
	from = close + 10;
	while (is_name_char(from[name_len]))
		name_len++;
	if (strncmp(from + name_len, ".js';", 5) != 0)
		refuse(importer, "not a form of import that can be bundled", line, len);
	add_module(b, from, name_len);
	text_adds(body, "const ");
	text_add(body, open, (size_t)(close - open) + 1);
	text_adds(body, " = $");
	text_add(body, from, name_len);
	text_adds(body, ";\n");
}

/* The name that is exported goes to @exports. Return: what stays of the line. */
static const char *take_export(struct text *exports, const char *module, const char *line, size_t len)
{
	static const char *const kinds[] = { "const ", "async function ", "function ", "class " };
	const char *rest = line + strlen("export ");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *name = rest + strlen(kinds[i]);
		size_t name_len = 0;

		if (strncmp(rest, kinds[i], strlen(kinds[i])) != 0)
			continue;
		while (is_name_char(name[name_len]))
			name_len++;
		if (!name_len)
			break;
		text_adds(exports, exports->len ? ", " : "");
		text_add(exports, name, name_len);
		return rest;
	}
	refuse(module, "not a form of export that can be bundled", line, len);
}

/* What is behind all others has no function of its own, so that it may await. */
static void write_module(struct bundle *b, const char *name, bool is_root)
{
	struct text path = { 0 }, in, body = { 0 }, exports = { 0 };
	bool in_comment = false;
	const char *line;
	size_t len, at = 0;

	text_adds(&path, b->folder);
	text_adds(&path, name);
	text_adds(&path, ".js");
	in = read_file(path.ptr);
	while (next_line(&in, &at, &in_comment, &line, &len)) {
		if (starts(line, len, "import ")) {
			add_import(b, &body, name, line, len);
			continue;
		}
		if (starts(line, len, "export ")) {
			const char *rest = take_export(&exports, name, line, len);

			len -= (size_t)(rest - line);
			line = rest;
		}
		text_add(&body, line, len);
		text_adds(&body, "\n");
	}
	if (is_root) {
		text_adds(&b->out, body.ptr ? body.ptr : "");
	} else {
		text_adds(&b->out, "const $");
		text_adds(&b->out, name);
		text_adds(&b->out, " = (() => {\n");
		text_adds(&b->out, body.ptr ? body.ptr : "");
		text_adds(&b->out, "return { ");
		text_adds(&b->out, exports.ptr ? exports.ptr : "");
		text_adds(&b->out, " };\n})();\n");
	}
	free(path.ptr);
	free(in.ptr);
	free(body.ptr);
	free(exports.ptr);
}

static void add_module(struct bundle *b, const char *name, size_t len)
{
	struct module *m;

	for (size_t i = 0; i < b->count; i++) {
		if (strlen(b->modules[i].name) != len || memcmp(b->modules[i].name, name, len) != 0)
			continue;
		if (b->modules[i].state == MODULE_BEGUN)
			refuse(b->modules[i].name, "modules import each other", name, len);
		return;
	}
	if (b->count == MODULES_MAX || len >= NAME_MAX_)
		refuse("bundle", "too many modules, or too long a name", name, len);
	m = &b->modules[b->count++];
	memcpy(m->name, name, len);
	m->state = MODULE_BEGUN;
	write_module(b, m->name, m == b->modules);
	m->state = MODULE_WRITTEN;
}

struct text bundle(const char *path)
{
	struct bundle *b = calloc(1, sizeof(*b));
	const char *name = base_name(path), *dot = strrchr(name, '.');
	char *folder = strndup(path, (size_t)(name - path));
	struct text out;

	if (!b || !folder)
		die("out of memory", path);
	if (!dot || strcmp(dot, ".js") != 0) {
		errno = EINVAL;
		die("not a module", path);
	}
	b->folder = folder;
	add_module(b, name, (size_t)(dot - name));
	out = b->out;
	free(folder);
	free(b);
	return out;
}
