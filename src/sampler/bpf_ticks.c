// SPDX-License-Identifier: Apache-2.0
#include "sampler/bpf_ticks.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/event.h"

#define FOLLOW_NS (2 * NSEC_PER_SEC)

static int tick_open(const struct ticks *t, unsigned int cpu)
{
	struct perf_event_attr attr;
	scoped(closep) int fd = -1;
	int out;

	event_attr(t->event, t->frequency_hz, &attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The ioctl and not a bpf_link: it works on every kernel, does not start the event, and ends with the
	 * descriptor. */
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, t->program_fd) < 0)
		return -errno;
	if (t->running && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	out = fd;
	fd = -1;
	return out;
}

/* A CPU that is gone takes its event with it for good: when it returns it needs a new one. */
static int ticks_apply(struct ticks *t, const struct cpus *online)
{
	int failed = 0;

	for (unsigned int cpu = 0; cpu < t->fd_count; cpu++) {
		if (!cpus_has(online, cpu) || (t->is_limited && !cpus_has(&t->wanted, cpu))) {
			closep(&t->fds[cpu]);
			t->fds[cpu] = -1;
		} else if (t->fds[cpu] < 0) {
			t->fds[cpu] = tick_open(t, cpu);
			if (t->fds[cpu] < 0 && t->fds[cpu] != -ENODEV) /* ENODEV: went offline just now */
				failed = t->fds[cpu];
			t->fds[cpu] = MAX(t->fds[cpu], -1);
		}
	}
	t->online = *online;
	return failed;
}

int ticks_open(struct ticks *t, int program_fd, const struct sampler_config *cfg)
{
	struct cpus online;
	int count = cpus_online(cfg->host_root, &online), r;

	if (count < 0)
		return count;
	*t = (struct ticks){ .program_fd = program_fd,
			     .frequency_hz = cfg->frequency_hz,
			     .event = cfg->event,
			     .host_root = cfg->host_root };
	t->is_limited = cfg->cpus != NULL;
	if (cfg->cpus)
		t->wanted = *cfg->cpus;
	t->fds = malloc(CPUS_MAX * sizeof(*t->fds));
	if (!t->fds)
		return -ENOMEM;
	t->fd_count = CPUS_MAX;
	for (size_t i = 0; i < t->fd_count; i++)
		t->fds[i] = -1;
	r = ticks_apply(t, &online);
	if (r < 0) {
		ticks_close(t);
		return r;
	}
	return count;
}

void ticks_close(struct ticks *t)
{
	for (size_t i = 0; i < t->fd_count; i++)
		closep(&t->fds[i]);
	free(t->fds);
	*t = (struct ticks){ 0 };
}

static int ticks_ioctl(struct ticks *t, unsigned long request)
{
	int failed = 0;

	for (size_t i = 0; i < t->fd_count; i++) {
		if (t->fds[i] >= 0 && ioctl(t->fds[i], request, 0) < 0)
			failed = -errno;
	}
	return failed;
}

int ticks_start(struct ticks *t)
{
	int r = ticks_ioctl(t, PERF_EVENT_IOC_ENABLE);

	t->running = r == 0;
	return r;
}

void ticks_stop(struct ticks *t)
{
	t->running = false;
	ignore(ticks_ioctl(t, PERF_EVENT_IOC_DISABLE)); /* the events end with their descriptors at the latest */
}

void ticks_follow(struct ticks *t, uint64_t now_ns)
{
	struct cpus online;

	if (!t->running || now_ns - t->checked_ns < FOLLOW_NS)
		return;
	t->checked_ns = now_ns;
	if (cpus_online(t->host_root, &online) < 0)
		return;                  /* asked again the next time */
	ignore(ticks_apply(t, &online)); /* likewise */
}
