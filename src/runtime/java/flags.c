/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/flags.h"

#include <stdatomic.h>

#include "base/log.h"

#define FLAGS_MAX 4096
#define SIZE_MAX_OF_FLAG 64
#define NAME_MAX_OF_FLAG 96

const char *java_collect_flags = "default";

/* JVMFlag::_type, a name in 11. Source: OpenJDK 17, share/runtime/flags/jvmFlag.hpp, JVM_FLAG_NON_STRING_TYPES_DO. */
enum type { BOOL, INT, UINT, INTX, UINTX, UINT64, SIZE, DOUBLE, TEXT, TEXTS, TYPE_COUNT };

static const char *const type_names[TYPE_COUNT] = { "bool",     "int",    "uint",   "intx",  "uintx",
						    "uint64_t", "size_t", "double", "ccstr", "ccstrlist" };

static const char *const origins[] = { "default",   "command line", "environment", "config file", "management",
				       "ergonomic", "attach",       "internal",    "jimage" };

/* Kinds by bit, from bit 4 on; sorted by name when they are told. Versions: 8, up to 16, up to 22, later; as jcmd shows
 * them (check_java.py). */
#define KINDS_MAX 13
static const char *const kinds_of[4][KINDS_MAX] = {
	{ "product", "manageable", "diagnostic", "experimental", "notproduct", "develop", "pd", "rw", "C1", "C2",
	  "ARCH", "Shark", "lp64_product" },
	{ "product", "manageable", "diagnostic", "experimental", "notproduct", "develop", "pd", "rw", "C1", "C2",
	  "ARCH", "lp64_product" },
	{ "product", "manageable", "diagnostic", "experimental", "notproduct", "develop", "pd", "C1", "C2", "ARCH",
	  "lp64_product", "JVMCI" },
	{ "product", "manageable", "diagnostic", "experimental", "develop", "pd", "C1", "C2", "ARCH", "lp64_product" },
};

struct flag {
	char name[NAME_MAX_OF_FLAG];
	uint64_t value_at;
	uint32_t bits;
	enum type type;
};

struct flags {
	const struct java_process *process;
	const char *const *kinds;
	struct str which;
	const struct java_flag *wanted; /* these, of any kind; `which` says nothing then */
	size_t wanted_count;
	struct flag *items;
	size_t count;
	bool diagnostic, experimental; /* flags of these kinds are unlocked */
};

static void flags_release(struct flags *f)
{
	free(f->items);
}

static bool is_kind(const struct flags *f, const struct flag *flag, const char *kind)
{
	for (unsigned i = 0; i < KINDS_MAX; i++)
		if (flag->bits >> (4 + i) & 1 && f->kinds[i] && !strcmp(f->kinds[i], kind))
			return true;
	return false;
}

static bool is_listed(struct str list, const char *name)
{
	struct str one;

	while (list.len && str_next(&list, ',', &one))
		if (str_eq(str_trim(one), str_of(name)))
			return true;
	return false;
}

/* What jcmd leaves out, and what gProfiler does: what a product has not, texts, what can be set from outside. */
static bool is_hidden(const struct flags *f, const struct flag *flag)
{
	return flag->type == TEXT || flag->type == TEXTS || is_kind(f, flag, "manageable") ||
	       is_kind(f, flag, "develop") || is_kind(f, flag, "notproduct");
}

/* These are told only when they can be set at all. */
static bool is_locked(const struct flags *f, const struct flag *flag)
{
	return (is_kind(f, flag, "diagnostic") && !f->diagnostic) ||
	       (is_kind(f, flag, "experimental") && !f->experimental);
}

static int note_unlocked(struct flags *f, const struct flag *flag)
{
	bool *to = !strcmp(flag->name, "UnlockDiagnosticVMOptions")     ? &f->diagnostic
		   : !strcmp(flag->name, "UnlockExperimentalVMOptions") ? &f->experimental
									: NULL;
	uint8_t value = 0;
	int r = to ? java_read(&f->process->memory, &value, sizeof(value), flag->value_at) : 0;

	if (to && r == 0)
		*to = value;
	return r;
}

static bool is_wanted(const struct flags *f, const struct flag *flag)
{
	if (f->wanted)
		return true; /* take_flag() has looked */
	if (is_hidden(f, flag))
		return false;
	if (str_eq(f->which, STR("all")))
		return true;
	if (str_eq(f->which, STR("default")))
		return (flag->bits & 15) && !is_kind(f, flag, "pd");
	return is_listed(f->which, flag->name);
}

int java_text_read(const struct java_process *p, uint64_t at, char *out, size_t size)
{
	size_t used = 0;

	while (used + 1 < size) {
		size_t piece = MIN(8 - (at + used) % 8, size - 1 - used); /* up to a word: none lies across pages */
		int r = java_read(&p->memory, out + used, (uint32_t)piece, at + used);

		if (r < 0)
			return r;
		out[used + piece] = 0;
		if (strnlen(out + used, piece) < piece)
			return 0;
		used += piece;
	}
	return -EBADMSG;
}

static int read_type(const struct java_process *p, const uint8_t *raw, enum type *out)
{
	char name[16] = "";
	uint32_t number = java_u32(raw, p->layout->flag_type);
	int r = 0;

	if (p->layout->flags & JAVA_LAYOUT_FLAG_TYPE_TEXT) {
		r = java_text_read(p, java_u64(raw, p->layout->flag_type), name, sizeof(name));
		for (number = 0; number < TYPE_COUNT && strcmp(name, type_names[number]); number++)
			;
	}
	*out = (enum type)MIN(number, (uint32_t)TYPE_COUNT);
	return r;
}

/* One read, where text takes several: there are 1,500 flags. What is cut off by the end of memory is another name. */
static bool is_among_wanted(const struct flags *f, uint64_t name_at)
{
	char text[NAME_MAX_OF_FLAG];
	size_t longest = 0;

	for (size_t i = 0; i < f->wanted_count; i++)
		longest = MAX(longest, strlen(f->wanted[i].name));
	if (longest >= sizeof(text) || java_read(&f->process->memory, text, (uint32_t)longest + 1, name_at) < 0)
		return false;
	for (size_t i = 0; i < f->wanted_count; i++)
		if (!memcmp(text, f->wanted[i].name, strlen(f->wanted[i].name) + 1))
			return true;
	return false;
}

static int take_flag(struct flags *f, const uint8_t *raw)
{
	const struct java_layout *l = f->process->layout;
	struct flag *flag = &f->items[f->count];
	uint64_t name_at = java_u64(raw, l->flag_name);
	int r;

	*flag = (struct flag){ .value_at = java_u64(raw, l->flag_address), .bits = java_u32(raw, l->flag_flags) };
	if (!name_at || !flag->value_at)
		return 0; /* the last one */
	if (f->wanted && !is_among_wanted(f, name_at))
		return 0;
	if (!f->wanted && str_eq(f->which, STR("default")) && !(flag->bits & 15))
		return 0; /* most of them: their names are not read */
	r = read_type(f->process, raw, &flag->type);
	r = r ? r : java_text_read(f->process, name_at, flag->name, sizeof(flag->name));
	r = r ? r : note_unlocked(f, flag);
	f->count += r == 0 && flag->type < TYPE_COUNT && is_wanted(f, flag);
	return r;
}

static int read_flags(struct flags *f)
{
	const struct java_process *p = f->process;
	const struct java_layout *l = p->layout;
	const uint16_t members[] = { l->flag_name, l->flag_address, l->flag_flags, l->flag_type };
	scoped(freep) uint8_t *raw = NULL;
	uint64_t at, count;
	int r = 0;

	if (!l->jvm_flags || !l->jvm_flag_count || l->flag_size > SIZE_MAX_OF_FLAG)
		return -ENOTSUP;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i] + 8U > l->flag_size + 4U) /* the last may have four bytes */
			return -ENOTSUP;
	r = java_read_word(&p->memory, l->jvm_flags + p->bias, &at);
	r = r ? r : java_read_word(&p->memory, l->jvm_flag_count + p->bias, &count);
	if (r == 0 && (!count || count > FLAGS_MAX))
		r = -EBADMSG;
	if (r < 0)
		return r;
	raw = calloc(count + 1, l->flag_size); /* one more: the last may be read as if it had eight bytes */
	f->items = calloc(count, sizeof(*f->items));
	if (!raw || !f->items)
		return -ENOMEM;
	r = java_read(&p->memory, raw, (uint32_t)(count * l->flag_size), at);
	for (uint64_t i = 0; r == 0 && i < count; i++)
		r = take_flag(f, raw + i * l->flag_size);
	return r;
}

static int read_wanted(const struct flags *f, const struct flag *flag)
{
	uint8_t value = 0;
	int r = flag->type == BOOL ? java_read(&f->process->memory, &value, sizeof(value), flag->value_at) : -ENOENT;

	for (size_t i = 0; r == 0 && i < f->wanted_count; i++)
		if (!strcmp(f->wanted[i].name, flag->name))
			*f->wanted[i].out = value;
	return r == -ENOENT ? 0 : r;
}

int java_flags_read(const struct java_process *p, const struct java_flag *wanted, size_t count)
{
	scoped(flags_release) struct flags f = {
		.process = p, .kinds = kinds_of[0], .wanted = wanted, .wanted_count = count
	};
	int r = read_flags(&f);

	for (size_t i = 0; r == 0 && i < f.count; i++)
		r = read_wanted(&f, &f.items[i]);
	return r;
}

void java_flags_learn(const struct java_process *p, struct java_layout *l)
{
	const struct java_flag wanted[] = { { "DebugNonSafepoints", &l->exact_lines },
					    { "UseJVMCICompiler", &l->by_jvmci } };

	ignore(java_flags_read(p, wanted, ARRAY_SIZE(wanted)) < 0);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct flag *)a)->name, ((const struct flag *)b)->name);
}

static int text_by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int value_text(const struct flags *f, const struct flag *flag, char out[48])
{
	static const uint8_t widths[TYPE_COUNT] = { 1, 4, 4, 8, 8, 8, 8, 8, 8, 8 };
	uint64_t value = 0;
	double number;
	int r = java_read(&f->process->memory, &value, widths[flag->type], flag->value_at);

	if (r < 0)
		return r;
	memcpy(&number, &value, sizeof(number));
	if (flag->type == BOOL)
		snprintf(out, 48, "%s", value & 0xff ? "true" : "false");
	else if (flag->type == DOUBLE)
		snprintf(out, 48, "%.6f", number);
	else if (flag->type == INT)
		snprintf(out, 48, "%d", (int32_t)value);
	else if (flag->type == INTX)
		snprintf(out, 48, "%lld", (long long)value);
	else
		snprintf(out, 48, "%llu", (unsigned long long)value);
	return 0;
}

static void add_kinds(const struct flags *f, const struct flag *flag, struct json_out *j)
{
	const char *names[KINDS_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < KINDS_MAX; i++)
		if (flag->bits >> (4 + i) & 1 && f->kinds[i])
			names[count++] = f->kinds[i];
	qsort(names, count, sizeof(names[0]), text_by_name);
	json_out_key(j, STR("kind"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < count; i++)
		json_out_string(j, str_of(names[i]));
	json_out_end(j, ']');
}

static void add_text(struct json_out *j, struct str key, const char *text)
{
	json_out_key(j, key);
	json_out_string(j, str_of(text));
}

static int add_flag(const struct flags *f, const struct flag *flag, struct json_out *j)
{
	uint32_t origin = flag->bits & 15;
	char value[48];
	int r = value_text(f, flag, value);

	if (r < 0)
		return r;
	json_out_begin(j, '{');
	add_text(j, STR("name"), flag->name);
	add_text(j, STR("type"), type_names[flag->type]);
	add_text(j, STR("value"), value);
	add_text(j, STR("origin"), origin < ARRAY_SIZE(origins) ? origins[origin] : "unknown");
	add_kinds(f, flag, j);
	json_out_end(j, '}');
	return 0;
}

/* Names of a list that the array does not have. Told once for each version of Java: of a thousand JVMs all say so. */
static void warn_of_missing(const struct flags *f)
{
	static _Atomic uint64_t told;
	scoped(buf_release) struct buf missing = BUF_INIT(KIB(4));
	uint64_t version = 1ULL << (f->process->layout->version & 63);
	struct str rest = f->which, name;

	while (rest.len && str_next(&rest, ',', &name)) {
		bool has = false;

		name = str_trim(name);
		for (size_t i = 0; i < f->count && !has; i++)
			has = str_eq(name, str_of(f->items[i].name)) && !is_locked(f, &f->items[i]);
		if (name.len && !has)
			buf_addf(&missing, "%s" STR_FMT, missing.len ? ", " : "", STR_ARG(name));
	}
	if (missing.len && !(atomic_fetch_or(&told, version) & version))
		log_warn("--java-collect-jvm-flags: a JVM does not tell these flags",
			 LOG_STR("flags", buf_str(&missing)), LOG_U64("java", f->process->layout->version));
}

static bool is_list(struct str which)
{
	return !str_eq(which, STR("all")) && !str_eq(which, STR("default")) && !str_eq(which, STR("none"));
}

int java_flags_add(const struct java_process *p, struct str which, struct json_out *j)
{
	uint8_t version = p->layout->version;
	scoped(flags_release) struct flags f = { .process = p,
						 .kinds = kinds_of[(version >= 9) + (version >= 17) + (version >= 23)],
						 .which = which };
	struct json_out before = *j;
	size_t length = j->out->len;
	int r = str_eq(which, STR("none")) ? 0 : read_flags(&f);

	if (r < 0)
		return r;
	if (f.count)
		qsort(f.items, f.count, sizeof(f.items[0]), by_name);
	json_out_begin(j, '[');
	for (size_t i = 0; r == 0 && i < f.count; i++)
		r = is_locked(&f, &f.items[i]) ? 0 : add_flag(&f, &f.items[i], j);
	if (r < 0) {
		j->out->len = length;
		*j = before;
		return r;
	}
	json_out_end(j, ']');
	if (is_list(which))
		warn_of_missing(&f);
	return j->out->error;
}
