/* SPDX-License-Identifier: Apache-2.0 */
/* Two runtimes that do nothing but be one, as templates. What they need is what adding one needs: a file (probe,
 * attach, names), a walker, a table of versions, a line in a list of runtimes.
 *
 * fake_runtime keeps a list of its own frames and is walked behind the native ones: files are its that have the symbol
 * fake_runtime_state, a struct in which a linked list of frames hangs.
 *
 * fake_inline makes code: its frames are frames of the native stack. Files are its that have the symbol
 * fake_inline_state. A frame's key is the address of a struct fake_code, which says what its positions are. */
#pragma once

#include "runtime/runtime.h"
#include "tests/walk/walk_fake.h"

#define FAKE_RUNTIME ((enum abi_runtime)(ABI_RUNTIME_COUNT - 1))

#define FAKE_BEHIND_COOKIE 1 /* functions never change; 0 would say that it is not known */

struct fake_frame { /* in the process: the outermost one has no caller */
	uint64_t caller, function;
};

struct fake_state { /* in the process */
	uint64_t ready, version, top;
};

struct fake_info { /* what its walker knows of a process; begins as all of them */
	uint64_t start_ns;
	uint32_t exec_id, version;
	uint64_t top;
};

#define FAKE_INLINE ((enum abi_runtime)FAKE_IN_LINE)

#define FAKE_THREAD_NAME "longer than the kernel's; [x"

struct fake_inline_state { /* in the process */
	uint64_t ready, version;
	uint64_t low, size; /* of its code */
	uint64_t epoch;     /* counts code that was freed */
	uint64_t hides;     /* its code cannot be seen just now */
};

struct fake_code { /* of fake_inline, in the process: what its compiler wrote down for one piece of code */
	uint64_t cookie;
	uint32_t size; /* of bytes; from here on what fake_expand() takes */
	/* Ranges, each: first and last position (2 bytes each), count (1 byte); of each function, leaf first: line,
	 * first line (4 bytes each), size of its name (1 byte), name. Least byte first. */
	uint8_t bytes[];
};

/** fake_expand - struct runtime's expand() of fake_inline. */
size_t fake_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		   struct runtime_shown out[RUNTIME_EXPAND_MAX]);

/** fake_walk_start - find the thread's first frame; fake_walk_step - push one: the walker of fake_runtime, which a
 * shell in bpf/ runs behind the native frames. */
enum walk_next fake_walk_start(struct walk *w, const void *info);
enum walk_next fake_walk_step(struct walk *w, const void *info);

extern const char *const runtime_modes_fake[], *const runtime_modes_inline[];
extern const struct runtime fake_inline;
extern const struct runtime fake_runtime;
extern struct fake_state fake_runtime_state;
extern struct fake_inline_state fake_inline_state;
