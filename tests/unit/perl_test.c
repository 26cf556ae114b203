/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's files, its processes, and what its subs are called: the installed interpreter, made-up memory, records by
 * hand. */
#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "../walk/perl_image.h"
#include "base/utf8.h"
#include "runtime/perl/perl_int.h"

#define PERL "/usr/bin/perl"

/* ---- the file ---- */

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	ssize_t got = pread(*(int *)self, dst, size, (off_t)offset);

	return got < 0 ? -errno : (size_t)got == size ? 0 : -ENODATA;
}

/* Return: perl_probe()'s. */
static int probe(const char *path, struct runtime_binary **out)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct runtime_file file = { .elf = &elf, .path = str_of(path), .is_program = true };
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	struct reader in = { .read = read_fd, .self = &fd, .size = UINT64_MAX };

	if (fd < 0)
		return -errno;
	in.size = (uint64_t)lseek(fd, 0, SEEK_END);
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = perl_probe(&file, out);
	close(fd);
	return r;
}

static void the_installed_perl(void **state)
{
	struct runtime_binary *binary = NULL;

	(void)state;
	if (access(PERL, X_OK) < 0)
		skip();
	assert_int_equal(probe(PERL, &binary), 1);
	print_message("  %s\n", binary->version);
	assert_string_equal(binary->refused, "");
	assert_true(binary->loop_count >= 1);
	assert_true(binary->loops[0].start < binary->loops[0].end);
	assert_true(str_starts(str_of(binary->version), STR("5.")));
	perl_release(binary);
	binary = NULL;
	assert_int_equal(probe("/bin/sh", &binary), 0);
	assert_null(binary);
}

static int probe_without_memory(void *ctx)
{
	struct runtime_binary *binary = NULL;
	int r = probe(PERL, &binary);

	(void)ctx;
	if (r == 1)
		perl_release(binary);
	return r == 1 ? 0 : r;
}

static void without_memory(void **state)
{
	(void)state;
	if (access(PERL, X_OK) < 0)
		skip();
	for_each_failing_allocation(probe_without_memory, NULL);
}

static void versions(void **state)
{
	(void)state;
	for (unsigned int version = 0; version < 255; version++)
		assert_int_equal(perl_version_find(version) != NULL,
				 version >= 28 && version <= 42 && version % 2 == 0);
	for (size_t i = 0; perl_version_at(i); i++)
		assert_true(perl_version_at(i)->layout.context_cv + 8 <= ABI_PERL_CONTEXT_BYTES &&
			    perl_version_at(i)->layout.info_type + 4 <= ABI_PERL_INFO_BYTES &&
			    perl_version_at(i)->layout.context >= ABI_PERL_CONTEXT_BYTES);
}

/* ---- the process ---- */

struct process {
	struct perl_image *im;
	struct perl_binary binary;
	struct runtime_target target;
	uint64_t effort;
};

/* -EFAULT, as a process says it. */
static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct perl_image *im = self;

	return im->world.read(im, dst, size, at);
}

static struct process open_process(unsigned int minor, bool threads)
{
	struct process p = { .im = perl_image_open(minor, threads) };

	p.binary.version = p.im->version;
	p.binary.minor = (uint8_t)minor;
	if (threads) {
		p.binary.interpreter = perl_image_alloc(p.im, 8);
		p.binary.thread_key = perl_image_alloc(p.im, 8);
		perl_image_put(p.im, p.binary.interpreter, 8, p.im->interpreter);
		perl_image_put(p.im, p.binary.thread_key, 4, 1);
	} else {
		p.binary.cop = p.im->info.cop;
		p.binary.info = p.im->info.info;
	}
	p.target = (struct runtime_target){ .pid = 1, .read = read_process, .self = p.im, .proc_dir = -1 };
	return p;
}

static int attach(struct process *p, struct abi_perl *out)
{
	uint8_t room[RUNTIME_INFO_MAX];
	int r;

	p->target.effort = &p->effort;
	r = perl_attach(&p->binary.base, &p->target, room);
	if (r > 0)
		memcpy(out, room, sizeof(*out));
	return r;
}

static void attaching(void **state)
{
	struct process p = open_process(36, true);
	struct abi_perl info = { 0 };

	(void)state;
	perl_image_enter(p.im, 3);
	assert_int_equal(attach(&p, &info), sizeof(info));
	assert_int_equal(info.flags, ABI_PERL_THREADS | ABI_PERL_AUX_IN_BODY);
	assert_int_equal(info.key_at, 784 + 16 + 8);
	assert_int_equal(info.layout.version, 36);
	assert_int_equal(info.first, p.im->interpreter);
	perl_image_put(p.im, p.binary.thread_key, 4, 40); /* a key of the second block */
	assert_int_equal(attach(&p, &info), sizeof(info));
	assert_true(info.flags & ABI_PERL_KEY_INDIRECT);
	assert_int_equal(info.key_at, 1296 + 8);
	assert_int_equal(info.key_offset, 8 * 16 + 8);
	perl_image_put(p.im, p.binary.interpreter, 8, 0); /* it has not begun */
	assert_int_equal(attach(&p, &info), -EAGAIN);
	free(p.im);

	p = open_process(28, false);
	assert_int_equal(attach(&p, &info), sizeof(info));
	assert_int_equal(info.flags, 0);
	assert_int_equal(info.cop, p.im->info.cop);
	snprintf(p.binary.base.refused, sizeof(p.binary.base.refused), "no");
	assert_int_equal(attach(&p, &info), -ENOTSUP);
	free(p.im);
}

/* Another build than its version says: it is asked again, and then never. */
static void another_layout(void **state)
{
	struct process p = open_process(36, true);
	struct abi_perl info = { 0 };
	size_t tries = 0;
	int r;

	(void)state;
	perl_image_put(p.im, p.im->stack_info + p.im->version->layout.info_type, 4, 77);
	while ((r = attach(&p, &info)) == -EAGAIN)
		assert_true(++tries < 1000);
	assert_int_equal(r, -ENOTSUP);
	assert_true(tries > 8);
	free(p.im);
}

/* ---- names ---- */

struct record {
	const char *name;
	uint8_t what, file_is_cut;
	const char *file, *package, *sub;
	uint32_t cut; /* the name is so much longer in the process */
	const char *want_file, *want_name;
	int result;
};

static const struct record records[] = {
	{ "plain", ABI_PERL_SUB, 0, "/a.pl", "main", "run", 0, "/a.pl", "main::run", 0 },
	{ "no package", ABI_PERL_SUB, 0, "/a.pl", "", "run", 0, "/a.pl", "run", 0 },
	{ "no name", ABI_PERL_SUB, 0, "/a.pl", "A::B", "", 0, "/a.pl", "A::B::__ANON__", 0 },
	{ "an eval", ABI_PERL_EVAL, 0, "(eval)", "", "", 0, "(eval)", "(eval)", 0 },
	{ "the program", ABI_PERL_MAIN, 0, "/a.pl", "", "", 0, "/a.pl", "(main program)", 0 },
	{ "Latin-1", ABI_PERL_SUB, 0, "/a.pl", "main", "na\xefve", 0, "/a.pl", "main::naïve", 0 },
	{ "UTF-8", ABI_PERL_SUB, 0, "/é.pl", "main", "naïve", 0, "/é.pl", "main::naïve", 0 },
	{ "cut in a character", ABI_PERL_SUB, 1, "/a\xe6\x97", "main", "f\xe6", 9, "/a", "main::f", 0 },
	{ "a kind that is none", 9, 0, "/a.pl", "main", "f", 0, "", "", -EBADMSG },
};

static void add_padded(struct buf *b, const char *text)
{
	static const uint8_t zeros[8];
	size_t size = strlen(text);

	buf_add(b, text, size);
	buf_add(b, zeros, align_up(size, 8) - size);
}

static void make_record(struct buf *b, const struct record *of)
{
	struct abi_perl_name head = { .package_size = (uint32_t)strlen(of->package),
				      .name_size = (uint32_t)strlen(of->sub) + of->cut,
				      .file_sent = (uint16_t)strlen(of->file),
				      .package_sent = (uint16_t)strlen(of->package),
				      .name_sent = (uint16_t)strlen(of->sub),
				      .what = of->what,
				      .file_is_cut = of->file_is_cut };

	buf_add(b, &head, sizeof(head));
	add_padded(b, of->file);
	add_padded(b, of->package);
	add_padded(b, of->sub);
}

static void names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4)), room = BUF_INIT(KIB(4));
		struct runtime_function f = { 0 };

		print_message("  %s\n", records[i].name);
		make_record(&bytes, &records[i]);
		assert_int_equal(perl_decode_name((const uint8_t *)bytes.ptr, bytes.len, &room, &f), records[i].result);
		if (records[i].result)
			continue;
		assert_true(str_eq(f.file, str_of(records[i].want_file)));
		assert_true(str_eq(f.name, str_of(records[i].want_name)));
		for (size_t size = 0; size < bytes.len; size++) /* cut off anywhere */
			assert_int_equal(perl_decode_name((const uint8_t *)bytes.ptr, size, &room, &f), -EBADMSG);
	}
}

/* A text whose memory could not be read is not an empty one. */
static void unread_names(void **state)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
	struct abi_perl_name head = { .name_size = 3, .what = ABI_PERL_SUB };
	struct runtime_function f;

	(void)state;
	assert_int_equal(perl_decode_name((const uint8_t *)&head, sizeof(head), &room, &f), -ENODATA);
}

static int names_without_memory(void *ctx)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(4));
	const struct buf *bytes = ctx;
	struct runtime_function f;

	return perl_decode_name((const uint8_t *)bytes->ptr, bytes->len, &room, &f);
}

static void decoding_without_memory(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4));

	(void)state;
	make_record(&bytes, &records[0]);
	for_each_failing_allocation(names_without_memory, &bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_installed_perl), cmocka_unit_test(without_memory),
		cmocka_unit_test(versions),           cmocka_unit_test(attaching),
		cmocka_unit_test(another_layout),     cmocka_unit_test(names),
		cmocka_unit_test(unread_names),       cmocka_unit_test(decoding_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
