/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, mappings and spaces in plain memory: for replay, where no kernel walks, and for tests. */
#pragma once

#include "unwind/table_sink.h"

struct table_memory;

int table_memory_new(struct table_memory **out) warn_unused;
void table_memory_free(struct table_memory *m); /* NULL is fine; what was put has been dropped before */
/** table_memory_sink - what struct unwind takes; borrows @m. */
struct table_sink table_memory_sink(struct table_memory *m);

/* What the kernel's walkers would find. */
/** table_memory_table - of that number, or NULL. */
const struct table *table_memory_table(const struct table_memory *m, uint32_t number);
/** table_memory_space - Return: 0 and *out, or -ENOENT. */
int table_memory_space(const struct table_memory *m, uint32_t pid, struct abi_space *out) warn_unused;
/** table_memory_find - the mapping of @space that covers @address, or NULL. */
const struct abi_map *table_memory_find(const struct table_memory *m, uint32_t space, uint64_t address);
size_t table_memory_bytes(const struct table_memory *m); /* of all tables put and not dropped */
size_t table_memory_maps(const struct table_memory *m);
size_t table_memory_spaces(const struct table_memory *m);
uint64_t table_memory_batches(const struct table_memory *m); /* calls of change_tables */
