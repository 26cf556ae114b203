/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of the viewer's API (docs/api.yaml): hosts, the collector itself, signing in, the viewer's files. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/io.h"
#include "build_info.h"
#include "collector/access.h"
#include "collector/collector_int.h"
#include "sink/format.h"
#include "web/assets.h"

#define HOSTS_MAX 4096
#define HOSTS_READ 200 /* whose newest profile is looked into */
#define FILE_MAX MIB(8)
#define POLICY_OF(script)                                                                                \
	"default-src 'none'; script-src 'self'" script                                                   \
	"; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "                           \
	"font-src 'none'; worker-src 'self'; manifest-src 'none'; base-uri 'none'; form-action 'none'; " \
	"frame-ancestors 'none'"

#define POLICY POLICY_OF("")
/* A worker has the policy of its own file. The one that reads files compiles readers.wasm, which is ours, too. */
#define WASM_WORKER "file_worker.js"
#define WASM_READERS "readers.wasm"
#define EARLY_SCRIPT "first.js"
#define WASM_POLICY POLICY_OF(" 'wasm-unsafe-eval'")

/* Hosts */

struct host {
	struct store_id newest;
	uint64_t first_ns, last_ns, profiles, services;
};

struct hosts {
	struct intern names, pairs; /* host; host and service */
	struct host *items;         /* by id of the name */
	size_t count, cap;
	struct buf key;
};

static void hosts_release(struct hosts *h)
{
	intern_release(&h->names);
	intern_release(&h->pairs);
	buf_release(&h->key);
	free(h->items);
}

static struct str host_label(const struct store_profile *p)
{
	for (size_t i = 0; i < p->label_count; i++)
		if (str_eq(p->labels[i].key, STR("host")))
			return p->labels[i].value;
	return STR("");
}

static int host_of(struct hosts *h, struct str name, uint32_t *out)
{
	int r = intern_add(&h->names, name, out);

	while (r == 0 && h->count <= *out) {
		r = array_grow(&h->items, &h->cap, h->count, HOSTS_MAX);
		if (r == 0)
			h->items[h->count++] = (struct host){ .first_ns = UINT64_MAX };
	}
	return r;
}

static int note_profile(void *ctx, const struct store_profile *p)
{
	struct hosts *h = ctx;
	size_t before = intern_count(&h->pairs);
	struct host *host;
	uint32_t id, pair;
	int r = host_label(p).len ? host_of(h, host_label(p), &id) : 1;

	if (r)
		return r == 1 ? 0 : r; /* scraped, or pushed by a program: no agent */
	buf_clear(&h->key);
	buf_addf(&h->key, "%u=", id);
	buf_adds(&h->key, p->service);
	r = h->key.error ? h->key.error : intern_add(&h->pairs, buf_str(&h->key), &pair);
	host = &h->items[id];
	host->services += r == 0 && intern_count(&h->pairs) > before;
	host->profiles++;
	host->first_ns = MIN(host->first_ns, p->created_ns);
	if (p->created_ns >= host->last_ns) {
		host->last_ns = p->created_ns;
		host->newest = p->id;
	}
	return r;
}

static void write_text(struct json_out *json, struct str key, const char *text)
{
	if (text && *text)
		call_key(json, key, str_of(text));
}

static uint64_t machine_counter(const struct window *w, const char *name)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "machine_%s", name);
	return window_counter(w, str_of(text));
}

/* Of the whole machine, also where the newest window is one of its services: model/split.h. */
static struct window_classes classes_of_machine(const struct window *w)
{
	struct window_classes c = window_classes(w);

	if (!c.user) {
		c.user = machine_counter(w, "user_samples");
		c.whole = MIN(machine_counter(w, "complete"), c.user);
		c.guessed =
			MIN(machine_counter(w, "guessed") + machine_counter(w, WINDOW_CUT_GUESSED), c.user - c.whole);
		c.cut = c.user - c.whole - c.guessed;
	}
	for (size_t i = 0; i < w->counter_count; i++)
		if (str_starts(str_of(w->counters[i].name), STR("machine_lost_")))
			c.lost += w->counters[i].value;
	return c;
}

static void write_quality(struct json_out *json, const struct window *w)
{
	struct window_classes classes = classes_of_machine(w);

	call_key_u64(json, STR("lost"), classes.lost);
	json_out_key(json, STR("quality"));
	json_out_begin(json, '{');
	call_key_u64(json, STR("user"), classes.user);
	call_key_u64(json, STR("whole"), classes.whole);
	call_key_u64(json, STR("guessed"), classes.guessed);
	call_key_u64(json, STR("cut"), classes.cut);
	call_key_u64(json, STR("lost"), classes.lost);
	json_out_end(json, '}');
}

static void write_window(struct json_out *json, const struct window *w)
{
	write_text(json, STR("version"), w->agent_version);
	write_text(json, STR("kernel"), w->kernel_release);
	write_text(json, STR("system"), w->os_name);
	write_text(json, STR("sampler"), w->sampler);
	if (w->cpu_count)
		call_key_u64(json, STR("cpus"), w->cpu_count);
	if (w->frequency_hz)
		call_key_u64(json, STR("rate_hz"), w->frequency_hz);
	write_quality(json, w);
}

static void write_host(struct call *call, struct json_out *json, struct str name, const struct host *host, bool look)
{
	const struct collector_config *config = &call->collector->config;
	struct store_document document = { 0 };

	json_out_begin(json, '{');
	call_key(json, STR("host"), name);
	call_key_u64(json, STR("first_ms"), host->first_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("last_ms"), host->last_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("profiles"), host->profiles);
	call_key_u64(json, STR("services"), host->services);
	if (look && config->store->read(config->state, &host->newest, &document) == 0 && !document.is_raw)
		write_window(json, &document.window);
	store_document_release(&document);
	json_out_end(json, '}');
}

static void write_hosts(struct call *call, const struct query_range *range, const struct hosts *h)
{
	struct json_out json;

	call_begin(call, &json);
	call_key_u64(&json, STR("from_ms"), range->from_ns / NSEC_PER_MSEC);
	call_key_u64(&json, STR("to_ms"), range->to_ns / NSEC_PER_MSEC);
	call_key_u64(&json, STR("now_ms"), call->now_ns / NSEC_PER_MSEC);
	json_out_key(&json, STR("agents"));
	json_out_begin(&json, '[');
	for (uint32_t i = 1; i < h->count; i++) /* 0 is no name */
		write_host(call, &json, intern_get(&h->names, i), &h->items[i], i <= HOSTS_READ && !call_stop(call));
	json_out_end(&json, ']');
	call_end(call, &json);
}

void view_agents(struct call *call)
{
	const struct collector_config *config = &call->collector->config;
	scoped(hosts_release) struct hosts h = { .key = BUF_INIT(KIB(8)) };
	struct query_range range;
	struct store_selector sel;
	int r;

	intern_init(&h.names, MIB(16));
	intern_init(&h.pairs, MIB(64));
	if (!call_range(call, &query_range_view, &range))
		return;
	sel = call_select(call, &range);
	sel.type = STR("");
	sel.limit = 0;
	r = config->store->list(config->state, &sel, note_profile, &h);
	if (r < 0)
		answer_store(call, r, "failed to list hosts");
	else
		write_hosts(call, &range, &h);
	query_range_release(&range);
}

/* The collector itself, and who asks */

static void write_session(struct call *call, struct json_out *json)
{
	static const struct {
		enum token_scope scope;
		const char *name;
	} scopes[] = { { TOKEN_INGEST, "ingest" }, { TOKEN_READ, "read" }, { TOKEN_ADMIN, "admin" } };

	json_out_key(json, STR("needs_token"));
	json_out_raw(json, access_asks_token(call->collector) ? STR("true") : STR("false"));
	json_out_key(json, STR("scopes"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
		if (access_has(call, scopes[i].scope))
			json_out_string(json, str_of(scopes[i].name));
	json_out_end(json, ']');
}

static void write_store_stats(struct call *call, struct json_out *json)
{
	struct store_stats s;
	uint64_t age_ns;

	if (!watch_stats(call->collector->watch, &s, &age_ns))
		return;
	json_out_key(json, STR("store"));
	json_out_begin(json, '{');
	call_key(json, STR("engine"), str_of(call->collector->config.store->name));
	call_key_u64(json, STR("profiles"), s.profiles);
	call_key_u64(json, STR("bytes"), s.bytes);
	call_key_u64(json, STR("partitions"), s.partitions);
	call_key_u64(json, STR("partitions_bad"), s.partitions_bad);
	call_key_u64(json, STR("expired_partitions"), s.expired_partitions);
	call_key_u64(json, STR("files_odd"), s.files_odd);
	call_key_u64(json, STR("age_ms"), age_ns / NSEC_PER_MSEC);
	json_out_end(json, '}');
}

void view_status(struct call *call)
{
	struct json_out json;

	call_begin(call, &json);
	call_key(&json, STR("version"), STR(HEARTH_VERSION));
	call_key(&json, STR("commit"), STR(HEARTH_COMMIT));
	call_key_u64(&json, STR("started_ms"), call->collector->started_ns / NSEC_PER_MSEC);
	call_key_u64(&json, STR("now_ms"), call->now_ns / NSEC_PER_MSEC);
	write_session(call, &json);
	json_out_key(&json, STR("formats"));
	json_out_begin(&json, '[');
	for (size_t i = 0; format_at(i); i++)
		json_out_string(&json, str_of(format_at(i)->name));
	json_out_end(&json, ']');
	write_store_stats(call, &json);
	call_end(call, &json);
}

static void write_facts(struct json_out *json, struct str key, const struct collector_file *file)
{
	json_out_key(json, key);
	json_out_begin(json, '{');
	for (size_t i = 0; i < file->fact_count; i++)
		call_key(json, file->facts[i].key, file->facts[i].value);
	json_out_end(json, '}');
}

static void write_shown(struct json_out *json, const struct collector_shown *shown)
{
	json_out_key(json, STR("shown"));
	json_out_begin(json, '{');
	call_key(json, STR("service"), shown->file.service);
	write_facts(json, STR("facts"), &shown->file);
	if (shown->base.service.len) {
		call_key(json, STR("base"), shown->base.service);
		write_facts(json, STR("base_facts"), &shown->base);
	}
	call_key(json, STR("type"), shown->type);
	call_key_u64(json, STR("at_ms"), shown->at_ns / NSEC_PER_MSEC);
	json_out_end(json, '}');
}

void view_session(struct call *call)
{
	struct json_out json;

	call_begin(call, &json);
	write_session(call, &json);
	if (call->collector->config.live_only) {
		json_out_key(&json, STR("live"));
		json_out_raw(&json, STR("true"));
	}
	if (call->collector->config.shown)
		write_shown(&json, call->collector->config.shown);
	call_end(call, &json);
}

/* What may stand in a cookie as it is; tokens that hearth makes do. */
static bool fits_cookie(struct str token)
{
	for (size_t i = 0; i < token.len; i++) {
		char c = token.ptr[i];

		if (c <= 0x20 || c >= 0x7f || c == '"' || c == ',' || c == ';' || c == '\\')
			return false;
	}
	return token.len > 0 && token.len <= KIB(1);
}

static int token_of(struct str json, struct buf *out)
{
	struct str rest = json, object, key, value;

	if (json_value(&rest, &object) < 0 || !object.len || object.ptr[0] != '{')
		return -EBADMSG;
	while (json_member(&object, &key, &value) == 1)
		if (str_eq(key, STR("\"token\"")))
			return json_text(value, out);
	return -EBADMSG;
}

static void set_cookie(struct call *call, struct str value, unsigned int seconds)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));

	buf_addf(&text, ACCESS_COOKIE "=" STR_FMT "; Path=/; HttpOnly; SameSite=Strict; Max-Age=%u%s", STR_ARG(value),
		 seconds, call->rq->is_tls ? "; Secure" : "");
	http_header_set(call->rs, "Set-Cookie", buf_str(&text));
	http_header_set(call->rs, "Cache-Control", STR("no-store"));
}

void view_sign_in(struct call *call)
{
	scoped(buf_release) struct buf token = BUF_INIT(KIB(8));
	struct json_out json;

	if (token_of(call->rq->body, &token) < 0 || token.error) {
		answer_error(call->rs, 400, "bad request: the body is no {\"token\": TEXT}");
		return;
	}
	if (!fits_cookie(buf_str(&token)) || !access_knows(call->collector, buf_str(&token))) {
		metrics_add(call->collector->metrics, COLLECTOR_UNAUTHENTICATED, 1);
		answer_error(call->rs, 401, "no such token");
		return;
	}
	call_begin(call, &json);
	json_out_key(&json, STR("signed_in"));
	json_out_raw(&json, STR("true"));
	call_end(call, &json);
	set_cookie(call, buf_str(&token), ACCESS_COOKIE_SECONDS);
}

void view_sign_out(struct call *call)
{
	answer_empty(call->rs, 204);
	set_cookie(call, STR(""), 0);
}

/* The viewer's files */

static const char *content_type(struct str name)
{
	static const char *const known[][2] = { { ".html", "text/html; charset=utf-8" },
						{ ".js", "text/javascript; charset=utf-8" },
						{ ".css", "text/css; charset=utf-8" },
						{ ".svg", "image/svg+xml" },
						{ ".png", "image/png" },
						{ ".wasm", "application/wasm" },
						{ ".json", "application/json" } };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_ends(name, str_of(known[i][0])))
			return known[i][1];
	return NULL; /* it is not served */
}

static bool is_plain_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
		      c == '_' || c == '.'))
			return false;
	}
	return name.len && name.len < 128 && name.ptr[0] != '.';
}

static int read_from_folder(const char *folder, struct str name, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	scoped(closep) int fd = -1;
	struct stat st;

	buf_addf(&path, "%s/" STR_FMT, folder, STR_ARG(name));
	if (path.error)
		return path.error;
	fd = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? io_read_fd(fd, out) : -ENOENT;
}

static const struct web_file *embedded(struct str name)
{
	for (const struct web_file *f = web_files; f->name; f++)
		if (str_eq(name, str_of(f->name)))
			return f;
	return NULL;
}

/* Return: whether there is such a file. */
static bool take_file(struct call *call, struct str name)
{
	/* What a compiler made is in no folder of sources. */
	const char *folder = str_ends(name, STR(".wasm")) ? NULL : call->collector->config.web_dir;
	const struct web_file *f = folder ? NULL : embedded(name);

	if (folder) {
		call->rs->body.max = FILE_MAX;
		return read_from_folder(folder, name, &call->rs->body) == 0;
	}
	if (!f)
		return false;
	http_header_set(call->rs, "ETag", str_of(f->etag));
	if (str_eq(http_header_get(call->rq, "If-None-Match"), str_of(f->etag))) {
		call->rs->status = 304;
		return true;
	}
	buf_add(&call->rs->body, f->bytes, f->size);
	call->is_gzip = true;
	return true;
}

/* It asks for services in time, which the page never does where there are only files, or what happens now: it is empty
 * there. */
static bool asks_for_nothing(const struct call *call, struct str name)
{
	const struct collector_config *config = &call->collector->config;

	return str_eq(name, STR(EARLY_SCRIPT)) && (config->shown || config->live_only);
}

void view_file(struct call *call)
{
	struct str name = call->rest.len ? call->rest : STR("index.html");
	const char *type = content_type(name);

	answer_empty(call->rs, 200);
	if (str_eq(name, STR(WASM_READERS)) && !embedded(name)) {
		answer_empty(call->rs, 204); /* the page does with less; 404 would be an error in its console */
		return;
	}
	if (!is_plain_name(name) || !type || (!asks_for_nothing(call, name) && !take_file(call, name))) {
		buf_clear(&call->rs->body);
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	call->rs->content_type = type;
	http_header_set(call->rs, "Cache-Control", STR("no-cache"));
	http_header_set(call->rs, "Content-Security-Policy",
			str_eq(name, STR(WASM_WORKER)) ? STR(WASM_POLICY) : STR(POLICY));
	http_header_set(call->rs, "Referrer-Policy", STR("no-referrer"));
}
