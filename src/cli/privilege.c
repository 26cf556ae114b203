/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/privilege.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rights.h"

static int explain(struct buf *why, const char *what, int error)
{
	buf_addf(why, "%s: %s", what, strerror(error));
	return -error;
}

static int make_folders(const char *path, struct buf *why)
{
	scoped(freep) char *copy = str_dup(str_of(path));

	if (!copy)
		return explain(why, path, ENOMEM);
	for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return explain(why, copy, errno);
		*at = '/';
	}
	if (mkdir(copy, 0700) < 0 && errno != EEXIST)
		return explain(why, copy, errno);
	return 0;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* What hearth makes: partitions, the catalog and what SQLite puts beside them, what was set aside, tokens, locks. And
 * what a disk of its own has. */
static bool is_ours(struct str name)
{
	return str_eq(name, STR("lost+found")) || str_search(name, STR(".db")) > 0 || str_starts(name, STR("tokens")) ||
	       str_ends(name, STR("lock"));
}

/* A folder changes hands with all that is in it: not one that holds other things, and where others can put links in the
 * way (@wide) only an empty one, such as a new tmpfs. */
static bool may_give(DIR *dir, bool wide)
{
	const struct dirent *entry;
	bool fine = true;

	while (fine && (entry = readdir(dir)))
		fine = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		       (!wide && entry->d_name[0] != '.' && is_ours(str_of(entry->d_name)));
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

static int give_folder(const char *path, uid_t uid, gid_t gid, struct buf *why)
{
	scoped(closedirp) DIR *dir = opendir(path);
	struct stat st;
	bool wide;
	int r = 0;

	if (!dir || fstat(dirfd(dir), &st) < 0)
		return explain(why, path, errno);
	if (st.st_uid == uid)
		return 0;
	if (st.st_uid) {
		buf_addf(why, "%s belongs to another user: name it with --user", path);
		return -EPERM;
	}
	wide = (st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && st.st_gid);
	if (!may_give(dir, wide)) {
		buf_addf(why,
			 "%s holds other things than profiles, or others may write there: it is not made another "
			 "user's. Choose an empty folder",
			 path);
		return -EPERM;
	}
	if (!wide)
		r = give_files(dir, uid, gid);
	if (r == 0 && fchown(dirfd(dir), uid, gid) < 0)
		r = -errno;
	return r ? explain(why, path, -r) : 0;
}

static const struct passwd *find_user(const char *wanted)
{
	const struct passwd *user;

	if (wanted && *wanted)
		return getpwnam(wanted);
	user = getpwnam("hearth");
	return user ? user : getpwnam("nobody");
}

static int become(uid_t uid, gid_t gid, struct buf *why)
{
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return explain(why, "cannot change the user", errno);
	must(setuid(0) < 0); /* there is no way back */
	return 0;
}

/* Also when we are not root: a program with file capabilities has them all the same. Who stays root by --user keeps
 * them, since a folder of another user may be his. */
static int give_up(struct buf *why)
{
	int r = 0;

	if (geteuid() == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	else
		r = rights_give_up();
	return r < 0 ? explain(why, "cannot give up capabilities", -r) : 0;
}

int privilege_drop(const char *user, const char *folder, struct buf *why)
{
	const struct passwd *who = geteuid() == 0 ? find_user(user) : NULL;
	int r = make_folders(folder, why);

	if (r == 0 && geteuid() == 0 && !who) {
		buf_addf(why, "there is no user '%s'", user && *user ? user : "nobody");
		r = -ESRCH;
	}
	if (r == 0 && who && who->pw_uid) {
		uid_t uid = who->pw_uid;
		gid_t gid = who->pw_gid;

		r = give_folder(folder, uid, gid, why);
		r = r ? r : become(uid, gid, why);
		if (r == 0 && access(folder, R_OK | W_OK | X_OK) < 0) {
			buf_addf(why,
				 "%s: user %s may not go there: choose another folder, or another user with --user",
				 folder, who->pw_name);
			r = -EACCES;
		}
	}
	return r < 0 ? r : give_up(why);
}
