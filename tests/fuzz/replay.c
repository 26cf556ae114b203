/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of its corpus folder, then over mutations of them that need no engine: every
 * truncation point of small seeds, and single-byte changes drawn from a fixed seed. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>

#include "base/io.h"

#define MUTATIONS_PER_SEED 200
#define TRUNCATIONS_MAX 512

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t next_random(void) /* xorshift64, G. Marsaglia 2003 */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A copy of exactly the right size, so that a sanitizer sees a read past the end. */
static void run_copy(const char *bytes, size_t size, size_t flip, uint8_t with)
{
	uint8_t *copy = malloc(size ? size : 1);

	must(copy);
	if (size)
		memcpy(copy, bytes, size);
	if (flip < size)
		copy[flip] ^= with;
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void run_seed(const struct buf *seed)
{
	size_t step = seed->len / TRUNCATIONS_MAX + 1;

	run_copy(seed->ptr, seed->len, SIZE_MAX, 0);
	for (size_t cut = 0; cut < seed->len; cut += step)
		run_copy(seed->ptr, cut, SIZE_MAX, 0);
	for (int i = 0; i < MUTATIONS_PER_SEED && seed->len; i++)
		run_copy(seed->ptr, seed->len, next_random() % seed->len, (uint8_t)(next_random() | 1));
}

int main(int argc, char **argv)
{
	size_t count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		if (!dir) {
			fprintf(stderr, "cannot open the corpus %s\n", argv[i]);
			return 1;
		}
		for (struct dirent *entry; (entry = readdir(dir));) {
			scoped(buf_release) struct buf seed = BUF_INIT(MIB(16));

			if (entry->d_name[0] == '.')
				continue;
			must(io_read_file_at(dirfd(dir), entry->d_name, &seed) == 0);
			run_seed(&seed);
			count++;
		}
		closedir(dir);
	}
	printf("%zu seeds\n", count);
	return count ? 0 : 1;
}
