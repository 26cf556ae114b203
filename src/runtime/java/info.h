/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of a JVM is called, for people. Its application is told by its command line: launched.h. */
#pragma once

#include "runtime/runtime.h"

/** java_metadata - struct runtime's: {java_version, libjvm_elfid, jvm_flags, exe, execfn, arch}. */
int java_metadata(const struct runtime_binary *binary, const struct runtime_target *target,
		  struct buf *json) warn_unused;
