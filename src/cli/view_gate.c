/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view_gate.h"

#include <sys/random.h>

/* What the pages ask the collector for; /ui/NAME besides. Uploads, metrics and the like are not for a viewer. */
static const struct {
	const char *path;
	bool posts; /* a body names a call path; nothing is changed */
} known[] = {
	{ "/", false },
	{ "/api/v1/session", false },
	{ "/api/v1/services", false },
	{ "/api/v1/types", false },
	{ "/api/v1/labels", false },
	{ "/api/v1/timeline", false },
	{ "/api/v1/flame", true },
	{ "/api/v1/compare", true },
	{ "/api/v1/lines", true },
	{ "/api/v1/export", false },
};

static int make_secret(char out[VIEW_SECRET_SIZE + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[VIEW_SECRET_SIZE / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[VIEW_SECRET_SIZE] = 0;
	return 0;
}

int view_gate_init(struct view_gate *g)
{
	*g = (struct view_gate){ 0 };
	return make_secret(g->key) < 0 || make_secret(g->ticket) < 0 ? -EIO : 0;
}

/* How long it takes does not tell how much of it is right. */
static bool is_secret(struct str text, const char secret[VIEW_SECRET_SIZE + 1])
{
	unsigned char differs = 0;

	if (text.len != VIEW_SECRET_SIZE)
		return false;
	for (size_t i = 0; i < VIEW_SECRET_SIZE; i++)
		differs |= (unsigned char)(text.ptr[i] ^ secret[i]);
	return !differs;
}

enum view_gate_way view_gate_path(struct str method, struct str path)
{
	bool reads = str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"));
	struct str file = str_skip(path, 4);
	bool is_file = str_starts(path, STR("/ui/")) && file.len && file.ptr[0] != '.' && str_find(file, '/') < 0 &&
		       str_find(file, '%') < 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(path, str_of(known[i].path)))
			return reads || (known[i].posts && str_eq(method, STR("POST"))) ? VIEW_GATE_PASS
											: VIEW_GATE_METHOD;
	return is_file && reads ? VIEW_GATE_PASS : is_file ? VIEW_GATE_METHOD : VIEW_GATE_NOTHING;
}

enum view_gate_way view_gate_check(struct view_gate *g, struct str method, struct str path, struct str *rest)
{
	struct str first = str_skip(path, MIN(path.len, (size_t)1)), behind;
	ptrdiff_t slash = str_find(first, '/');
	enum view_gate_way way;

	if (!path.len || path.ptr[0] != '/')
		return VIEW_GATE_NOTHING;
	behind = slash < 0 ? STR("") : str_skip(first, (size_t)slash);
	first = slash < 0 ? first : str_first(first, (size_t)slash);
	if (is_secret(first, g->ticket) && !behind.len) {
		if (g->is_used)
			return VIEW_GATE_USED;
		g->is_used = true;
		return VIEW_GATE_ENTER;
	}
	if (!is_secret(first, g->key))
		return VIEW_GATE_NOTHING;
	if (!behind.len)
		return VIEW_GATE_ENTER;
	way = view_gate_path(method, behind);
	if (way == VIEW_GATE_PASS)
		*rest = behind;
	return way;
}
