/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text to the HTML page, with what it cost on stderr: "cpu_s peak_anon_mib html_bytes".
 *
 *   html_folded IN.folded OUT.html [TITLE] */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/io.h"
#include "render/render.h"

static void io_mapp(struct io_map *map)
{
	io_map_release(map);
}

/* The highest anonymous size is not kept by the kernel: the peak of everything less what is of files now. */
static void print_cost(size_t html_size)
{
	scoped(buf_release) struct buf status = BUF_INIT(KIB(64));
	struct rusage use;
	unsigned long peak = 0, file = 0;
	const char *at;

	if (getrusage(RUSAGE_SELF, &use) || io_read_file("/proc/self/status", &status))
		return;
	at = strstr(buf_cstr(&status), "VmHWM:");
	if (at)
		peak = strtoul(at + 6, NULL, 10);
	at = strstr(buf_cstr(&status), "RssFile:");
	if (at)
		file = strtoul(at + 8, NULL, 10);
	fprintf(stderr, "cpu_s=%.2f user_s=%.2f peak_less_file_mib=%.0f html_bytes=%zu\n",
		(double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			(double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
		(double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6,
		(double)(peak - MIN(peak, file)) / 1024, html_size);
}

int main(int argc, char **argv)
{
	scoped(io_mapp) struct io_map map = { 0 };
	scoped(buf_release) struct buf html = BUF_INIT(GIB(1));
	struct render_html_config cfg = { .title = argc > 3 ? argv[3] : "Folded profile" };
	uint64_t bad_line = 0;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: html_folded IN.folded OUT.html [TITLE]\n");
		return 2;
	}
	r = io_map_open(argv[1], &map);
	if (!r)
		r = render_html_folded(str_n(map.bytes, map.size), &cfg, &html, &bad_line);
	if (!r)
		r = io_replace_file(argv[2], html.ptr, html.len);
	if (r < 0) {
		fprintf(stderr, "html_folded: %s: line %llu: %s\n", argv[1], (unsigned long long)bad_line,
			strerror(-r));
		return 1;
	}
	print_cost(html.len);
	return 0;
}
