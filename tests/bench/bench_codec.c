/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a profile and writes it again, and says what CPU time each step took: bench_codec FILE [ROUNDS]. */
#include <sys/resource.h>

#include "base/io.h"
#include "codec/pprof.h"

/* Seconds of CPU so far, in user and kernel: a busy machine changes them less than the clock on the wall. */
static double cpu_now(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double since(double start)
{
	return cpu_now() - start;
}

static int round_trip(struct str bytes)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf plain = BUF_INIT(GIB(2)), packed = BUF_INIT(GIB(2));
	struct codec_error error = { 0 };
	double start = cpu_now();
	double decode, encode, pack;
	int r = codec_find(STR("pprof"))->decode(bytes, &w, &error);

	decode = since(start);
	if (r < 0) {
		fprintf(stderr, "%s at byte %llu\n", error.reason, (unsigned long long)error.position);
		return r;
	}
	start = cpu_now();
	must(pprof_encode_plain(&w, &plain) == 0);
	encode = since(start);
	start = cpu_now();
	must(pprof_encode_level(&w, 1, &packed) == 0);
	pack = since(start);
	printf("decode %.3f s, encode %.3f s, encode and gzip -1 %.3f s; %zu samples, %zu stack nodes, %zu bytes\n",
	       decode, encode, pack, w.model->samples_count, w.model->stacks_count, plain.len);
	return 0;
}

int main(int argc, char **argv)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(GIB(1));
	struct rusage usage;
	uint64_t rounds = 1;

	if (argc < 2 || argc > 3 || (argc == 3 && str_to_u64(str_of(argv[2]), 1, 1000, &rounds) < 0)) {
		fprintf(stderr, "usage: bench_codec FILE [ROUNDS]\n");
		return 2;
	}
	if (io_read_file(argv[1], &bytes) < 0)
		return 1;
	for (uint64_t i = 0; i < rounds; i++)
		if (round_trip(buf_str(&bytes)) < 0)
			return 1;
	(void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
	printf("most memory %ld MiB\n", usage.ru_maxrss / 1024);
	return 0;
}
