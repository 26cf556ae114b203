/* SPDX-License-Identifier: Apache-2.0 */
/* `perf script` on stdin to folded stacks on stdout, as fast as is reasonable: what stands beside hearth in the cost
 * table must not lose by its folder. Header lines begin in column 0, frames with a blank, an empty line ends a sample.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 256
#define STACK_MAX 65536

struct entry {
	char *stack;
	uint64_t hash;
	unsigned long count;
};

struct table {
	struct entry *entries;
	size_t cap, used;
};

static uint64_t hash_of(const char *s) /* FNV-1a */
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

static struct entry *place(struct table *t, const char *stack, uint64_t hash)
{
	size_t at = hash & (t->cap - 1);

	while (t->entries[at].stack && (t->entries[at].hash != hash || strcmp(t->entries[at].stack, stack) != 0))
		at = (at + 1) & (t->cap - 1);
	return &t->entries[at];
}

static void grow(struct table *t)
{
	struct table bigger = { .cap = t->cap ? t->cap * 2 : 4096, .used = t->used };

	bigger.entries = calloc(bigger.cap, sizeof(*bigger.entries));
	if (!bigger.entries)
		exit(1);
	for (size_t i = 0; i < t->cap; i++) {
		if (t->entries[i].stack)
			*place(&bigger, t->entries[i].stack, t->entries[i].hash) = t->entries[i];
	}
	free(t->entries);
	*t = bigger;
}

static void count(struct table *t, const char *comm, char names[][512], size_t frames)
{
	static char stack[STACK_MAX];
	size_t len = (size_t)snprintf(stack, sizeof(stack), "%s", comm);
	struct entry *e;

	for (size_t i = frames; i-- > 0 && len < sizeof(stack) - 600;)
		len += (size_t)snprintf(stack + len, sizeof(stack) - len, ";%s", names[i]);
	if (t->used * 2 >= t->cap)
		grow(t);
	e = place(t, stack, hash_of(stack));
	if (!e->stack) {
		e->stack = strdup(stack);
		e->hash = hash_of(stack);
		t->used++;
	}
	e->count++;
}

/* "   ffffffff81000000 name+0x12 (module)" */
static void read_frame(char *line, char *out, size_t size)
{
	char *name, *end;

	line += strspn(line, " \t");
	name = strchr(line, ' ');
	name = name ? name + 1 : line;
	end = strstr(name, " (/");
	end = end ? end : strstr(name, " ([");
	if (end)
		*end = '\0';
	end = strstr(name, "+0x");
	if (end)
		*end = '\0';
	snprintf(out, size, "%s", name);
	for (; *out; out++)
		*out = *out == ';' ? ':' : *out;
}

/* "comm with blanks  1234 [001] 12.345678:  10101010 cpu-clock:" */
static void read_header(char *line, char *out, size_t size)
{
	char *bracket = strchr(line, '[');
	char *end = bracket ? bracket - 1 : line + strlen(line);

	while (end > line && (*end == ' ' || (*end >= '0' && *end <= '9') || *end == '/'))
		end--;
	end[end > line] = '\0';
	snprintf(out, size, "%s", line);
}

int main(void)
{
	static char names[FRAMES_MAX][512], comm[256];
	struct table t = { 0 };
	char *line = NULL;
	size_t cap = 0, frames = 0;
	int open = 0;

	while (getline(&line, &cap, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '\0') {
			if (open)
				count(&t, comm, names, frames);
			open = 0;
		} else if (line[0] == ' ' || line[0] == '\t') {
			if (open && frames < FRAMES_MAX)
				read_frame(line, names[frames++], sizeof(names[0]));
		} else if (line[0] != '#') {
			read_header(line, comm, sizeof(comm));
			frames = 0;
			open = 1;
		}
	}
	if (open)
		count(&t, comm, names, frames);
	for (size_t i = 0; i < t.cap; i++) {
		if (t.entries[i].stack)
			printf("%s %lu\n", t.entries[i].stack, t.entries[i].count);
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
