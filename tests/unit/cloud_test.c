/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "agent/cloud.h"

static void documents(void **state)
{
	static const struct {
		const char *name;
		enum cloud_provider provider;
		const char *document, *life_cycle;
		int want;
		const char *info;
	} cases[] = {
		{ "aws", CLOUD_AWS,
		  "{\"accountId\":\"1234\",\"availabilityZone\":\"eu-west-1b\",\"imageId\":\"ami-5\",\"instanceId\":"
		  "\"i-7\","
		  "\"instanceType\":\"m5.large\",\"region\":\"eu-west-1\",\"billingProducts\":null}",
		  "spot", 0,
		  "{\"provider\": \"aws\", \"region\": \"eu-west-1\", \"zone\": \"eu-west-1b\", \"instance_type\": "
		  "\"m5.large\", \"life_cycle\": \"spot\", \"account_id\": \"1234\", \"image_id\": \"ami-5\", "
		  "\"instance_id\": \"i-7\"}" },
		{ "aws, little of it", CLOUD_AWS, "{\"instanceId\":\"i-7\"}", "", 0,
		  "{\"provider\": \"aws\", \"region\": null, \"zone\": null, \"instance_type\": null, \"life_cycle\": "
		  "\"unknown\", \"account_id\": null, \"image_id\": null, \"instance_id\": \"i-7\"}" },
		{ "fargate", CLOUD_FARGATE, "{\"ContainerARN\":\"arn:1\"}", "", 0,
		  "{\"provider\": \"aws\", \"execution_env\": \"AWS_ECS_FARGATE\", \"region\": \"eu\", "
		  "\"container_arn\": \"arn:1\"}" },
		{ "gcp", CLOUD_GCP,
		  "{\"id\":9123456789012345678,\"image\":\"projects/x/images/y\",\"machineType\":\"projects/1/"
		  "machineTypes/"
		  "e2-small\",\"name\":\"vm\",\"preempted\":\"FALSE\",\"scheduling\":{\"preemptible\":\"TRUE\"},"
		  "\"zone\":"
		  "\"projects/1/zones/us-a\"}",
		  "", 0,
		  "{\"provider\": \"gcp\", \"zone\": \"us-a\", \"instance_type\": \"e2-small\", \"preempted\": false, "
		  "\"preemptible\": true, \"instance_id\": \"9123456789012345678\", \"image_id\": "
		  "\"projects/x/images/y\", \"name\": \"vm\"}" },
		{ "azure", CLOUD_AZURE,
		  "{\"location\":\"weu\",\"name\":\"vm\",\"resourceGroupName\":\"g\",\"resourceId\":\"/"
		  "r\",\"storageProfile\":"
		  "{\"imageReference\":{\"id\":\"\",\"offer\":\"Ubuntu\",\"publisher\":\"Canonical\",\"sku\":\"22\","
		  "\"version\":"
		  "\"1\"}},\"subscriptionId\":\"s\",\"vmId\":\"v\",\"vmSize\":\"D2\",\"zone\":\"1\"}",
		  "", 0,
		  "{\"provider\": \"azure\", \"instance_type\": \"D2\", \"zone\": \"1\", \"region\": \"weu\", "
		  "\"subscription_id\": \"s\", \"resource_group_name\": \"g\", \"resource_id\": \"/r\", "
		  "\"instance_id\": "
		  "\"v\", \"name\": \"vm\", \"image_info\": {\"image_id\": \"\", \"image_offer\": \"Ubuntu\", "
		  "\"image_publisher\": \"Canonical\", \"image_sku\": \"22\", \"image_version\": \"1\"}}" },
		{ "another cloud's", CLOUD_AZURE, "{\"instanceId\":\"i-7\"}", "", -EBADMSG, "" },
		{ "no instance", CLOUD_AWS, "{\"region\":\"eu\"}", "", -EBADMSG, "" },
		{ "odd types", CLOUD_AWS, "{\"instanceId\":{\"a\":1}}", "", -EBADMSG, "" },
		{ "a list", CLOUD_GCP, "[1]", "", -EBADMSG, "" },
		{ "a text", CLOUD_GCP, "\"zone\"", "", -EBADMSG, "" },
		{ "a page", CLOUD_AWS, "<html>", "", -EBADMSG, "" },
		{ "two", CLOUD_AWS, "{\"instanceId\":\"i-7\"}{}", "", -EBADMSG, "" },
		{ "cut off", CLOUD_AWS, "{\"instanceId\":\"i-7\"", "", -EBADMSG, "" },
		{ "nothing", CLOUD_AWS, "", "", -EBADMSG, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(16));
		struct cur bytes = guard_page(cases[i].document, strlen(cases[i].document));
		const struct cloud_answer answer = { .document = cur_rest(&bytes),
						     .life_cycle = str_of(cases[i].life_cycle),
						     .region = STR("eu") };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(cloud_describe(cases[i].provider, &answer, &out), cases[i].want);
		assert_string_equal(buf_cstr(&out), cases[i].info);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(documents) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
