/* SPDX-License-Identifier: Apache-2.0 */
/* The library of plt.c. */
long tiny(long x)
{
	return x + 1;
}
