/* SPDX-License-Identifier: Apache-2.0 */
#include "net/retry_after.h"

#include <curl/curl.h>

#define VALUE_MAX 64
#define SECONDS_MAX UINT64_C(1000000000)

static bool is_number(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

/* libcurl reads the three forms of HTTP dates and more; its reader wants terminated text. */
static int parse_date(struct str value, uint64_t now_ns, uint64_t *out_ns)
{
	char text[VALUE_MAX + 1];
	time_t at;

	memcpy(text, value.ptr, value.len);
	text[value.len] = '\0';
	at = curl_getdate(text, NULL);
	if (at < 0)
		return -EBADMSG;
	*out_ns = (uint64_t)at <= now_ns / NSEC_PER_SEC
			  ? 0
			  : MIN((uint64_t)at - now_ns / NSEC_PER_SEC, SECONDS_MAX) * NSEC_PER_SEC;
	return 0;
}

int retry_after_parse(struct str value, uint64_t now_ns, uint64_t *out_ns)
{
	uint64_t seconds;

	value = str_trim(value);
	if (!value.len || value.len > VALUE_MAX || memchr(value.ptr, 0, value.len))
		return -EBADMSG;
	if (!is_number(value))
		return parse_date(value, now_ns, out_ns);
	if (str_to_u64(value, 0, SECONDS_MAX, &seconds) < 0)
		seconds = SECONDS_MAX; /* too large to mean anything but "long" */
	*out_ns = seconds * NSEC_PER_SEC;
	return 0;
}
