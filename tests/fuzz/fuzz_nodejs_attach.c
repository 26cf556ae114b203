/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching over a made-up process (nodejs_image.h) whose memory, and what /proc says of it, the input changes:
 *
 *	u8 version, u8 how: bit 0: the rest behind the changes is the text of maps
 *	u8 changes, then each: u24 place in the maps and the heap, u8 word's kind, u64 word */
#include "fuzz.h"

#include "nodejs_image.h"

#define READS_MAX (1U << 19) /* attach.c: TRY_MAX is 1 << 18, and a try reads maps besides */

static const uint8_t versions[][2] = { { 7, 8 },  { 8, 4 },  { 9, 4 },  { 10, 2 },
				       { 11, 3 }, { 12, 4 }, { 13, 6 }, { 14, 6 } };

static void change(struct nodejs_image *m, struct cur *in)
{
	for (size_t count = cur_u8(in); count && !in->bad; count--) {
		uint64_t at = cur_le32(in), kind = at >> 24, word = cur_le64(in);

		at &= 0xffffff;
		if (kind & 1) /* another object */
			word = IMAGE_HEAP + word % IMAGE_HEAP_SIZE / 8 * 8 + ABI_NODEJS_TAG;
		if (kind & 2) /* a small integer */
			word <<= 32;
		if (at < sizeof(m->maps))
			image_put(m->maps, (size_t)at & ~(size_t)7, word);
		else
			image_put(m->heap, (size_t)(at % sizeof(m->heap)) & ~(size_t)7, word);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nodejs_image image;
	struct cur in = cur_of(data, size);
	const uint8_t *version = versions[cur_u8(&in) % ARRAY_SIZE(versions)];
	uint8_t how = cur_u8(&in), room[RUNTIME_INFO_MAX];
	uint64_t effort = 0;
	struct runtime_target target = {
		.pid = 1, .read = image_read, .self = &image, .start_ns = 1, .exec_id = 5, .effort = &effort
	};
	struct str maps = str_of(image_proc_maps);
	bool is_plain;
	struct abi_nodejs info;
	int r;

	image_make(&image, nodejs_version_find(version[0], version[1]));
	is_plain = in.pos == in.end && !in.bad;
	change(&image, &in);
	if (how & 1)
		maps = cur_rest(&in);
	target.proc_dir = image_folder(maps.ptr, maps.len);
	must(target.proc_dir >= 0);
	memset(room, 0xa5, sizeof(room));
	r = nodejs_attach(&image.binary.base, &target, room);
	image_folder_close(target.proc_dir);
	must(image.reads < READS_MAX && effort <= READS_MAX);
	must(!is_plain || how & 1 || r > 0);
	if (r < 0) {
		for (size_t i = 0; i < sizeof(room); i++)
			must(room[i] == 0xa5);
		return 0;
	}
	must(r == (int)sizeof(info));
	memcpy(&info, room, sizeof(info));
	must(info.start_ns == 1 && info.exec_id == 5 && info.version_major == version[0]);
	must(walk_nodejs_is_object(info.sfi_map) && walk_nodejs_is_object(info.bytecode_map) &&
	     walk_nodejs_is_object(info.code_map));
	must(!info.script_id || info.script_id == 64);
	must(info.sfi_data < ABI_NODEJS_SFI_BYTES && info.sfi_name < ABI_NODEJS_SFI_BYTES);
	return 0;
}
