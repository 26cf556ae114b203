/* SPDX-License-Identifier: Apache-2.0 */
/* Names of members are gProfiler's (1.57, metadata/cloud.py). Sources of the documents: AWS, "Instance identity
 * documents" and "Task metadata endpoint version 4"; Google Cloud, "VM metadata"; Azure, "Instance Metadata Service".
 */
#include "agent/cloud.h"
#include "codec/json.h"

#define TEXT_MAX KIB(64)

/* Where a member of the document goes. */
struct field {
	const char *name, *from; /* from: with its quotes */
	bool is_last_part;       /* of a path: "projects/1/zones/ZONE" */
	bool is_required;
};

static const struct field aws[] = { { "region", "\"region\"" },
				    { "zone", "\"availabilityZone\"" },
				    { "instance_type", "\"instanceType\"" },
				    { "life_cycle", NULL },
				    { "account_id", "\"accountId\"" },
				    { "image_id", "\"imageId\"" },
				    { "instance_id", "\"instanceId\"", .is_required = true } };
static const struct field fargate[] = { { "execution_env", NULL },
					{ "region", NULL },
					{ "container_arn", "\"ContainerARN\"", .is_required = true } };
static const struct field gcp[] = { { "zone", "\"zone\"", .is_last_part = true, .is_required = true },
				    { "instance_type", "\"machineType\"", .is_last_part = true, .is_required = true },
				    { "preempted", "\"preempted\"" },
				    { "preemptible", "\"preemptible\"" },
				    { "instance_id", "\"id\"" },
				    { "image_id", "\"image\"" },
				    { "name", "\"name\"" } };
static const struct field azure[] = { { "instance_type", "\"vmSize\"", .is_required = true },
				      { "zone", "\"zone\"" },
				      { "region", "\"location\"" },
				      { "subscription_id", "\"subscriptionId\"" },
				      { "resource_group_name", "\"resourceGroupName\"" },
				      { "resource_id", "\"resourceId\"" },
				      { "instance_id", "\"vmId\"", .is_required = true },
				      { "name", "\"name\"" } };
static const struct field azure_image[] = { { "image_id", "\"id\"" },
					    { "image_offer", "\"offer\"" },
					    { "image_publisher", "\"publisher\"" },
					    { "image_sku", "\"sku\"" },
					    { "image_version", "\"version\"" } };

static const struct {
	const char *name;
	const struct field *fields;
	size_t count;
} providers[CLOUD_PROVIDERS] = {
	[CLOUD_AWS] = { "aws", aws, ARRAY_SIZE(aws) },
	[CLOUD_FARGATE] = { "aws", fargate, ARRAY_SIZE(fargate) },
	[CLOUD_GCP] = { "gcp", gcp, ARRAY_SIZE(gcp) },
	[CLOUD_AZURE] = { "azure", azure, ARRAY_SIZE(azure) },
};

const char *cloud_name(enum cloud_provider provider)
{
	return providers[provider].name;
}

/* Empty: there is none. */
static struct str member(struct str object, const char *wanted)
{
	struct str key, value, found = STR("");

	if (!object.len || object.ptr[0] != '{')
		return found;
	while (json_member(&object, &key, &value))
		if (str_eq(key, str_of(wanted)))
			found = value;
	return found;
}

static void add_text(struct json_out *j, const char *name, struct str text)
{
	json_out_key(j, str_of(name));
	json_out_string(j, text);
}

static int add_field(struct json_out *j, struct str object, const struct field *field)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	struct str value = member(object, field->from), plain;
	ptrdiff_t slash;

	if (value.len && value.ptr[0] >= '0' && value.ptr[0] <= '9') /* Google's id is a number */
		buf_adds(&text, value);
	else if (!value.len || json_text(value, &text) < 0)
		buf_clear(&text);
	if (text.error)
		return text.error;
	plain = buf_str(&text);
	slash = field->is_last_part ? str_rfind(plain, '/') : -1;
	plain = str_skip(plain, (size_t)(slash + 1));
	if (field->is_required && !plain.len)
		return -EBADMSG;
	json_out_key(j, str_of(field->name));
	if (value.len)
		json_out_string(j, plain);
	else
		json_out_raw(j, STR("null"));
	return 0;
}

static void add_truth(struct json_out *j, const char *name, struct str value)
{
	json_out_key(j, str_of(name));
	json_out_raw(j, str_eq(value, STR("\"TRUE\"")) ? STR("true") : STR("false"));
}

/* Those that are not simply a member. */
static bool add_special(struct json_out *j, enum cloud_provider provider, const struct field *field, struct str object,
			const struct cloud_answer *answer)
{
	struct str name = str_of(field->name);

	if (provider == CLOUD_GCP && str_eq(name, STR("preempted")))
		add_truth(j, field->name, member(object, field->from));
	else if (provider == CLOUD_GCP && str_eq(name, STR("preemptible")))
		add_truth(j, field->name, member(member(object, "\"scheduling\""), field->from));
	else if (str_eq(name, STR("life_cycle")))
		add_text(j, field->name, answer->life_cycle.len ? answer->life_cycle : STR("unknown"));
	else if (str_eq(name, STR("execution_env")))
		add_text(j, field->name, STR("AWS_ECS_FARGATE"));
	else if (provider == CLOUD_FARGATE && str_eq(name, STR("region")))
		add_text(j, field->name, answer->region.len ? answer->region : STR("unknown"));
	else
		return false;
	return true;
}

static int add_fields(struct json_out *j, enum cloud_provider provider, struct str object,
		      const struct cloud_answer *answer)
{
	int r = 0;

	for (size_t i = 0; i < providers[provider].count && r == 0; i++) {
		const struct field *field = &providers[provider].fields[i];

		if (!add_special(j, provider, field, object, answer))
			r = add_field(j, object, field);
	}
	return r;
}

static int add_image(struct json_out *j, struct str object)
{
	struct str image = member(member(object, "\"storageProfile\""), "\"imageReference\"");
	int r = 0;

	json_out_key(j, STR("image_info"));
	if (!image.len || image.ptr[0] != '{') {
		json_out_raw(j, STR("null"));
		return 0;
	}
	json_out_begin(j, '{');
	for (size_t i = 0; i < ARRAY_SIZE(azure_image) && r == 0; i++)
		r = add_field(j, image, &azure_image[i]);
	json_out_end(j, '}');
	return r;
}

int cloud_describe(enum cloud_provider provider, const struct cloud_answer *answer, struct buf *out)
{
	struct json_out j = { .out = out };
	struct str rest = answer->document, object;
	size_t before = out->len;
	int r;

	if (json_value(&rest, &object) < 0 || str_trim(rest).len || object.ptr[0] != '{')
		return -EBADMSG;
	json_out_begin(&j, '{');
	add_text(&j, "provider", str_of(providers[provider].name));
	r = add_fields(&j, provider, object, answer);
	if (r == 0 && provider == CLOUD_AZURE)
		r = add_image(&j, object);
	json_out_end(&j, '}');
	r = r ? r : out->error;
	if (r < 0)
		out->len = before;
	return r;
}
