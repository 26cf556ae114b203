/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching over the recorded memory of real interpreters, mutated. */
#include "fuzz.h"

#include <elf.h>

#include "attach_recording.h"

#define READS_MAX 5000 /* a sound process takes about 100 */

static void check_layout(const struct abi_python_layout *l)
{
	const uint16_t of_frame[] = { l->frame_back, l->frame_code, l->frame_last };

	must(l->frame_size <= 128);
	for (size_t i = 0; i < ARRAY_SIZE(of_frame); i++)
		must(of_frame[i] + 8 <= l->frame_size || (i == 2 && of_frame[i] + 4 <= l->frame_size));
	must(l->frame_entry == ABI_PYTHON_NONE || l->frame_entry < l->frame_size);
	must(l->entry >= ABI_PYTHON_ENTRY_EACH && l->entry <= ABI_PYTHON_ENTRY_SHIM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording recording;
	struct runtime_target target = { .pid = 1, .read = recording_read, .self = &recording, .start_ns = 1 };
	struct abi_python info;
	uint8_t room[RUNTIME_INFO_MAX];
	int r;

	if (!recording_open(cur_of(data, size), EM_X86_64, &recording))
		return 0;
	target.bias = recording.bias;
	r = python_attach(&recording.binary.base, &target, room);
	must(recording.reads < READS_MAX);
	if (r < 0)
		return 0;
	must(r == (int)sizeof(info));
	memcpy(&info, room, sizeof(info));
	must(info.start_ns == 1 && info.interpreters);
	must(!(info.ways & ABI_PYTHON_KEY) || info.key_at);
	must(!(info.ways & ABI_PYTHON_HOLDER) || info.holder);
	check_layout(&info.layout);
	return 0;
}
