/* SPDX-License-Identifier: Apache-2.0 */
/* The viewer's files inside the program; written at build time by embed.c. */
#pragma once

#include <stddef.h>

/* A file that the collector serves. */
struct web_file {
	const char *name;           /* NULL behind the last */
	const unsigned char *bytes; /* gzip */
	size_t size;                /* of them */
	const char *etag;           /* with its quotes; of what is packed */
};

extern const struct web_file web_files[];

extern const unsigned char web_page[], web_style[], web_script[];
extern const size_t web_page_size, web_style_size, web_script_size;
extern const char web_style_hash[], web_script_hash[]; /* "sha256-..." as a content security policy names it */

/* The script of a classic flame graph; without the end of a CDATA section. */
extern const unsigned char web_svg[];
extern const size_t web_svg_size;
