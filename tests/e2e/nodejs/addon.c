// SPDX-License-Identifier: Apache-2.0
// A native add-on by Node-API: work(n, f) computes, then calls f below a function of its own.
#include <node_api.h>

__attribute__((noinline)) int32_t native_spin(int32_t n)
{
	volatile int32_t s = 0;

	for (int32_t i = 0; i < n; i++)
		s = s % 1000003 + i;
	return s;
}

__attribute__((noinline)) int32_t native_between(napi_env env, napi_value function)
{
	napi_value global, result;
	int32_t number = 0;

	if (napi_get_global(env, &global) != napi_ok ||
	    napi_call_function(env, global, function, 0, NULL, &result) != napi_ok)
		return -1;
	return napi_get_value_int32(env, result, &number) == napi_ok ? number : -1;
}

__attribute__((noinline)) napi_value native_work(napi_env env, napi_callback_info info)
{
	napi_value arguments[2], result = NULL;
	size_t count = 2;
	int32_t n = 0;

	if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok ||
	    napi_get_value_int32(env, arguments[0], &n) != napi_ok)
		return NULL;
	n = native_spin(n) % 1000 + native_between(env, arguments[1]);
	return napi_create_int32(env, n, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT()
{
	napi_value function;

	if (napi_create_function(env, "work", NAPI_AUTO_LENGTH, native_work, NULL, &function) != napi_ok ||
	    napi_set_named_property(env, exports, "work", function) != napi_ok)
		return NULL;
	return exports;
}
