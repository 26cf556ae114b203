/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <jansson.h>

#include "agent/metadata.h"
#include "sampler/sampler.h"

/* The order readers of .col files know. */
static const char *const keys[] = {
	"cloud_provider", "agent_version",     "spawn_time",         "python_version",
	"run_mode",       "deployment_type",   "kernel_release",     "kernel_version",
	"system_name",    "hypervisor",        "processors",         "cpu_model_name",
	"cpu_flags",      "cpu_arch_codename", "memory_capacity_mb", "hostname",
	"system",         "os_name",           "os_release",         "os_codename",
	"libc_type",      "libc_version",      "hardware_type",      "pid",
	"mac_address",    "private_ip",        "spawn_uptime_ms",    "run_arguments",
	"big_data",       "external_metadata", "current_time",       "profiling_mode",
	"sampling_event", "sampling_mode",     "sampling_frequency", "precise_modifier",
};

static json_t *object_of(const struct metadata_config *cfg)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	json_t *object;

	assert_int_equal(metadata_json(cfg, &text), 0);
	assert_int_equal(str_find(buf_str(&text), '\n'), -1);
	object = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_object(object));
	return object;
}

static void keys_in_order(void **state)
{
	struct metadata_config cfg = { .host_root = "",
				       .spawn_wall_ns = 1785792565 * NSEC_PER_SEC,
				       .now_wall_ns = 1785792575 * NSEC_PER_SEC,
				       .frequency_hz = 99,
				       .run_mode = "k8s",
				       .external = "{\"rack\": 7}" };
	json_t *object = object_of(&cfg), *value;
	const char *key;
	size_t i = 0;

	(void)state;
	json_object_foreach(object, key, value)
	{
		assert_true(i < ARRAY_SIZE(keys));
		assert_string_equal(key, keys[i++]);
	}
	assert_int_equal(i, ARRAY_SIZE(keys));
	assert_string_equal(json_string_value(json_object_get(object, "spawn_time")), "2026-08-03T21:29:25");
	assert_string_equal(json_string_value(json_object_get(object, "current_time")), "2026-08-03T21:29:35");
	assert_string_equal(json_string_value(json_object_get(object, "deployment_type")), "k8s");
	assert_string_equal(json_string_value(json_object_get(object, "agent_version")), HEARTH_VERSION);
	assert_true(json_integer_value(json_object_get(object, "processors")) > 0);
	assert_true(json_integer_value(json_object_get(object, "memory_capacity_mb")) > 0);
	assert_int_equal(json_string_length(json_object_get(object, "mac_address")), 17);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "external_metadata"), "rack")), 7);
	json_decref(object);
}

static void a_machine_that_tells_nothing(void **state)
{
	struct metadata_config cfg = { .host_root = "/nowhere", .frequency_hz = 11 };
	json_t *object = object_of(&cfg);

	(void)state;
	assert_int_equal(json_object_size(object), ARRAY_SIZE(keys));
	assert_string_equal(json_string_value(json_object_get(object, "cpu_model_name")), "unknown");
	assert_string_equal(json_string_value(json_object_get(object, "os_name")), "unknown");
	assert_string_equal(json_string_value(json_object_get(object, "run_mode")), "standalone_executable");
	assert_string_equal(json_string_value(json_object_get(object, "mac_address")), "00:00:00:00:00:00");
	json_decref(object);
}

static void what_is_sampled(void **state)
{
	const struct sampler_event event = { .name = "cycles:pp", .precise = 2, .period = 1000 };
	struct metadata_config cfg = { .host_root = "/nowhere", .frequency_hz = 11, .event = &event };
	json_t *object = object_of(&cfg);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(object, "sampling_event")), "cycles:pp");
	assert_string_equal(json_string_value(json_object_get(object, "sampling_mode")), "period");
	assert_int_equal(json_integer_value(json_object_get(object, "sampling_period")), 1000);
	assert_null(json_object_get(object, "sampling_frequency"));
	assert_string_equal(json_string_value(json_object_get(object, "precise_modifier")), ":pp");
	json_decref(object);
}

static void how_it_was_started(void **state)
{
	struct metadata_config cfg = { .host_root = "/nowhere",
				       .frequency_hz = 11,
				       .arguments = "{\"duration\":60,\"pids\":[1,2]}" };
	json_t *object = object_of(&cfg), *arguments = json_object_get(object, "run_arguments");

	(void)state;
	assert_int_equal(json_object_size(arguments), 2);
	assert_int_equal(json_integer_value(json_object_get(arguments, "duration")), 60);
	assert_int_equal(json_array_size(json_object_get(arguments, "pids")), 2);
	json_decref(object);
	cfg.arguments = "{\"cut";
	object = object_of(&cfg);
	arguments = json_object_get(object, "run_arguments");
	assert_int_equal(json_integer_value(json_object_get(arguments, "frequency")), 11);
	json_decref(object);
}

static void os_release(void **state)
{
	struct str text = STR("# c\nNAME=\"Debian GNU/Linux\"\nVERSION_ID='12'\nID=debian\nNAME_X=1\nEMPTY=\nODD=\"\n");

	(void)state;
	assert_true(str_eq(metadata_os_release(text, STR("NAME")), STR("Debian GNU/Linux")));
	assert_true(str_eq(metadata_os_release(text, STR("VERSION_ID")), STR("12")));
	assert_true(str_eq(metadata_os_release(text, STR("ID")), STR("debian")));
	assert_true(str_eq(metadata_os_release(text, STR("EMPTY")), STR("")));
	assert_true(str_eq(metadata_os_release(text, STR("ODD")), STR("\"")));
	assert_int_equal(metadata_os_release(text, STR("NONE")).len, 0);
}

static int write_it(void *ctx)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	struct metadata_config cfg = { .host_root = "", .frequency_hz = 99 };

	(void)ctx;
	return metadata_json(&cfg, &text);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(write_it, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_in_order),   cmocka_unit_test(a_machine_that_tells_nothing),
		cmocka_unit_test(what_is_sampled), cmocka_unit_test(how_it_was_started),
		cmocka_unit_test(os_release),      cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
