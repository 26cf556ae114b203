/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pull_targets.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>

#include "base/array.h"
#include "base/opt.h"
#include "base/safe.h"

#define INTERVAL_DEFAULT_NS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS NSEC_PER_SEC
#define TIMEOUT_DEFAULT_NS (10 * NSEC_PER_SEC)
#define CPU_SECONDS_DEFAULT 10
#define CPU_SECONDS_MAX 300
#define PATH_DEFAULT "/debug/pprof"

static const struct {
	const char *name, *path;
} kinds[] = {
#define X(id, name, path, cumulative) { name, path },
	PULL_KINDS(X)
#undef X
};

#define KINDS_DEFAULT (1U << PULL_CPU | 1U << PULL_HEAP | 1U << PULL_BLOCK | 1U << PULL_MUTEX | 1U << PULL_GOROUTINE)

const char *pull_kind_name(enum pull_kind kind)
{
	return kinds[kind].name;
}

const char *pull_kind_path(enum pull_kind kind)
{
	return kinds[kind].path;
}

void pull_target_release(struct pull_target *t)
{
	free(t->url);
	free(t->host);
	free(t->instance);
	free(t->service);
	for (size_t i = 0; i < t->label_count; i++) {
		free((char *)(uintptr_t)t->labels[i].key.ptr);
		free((char *)(uintptr_t)t->labels[i].value.ptr);
	}
	*t = (struct pull_target){ 0 };
}

void pull_targets_release(struct pull_targets *t)
{
	for (size_t i = 0; i < t->count; i++)
		pull_target_release(&t->items[i]);
	free(t->items);
	*t = (struct pull_targets){ 0 };
}

static void json_freep(json_t **value)
{
	json_decref(*value);
}

static struct str text_of(const json_t *value)
{
	return json_is_string(value) ? str_n(json_string_value(value), json_string_length(value)) : STR("");
}

/* A group of the file: what its targets have in common. */
struct group {
	const json_t *json;
	size_t number; /* from 1, for messages */
	struct str service, path;
	struct pull_target common; /* times, kinds, allow: what is copied as it is */
	struct buf *why;
};

static int bad(const struct group *g, const char *what)
{
	buf_addf(g->why, "group %zu: %s", g->number, what);
	return -EBADMSG;
}

static bool has_control_byte(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
			return true;
	return false;
}

/* Addresses */

static void map_v4(const void *v4, uint8_t out[16])
{
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, v4, 4);
}

static bool parse_address(const char *text, uint8_t out[16], bool *is_v4)
{
	struct in_addr v4;

	*is_v4 = inet_pton(AF_INET, text, &v4) == 1;
	if (*is_v4)
		map_v4(&v4, out);
	return *is_v4 || inet_pton(AF_INET6, text, out) == 1;
}

static bool parse_prefix(struct str text, struct pull_prefix *out)
{
	char address[64];
	struct str rest = text, host;
	uint64_t bits;
	bool is_v4;

	if (!str_next(&rest, '/', &host) || host.len >= sizeof(address) || memchr(host.ptr, 0, host.len))
		return false;
	memcpy(address, host.ptr, host.len);
	address[host.len] = '\0';
	if (!parse_address(address, out->bytes, &is_v4))
		return false;
	bits = is_v4 ? 32 : 128;
	if (rest.ptr && str_to_u64(rest, 0, bits, &bits) < 0)
		return false;
	out->bits = (unsigned int)bits + (is_v4 ? 96 : 0);
	return true;
}

static bool in_prefix(const uint8_t address[16], const struct pull_prefix *p)
{
	unsigned int whole = p->bits / 8, rest = p->bits % 8;

	if (memcmp(address, p->bytes, whole))
		return false;
	return !rest || (address[whole] ^ p->bytes[whole]) >> (8 - rest) == 0;
}

static bool in_text(const uint8_t address[16], const char *const *texts)
{
	for (; *texts; texts++) {
		struct pull_prefix p;

		must(parse_prefix(str_of(*texts), &p));
		if (in_prefix(address, &p))
			return true;
	}
	return false;
}

static const char *const loopback[] = { "127.0.0.0/8", "::1", NULL };
/* Sources: RFC 6890 (special-purpose addresses); the metadata services of EC2 (169.254/16, fd00:ec2::254), Alibaba
 * (100.100.100.200), Oracle and Azure (192.0.0.192, 168.63.129.16). 64:ff9b::/96 and 2002::/16 carry IPv4 addresses. */
static const char *const denied[] = { "0.0.0.0/8",       "169.254.0.0/16", "224.0.0.0/3",
				      "100.100.100.200", "192.0.0.192",    "168.63.129.16",
				      "::/128",          "fe80::/10",      "fec0::/10",
				      "ff00::/8",        "fd00:ec2::254",  "64:ff9b::/96",
				      "64:ff9b:1::/48",  "2002::/16",      NULL };

static bool is_local_name(const char *host)
{
	uint8_t address[16];
	bool is_v4;

	return !strcmp(host, "localhost") || (parse_address(host, address, &is_v4) && in_text(address, loopback));
}

bool pull_address_allowed(const struct pull_target *t, const struct sockaddr *address, socklen_t size)
{
	uint8_t bytes[16];

	if (address->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in));
		map_v4(&in.sin_addr, bytes);
	} else if (address->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
		struct sockaddr_in6 in;

		memcpy(&in, address, sizeof(in));
		memcpy(bytes, &in.sin6_addr, sizeof(bytes));
	} else {
		return false;
	}
	for (size_t i = 0; i < t->allow_count; i++)
		if (in_prefix(bytes, &t->allow[i]))
			return true;
	if (in_text(bytes, loopback))
		return is_local_name(t->host);
	return !in_text(bytes, denied);
}

/* Members of a group */

static int read_duration(const struct group *g, const char *name, uint64_t min_ns, uint64_t *out)
{
	const json_t *value = json_object_get(g->json, name);
	uint64_t ns = *out;

	if (!value)
		return 0;
	if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) < 1000000)
		ns = (uint64_t)json_integer_value(value) * NSEC_PER_SEC;
	else if (!json_is_string(value) || opt_parse_duration(text_of(value), &ns) < 0)
		ns = UINT64_MAX;
	if (ns < min_ns || ns > 7 * 86400 * NSEC_PER_SEC) {
		buf_addf(g->why, "group %zu: \"%s\" is no time like \"60s\" within its limits", g->number, name);
		return -EBADMSG;
	}
	*out = ns;
	return 0;
}

static int read_kinds(struct group *g)
{
	const json_t *list = json_object_get(g->json, "profiles"), *value;
	size_t i;

	g->common.kinds = KINDS_DEFAULT;
	if (!list)
		return 0;
	g->common.kinds = 0;
	json_array_foreach(list, i, value)
	{
		size_t kind = 0;

		while (kind < PULL_KIND_COUNT && !str_eq(text_of(value), str_of(kinds[kind].name)))
			kind++;
		if (kind == PULL_KIND_COUNT)
			return bad(g, "\"profiles\" has a name that is none of cpu, heap, allocs, block, mutex, "
				      "goroutine, threadcreate");
		g->common.kinds |= 1U << kind;
	}
	return g->common.kinds ? 0 : bad(g, "\"profiles\" is no list of names");
}

static int read_allow(struct group *g)
{
	const json_t *list = json_object_get(g->json, "allow"), *value;
	size_t i;

	if (list && !json_is_array(list))
		return bad(g, "\"allow\" is no list");
	json_array_foreach(list, i, value)
	{
		if (g->common.allow_count == PULL_ALLOW_MAX)
			return bad(g, "\"allow\" is too long");
		if (!parse_prefix(text_of(value), &g->common.allow[g->common.allow_count++]))
			return bad(g,
				   "\"allow\" has something that is no address like \"169.254.1.2\" or \"fe80::/10\"");
	}
	return 0;
}

static int check_names(const struct group *g)
{
	static const char *const known[] = { "targets", "service", "labels",      "profiles", "interval",
					     "jitter",  "timeout", "cpu_seconds", "path",     "allow" };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)g->json, name, value)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(name, known[i]))
			i++;
		if (i < ARRAY_SIZE(known))
			continue;
		buf_addf(g->why, "group %zu: \"%.40s\" is not known", g->number, name);
		return -EBADMSG;
	}
	return 0;
}

static int read_times(struct group *g)
{
	const json_t *seconds = json_object_get(g->json, "cpu_seconds");
	int r;

	g->common.interval_ns = INTERVAL_DEFAULT_NS;
	r = read_duration(g, "interval", INTERVAL_MIN_NS, &g->common.interval_ns);
	g->common.jitter_ns = g->common.interval_ns / 10;
	if (r == 0)
		r = read_duration(g, "jitter", 0, &g->common.jitter_ns);
	g->common.timeout_ns = TIMEOUT_DEFAULT_NS;
	if (r == 0)
		r = read_duration(g, "timeout", NSEC_PER_MSEC, &g->common.timeout_ns);
	g->common.cpu_seconds =
		(uint32_t)MIN(CPU_SECONDS_DEFAULT, MAX(g->common.interval_ns / NSEC_PER_SEC / 2, UINT64_C(1)));
	if (r < 0 || !seconds)
		return r;
	if (!json_is_integer(seconds) || json_integer_value(seconds) < 1 ||
	    json_integer_value(seconds) > CPU_SECONDS_MAX)
		return bad(g, "\"cpu_seconds\" is no number from 1 to 300");
	g->common.cpu_seconds = (uint32_t)json_integer_value(seconds);
	return 0;
}

static int read_group(struct group *g)
{
	const json_t *path = json_object_get(g->json, "path");
	int r;

	if (!json_is_object(g->json))
		return bad(g, "it is no object");
	r = check_names(g);
	g->service = text_of(json_object_get(g->json, "service"));
	g->path = path ? text_of(path) : STR(PATH_DEFAULT);
	if (r == 0 && (!g->service.len || g->service.len > STORE_NAME_MAX))
		r = bad(g, "\"service\" is missing");
	if (r == 0 && (!str_starts(g->path, STR("/")) || g->path.len > 1024 || has_control_byte(g->path)))
		r = bad(g, "\"path\" does not begin with a slash");
	r = r ? r : read_times(g);
	r = r ? r : read_kinds(g);
	return r ? r : read_allow(g);
}

/* Targets */

static int add_label(struct pull_target *t, struct str key, struct str value)
{
	char *k, *v;

	if (t->label_count == STORE_LABELS_MAX || !key.len || key.len > STORE_LABEL_KEY_MAX ||
	    value.len > STORE_LABEL_VALUE_MAX)
		return -E2BIG;
	k = str_dup(key);
	v = str_dup(value);
	if (!k || !v) {
		free(k);
		free(v);
		return -ENOMEM;
	}
	t->labels[t->label_count++] = (struct store_label){ str_of(k), str_of(v) };
	return 0;
}

static int add_labels(const struct group *g, struct pull_target *t)
{
	json_t *labels = json_object_get(g->json, "labels"), *value;
	const char *name;
	bool has_instance = false;
	int r = 0;

	if (labels && !json_is_object(labels))
		return bad(g, "\"labels\" is no object");
	json_object_foreach(labels, name, value)
	{
		if (!json_is_string(value))
			return bad(g, "a label is no text");
		has_instance |= !strcmp(name, "instance");
		r = add_label(t, str_of(name), str_of(json_string_value(value)));
		if (r < 0)
			return r == -E2BIG ? bad(g, "too many labels, or one without a name or too long") : r;
	}
	return has_instance ? 0 : add_label(t, STR("instance"), str_of(t->instance));
}

/* HOST:PORT, or http://HOST:PORT/PATH; [v6]:PORT. Names and passwords have no place in it. */
static int split_address(const struct group *g, struct str text, struct pull_target *t)
{
	bool tls = str_starts(text, STR("https://"));
	struct str rest = tls ? str_skip(text, 8) : str_starts(text, STR("http://")) ? str_skip(text, 7) : text;
	ptrdiff_t slash = str_find(rest, '/'), colon, bracket;
	struct str authority = slash < 0 ? rest : str_first(rest, (size_t)slash), host, path = g->path;
	scoped(buf_release) struct buf url = BUF_INIT(KIB(4));
	size_t len;

	if (slash >= 0 && rest.len > (size_t)slash + 1)
		path = str_skip(rest, (size_t)slash);
	while (str_ends(path, STR("/")))
		path = str_first(path, path.len - 1);
	bracket = str_find(authority, ']');
	colon = str_rfind(authority, ':');
	host = colon > bracket ? str_first(authority, (size_t)colon) : authority;
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_first(str_skip(host, 1), host.len - 2);
	if (!host.len || str_find(authority, '@') >= 0 || text.len > 1024 || has_control_byte(text) ||
	    str_find(text, '?') >= 0 || str_find(text, '#') >= 0 || str_find(text, ' ') >= 0)
		return bad(g, "\"targets\" has something that is no HOST:PORT");
	buf_addf(&url, "http%s://" STR_FMT STR_FMT, tls ? "s" : "", STR_ARG(authority), STR_ARG(path));
	(void)buf_cstr(&url);
	if (url.error)
		return url.error;
	t->url = buf_take(&url, &len);
	t->host = str_dup(host);
	t->instance = str_dup(authority);
	return t->host && t->instance ? 0 : -ENOMEM;
}

static int add_target(const struct group *g, struct str text, struct pull_targets *out)
{
	struct pull_target *t;
	int r = array_grow(&out->items, &out->cap, out->count, PULL_TARGETS_MAX);

	if (r == -E2BIG)
		return bad(g, "more than 4096 targets in all");
	if (r < 0)
		return r;
	t = &out->items[out->count++];
	*t = g->common;
	t->service = str_dup(g->service);
	if (!t->service)
		return -ENOMEM;
	r = split_address(g, text, t);
	return r < 0 ? r : add_labels(g, t);
}

static int add_group(struct group *g, struct pull_targets *out)
{
	int r = read_group(g);
	const json_t *list, *value;
	size_t i;

	if (r < 0)
		return r;
	list = json_object_get(g->json, "targets");
	if (!json_array_size(list))
		return bad(g, "\"targets\" is no list of HOST:PORT");
	json_array_foreach(list, i, value)
	{
		r = add_target(g, text_of(value), out);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_twins(const struct pull_targets *t, struct buf *why)
{
	for (size_t a = 0; a < t->count; a++) {
		for (size_t b = 0; b < a; b++) {
			if (strcmp(t->items[a].url, t->items[b].url) ||
			    strcmp(t->items[a].service, t->items[b].service))
				continue;
			buf_addf(why, "%s is there twice for %s", t->items[a].url, t->items[a].service);
			return -EBADMSG;
		}
	}
	return 0;
}

int pull_targets_parse(struct str json, struct buf *why, struct pull_targets *out)
{
	scoped(pull_targets_release) struct pull_targets result = { 0 };
	scoped(json_freep) json_t *root = NULL;
	json_error_t error;
	const json_t *value;
	size_t i;
	int r;

	if (json.len > PULL_FILE_MAX)
		return -E2BIG;
	root = json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!root || !json_is_array(root)) {
		struct str what = root ? STR("a list of groups is expected") : str_of(error.text);
		ptrdiff_t near = str_search(what, STR(" near ")); /* quotes the file, which may hold a password */

		buf_addf(why, "line %d: ", root ? 1 : error.line);
		safe_add(why, near >= 0 ? str_first(what, (size_t)near) : what);
		return -EBADMSG;
	}
	json_array_foreach(root, i, value)
	{
		struct group g = { .json = value, .number = i + 1, .why = why };

		r = add_group(&g, &result);
		if (r < 0)
			return r;
	}
	r = check_twins(&result, why);
	if (r < 0)
		return r;
	*out = result;
	result = (struct pull_targets){ 0 };
	return 0;
}
