/* SPDX-License-Identifier: Apache-2.0 */
/* The library of dlopen_late. LATE_NAME tells two builds of it apart. */
#include "work.h"

#ifndef LATE_NAME
#define LATE_NAME late_library_work
#endif

NOINLINE void LATE_NAME(double until)
{
	while (now_s() < until)
		burn(1000000);
	STAY;
}

__attribute__((visibility("default"))) void late_entry(double until)
{
	LATE_NAME(until);
	STAY;
}
