/* SPDX-License-Identifier: Apache-2.0 */
/* make_recording FILE: a recording of one process, from lines of standard input:
 *
 *	map START END OFFSET PATH      (hexadecimal) a mapping
 *	at ADDRESS                     a sample of one frame there
 */
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sampler/recording.h"

#define PID 4242
#define START_NS 1000

static int add_mapping(struct recording *r, const char *line)
{
	struct abi_mapping map = {
		.header = { .type = ABI_RECORD_MAPPING, .version = ABI_VERSION, .time_ns = 1 },
		.process_start_ns = START_NS,
		.pid = PID,
	};
	uint64_t start, end, offset;
	struct stat st;
	int path;

	if (sscanf(line, "map %" SCNx64 " %" SCNx64 " %" SCNx64 " %n", &start, &end, &offset, &path) != 3 ||
	    stat(line + path, &st) < 0)
		return -EBADMSG;
	map.start = start;
	map.end = end;
	map.file_offset = offset;
	map.inode = st.st_ino;
	map.device_major = major(st.st_dev);
	map.device_minor = minor(st.st_dev);
	return recording_add_mapping(r, &map, str_of(line + path));
}

static int add_sample(struct recording *r, const char *line)
{
	union {
		struct abi_sample sample;
		uint8_t bytes[sizeof(struct abi_sample) + sizeof(struct abi_frame)];
	} record = { .sample = { .header = { .type = ABI_RECORD_SAMPLE,
					     .version = ABI_VERSION,
					     .size = sizeof(record),
					     .time_ns = 2 },
				 .process_start_ns = START_NS,
				 .pid = PID,
				 .tid = PID,
				 .frame_count = 1,
				 .user_end = ABI_END_NO_FRAME_POINTER,
				 .comm = "made up",
				 .thread_name = "made up" } };
	struct abi_frame frame = { .kind = ABI_FRAME_USER };
	uint64_t address;

	if (sscanf(line, "at %" SCNx64, &address) != 1)
		return -EBADMSG;
	frame.a = address;
	memcpy(record.bytes + sizeof(record.sample), &frame, sizeof(frame));
	return recording_add(r, &record.sample.header);
}

int main(int argc, char **argv)
{
	scoped(freep) char *line = NULL;
	struct recording *r = NULL;
	size_t cap = 0;
	int e = argc == 2 ? recording_create(argv[1], &r) : -EINVAL;
	int closed;

	while (e == 0 && getline(&line, &cap, stdin) > 0) {
		line[strcspn(line, "\n")] = 0;
		e = line[0] == 'm' ? add_mapping(r, line) : add_sample(r, line);
	}
	closed = recording_close(r);
	if (e == 0)
		e = closed;
	if (e < 0)
		fprintf(stderr, "make_recording: %s\n", strerror(-e));
	return e < 0;
}
