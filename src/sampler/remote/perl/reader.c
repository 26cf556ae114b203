/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/remote/perl/reader.h"

#include "sampler/remote/steps.h"

static void seen(struct walk *w);
#define walk_perl_seen(w) seen(w)
#include "walk/walk_perl.h"

/* Adds the text at @at. Return: false when it is another one by now than the one that the key is of. */
static bool add_text(struct walk *w, uint64_t at, uint32_t *size, uint16_t *sent)
{
	uint64_t before[WALK_PERL_HEK_WORDS], now[WALK_PERL_HEK_WORDS];
	uint32_t looked = sizeof(before);

	if (!at)
		return true;
	if (walk_read(w, before, looked, at)) {
		looked = WALK_PERL_HEK_SHORT;
		if (walk_read(w, before, looked, at))
			return false;
	}
	*size = (uint32_t)(before[0] >> 32);
	*sent = remote_name_add(w, at + ABI_PERL_HEK_TEXT, *size, REMOTE_TEXT_MAX);
	return remote_name_read(w, now, looked, at) == 0 && !memcmp(before, now, looked);
}

/* Nobody can read the name later. */
static void seen(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	const struct walk_perl *p = walk_perl_state(w);
	struct abi_perl_name *head;
	uint8_t *file;

	if (!remote_name_wanted(w, p->key, p->cookie))
		return;
	if (p->what == ABI_PERL_SUB && more->of != p->cv && walk_perl_resolve(w) != p->key)
		return;
	if (!more->has_text && !walk_perl_file(w))
		return;
	head = (struct abi_perl_name *)(void *)remote_name_bytes(w, sizeof(*head));
	file = head ? remote_name_bytes(w, align_up(more->file_size, 8)) : NULL;
	if (!file)
		return;
	memcpy(file, &w->scratch[WALK_PERL_FILE], more->file_size);
	head->what = p->what;
	head->file_sent = (uint16_t)more->file_size;
	head->file_is_cut = more->file_is_cut;
	if (p->what != ABI_PERL_SUB || (add_text(w, more->package, &head->package_size, &head->package_sent) &&
					add_text(w, more->name, &head->name_size, &head->name_sent)))
		remote_name_keep(w, p->key, p->cookie);
}

static void start(struct walk *w, const void *info, uint64_t process)
{
	walk_perl_start(w, info, process);
}

/* Every call changes the statement that runs and the innermost stack info; what frames point at stays while they
 * live. */
static enum remote_kind kind_of(const struct walk *w, uint32_t size)
{
	const struct walk_perl *p = (const struct walk_perl *)w->state[ABI_RUNTIME_PERL];

	if (p->phase == WALK_PERL_FIND || p->phase == WALK_PERL_INFO)
		return REMOTE_HEAD;
	return size == WALK_PERL_WINDOW_BYTES || size == ABI_PERL_CONTEXT_BYTES ? REMOTE_FRAME : REMOTE_LATE;
}

static bool needs_pointer(const void *info)
{
	return ((const struct abi_perl *)info)->flags & ABI_PERL_THREADS;
}

static const struct remote_steps steps = {
	.runtime = ABI_RUNTIME_PERL,
	.start = start,
	.step = walk_perl_step,
	.kind_of = kind_of,
	.needs_pointer = needs_pointer,
};

static int open_reader(struct remote_walker **out)
{
	return remote_steps_open(&steps, out);
}

const struct remote_reader remote_perl_reader = { .runtime = ABI_RUNTIME_PERL,
						  .open = open_reader,
						  REMOTE_STEPS_READER };
