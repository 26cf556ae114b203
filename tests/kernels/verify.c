// SPDX-License-Identifier: Apache-2.0
/* verify OBJECT: loads each program of a BPF object by itself and prints what the kernel's verifier says of it, one
 * line a program: "NAME ok processed N insns ..." or "NAME refused ERROR: the end of its log". Exit status 0 even then:
 * which programs a kernel may refuse is for the caller to know. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/resource.h>

#define LOG_SIZE (16 * 1024 * 1024)

static char verifier_log[LOG_SIZE];

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static void print_result(const char *name, int error)
{
	const char *said = error ? NULL : strstr(verifier_log, "processed ");
	size_t length = strlen(verifier_log), from = length > 3000 ? length - 3000 : 0;

	if (said)
		printf("%s ok %.*s\n", name, (int)strcspn(said, "\n"), said);
	else if (!error)
		printf("%s ok\n", name);
	else
		printf("%s refused %s: %s\n", name, strerror(-error), verifier_log + from);
}

/* Return: the kernel's answer. */
static int load(const char *path, const char *name, unsigned int log_level)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = verifier_log, .kernel_log_size = sizeof(verifier_log),
		    .kernel_log_level = log_level);
	struct bpf_object *object = bpf_object__open_file(path, &opts);
	struct bpf_program *program;
	int r;

	if (!object)
		return -errno;
	verifier_log[0] = 0;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, strcmp(bpf_program__name(program), name) == 0);
	r = bpf_object__load(object);
	bpf_object__close(object);
	return r;
}

static void try_program(const char *path, const char *name)
{
	int r = load(path, name, 4); /* statistics only */

	if (r)
		r = load(path, name, 1);
	print_result(name, r);
}

int main(int argc, char **argv)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct bpf_object *object;
	struct bpf_program *program;

	libbpf_set_print(quiet);
	setrlimit(RLIMIT_MEMLOCK, &all); /* before 5.11 */
	object = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	if (!object) {
		fprintf(stderr, "usage: verify OBJECT\n");
		return 2;
	}
	bpf_object__for_each_program(program, object) try_program(argv[1], bpf_program__name(program));
	bpf_object__close(object);
	return 0;
}
