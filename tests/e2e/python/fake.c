/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: says by its symbols that it is CPython 3.13, and has noise where that says how it is laid out.
 * fake SEED SECONDS */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE 65536

extern uint8_t _PyRuntime[SIZE];
extern const unsigned int Py_Version;
unsigned int _PyEval_EvalFrameDefault(unsigned int n);

uint8_t _PyRuntime[SIZE];
const unsigned int Py_Version = 0x030d00f0;

__attribute__((noinline)) unsigned int _PyEval_EvalFrameDefault(unsigned int n)
{
	unsigned int sum = 0;

	for (volatile unsigned int i = 0; i < n; i++)
		sum += i;
	return sum;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 1);
	uint64_t words[SIZE / 8];

	srand(argc > 1 ? (unsigned int)atoi(argv[1]) : 0);
	/* Mostly small, as offsets are; some lead here, some nowhere. */
	for (size_t i = 0; i < SIZE / 8; i++)
		words[i] = rand() % 4   ? (uint64_t)(rand() % 4096) & ~UINT64_C(7)
			   : rand() % 2 ? (uint64_t)(uintptr_t)_PyRuntime + (uint64_t)(rand() % SIZE)
					: (uint64_t)rand() << 33 | (uint64_t)rand();
	memcpy(words, "xdebugpy", 8);
	words[1] = Py_Version;
	memcpy(_PyRuntime, words, SIZE);
	while (time(NULL) < end)
		if (_PyEval_EvalFrameDefault(1000000) == 1)
			return 1;
	return 0;
}
