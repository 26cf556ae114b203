/* SPDX-License-Identifier: Apache-2.0 */
/* Health, readiness, metrics. */
#include "base/log.h"
#include "collector/collector_int.h"

static void text(struct call *call, unsigned int status, struct str what)
{
	answer_empty(call->rs, status);
	call->rs->content_type = "text/plain; charset=utf-8";
	buf_adds(&call->rs->body, what);
}

void ops_health(struct call *call)
{
	text(call, 200, STR("ok\n"));
}

void ops_ready(struct call *call)
{
	if (atomic_load(&call->collector->ready)) {
		text(call, 200, STR("ready\n"));
		return;
	}
	http_header_set(call->rs, "Retry-After", STR("1"));
	text(call, 503, STR("loading what recent services need\n"));
}

static void write_store(struct call *call, struct buf *out)
{
	struct store_stats s;
	uint64_t age_ns;

	if (!watch_stats(call->collector->watch, &s, &age_ns))
		return;
	metrics_gauge(out, "hearth_store_stats_age_seconds", "how old the store's numbers are: it may be busy",
		      age_ns / NSEC_PER_SEC);
	metrics_gauge(out, "hearth_store_profiles", "stored profiles", s.profiles);
	metrics_gauge(out, "hearth_store_bytes", "bytes on disk", s.bytes);
	metrics_gauge(out, "hearth_store_partitions", "files in use", s.partitions);
	metrics_gauge(out, "hearth_store_partitions_damaged", "files set aside because they are damaged",
		      s.partitions_bad);
	metrics_gauge(out, "hearth_store_files_odd", "files out of service that are left as they are", s.files_odd);
	metrics_counter(out, "hearth_store_rows_damaged_total",
			"profiles that closing a day could not read; their file was set aside", s.rows_bad);
	metrics_gauge(out, "hearth_store_dictionary_bytes", "memory of dictionaries", s.dictionary_bytes);
	metrics_counter(out, "hearth_store_commits_total", "transactions", s.commits);
	metrics_counter(out, "hearth_store_puts_total", "profiles put", s.puts);
	metrics_counter(out, "hearth_store_puts_failed_total", "profiles that could not be put", s.puts_failed);
	metrics_counter(out, "hearth_store_expired_partitions_total", "files removed by retention",
			s.expired_partitions);
}

static void write_snapshots(struct snapshots *snapshots, struct buf *out)
{
	struct snapshots_stats s;

	if (!snapshots)
		return;
	snapshots_stats(snapshots, &s);
	metrics_gauge(out, "hearth_snapshots", "results that are kept", s.count);
	metrics_gauge(out, "hearth_snapshots_bytes", "bytes of all snapshots", s.size);
	metrics_gauge(out, "hearth_snapshots_max", "how many may be kept", s.count_max);
	metrics_gauge(out, "hearth_snapshots_bytes_max", "bytes that they may take", s.size_max);
	metrics_gauge(out, "hearth_snapshots_odd", "snapshots out of service when the collector started", s.odd);
}

static void write_series(struct call *call, struct buf *out)
{
	metrics_gauge(out, "hearth_series_active", "series written to in the last one to two hours",
		      cardinality_count(call->collector->cardinality));
}

static void write_recall(struct call *call, struct buf *out)
{
	struct recall_stats s;

	recall_stats(call->collector->recall, &s);
	metrics_gauge(out, "hearth_flame_cache_bytes", "memory of flame graphs kept for the next question", s.bytes);
	metrics_gauge(out, "hearth_flame_cache_bytes_max", "bytes that they may take", s.bytes_max);
	metrics_gauge(out, "hearth_flame_cache_items", "trees and answers that are kept", s.count);
	metrics_counter(out, "hearth_flame_cache_hits_total", "trees and answers that were there", s.hits);
	metrics_counter(out, "hearth_flame_cache_misses_total", "those that had to be made", s.misses);
}

static void write_server(struct http_server *server, struct buf *out)
{
	struct http_stats s;

	if (!server)
		return;
	http_server_stats(server, &s);
	metrics_gauge(out, "hearth_http_connections", "open connections", s.connections);
	metrics_gauge(out, "hearth_http_waiting_writes", "uploads that wait for a worker",
		      s.waiting[HTTP_LANE_WRITE] + s.waiting[HTTP_LANE_LARGE]);
	metrics_gauge(out, "hearth_http_waiting_reads", "queries that wait for a worker",
		      s.waiting[HTTP_LANE_READ] + s.waiting[HTTP_LANE_MERGE]);
	metrics_gauge(out, "hearth_http_body_bytes", "memory of request bodies", s.body_bytes);
	metrics_gauge(out, "hearth_http_answer_bytes", "memory of large answers on their way out", s.answer_bytes);
	metrics_counter(out, "hearth_http_accepted_total", "connections that were accepted", s.accepted);
	metrics_counter(out, "hearth_http_refused_busy_total", "requests refused: too many wait", s.refused_busy);
	metrics_counter(out, "hearth_http_refused_bytes_total", "requests refused: too many bytes of bodies at once",
			s.refused_bytes);
	metrics_counter(out, "hearth_http_refused_answers_total",
			"answers refused: too many bytes wait for their readers", s.refused_answers);
	metrics_counter(out, "hearth_http_timed_out_total", "connections ended for being slow", s.timed_out);
	metrics_counter(out, "hearth_http_made_room_total",
			"connections ended because there were many: of the address that held most", s.made_room);
}

void ops_metrics(struct call *call)
{
	struct buf *out = &call->rs->body;

	answer_empty(call->rs, 200);
	call->rs->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_gauge(out, "hearth_start_time_seconds", "when the collector started, since 1970",
		      call->collector->started_ns / NSEC_PER_SEC);
	write_store(call, out);
	write_snapshots(call->collector->config.snapshots, out);
	write_series(call, out);
	write_recall(call, out);
	write_server(call->collector->server, out);
	metrics_counter(out, "hearth_log_dropped_total", "lines of the log that nobody took in time", log_dropped());
	metrics_write(call->collector->metrics, out);
}

/* profefe answered with profiles of its own Go program here. */
void ops_debug(struct call *call)
{
	answer_error(call->rs, 404, "not implemented: hearth record -p PID profiles the collector from outside");
}
