/* SPDX-License-Identifier: Apache-2.0 */
/* What containerd and CRI-O answer. Sources: kubernetes/cri-api, pkg/apis/runtime/v1/api.proto; gRPC over HTTP/2,
 * "Length-Prefixed-Message". */
#include "base/wire.h"
#include "proc/container.h"

#define NAME_MAX_BYTES KIB(4)

enum { LIST_CONTAINERS = 1 };
enum { CONTAINER_ID = 1, CONTAINER_METADATA = 3, CONTAINER_LABELS = 8, CONTAINER_ANNOTATIONS = 9 };
enum { METADATA_NAME = 1, METADATA_ATTEMPT = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* Borrowed from the message. */
struct container {
	struct str id, name; /* name: of the container alone, without Kubernetes */
	uint64_t attempt;
	struct str label, pod, namespace, uid, restarts;
};

static bool read_entry(struct cur c, struct str *key, struct str *value)
{
	struct wire_field f;

	*key = *value = STR("");
	while (wire_next(&c, &f)) {
		if (f.number == ENTRY_KEY && wire_fits(&c, &f, WIRE_BYTES))
			*key = wire_str(&f);
		else if (f.number == ENTRY_VALUE && wire_fits(&c, &f, WIRE_BYTES))
			*value = wire_str(&f);
	}
	return !c.bad;
}

/* Labels are known by Kubernetes' own names of them; annotations of others do not count. */
static bool take_entry(struct container *out, uint64_t field, struct cur c)
{
	struct str key, value;

	if (!read_entry(c, &key, &value))
		return false;
	if (field == CONTAINER_ANNOTATIONS) {
		if (str_eq(key, STR("io.kubernetes.container.restartCount")))
			out->restarts = value;
		return true;
	}
	if (str_eq(key, STR("io.kubernetes.container.name")))
		out->label = value;
	else if (str_eq(key, STR("io.kubernetes.pod.name")))
		out->pod = value;
	else if (str_eq(key, STR("io.kubernetes.pod.namespace")))
		out->namespace = value;
	else if (str_eq(key, STR("io.kubernetes.pod.uid")))
		out->uid = value;
	return true;
}

static bool read_metadata(struct cur c, struct container *out)
{
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number == METADATA_NAME && wire_fits(&c, &f, WIRE_BYTES))
			out->name = wire_str(&f);
		else if (f.number == METADATA_ATTEMPT && wire_fits(&c, &f, WIRE_VARINT))
			out->attempt = f.value;
	}
	return !c.bad;
}

static bool read_container(struct cur c, struct container *out)
{
	struct wire_field f;

	*out = (struct container){ 0 };
	while (wire_next(&c, &f)) {
		if (f.number != CONTAINER_ID && f.number != CONTAINER_METADATA && f.number != CONTAINER_LABELS &&
		    f.number != CONTAINER_ANNOTATIONS)
			continue;
		if (!wire_fits(&c, &f, WIRE_BYTES))
			break;
		if (f.number == CONTAINER_ID)
			out->id = wire_str(&f);
		else if (!(f.number == CONTAINER_METADATA ? read_metadata(f.bytes, out)
							  : take_entry(out, f.number, f.bytes)))
			c.bad = true;
	}
	return !c.bad;
}

/* As Docker's shim called it, which gProfiler writes: k8s_CONTAINER_POD_NAMESPACE_UID_RESTARTS. Source:
 * kubernetes 1.23, pkg/kubelet/dockershim/naming.go. A container that Kubernetes did not make has its own name. */
static void add_name(const struct container *c, struct buf *out)
{
	if (!c->pod.len) {
		buf_adds(out, c->name);
		return;
	}
	buf_addf(out, "k8s_" STR_FMT "_" STR_FMT "_" STR_FMT "_" STR_FMT "_",
		 STR_ARG(c->label.len ? c->label : c->name), STR_ARG(c->pod), STR_ARG(c->namespace), STR_ARG(c->uid));
	if (c->restarts.len)
		buf_adds(out, c->restarts);
	else
		buf_addu64(out, c->attempt);
}

static bool is_text(struct str s)
{
	return s.len && !memchr(s.ptr, 0, s.len);
}

int container_cri_parse(struct str message, container_visit_fn *visit, void *ctx)
{
	struct cur c = cur_of(message.ptr, message.len);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		scoped(buf_release) struct buf name = BUF_INIT(NAME_MAX_BYTES);
		struct container found;

		if (f.number != LIST_CONTAINERS)
			continue;
		if (!wire_fits(&c, &f, WIRE_BYTES) || !read_container(f.bytes, &found))
			return -EBADMSG;
		add_name(&found, &name);
		if (name.error == -ENOMEM)
			return -ENOMEM;
		if (container_is_id(found.id) && !name.error && is_text(buf_str(&name)))
			r = visit(ctx, found.id, buf_str(&name));
	}
	return r == 0 && c.bad ? -EBADMSG : r;
}

int container_grpc_parse(struct str body, struct str *message)
{
	const uint8_t *head = (const uint8_t *)body.ptr;
	uint32_t size;

	if (body.len < CONTAINER_GRPC_HEAD || head[0] != 0) /* 1: compressed, which nobody asked for */
		return -EBADMSG;
	size = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | (uint32_t)head[4];
	if (body.len - CONTAINER_GRPC_HEAD != size)
		return -EBADMSG;
	*message = str_skip(body, CONTAINER_GRPC_HEAD);
	return 0;
}
