/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/safe.h"
#include "cli/terminal_size.h"

#define SHOW_PERIOD_NS (500 * NSEC_PER_MSEC)

void progress_begin(struct progress *p, bool quiet)
{
	*p = (struct progress){ .on = !quiet && isatty(STDERR_FILENO), .begin_ns = clock_monotonic_ns(&clock_system) };
	p->shown_ns = p->begin_ns;
}

void progress_time(uint64_t ns, char out[32])
{
	uint64_t s = (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;

	if (s < 90)
		(void)snprintf(out, 32, "%llu s", (unsigned long long)s);
	else if (s < 5400)
		(void)snprintf(out, 32, "%llu min %llu s", (unsigned long long)(s / 60), (unsigned long long)(s % 60));
	else
		(void)snprintf(out, 32, "%llu h %llu min", (unsigned long long)(s / 3600),
			       (unsigned long long)(s / 60 % 60));
}

void progress_show(struct progress *p, uint64_t done, uint64_t total, const char *what)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(8)), shown = BUF_INIT(KIB(8));
	uint64_t now = clock_monotonic_ns(&clock_system), elapsed = now - p->begin_ns;
	size_t width = terminal_width(STDERR_FILENO);
	char time[32];

	if (!p->on || now - p->shown_ns < SHOW_PERIOD_NS)
		return;
	p->shown_ns = now;
	progress_time(elapsed, time);
	buf_addf(&line, "%s", time);
	if (total && done && done <= total && elapsed >= NSEC_PER_SEC) {
		progress_time((uint64_t)((double)elapsed * (double)(total - done) / (double)done), time);
		buf_addf(&line, ", %u %%, about %s left", (unsigned)(100 * (double)done / (double)total), time);
	}
	buf_addf(&line, ": %s", what);
	safe_add(&shown, str_first(buf_str(&line), width > 1 ? width - 1 : 79));
	fprintf(stderr, "\r" STR_FMT "\033[K", STR_ARG(buf_str(&shown)));
	fflush(stderr);
}

void progress_end(const struct progress *p)
{
	if (p->on && p->shown_ns != p->begin_ns)
		fputs("\r\033[K", stderr);
}
