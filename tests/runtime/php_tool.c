/* SPDX-License-Identifier: Apache-2.0 */
/* php_tool FILE...: what probing finds in files of PHP; one line each. For people and for check_php_tables.py. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "runtime/php/php_int.h"

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

static int look(const char *path)
{
	scoped(elf_release) struct elf elf = { 0 };
	const struct runtime_file file = { .elf = &elf, .path = str_of(path) };
	struct runtime_binary *binary = NULL;
	const struct php_binary *b;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader in;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	in = (struct reader){ .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)st.st_size };
	r = elf_parse(&in, &elf);
	if (r == 0)
		r = php_probe(&file, &binary);
	close(fd);
	if (r <= 0 || !binary)
		return r < 0 ? r : -ENOENT;
	b = (const struct php_binary *)binary;
	printf("%s: version %s, %s, %s\n", path, b->base.version, b->globals_offset ? "threads" : "no threads",
	       b->base.refused[0] ? b->base.refused : "known");
	php_release(binary);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int r = look(argv[i]);

		if (r < 0)
			printf("%s: %s\n", argv[i], strerror(-r));
	}
	return 0;
}
