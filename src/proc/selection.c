/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/selection.h"

#define SERVICE ".service"

static size_t count_of(const struct opt_list *patterns)
{
	return patterns ? patterns->count : 0;
}

bool selection_is_all(const struct selection *s)
{
	return !count_of(s->comms) && !count_of(s->units) && !count_of(s->pods) && !s->container && !s->user_count;
}

static bool fits_some(const struct opt_list *patterns, struct str text)
{
	for (size_t i = 0; i < count_of(patterns) && text.len; i++)
		if (service_rules_fits(str_of(patterns->items[i]), text))
			return true;
	return !count_of(patterns);
}

static bool is_of_unit(const struct opt_list *patterns, struct str unit)
{
	for (size_t i = 0; i < count_of(patterns) && unit.len; i++) {
		struct str pattern = str_of(patterns->items[i]);

		if (str_ends(pattern, STR(SERVICE)))
			pattern.len -= strlen(SERVICE);
		if (service_rules_fits(pattern, unit))
			return true;
	}
	return !count_of(patterns);
}

static bool is_of_container(const char *wanted, const struct proc *p)
{
	struct str name = str_of(wanted);

	if (!wanted)
		return true;
	return (p->container && service_rules_fits(name, str_of(p->container))) ||
	       (name.len >= CONTAINER_SHORT_SIZE && str_starts(str_of(p->container_id), name));
}

/* What its engine says, else what it was told itself. */
static struct str pod_of(const struct proc *p)
{
	bool is_pod = false;
	struct str name = workload_container(str_of(p->container), &is_pod);

	return is_pod ? name : str_of(p->pod);
}

static bool is_of_user(const struct selection *s, uint32_t user)
{
	for (size_t i = 0; i < s->user_count; i++)
		if (s->users[i] == user)
			return true;
	return !s->user_count;
}

bool selection_wants(const struct selection *s, const struct proc *p, uint32_t user)
{
	return fits_some(s->comms, str_n(p->comm, strnlen(p->comm, ABI_COMM_SIZE))) &&
	       is_of_unit(s->units, str_of(p->unit)) && fits_some(s->pods, pod_of(p)) &&
	       is_of_container(s->container, p) && is_of_user(s, user);
}
