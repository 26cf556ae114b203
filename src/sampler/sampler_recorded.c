// SPDX-License-Identifier: Apache-2.0
/* Replays a recording as fast as it is polled: tests, and looking at a problem again. */
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/recording.h"
#include "sampler/samplers.h"

#define RECORD_MAX ABI_SAMPLE_SIZE_MAX
#define READ_SIZE KIB(64)
#define RECORDS_PER_POLL 4096

struct sampler_state {
	int fd;
	uint8_t *bytes; /* read, not yet handed over: [at, filled) */
	size_t at, filled;
	uint64_t *record; /* RECORD_MAX bytes, aligned: what is handed over */
	bool running, used_up;
	uint64_t samples, rejected;
};

static void recorded_close(struct sampler_state *s)
{
	if (!s)
		return;
	closep(&s->fd);
	free(s->bytes);
	free(s->record);
	free(s);
}

static void recorded_closep(struct sampler_state **s)
{
	recorded_close(*s);
}

/* Moves what is left to the front and reads behind it. Return: bytes added, 0 at the end, or -errno. */
static ssize_t fill(struct sampler_state *s)
{
	ssize_t got;

	memmove(s->bytes, s->bytes + s->at, s->filled - s->at);
	s->filled -= s->at;
	s->at = 0;
	do
		got = read(s->fd, s->bytes + s->filled, RECORD_MAX + READ_SIZE - s->filled);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	s->filled += (size_t)got;
	return got;
}

static int open_file(struct sampler_state *s, const char *path)
{
	struct cur in;
	ssize_t got;
	int r;

	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0)
		return -errno;
	do
		got = fill(s);
	while (got > 0 && s->filled < RECORDING_HEADER_SIZE);
	if (got < 0)
		return (int)got;
	in = cur_of(s->bytes, s->filled);
	r = recording_header(&in);
	s->at = RECORDING_HEADER_SIZE;
	return r;
}

static int recorded_open(const struct sampler_config *cfg, struct buf *why, struct sampler_state **out)
{
	scoped(recorded_closep) struct sampler_state *s = calloc(1, sizeof(*s));
	int r;

	if (!cfg->recording)
		return -EINVAL;
	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->bytes = malloc(RECORD_MAX + READ_SIZE);
	s->record = malloc(RECORD_MAX);
	if (!s->bytes || !s->record)
		return -ENOMEM;
	r = open_file(s, cfg->recording);
	if (r < 0) {
		buf_addf(why, "%s: %s", cfg->recording,
			 r == -EBADMSG   ? "not a recording"
			 : r == -ENOTSUP ? "a recording of another version"
					 : strerror(-r));
		return r;
	}
	*out = s;
	s = NULL;
	return 0;
}

static int recorded_start(struct sampler_state *s)
{
	s->running = true;
	return 0;
}

static void hand_over(struct sampler_state *s, const struct sampler_events *to)
{
	const struct abi_header *header = (const struct abi_header *)s->record;

	switch (header->type) {
	case ABI_RECORD_SAMPLE:
		s->samples += ((const struct abi_sample *)s->record)->trigger == ABI_TRIGGER_TICK;
		to->sample(to->ctx, (const struct abi_sample *)s->record);
		break;
	case ABI_RECORD_MAPPING:
		if (to->mapping)
			to->mapping(to->ctx, (const struct abi_mapping *)s->record);
		break;
	case ABI_RECORD_WAIT:
		if (to->wait)
			to->wait(to->ctx, (const struct abi_wait *)s->record);
		break;
	case ABI_RECORD_NAME:
		if (to->name)
			to->name(to->ctx, (const struct abi_name *)s->record);
		break;
	case ABI_RECORD_REQUEST:
		if (to->request)
			to->request(to->ctx, (const struct abi_request *)s->record);
		break;
	default:
		to->process(to->ctx, (const struct abi_process *)s->record);
	}
}

/* The next whole record, reading on as needed. Return: its size, 0 at the end, -EBADMSG, or another -errno. */
static int next_record(struct sampler_state *s, const uint8_t **out)
{
	for (;;) { /* each turn reads at least one more byte or ends; one record always fits */
		struct cur in = cur_of(s->bytes + s->at, s->filled - s->at);
		int size = recording_next(&in, out);
		ssize_t got;

		if (size)
			return size;
		got = fill(s);
		if (got <= 0)
			return (int)got;
	}
}

/* Return: 1 when a record was handed over, 0 at the end, -errno. What is no record ends the file: nothing says where
 * the next one begins. */
static int replay_one(struct sampler_state *s, const struct sampler_events *to)
{
	const uint8_t *bytes = NULL;
	int size = next_record(s, &bytes);

	if (size < 0 && size != -EBADMSG)
		return size;
	if (size <= 0) {
		s->rejected += s->at < s->filled; /* no record, or one that is cut off */
		s->used_up = true;
		return 0;
	}
	memcpy(s->record, bytes, (size_t)size);
	s->at += (size_t)size;
	hand_over(s, to);
	return 1;
}

static int recorded_poll(struct sampler_state *s, int timeout_ms, const struct sampler_events *events)
{
	int count = 0;

	(void)timeout_ms; /* there is never anything to wait for */
	if (!s->running)
		return 0;
	while (count < RECORDS_PER_POLL && !s->used_up) {
		int r = replay_one(s, events);

		if (r < 0)
			return r;
		count += r;
	}
	return count ? count : -ENODATA;
}

static int recorded_fd(const struct sampler_state *s)
{
	(void)s;
	return -1;
}

static int recorded_stop(struct sampler_state *s)
{
	s->running = false;
	return 0;
}

static void recorded_counters(const struct sampler_state *s, uint64_t out[ABI_COUNTER_COUNT])
{
	memset(out, 0, ABI_COUNTER_COUNT * sizeof(*out));
	out[ABI_COUNTER_TICKS] = s->samples;
	out[ABI_COUNTER_SAMPLES] = s->samples;
	out[ABI_COUNTER_LOST_REJECTED] = s->rejected;
}

static int recorded_probe(const struct sampler_config *cfg, struct buf *why)
{
	if (!cfg->recording) {
		buf_adds(why, STR("no recording was named"));
		return -ENOTSUP;
	}
	if (access(cfg->recording, R_OK) < 0) {
		buf_addf(why, "%s: %s", cfg->recording, strerror(errno));
		return -ENOTSUP;
	}
	return 0;
}

const struct sampler sampler_recorded = {
	.name = "recorded",
	.help = "replays a file of records",
	.is_replay = true,
	.probe = recorded_probe,
	.open = recorded_open,
	.start = recorded_start,
	.poll = recorded_poll,
	.fd = recorded_fd,
	.stop = recorded_stop,
	.counters = recorded_counters,
	.close = recorded_close,
};
