/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf_support.h"

#include "sampler/bpf_probe.h"

void bpf_tests_skip(void)
{
	struct sampler_config cfg = { .frequency_hz = 99, .poll_interval_ms = 100, .host_root = "" };
	struct buf why = BUF_INIT(KIB(4));

	if (bpf_probe_all(&cfg, &why) < 0) {
		printf("SKIP: needs BPF: %s\n", buf_cstr(&why));
		buf_release(&why);
		exit(77);
	}
	buf_release(&why);
}
