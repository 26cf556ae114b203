/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of opt.h share: opt.c reads words, opt_value.c values, opt_sources.c defaults, files and the
 * environment; opt_help.c prints tables. */
#pragma once

#include "base/opt.h"
#include "base/similar.h"

#define OPTS_MAX 256

struct opt_all { /* all options of a command, those of every command last */
	const struct opt *list[OPTS_MAX];
	size_t count;
};

void opt_collect(const struct opt_spec *spec, struct opt_all *out);
const struct opt *opt_find(const struct opt_all *all, struct str name); /* by its long name; NULL: there is none */
bool opt_takes_value(const struct opt *o);
bool opt_is_common(const struct opt *o); /* one of every command: it lives outside the configuration struct */
const struct opt *opt_common(void);      /* their table */
void opt_add_similar(const struct similar *like, const char *dashes, struct buf *out);
/** opt_put - @text into its place of the configuration. @text stays where it is: text options keep the pointer.
 * Return: 0 or -EINVAL with one line in @why. */
int opt_put(const struct opt *o, const char *text, void *config, struct buf *why);

/** opt_put_from - the same; a list that another source began is begun anew. @seen: of this source, false at first. */
int opt_put_from(bool seen[OPTS_MAX], const struct opt_all *all, const struct opt *o, const char *text, void *config,
		 struct buf *why);

int opt_apply_defaults(const struct opt_all *all, void *config, struct buf *why);
int opt_apply_environment(const struct opt_dialect *dialect, const struct opt_all *all, void *config, struct buf *why);
/** opt_apply_file - @text_out gets the file's bytes: values point into it, as long as it is there. */
int opt_apply_file(const struct opt_dialect *dialect, const struct opt_all *all, const char *path, void *config,
		   char **text_out, struct buf *why);
