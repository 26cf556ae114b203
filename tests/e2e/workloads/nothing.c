/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest program, linked static: what forker starts. */
int main(void)
{
	return 0;
}
