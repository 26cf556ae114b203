// SPDX-License-Identifier: Apache-2.0
#include "sampler/cpus.h"

#include "base/io.h"

static int parse_range(struct str piece, struct cpus *set)
{
	struct str first;
	uint64_t low, high;
	int r;

	if (!str_next(&piece, '-', &first))
		return -EBADMSG;
	r = str_to_u64(first, 0, CPUS_MAX - 1, &low);
	if (r < 0)
		return r;
	high = low;
	if (piece.ptr)
		r = str_to_u64(piece, low, CPUS_MAX - 1, &high);
	if (r < 0)
		return r;
	for (uint64_t cpu = low; cpu <= high; cpu++)
		set->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	return 0;
}

int cpus_parse(struct str text, struct cpus *out)
{
	struct cpus set = { 0 };
	struct str piece;
	int count = 0;

	text = str_trim(text);
	while (str_next(&text, ',', &piece)) {
		int r = parse_range(piece, &set);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(set.bits); i++)
		count += __builtin_popcountll(set.bits[i]);
	if (!count)
		return -EBADMSG;
	*out = set;
	return count;
}

int cpus_online(const char *host_root, struct cpus *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	int r = io_read_below(host_root, "/sys/devices/system/cpu/online", &text);

	return r < 0 ? r : cpus_parse(buf_str(&text), out);
}
