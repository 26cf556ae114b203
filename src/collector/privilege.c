/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/privilege.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rights.h"
#include "store/store.h"

static int explain(struct buf *why, const char *what, int error)
{
	buf_addf(why, "%s: %s", what, strerror(error));
	return -error;
}

/* Folders that were made, so that they can go again: those of @path that end behind @first bytes. */
struct made {
	char *path;
	size_t first; /* 0: none */
};

static void made_release(struct made *m)
{
	free(m->path);
}

/* A copy without slashes at its end. */
static char *without_slashes(const char *path)
{
	size_t size = strlen(path);

	while (size > 1 && path[size - 1] == '/')
		size--;
	return str_dup(str_n(path, size));
}

static int make_one(struct made *m, mode_t mode, struct buf *why)
{
	if (mkdir(m->path, mode) < 0)
		return errno == EEXIST ? 0 : explain(why, m->path, errno);
	if (!m->first)
		m->first = strlen(m->path);
	return 0;
}

static int make_folders(const char *path, struct made *m, struct buf *why)
{
	int r = 0;

	m->path = without_slashes(path);
	if (!m->path)
		return explain(why, path, ENOMEM);
	for (char *at = strchr(m->path + 1, '/'); r == 0 && at; at = strchr(at + 1, '/')) {
		*at = 0;
		r = make_one(m, 0755, why);
		*at = '/';
	}
	return r ? r : make_one(m, 0700, why);
}

/* From the innermost on; one that is not empty any more stays, and those around it. */
static void unmake_folders(struct made *m)
{
	char *end = m->path ? m->path + strlen(m->path) : NULL;

	while (m->first && (size_t)(end - m->path) >= m->first) {
		*end = 0;
		if (rmdir(m->path) < 0 && errno != ENOENT)
			return;
		end = strrchr(m->path, '/');
		if (!end)
			return;
	}
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* What hearth makes, and what a disk of its own has. */
static bool is_ours(struct str name)
{
	return str_eq(name, STR("lost+found")) || store_owns_name(name);
}

/* A folder changes hands with all that is in it: not one that holds other things, and where others can put links in the
 * way (@wide) only an empty one, such as a new tmpfs. */
static bool may_give(DIR *dir, bool wide)
{
	const struct dirent *entry;
	bool fine = true;

	while (fine && (entry = readdir(dir)))
		fine = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		       (!wide && is_ours(str_of(entry->d_name)));
	rewinddir(dir);
	return fine;
}

/* Only what is root's: nothing of others changes hands. */
static int give_files(DIR *dir, uid_t uid, gid_t gid)
{
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_uid)
			continue;
		if (fchownat(dirfd(dir), entry->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

static bool is_wide(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid);
}

/* Whether a folder that is there may become @uid's. Nothing changes. */
static int check_folder(const char *path, uid_t uid, struct buf *why)
{
	scoped(closedirp) DIR *dir = opendir(path);
	struct stat st;

	if (!dir || fstat(dirfd(dir), &st) < 0)
		return explain(why, path, errno);
	if (st.st_uid == uid)
		return 0;
	if (st.st_uid) {
		buf_addf(why, "%s belongs to another user: name it with --user", path);
		return -EPERM;
	}
	if (!may_give(dir, is_wide(&st))) {
		buf_addf(why,
			 "%s holds other things than profiles, or others may write there: it is not made another "
			 "user's. Choose an empty folder",
			 path);
		return -EPERM;
	}
	if ((st.st_mode & S_IRWXU) != S_IRWXU) {
		buf_addf(why, "%s: its mode lets its owner not read and write it", path);
		return -EACCES;
	}
	return 0;
}

static int give_folder(const char *path, uid_t uid, gid_t gid, struct buf *why)
{
	scoped(closedirp) DIR *dir = opendir(path);
	struct stat st;
	int r = check_folder(path, uid, why); /* it may be another one than before */

	if (r < 0)
		return r;
	if (!dir || fstat(dirfd(dir), &st) < 0)
		return explain(why, path, errno);
	if (st.st_uid == uid)
		return 0;
	if (!is_wide(&st))
		r = give_files(dir, uid, gid);
	if (r == 0 && fchown(dirfd(dir), uid, gid) < 0)
		r = -errno;
	return r ? explain(why, path, -r) : 0;
}

/* Where no file of users is (a container from scratch), root and nobody have the numbers that they have everywhere. */
static const struct passwd *find_user(const char *wanted)
{
	static char root[] = "root", nobody[] = "nobody";
	static const struct passwd known[] = {
		{ .pw_name = root },
		{ .pw_name = nobody, .pw_uid = 65534, .pw_gid = 65534 }, /* the kernel's overflowuid */
	};
	const char *name = wanted && *wanted ? wanted : "hearth";
	const struct passwd *user = getpwnam(name);

	if (!user && name != wanted)
		user = getpwnam(name = "nobody");
	for (size_t i = 0; !user && i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].pw_name, name) && access("/etc/passwd", F_OK) < 0)
			user = &known[i];
	return user;
}

static int become(uid_t uid, gid_t gid, struct buf *why)
{
	if (rights_bound(false) < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return explain(why, "cannot change the user", errno);
	must(setuid(0) < 0); /* there is no way back */
	return 0;
}

/* Also when we are not root: a program with file capabilities has them all the same. Who stays root by --user keeps
 * them, since a folder of another user may be his. */
static int give_up(struct buf *why)
{
	int r = 0;

	if (geteuid() == 0 && rights_bound(false) == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	else
		r = rights_give_up();
	return r < 0 ? explain(why, "cannot give up capabilities", -r) : 0;
}

int privilege_become_owner(const char *folder, struct buf *why)
{
	scoped(buf_release) struct buf reason = BUF_INIT(KIB(4));
	struct stat st;
	int r;

	if (geteuid() || stat(folder, &st) < 0 || !st.st_uid)
		return 0;
	r = become(st.st_uid, st.st_gid, &reason);
	if (r < 0)
		buf_addf(why, "cannot become the owner of %s: %s", folder, buf_cstr(&reason));
	return r;
}

#define CANNOT_BECOME 255 /* above every errno of access() */

/* In a child that is that user. Return: 0, -errno or -CANNOT_BECOME. */
static int try_enter(const char *path, const struct passwd *who)
{
	scoped(buf_release) struct buf unused = BUF_INIT(KIB(1));
	int status;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		if (become(who->pw_uid, who->pw_gid, &unused) < 0)
			_exit(CANNOT_BECOME);
		_exit(access(path, X_OK) < 0 ? errno : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* The folders on the way to @path, as far as they are there, have to let the user through. */
static int check_way(const char *path, const struct passwd *who, struct buf *why)
{
	scoped(freep) char *real = realpath(path, NULL); /* one that is there may be reached by a link */
	scoped(freep) char *way = without_slashes(real ? real : path);
	struct stat st;
	char *end;
	int r;

	if (!way)
		return explain(why, path, ENOMEM);
	do {
		end = strrchr(way, '/');
		if (end)
			end[end == way] = 0; /* "/a" lies in "/" */
	} while (end && stat(way, &st) < 0 && errno == ENOENT && strcmp(way, "/") != 0);
	r = try_enter(end ? way : ".", who);
	if (r == -CANNOT_BECOME)
		return explain(why, "cannot change the user", EPERM);
	if (r < 0)
		buf_addf(why, "%s: user %s may not go there: choose another folder, or another user with --user", path,
			 who->pw_name);
	return r;
}

/* All that can be refused is, before anything is made or changes hands. */
static int check_all(const char *folder, const struct passwd *who, struct buf *why)
{
	struct stat st;
	int r = check_way(folder, who, why);

	if (r < 0 || (stat(folder, &st) < 0 && errno == ENOENT))
		return r;
	return check_folder(folder, who->pw_uid, why);
}

static int take_folder(const char *folder, const struct passwd *who, struct buf *why)
{
	uid_t uid = who->pw_uid;
	gid_t gid = who->pw_gid;
	int r = give_folder(folder, uid, gid, why);

	r = r ? r : become(uid, gid, why);
	if (r == 0 && access(folder, R_OK | W_OK | X_OK) < 0) {
		buf_addf(why, "%s: user %s may not go there: choose another folder, or another user with --user",
			 folder, who->pw_name);
		r = -EACCES;
	}
	return r;
}

int privilege_drop(const char *user, const char *folder, struct buf *why)
{
	const struct passwd *who = geteuid() == 0 ? find_user(user) : NULL;
	bool changes = who && who->pw_uid;
	scoped(made_release) struct made made = { 0 };
	int r = 0;

	if (geteuid() == 0 && !who) {
		buf_addf(why, "there is no user '%s'", user && *user ? user : "nobody");
		return -ESRCH;
	}
	if (!folder) {
		r = changes ? become(who->pw_uid, who->pw_gid, why) : 0;
		return r ? r : give_up(why);
	}
	if (changes)
		r = check_all(folder, who, why);
	r = r ? r : make_folders(folder, &made, why);
	if (r == 0 && changes)
		r = take_folder(folder, who, why);
	if (r < 0)
		unmake_folders(&made);
	return r < 0 ? r : give_up(why);
}
