/* SPDX-License-Identifier: Apache-2.0 */
/* The server in a JVM: what is sent and answered, and processes that only say that they are JVMs. Those are children of
 * this program that have a file called libjvm.so mapped, in a root of their own. */
#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/java/server.h"

static void requests(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(16));
	static char word[JAVA_REQUEST_MAX + 1];
	struct java_request request = { .command = STR("jcmd"), .words = { STR("VM.flags -all") } };

	(void)state;
	assert_int_equal(java_request_write(&request, &out), 0);
	assert_true(str_eq(buf_str(&out), STR("1\0jcmd\0VM.flags -all\0\0\0")));
	memset(word, 'x', sizeof(word));
	request.words[1] = str_n(word, sizeof(word) - 1);
	assert_int_equal(java_request_write(&request, &out), 0);
	request.words[1] = str_n(word, sizeof(word));
	assert_int_equal(java_request_write(&request, &out), -E2BIG);
	request.words[1] = STR("a\0load");
	assert_int_equal(java_request_write(&request, &out), -EINVAL);
}

static void answers(void **state)
{
	static const struct {
		const char *bytes;
		bool is_load;
		int want;
		int64_t code;
		const char *text;
	} cases[] = {
		{ "0\nfine\n", false, 0, 0, "fine\n" },
		{ "0\n", false, 0, 0, "" },
		{ "-1\nno such command\n", false, 0, -1, "no such command\n" },
		{ "0\nreturn code: 0\n", true, 0, 0, "return code: 0\n" },
		{ "0\nreturn code: 100\n", true, 0, 100, "return code: 100\n" },
		{ "0\n200\n", true, 0, 200, "200\n" }, /* 8 */
		{ "0\nlib.so was not loaded.\n", true, 0, -1, "lib.so was not loaded.\n" },
		{ "0\n", true, 0, -1, "" },
		{ "0", false, -EBADMSG, 0, NULL },
		{ "", false, -EBADMSG, 0, NULL },
		{ "\n", false, -EBADMSG, 0, NULL },
		{ "HTTP/1.1 400\n", false, -EBADMSG, 0, NULL },
		{ "99999999999999999999\n", false, -EBADMSG, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct java_answer answer = { 0 };

		assert_int_equal(java_answer_parse(str_of(cases[i].bytes), cases[i].is_load, &answer), cases[i].want);
		if (cases[i].want)
			continue;
		assert_int_equal(answer.code, cases[i].code);
		assert_true(str_eq(answer.text, str_of(cases[i].text)));
	}
}

static void owners(void **state)
{
	static const char text[] = "Name:\tUid:\\n\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t4711\t17\n"
				   "SigCgt:\t0000000000000004\n";
	struct java_owner owner;

	(void)state;
	assert_int_equal(java_owner_parse(str_of(text), &owner), 0);
	assert_int_equal(owner.uid, 2);
	assert_int_equal(owner.gid, 6);
	assert_int_equal(owner.inner_pid, 17);
	assert_true(owner.takes_quit);
	for (size_t cut = 0; cut + 20 < sizeof(text); cut++)
		assert_int_equal(java_owner_parse(str_n(text, cut), &owner), -EBADMSG);
	assert_int_equal(java_owner_parse(STR("Uid:\t1\t2\nGid:\t5\t6\nNSpid:\t9\nSigCgt:\t0003\n"), &owner), 0);
	assert_false(owner.takes_quit);
}

/* ---- processes that say that they are JVMs ---- */

enum way {
	HONEST,       /* opens its socket at SIGQUIT, answers */
	NO_HANDLER,   /* SIGQUIT would end it */
	NO_LIBRARY,   /* it is no JVM */
	NEVER,        /* takes the signal, opens nothing */
	SILENT,       /* takes connections, answers nothing */
	DEAF,         /* has a socket, takes no connections: its queue is full */
	ENDLESS,      /* answers for ever */
	GARBAGE,      /* answers nonsense */
	GONE,         /* closes without an answer */
	WRITABLE,     /* others may write to its socket */
	A_FILE,       /* no socket lies there */
	A_LINK,       /* a link to a socket elsewhere */
	ANOTHERS,     /* another process listens there */
	FOREIGN_USER, /* the socket is another user's */
};

struct jvm {
	pid_t pid, helper;
	char root[64], library[96], socket[128];
};

static volatile sig_atomic_t quits;

static void on_quit(int signal)
{
	(void)signal;
	quits = quits + 1;
}

static int listen_at(const char *path, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, mode) < 0 ||
	    listen(fd, 1) < 0)
		_exit(1);
	return fd;
}

static void answer(int fd, enum way way)
{
	int one = accept(fd, NULL, NULL);
	char bytes[KIB(2)];

	if (one < 0)
		_exit(2);
	ignore(read(one, bytes, sizeof(bytes)) < 0);
	if (way == HONEST)
		ignore(write(one, "0\nhello ", 8) < 0 || usleep(20000) || write(one, "there\n", 6) < 0);
	if (way == GARBAGE)
		ignore(write(one, "\xff\0nonsense", 10) < 0);
	memset(bytes, 'x', sizeof(bytes));
	while (way == ENDLESS && write(one, bytes, sizeof(bytes)) > 0)
		;
	if (way == SILENT)
		pause();
	close(one);
}

static void fill_queue(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		ignore(connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0);
	}
}

_Noreturn static void be_jvm(const struct jvm *j, enum way way, int ready)
{
	struct sigaction action = { .sa_handler = on_quit };
	char socket[64], path[80];
	int library = open(j->library, O_RDONLY | O_CLOEXEC), fd = -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (way != NO_LIBRARY && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, library, 0) == MAP_FAILED)
		_exit(3);
	if (chroot(j->root) < 0 || chdir("/") < 0)
		_exit(4);
	if (way != NO_HANDLER)
		sigaction(SIGQUIT, &action, NULL);
	snprintf(socket, sizeof(socket), "/tmp/.java_pid%d", getpid());
	if (way == SILENT || way == DEAF || way == ENDLESS || way == GARBAGE || way == GONE || way == WRITABLE ||
	    way == FOREIGN_USER)
		fd = listen_at(socket, way == WRITABLE ? 0666 : 0600);
	if (way == FOREIGN_USER && chown(socket, 12345, 12345) < 0)
		_exit(5);
	if (way == DEAF)
		fill_queue(socket);
	if (way == A_FILE)
		close(open(socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (way == A_LINK) {
		fd = listen_at("/tmp/elsewhere", 0600);
		ignore(symlink("/tmp/elsewhere", socket) < 0);
	}
	if (way == ANOTHERS) {
		pid_t parent = getpid();

		if (!fork()) { /* ends with the one that is asked */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			snprintf(path, sizeof(path), "/tmp/.java_pid%d", parent);
			fd = listen_at(path, 0600);
			ignore(write(ready, "r", 1) != 1);
			answer(fd, HONEST);
			_exit(0);
		}
	} else {
		ignore(write(ready, "r", 1) != 1);
	}
	for (;;) {
		struct pollfd one = { fd, POLLIN, 0 };

		if (poll(&one, fd >= 0 && way != DEAF ? 1 : 0, 20) > 0)
			answer(fd, way);
		snprintf(path, sizeof(path), "/.attach_pid%d", getpid());
		if (way == HONEST && quits && fd < 0 && access(path, F_OK) == 0) {
			ignore(unlink(path) < 0);
			fd = listen_at(socket, 0600);
		}
		if (quits && way != HONEST && way != NEVER)
			_exit(6); /* nobody asked for that */
	}
}

static void start(struct jvm *j, enum way way)
{
	int ends[2];
	char byte, path[96];

	*j = (struct jvm){ 0 };
	snprintf(j->root, sizeof(j->root), "/tmp/hearth-jvm-XXXXXX");
	assert_non_null(mkdtemp(j->root));
	assert_int_equal(chmod(j->root, 0755), 0);
	snprintf(path, sizeof(path), "%s/tmp", j->root);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(j->library, sizeof(j->library), "%s/libjvm.so", j->root);
	close(open(j->library, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	assert_int_equal(truncate(j->library, 4096), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	j->pid = fork();
	if (!j->pid)
		be_jvm(j, way, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
}

/* Return: does it live still? */
static bool end(struct jvm *j)
{
	char command[128];
	int status;
	bool lives = waitpid(j->pid, &status, WNOHANG) == 0;

	if (lives) {
		kill(j->pid, SIGKILL);
		waitpid(j->pid, &status, 0);
	}
	snprintf(command, sizeof(command), "rm -rf %s", j->root);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own folder */
	return lives;
}

static void hostile_processes(void **state)
{
	static const struct {
		enum way way;
		int want;
		const char *why;
	} cases[] = {
		{ HONEST, 0, NULL },
		{ NO_HANDLER, -ENOTSUP, "does not take SIGQUIT" },
		{ NO_LIBRARY, -ENOTSUP, "no JVM" },
		{ NEVER, -ETIMEDOUT, "has not opened its socket" },
		{ SILENT, -ETIMEDOUT, "does not answer" },
		{ DEAF, -ETIMEDOUT, "does not take connections" },
		{ ENDLESS, -E2BIG, "too long" },
		{ GARBAGE, 0, NULL },
		{ GONE, 0, NULL },
		{ WRITABLE, -EBADMSG, "others may write" },
		{ A_FILE, -EBADMSG, "is none" },
		{ A_LINK, -EBADMSG, "is none" },
		{ ANOTHERS, -EBADMSG, "another process listens" },
		{ FOREIGN_USER, -EBADMSG, "another user's" },
	};
	const struct java_request request = { .command = STR("jcmd"), .words = { STR("VM.version") } };

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(JAVA_ANSWER_MAX), why = BUF_INIT(KIB(4));
		struct jvm j;
		struct java_server server;
		struct java_answer answer = { 0 };
		uint64_t before = clock_monotonic_ns(&clock_system);
		int r;

		start(&j, cases[i].way);
		/* One that has all the time there is must not fail by it. */
		server = (struct java_server){ (uint32_t)j.pid,
					       cases[i].want == -ETIMEDOUT ? NSEC_PER_SEC : 60 * NSEC_PER_SEC };
		r = java_server_ask(&server, &request, &out, &why);
		if (r != cases[i].want || (cases[i].why && str_search(buf_str(&why), str_of(cases[i].why)) < 0))
			fail_msg("case %zu: %d, %s", i, r, buf_cstr(&why));
		if (cases[i].want == -ETIMEDOUT)
			assert_true(clock_monotonic_ns(&clock_system) - before < 20 * NSEC_PER_SEC);
		if (cases[i].way == HONEST) {
			assert_int_equal(java_answer_parse(buf_str(&out), false, &answer), 0);
			assert_true(str_eq(answer.text, STR("hello there\n")));
		} else if (r == 0) {
			assert_int_equal(java_answer_parse(buf_str(&out), false, &answer), -EBADMSG);
		}
		assert_true(end(&j)); /* it has not been sent what it cannot take */
	}
}

static void nobody(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4)), why = BUF_INIT(KIB(4));
	const struct java_request request = { .command = STR("jcmd") };
	struct java_server server = { .timeout_ns = NSEC_PER_SEC };
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	server.pid = (uint32_t)pid;
	assert_int_equal(java_server_ask(&server, &request, &out, &why), -ESRCH);
	assert_true(str_search(buf_str(&why), STR("no such process")) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),          cmocka_unit_test(answers), cmocka_unit_test(owners),
		cmocka_unit_test(hostile_processes), cmocka_unit_test(nobody),
	};

	return cmocka_run_group_tests_name("java_server", tests, NULL, NULL);
}
