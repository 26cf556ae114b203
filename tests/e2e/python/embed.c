/* SPDX-License-Identifier: Apache-2.0 */
/* A program of its own with CPython inside: embed SECONDS. */
#include <Python.h>

#include <stdlib.h>

static const char code[] = "import time\n"
			   "def py_leaf(n):\n"
			   "    t = 0\n"
			   "    for i in range(n):\n"
			   "        t += i\n"
			   "    return t\n"
			   "def py_outer(seconds):\n"
			   "    clock = getattr(time, 'process_time', None) or time.clock\n"
			   "    end = clock() + seconds\n"
			   "    while clock() < end:\n"
			   "        py_leaf(5000)\n";

int c_outer(double seconds);
int c_inner(double seconds);

__attribute__((noinline)) int c_inner(double seconds)
{
	PyObject *module = PyImport_AddModule("__main__"), *result;

	result = PyObject_CallMethod(module, "py_outer", "d", seconds);
	if (!result) {
		PyErr_Print();
		return 1;
	}
	Py_DECREF(result);
	return 0;
}

__attribute__((noinline)) int c_outer(double seconds)
{
	return c_inner(seconds) + 0;
}

int main(int argc, char **argv)
{
	int r;

	Py_Initialize();
	r = PyRun_SimpleString(code);
	if (r == 0)
		r = c_outer(argc > 1 ? atof(argv[1]) : 1);
	Py_Finalize();
	return r;
}
