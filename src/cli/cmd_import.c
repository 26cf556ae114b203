/* SPDX-License-Identifier: Apache-2.0 */
/* hearth import FILE...: profile files and folders into a collector. */
#include <fts.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "cli/input.h"
#include "cli/memory.h"
#include "cli/progress.h"
#include "cli/push_options.h"
#include "codec/gzip.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "query/params.h"

#define COLLECTOR_DEFAULT "http://localhost:10100"
#define PROFILE_MAX GIB(1)
#define GZIP_LEVEL 6
#define ATTEMPTS_MAX 5
#define PAUSE_NS NSEC_PER_SEC
#define PAUSE_MAX_NS (60 * NSEC_PER_SEC)
#define REQUEST_NS (300 * NSEC_PER_SEC)

struct config {
	uint64_t memory_bytes;
	const char *service, *type;
	struct push_options push;
	bool quiet;
};

static const struct opt options[] = {
	{ "service", 0, OPT_TEXT, .at = offsetof(struct config, service), .arg = "NAME",
	  .help = "what the profiles belong to; required" },
	{ "type", 0, OPT_TEXT, .at = offsetof(struct config, type), .arg = "NAME",
	  .help = "cpu, heap, allocs, block, mutex, goroutine, threadcreate, wall, offcpu, trace or other (default: by "
		  "content; block and mutex profiles look the same and need it)" },
	{ "push", 0, OPT_TEXT, .at = offsetof(struct config, push.url), .arg = "URL",
	  .help = "the collector (default: the environment's PROFEFE_COLLECTOR, else " COLLECTOR_DEFAULT ")" },
	PUSH_TARGET_OPTIONS(struct config, push),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "do not print what was stored" },
	MEMORY_OPTION(struct config, memory_bytes),
	{ 0 },
};

struct import {
	const struct config *config;
	struct http_client *client;
	struct buf url, token;
	struct window_label labels[OPT_LIST_MAX];
	uint64_t run[2];
	uint64_t seen, stored, failed, skipped;
	bool unreachable; /* the rest is not even tried */
	struct progress progress;
	uint64_t done_bytes, total_bytes; /* of the files */
};

/* A file as it goes out. */
struct document {
	struct str type, body;
	uint64_t created_ns; /* for files that do not say */
	struct buf packed;   /* the body, when the file had to be converted */
};

static int fail_file(struct import *in, const char *path, const char *why)
{
	progress_end(&in->progress);
	in->failed++;
	return command_fail(&command_import, "%s: %s", path, why);
}

/* Converted when a collector of profefe's kind does not read it: everything but pprof and its legacy forms. */
static int read_profile(struct import *in, const char *path, struct str bytes, const struct codec *codec,
			struct document *out)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error = { 0 };
	int r = input_decode(codec, bytes, &w, &error);
	char room[160];

	if (r == -ENOMEM || r == -E2BIG)
		return fail_file(in, path, memory_reason(r, room));
	if (r < 0)
		return fail_file(in, path, error.reason[0] ? error.reason : strerror(-r));
	if (!out->type.len)
		out->type = query_type_detect(w.model);
	if (!w.model->samples_count && model_value_index(w.model, STR("contentions")) >= 0) {
		in->skipped++; /* a healthy program waits for nothing */
		return EXIT_USAGE;
	}
	if (!in->config->type && model_value_index(w.model, STR("contentions")) >= 0)
		return fail_file(in, path, "is it a block or a mutex profile? --type says it");
	if (!w.model->samples_count)
		return fail_file(in, path, "there are no samples in it");
	out->body = bytes;
	if (codec == &codec_pprof || codec == &codec_legacy)
		return EXIT_DONE;
	r = pprof_encode_level(&w, GZIP_LEVEL, &out->packed);
	out->body = buf_str(&out->packed);
	return r < 0 ? fail_file(in, path, strerror(-r)) : EXIT_DONE;
}

/* @named: on the command line; what lies around in folders besides is passed over. */
static int read_document(struct import *in, const char *path, struct str bytes, bool named, struct document *out)
{
	const struct codec *codec = codec_sniff(bytes);

	out->type = str_of(in->config->type ? in->config->type : "");
	if (query_is_trace(bytes) || str_eq(out->type, STR("trace"))) {
		out->type = STR("trace");
		out->body = bytes;
		return EXIT_DONE;
	}
	if (!codec && codec_for_path(str_of(path)))
		codec = codec_for_path(str_of(path));
	if (bytes.len && codec && codec->decode)
		return read_profile(in, path, bytes, codec, out);
	if (named)
		return fail_file(in, path, bytes.len ? "not a profile in a known format" : "the file is empty");
	in->skipped++;
	return EXIT_USAGE; /* not sent, not failed */
}

static void pause_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	ignore(nanosleep(&t, NULL)); /* a signal ends the program, or makes it a little impatient */
}

/* Every attempt with the same key; another run has others: equal files sent twice are two profiles. */
static void send_document(struct import *in, const struct upload *u, struct upload_result *result)
{
	const struct upload_target target = { .client = in->client, .url = in->url.ptr, .token = buf_str(&in->token) };

	for (uint32_t attempt = 1;; attempt++) {
		uint64_t wait;

		upload_send(&target, u, result);
		if (result->outcome != UPLOAD_AGAIN || attempt == ATTEMPTS_MAX)
			return;
		wait = push_pause_ns(PAUSE_NS, attempt, random_u64());
		if (result->has_retry_after)
			wait = MAX(wait, result->retry_after_ns);
		pause_ns(MIN(wait, PAUSE_MAX_NS));
	}
}

static void say_stored(struct import *in, const char *path, const struct document *d, const char *id)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));

	in->stored++;
	if (in->config->quiet)
		return;
	progress_end(&in->progress);
	buf_addf(&line, "%s: " STR_FMT " %s\n", path, STR_ARG(d->type), *id ? id : "stored");
	ignore(command_print(&command_import, &line)); /* it said so */
}

/* A collector of profefe's kind takes gzip off pprof and its legacy forms itself; other formats are read here. */
static struct str without_gzip(struct str bytes, struct buf *room)
{
	const struct codec *codec = NULL;

	if (gzip_is(bytes) && gzip_unpack(bytes, PROFILE_MAX, 0, room) == 0)
		codec = codec_sniff(buf_str(room));
	return codec && codec != &codec_pprof && codec != &codec_legacy ? buf_str(room) : bytes;
}

static void import_bytes(struct import *in, const char *path, struct str bytes, bool named, uint64_t mtime_ns)
{
	struct document d = { .created_ns = mtime_ns, .packed = BUF_INIT(PROFILE_MAX) };
	scoped(buf_release) struct buf plain = BUF_INIT(PROFILE_MAX);
	scoped(buf_release) struct buf query = BUF_INIT(UPLOAD_QUERY_MAX), key = BUF_INIT(UPLOAD_KEY_MAX);
	struct upload_result result;
	struct upload u;

	if (read_document(in, path, without_gzip(bytes, &plain), named, &d) == EXIT_DONE) {
		upload_query(&query, str_of(in->config->service), d.type, in->labels, in->config->push.labels.count,
			     d.created_ns);
		buf_addf(&key, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64, in->run[0], in->run[1], in->seen);
		u = (struct upload){ .query = buf_str(&query), .key = buf_str(&key), .body = d.body };
		send_document(in, &u, &result);
		in->unreachable = result.outcome == UPLOAD_AGAIN && !result.status;
		if (result.outcome == UPLOAD_DONE)
			say_stored(in, path, &d, result.id);
		else
			ignore(fail_file(in, path, result.why));
	}
	buf_release(&d.packed);
}

static void show_progress(struct import *in)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "%" PRIu64 " stored, %" PRIu64 " failed: reading the next", in->stored,
		       in->failed);
	progress_show(&in->progress, in->done_bytes, in->total_bytes, text);
}

static void import_file(struct import *in, const char *path, bool named, const struct stat *st)
{
	scoped(input_bytes_release) struct input_bytes file = { 0 };
	uint64_t mtime_ns = st->st_mtim.tv_sec < 0 ? 0 : (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC;

	in->seen++;
	show_progress(in);
	in->done_bytes += st->st_size > 0 ? (uint64_t)st->st_size : 0;
	if (input_bytes_open(&command_import, path, &file) != EXIT_DONE)
		in->failed++;
	else
		import_bytes(in, path, file.bytes, named, mtime_ns);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void visit(struct import *in, const FTSENT *e)
{
	bool named = e->fts_level == 0;

	switch (e->fts_info) {
	case FTS_F:
		import_file(in, e->fts_path, named, e->fts_statp);
		break;
	case FTS_DEFAULT: /* a pipe by its name (<(command) of a shell) is read, other such things are not met by chance
			   */
		if (named)
			import_file(in, e->fts_path, named, e->fts_statp);
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		ignore(fail_file(in, e->fts_path, strerror(e->fts_errno)));
		break;
	default: /* folders, and links inside of them */
		break;
	}
}

/* How much there is, where somebody looks at the progress. */
static uint64_t total_of(char **operands)
{
	FTS *fts = fts_open(operands, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	uint64_t total = 0;

	for (const FTSENT *e; fts && (e = fts_read(fts));)
		total += e->fts_info == FTS_F && e->fts_statp->st_size > 0 ? (uint64_t)e->fts_statp->st_size : 0;
	if (fts)
		fts_close(fts);
	return total;
}

static int walk(struct import *in, char **operands)
{
	FTS *fts = fts_open(operands, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	const FTSENT *e;
	int r;

	if (!fts)
		return command_fail(&command_import, "%s", strerror(errno));
	in->total_bytes = in->progress.on ? total_of(operands) : 0;
	while (!in->unreachable && (errno = 0, e = fts_read(fts)))
		visit(in, e);
	r = in->unreachable ? 0 : errno;
	fts_close(fts);
	return r ? command_fail(&command_import, "%s", strerror(r)) : EXIT_DONE;
}

static int prepare(struct import *in)
{
	struct http_client_config http = { .total_ns = REQUEST_NS };
	const struct config *config = in->config;
	const char *url = config->push.url ? config->push.url : getenv("PROFEFE_COLLECTOR");
	scoped(buf_release) struct buf why = BUF_INIT(KIB(32));
	int e;

	if (!config->service || !*config->service) {
		command_fail(&command_import, "give --service NAME: what the profiles belong to");
		return EXIT_USAGE;
	}
	if (config->type && !query_type_known(str_of(config->type))) {
		command_fail(&command_import, "--type: '%s' is no type of a profile", config->type);
		return EXIT_USAGE;
	}
	e = upload_collector_url(&in->url, str_of(url && *url ? url : COLLECTOR_DEFAULT), &why);
	(void)buf_cstr(&in->url);
	if (e == -EINVAL) {
		command_fail(&command_import, "--push: %s", buf_cstr(&why));
		return EXIT_USAGE;
	}
	e = push_token(&command_import, &config->push, &in->token);
	if (e == EXIT_DONE)
		e = push_labels(&command_import, &config->push, in->labels);
	if (e != EXIT_DONE)
		return e;
	http.ca_file = config->push.ca_file;
	http.no_verify = config->push.insecure;
	in->run[0] = random_u64();
	in->run[1] = random_u64();
	progress_begin(&in->progress, config->quiet);
	if (in->url.error || http_client_open(&http, &in->client) < 0)
		return command_fail(&command_import, "out of memory");
	return EXIT_DONE;
}

static void import_release(struct import *in)
{
	http_client_close(in->client);
	buf_release(&in->url);
	buf_release(&in->token);
	push_labels_release(in->labels, ARRAY_SIZE(in->labels));
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(import_release) struct import in = { .config = config,
						    .url = BUF_INIT(KIB(8)),
						    .token = BUF_INIT(KIB(8)) };
	int e;

	(void)operand_count;
	memory_limit(in.config->memory_bytes);
	e = prepare(&in);
	if (e == EXIT_DONE)
		e = walk(&in, operands);
	progress_end(&in.progress);
	if (in.unreachable)
		command_fail(&command_import, "the collector does not answer: the rest was not sent");
	if (e == EXIT_DONE && !in.config->quiet && in.seen != 1)
		fprintf(stderr,
			"%" PRIu64 " stored, %" PRIu64 " failed, %" PRIu64 " passed over that are none or empty\n",
			in.stored, in.failed, in.skipped);
	return e == EXIT_DONE && in.failed ? EXIT_FAILED : e;
}

static const struct opt_group groups[] = { { NULL, options }, { 0 } };
static const char *const examples[] = {
	"hearth import --service api --label dc=fra -- cpu.pb.gz heap.pb.gz",
	"two files into the collector of this machine",
	"hearth import --service api --push https://collector:10100 --token-file token profiles/",
	"a folder and what is below it", NULL
};

const struct command command_import = {
	.name = "import",
	.summary = "store profile files in a collector",
	.operands = "FILE|DIR...",
	.details = "Takes the options of profefe's import script. Prints each file with its type and the id the "
		   "collector gave it.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.operands_min = 1,
	.operands_max = -1,
	.run = run,
};
