/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of V8's objects over memory that is the input: every address is a place in it, so that what one object
 * says of another leads somewhere. Bounded, whatever lies there. The last byte chooses the version. */
#include "fuzz.h"

#include "nodejs_image.h"

#define BASE 0x10000ULL

struct memory {
	const uint8_t *bytes;
	size_t size, reads;
};

static int memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct memory *m = self;

	must(++m->reads < 4000000);
	at -= BASE;
	if (at > m->size || size > m->size - at)
		return -EFAULT;
	memcpy(dst, m->bytes + at, size);
	return 0;
}

static const uint8_t versions[][2] = { { 11, 3 }, { 7, 8 },  { 8, 4 },  { 9, 4 },
				       { 10, 2 }, { 12, 4 }, { 13, 6 }, { 14, 6 } };

static void fill_layout(struct nodejs_layout *l, uint8_t which)
{
	const uint8_t *version = versions[which % ARRAY_SIZE(versions)];

	image_layout(l, nodejs_version_find(version[0], version[1]));
	l->stream_start = 16;
	l->wasm_manager = BASE + 8;
	l->bytecode_count = 200;
	memset(l->bytecode_sizes, 2, sizeof(l->bytecode_sizes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nodejs_process *process = calloc(1, sizeof(*process));
	struct memory memory = { data, size, 0 };
	const struct runtime_target target = { .read = memory_read, .self = &memory, .of_process = process };
	struct abi_nodejs info = { .sfi_name = 16, .sfi_script = 32, .sfi_data = 8, .script_id = 64 };
	struct buf room = BUF_INIT(MIB(8));
	struct runtime_function out;
	__u64 words[8] = { 0 };
	char version[NODEJS_VERSION_MAX];

	must(process);
	fill_layout(&process->layout, size ? data[size - 1] : 0);
	if (size >= 128) { /* the function at the start, code in the middle */
		memcpy(words, data, sizeof(words));
		info.sfi_map = words[0];
		info.type_sfi = size & 8 ? 262 : 0; /* maps of other isolates are looked at */
		info.baseline_pair = process->layout.version.baseline_pair;
		for (unsigned int is_baseline = 0; is_baseline < 2; is_baseline++) {
			uint64_t cookie =
				walk_nodejs_cookie(nodejs_guard(&target, &info, words), is_baseline ? words[1] : 0);

			buf_clear(&room);
			if (nodejs_read_name(&target, &info, BASE + is_baseline, cookie, &room, &out) == 0)
				must(out.name.len && out.name.len + out.file.len <= room.len);
		}
		buf_clear(&room);
		memcpy(words, data + (size / 16) * 8, 32 < size - (size / 16) * 8 ? 32 : 0);
		memcpy(&info.code_map, data + 64, 8);
		for (uint64_t shared = 0; shared <= ABI_NODEJS_WASM; shared++) {
			buf_clear(&room);
			if (nodejs_read_code(&target, &info, BASE + (size / 16) * 8 + WALK_NODEJS_CODE_BEFORE,
					     walk_nodejs_code_cookie((const __u64 *)words, shared, 0), &room,
					     &out) == 0)
				must(out.lines.size <= room.len && out.name.len);
		}
	}
	if (nodejs_version_read(&target, BASE, version) == 0)
		must(nodejs_is_version(str_of(version)) && strlen(version) < sizeof(version));
	buf_release(&room);
	nodejs_unlearn(process);
	return 0;
}
