/* SPDX-License-Identifier: Apache-2.0 */
/* Lives for 200 ms: its names have to be found although it is gone when the window ends. */
#include "work.h"

NOINLINE void short_lived_work(double until)
{
	while (now_s() < until)
		burn(100000);
	STAY;
}

int main(void)
{
	short_lived_work(now_s() + 0.2);
	return 0;
}
