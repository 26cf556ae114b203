/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/origins.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc_read.h"

struct origin {
	uint64_t root_device, root_inode, namespace;
	uint32_t number; /* 0: the place is free */
	char container_id[sizeof(((struct proc *)0)->container_id)];
	int root_fd;  /* -1: given back, nobody needed it */
	bool is_used; /* since the last cut */
};

struct origins {
	char *host_root;
	struct buf scratch;
	struct origin items[ORIGINS_MAX];
	uint32_t count; /* numbers given; the place of a number is (number - 1) % ORIGINS_MAX */
};

int origins_new(const char *host_root, struct origins **out)
{
	struct origins *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->scratch = (struct buf)BUF_INIT(KIB(64));
	o->host_root = str_dup(str_of(host_root ? host_root : ""));
	if (!o->host_root) {
		free(o);
		return -ENOMEM;
	}
	*out = o;
	return 0;
}

void origins_free(struct origins *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < ORIGINS_MAX; i++)
		if (o->items[i].number)
			closep(&o->items[i].root_fd);
	buf_release(&o->scratch);
	free(o->host_root);
	free(o);
}

/* Return: 0 and @out with an open descriptor, or -errno: it is gone, or is another process by now. */
static int look(struct origins *o, const struct proc *p, struct origin *out)
{
	scoped(closep) int dir = proc_dir_open(o->host_root, p->pid), root = -1;
	struct proc_facts facts;
	struct stat st;

	*out = (struct origin){ .root_fd = -1 };
	if (dir < 0)
		return dir;
	root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstat(root, &st) < 0)
		return -errno;
	out->root_device = st.st_dev;
	out->root_inode = st.st_ino;
	if (fstatat(dir, "ns/mnt", &st, 0) == 0)
		out->namespace = st.st_ino;
	if (proc_facts_read(dir, p->start_ns, &o->scratch, &facts) < 0)
		return -ESRCH;
	memcpy(out->container_id, p->container_id, sizeof(out->container_id));
	out->root_fd = root;
	root = -1;
	return 0;
}

static struct origin *find(struct origins *o, const struct origin *like)
{
	for (size_t i = 0; i < ORIGINS_MAX; i++) {
		struct origin *item = &o->items[i];

		if (item->number && item->root_device == like->root_device && item->root_inode == like->root_inode &&
		    item->namespace == like->namespace && !strcmp(item->container_id, like->container_id))
			return item;
	}
	return NULL;
}

/* Of one that is gone: the file system of its container. Where there are several (chroots, units with mounts of their
 * own; the machine itself is a container without an id) nobody can tell which was its. */
static struct origin *find_only(struct origins *o, const char *container_id)
{
	struct origin *found = NULL;

	for (size_t i = 0; i < ORIGINS_MAX; i++) {
		struct origin *item = &o->items[i];

		if (!item->number || strcmp(item->container_id, container_id))
			continue;
		if (found)
			return NULL;
		found = item;
	}
	return found;
}

static struct origin *add(struct origins *o, struct origin *new)
{
	struct origin *item = &o->items[o->count % ORIGINS_MAX];

	if (item->number)
		closep(&item->root_fd);
	new->number = ++o->count;
	*item = *new;
	return item;
}

/* The numbers of mount namespaces are given again: what is held may lie in one that is gone, whose mounts are, too. */
static void renew(struct origin *item, struct origin *now)
{
	closep(&item->root_fd);
	item->root_fd = now->root_fd;
	now->root_fd = -1;
}

uint32_t origins_of(struct origins *o, const struct proc *p, int *root_fd)
{
	struct origin *item, new;

	*root_fd = -1;
	if (p->is_kernel)
		return 0;
	if (look(o, p, &new) < 0) {
		closep(&new.root_fd);
		item = find_only(o, p->container_id);
	} else {
		item = find(o, &new);
		if (item)
			renew(item, &new);
		else
			item = add(o, &new);
	}
	if (!item)
		return 0;
	item->is_used = true;
	*root_fd = item->root_fd;
	return item->number;
}

void origins_cut(struct origins *o)
{
	for (size_t i = 0; i < ORIGINS_MAX; i++) {
		struct origin *item = &o->items[i];

		if (item->number && !item->is_used)
			closep(&item->root_fd);
		item->is_used = false;
	}
}
