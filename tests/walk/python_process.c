// SPDX-License-Identifier: Apache-2.0
#include "python_process.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

static const char *const versions[] = { "2.7", "3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13" };

static bool find_own(const char *version, struct python_program *out)
{
	snprintf(out->path, sizeof(out->path), "/usr/bin/python%s", version);
	snprintf(out->version, sizeof(out->version), "%s", version);
	return access(out->path, X_OK) == 0;
}

/* The folders of a version manager first; then the machine's own. */
static bool find_program(const char *version, struct python_program *out)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	char pattern[512];
	glob_t found;
	bool any;

	if (root)
		snprintf(pattern, sizeof(pattern), "%s/versions/%s.*/bin/python%s", root, version, version);
	else
		snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/%s.*/bin/python%s", home ? home : "", version,
			 version);
	any = glob(pattern, 0, NULL, &found) == 0 && strlen(found.gl_pathv[0]) < sizeof(out->path);
	if (any)
		snprintf(out->path, sizeof(out->path), "%s", found.gl_pathv[0]);
	globfree(&found);
	if (!any)
		return find_own(version, out);
	snprintf(out->version, sizeof(out->version), "%s", version);
	return true;
}

size_t python_own_programs(struct python_program out[PYTHONS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		count += find_own(versions[i], &out[count]);
	return count;
}

size_t python_programs(struct python_program out[PYTHONS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		count += find_program(versions[i], &out[count]);
	return count;
}

static int hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "HEX SELF PID\n" */
static int read_description(FILE *from, struct python_process *out)
{
	uint8_t *bytes = (uint8_t *)&out->info;
	char line[1024];
	size_t i;

	if (!fgets(line, sizeof(line), from) || strlen(line) < 2 * sizeof(out->info))
		return -EPROTO;
	for (i = 0; i < sizeof(out->info); i++) {
		int high = hex_value(line[2 * i]), low = hex_value(line[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EPROTO;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	if (line[2 * i] != ' ')
		return -EPROTO;
	out->self = strtoull(line + 2 * i, NULL, 16);
	return out->self ? 0 : -EPROTO;
}

static void run(const struct python_program *program, const char *target, const char *load, double seconds,
		const int in[2], const int out[2])
{
	char text[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(text, sizeof(text), "%f", seconds);
	dup2(in[0], STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	execl(program->path, program->path, target, load, text, (char *)NULL);
	_exit(127);
}

int python_start(const struct python_program *program, const char *target, const char *load, double seconds,
		 struct python_process *p)
{
	int in[2], out[2], r;
	FILE *from;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	p->pid = fork();
	if (p->pid == 0)
		run(program, target, load, seconds, in, out);
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	from = fdopen(out[0], "r");
	r = p->pid < 0 || !from ? -errno : read_description(from, p);
	if (from)
		fclose(from);
	if (r < 0)
		python_end(p);
	return r;
}

void python_end(struct python_process *p)
{
	close(p->in);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
}

static void take_text(char to[PYTHON_TEXT], const uint8_t *bytes, size_t size)
{
	size = MIN(size, (size_t)PYTHON_TEXT - 1);
	memcpy(to, bytes, size);
	to[size] = 0;
}

int python_decode(const struct abi_name *name, struct python_function *out)
{
	const uint8_t *bytes = name->bytes;
	struct abi_python_name head;
	size_t file, texts, all;

	if (name->bytes_size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	file = align_up(head.file_sent, 8);
	texts = file + align_up(head.name_sent, 8);
	all = texts + align_up(head.lines_sent, 8);
	if (sizeof(head) + all != name->bytes_size || head.file_sent > head.file_size ||
	    head.name_sent > head.name_size || head.lines_sent > head.lines_size)
		return -EBADMSG;
	if (head.file_text != ABI_PYTHON_TEXT_BYTES || head.name_text != ABI_PYTHON_TEXT_BYTES)
		return -ENODATA;
	take_text(out->file, bytes + sizeof(head), head.file_sent);
	take_text(out->name, bytes + sizeof(head) + file, head.name_sent);
	out->first_line = head.first_line;
	out->lines_size = head.lines_size;
	out->lines_sent = head.lines_sent;
	return 0;
}
