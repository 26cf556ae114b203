/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors as Prometheus and Pyroscope write them: {service_name="a", region!="eu", host=~"web-.*", pod!~"x|y"}. Pure
 * parsers of bytes that come from strangers. Source: prometheus.io/docs/prometheus/latest/querying/basics. */
#pragma once

#include "query/column.h"
#include "query/regex.h"

#define MATCHERS_MAX 32
#define MATCHERS_STEPS_MAX (UINT64_C(1) << 31) /* of all regular expressions of a request: some ten seconds */

enum matcher_op { MATCHER_EQUAL, MATCHER_NOT_EQUAL, MATCHER_FITS, MATCHER_FITS_NOT };

struct matcher {
	struct str name, value; /* in matchers.bytes */
	enum matcher_op op;
	struct regex *regex; /* of the last two */
};

struct matchers {
	struct matcher items[MATCHERS_MAX];
	size_t count;
	struct buf bytes;
	uint64_t steps, steps_max; /* steps_max: 0 for MATCHERS_STEPS_MAX */
	bool is_literal; /* set before the parser: names are those of a series' labels, letter by letter, and nothing
			    else */
	bool exhausted;  /* steps_max was not enough: nothing fits any more */
	bool *told;      /* set, too, when that happens; may be NULL */
};

void matchers_release(struct matchers *m); /* a zeroed one is fine */

/**
 * matchers_parse - add those of @text to @m, braces around them or not; labels that begin with a letter or '_', or are
 * quoted
 * @why: on failure the reason
 *
 * Return: 0, -EBADMSG, -E2BIG (too many, or a regular expression that is too large), -ENOMEM. @m needs a release in any
 * case.
 */
int matchers_parse(struct str text, struct matchers *m, struct buf *why) warn_unused;

/**
 * matchers_fit - whether a series is meant, as store_selector.fits asks; @m is a struct matchers
 * A label that is not there has the empty value. service_name is the service, __name__ the metric; what is said of
 * columns (matcher_of_column()) fits here. Of literal ones every name is a label's; of a label with several values one
 * has to be meant, and with != and !~ none.
 */
bool matchers_fit(void *m, const struct store_series *series);
/** matcher_of_column - __profile_type__, __type__, __unit__, __period_type__, __period_unit__. */
bool matcher_of_column(struct str name);
/** matchers_have_columns - whether something is said of columns. */
bool matchers_have_columns(const struct matchers *m);
/** matchers_fit_column - whether all that is said of columns holds for @column. */
bool matchers_fit_column(struct matchers *m, const struct query_column *column);
/** matchers_service - the one service that is meant, or empty. Borrowed from @m. */
struct str matchers_service(const struct matchers *m);
/** matchers_type - the one type of ours that an equal __name__ or __profile_type__ means, or empty. Static. */
struct str matchers_type(const struct matchers *m);

/** query_label_shown - append the name of a label as selectors can write it: other characters than letters, digits and
 * '_' are '_'. matchers_fit() takes either. */
void query_label_shown(struct str name, struct buf *out);
/** query_series_label - the value of a label as selectors know it: service_name, __name__, or one of the series. Empty
 * when it is not there. */
struct str query_series_label(const struct store_series *series, struct str name);
