/* SPDX-License-Identifier: MIT */
/* doctor_machine.c - what lbd needs of its machine: itself, its folder and the file system below,
 * people. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/manifest/sealed_file.h"
#include "common/team/team.h"
#include "ctl/base/print.h"
#include "ctl/doctor/doctor.h"

enum {
	SKEW_MS = 5000,
	LEAST_FREE_MIB = 1024,
	LEAST_INODES = 10000,
	COMMAND_MS = 20 * 1000,
};

static void look_at_lbd(const struct patient *p, struct finding *f)
{
	if (p->config_trouble)
		finding_bad(f, "correct that line of lbd.toml; man lbd.toml", "%s",
			    p->config_trouble);
	else if (p->version == NULL)
		finding_bad(f, "lbctl daemon status says why; lbctl daemon start starts it",
			    "no lbd answers for %s", p->home);
	else if (strcmp(js_str(p->version, "version", ""), LB_VERSION) != 0)
		finding_bad(f, "lbctl daemon restart", "lbd is version %s, this lbctl %s",
			    js_str(p->version, "version", "?"), LB_VERSION);
	else
		finding_fine(f, "answers, version %s", LB_VERSION);
}

/* --- the file system -------------------------------------------------------------------------- */

static const struct {
	unsigned long magic; /* statfs(2) */
	const char *name;
	bool is_network;
} file_systems[] = {
	{ 0xef53, "ext4", false },      { 0x58465342, "xfs", false },
	{ 0x9123683e, "btrfs", false }, { 0x2fc12fc1, "zfs", false },
	{ 0x01021994, "tmpfs", false }, { 0x794c7630, "overlayfs", false },
	{ 0x6969, "NFS", true },        { 0x0bd00bd0, "Lustre", true },
	{ 0x47504653, "GPFS", true },   { 0x19830326, "BeeGFS", true },
	{ 0x00c36400, "Ceph", true },   { 0xff534d42, "CIFS", true },
	{ 0x65735546, "FUSE", true },
};

static void look_at_ledger(const struct patient *p, struct finding *f)
{
	const char *damage = js_str(p->version, "ledger_damage", NULL);
	char when[CLOCK_TEXT_MAX];

	if (!p->version)
		finding_skip(f, "lbd looks at it, and does not answer");
	else if (damage)
		finding_bad(f, "lbctl daemon stop, then lbctl recover", "%s", damage);
	else if (time_ms(p->version, "ledger_checked") == 0)
		finding_skip(f, "not looked at yet: it is, soon after the start");
	else
		finding_fine(f, "every page, index and reference was sound at %s",
			     clock_text(time_ms(p->version, "ledger_checked"), when));
}

static void look_at_backup(const struct patient *p, struct finding *f)
{
	char *setting = patient_setting(p, "ledger", "path");
	char *backup = setting ? path_join("%s.bak", setting)
			       : path_join("%s/ledger.db.bak", p->home);
	struct err err = { 0 };
	enum seal seal;

	if (!file_exists(backup)) {
		finding_skip(f, "there is none yet: lbd makes one every hour, and when it ends");
	} else {
		seal = sealed_file_check(backup, &err);
		if (seal == SEAL_BROKEN)
			finding_bad(f,
				    "look at the disk, then move the file away: lbd makes another "
				    "within the hour, and when it ends",
				    "%s", err.text);
		else if (seal == SEAL_MISSING)
			finding_skip(f, "an lbd made it that wrote down no digest");
		else
			finding_fine(f, "%s is as it was written", backup);
	}
	free(backup);
	free(setting);
}

static const char absent_fix[] = "lbctl daemon start makes it; for another folder set LB_HOME";

static void look_at_file_system(const struct patient *p, struct finding *f)
{
	struct statfs st;
	size_t i = 0, count = sizeof(file_systems) / sizeof(file_systems[0]);

	if (statfs(p->home, &st) < 0) {
		finding_bad(f, absent_fix, "%s: %s", p->home, strerror(errno));
		return;
	}
	while (i < count && file_systems[i].magic != (unsigned long)st.f_type)
		i++;
	if (i == count)
		finding_fine(f, "%s: type %#lx", p->home, (unsigned long)st.f_type);
	else if (file_systems[i].is_network)
		finding_fine(f,
			     "%s: %s; switch files may take a minute to be seen, and a local "
			     "disk for ledger.path is faster",
			     p->home, file_systems[i].name);
	else
		finding_fine(f, "%s: %s", p->home, file_systems[i].name);
}

/* Whether a second process, too, gets a lock that we hold: flock(2) and fcntl(2). */
static bool is_refused_elsewhere(const char *path)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);

		_exit(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && fcntl(fd, F_SETLK, &whole) < 0
			      ? 0
			      : 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static void look_at_locks(const struct patient *p, struct finding *f)
{
	static const char fix[] = "lbd is safe by its lease; put ledger.path on a local disk, or "
				  "have the file system mounted with locks (Lustre: -o flock)";
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = path_join("%s/.doctor.XXXXXX", p->home);
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		finding_skip(f, "no file could be written to try locks");
	else if (fd < 0)
		finding_bad(f, errno == ENOENT ? absent_fix : "you must be able to write there",
			    "%s: %s", p->home, strerror(errno));
	else if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fcntl(fd, F_SETLK, &whole) < 0)
		finding_bad(f, fix, "%s: files cannot be locked: %s", p->home, strerror(errno));
	else if (!is_refused_elsewhere(path))
		finding_bad(f, fix, "%s: the same lock is granted twice", p->home);
	else
		finding_fine(f, "files are locked for one process at a time");
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	free(path);
}

static void look_at_clock(const struct patient *p, struct finding *f)
{
	char *path = path_join("%s/.doctor.XXXXXX", p->home);
	int64_t before_ms = clock_wall_ms(), skew_ms = 0, mtime_ms;
	int fd = mkostemp(path, O_CLOEXEC);
	struct stat st;

	if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) < 0 || fstat(fd, &st) < 0) {
		finding_skip(f, "no file could be written to compare clocks");
	} else {
		mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		if (mtime_ms < before_ms)
			skew_ms = before_ms - mtime_ms;
		else if (mtime_ms > clock_wall_ms())
			skew_ms = mtime_ms - clock_wall_ms();
		if (skew_ms > SKEW_MS)
			finding_bad(f, "have NTP (chrony) run on both machines",
				    "this machine and the file server differ by %lld s",
				    (long long)skew_ms / 1000);
		else
			finding_fine(f, "agrees with the file system's to %lld ms",
				     (long long)skew_ms);
	}
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	free(path);
}

static void look_at_space(const struct patient *p, struct finding *f)
{
	char *set = patient_setting(p, "runs", "folder");
	const char *runs = set ? set : p->home;
	struct statvfs st;
	int64_t mib;

	if (statvfs(runs, &st) < 0 && statvfs(p->home, &st) < 0) {
		finding_skip(f, "there is no folder yet");
		free(set);
		return;
	}
	mib = (int64_t)st.f_bavail * (int64_t)st.f_frsize >> 20;
	if (mib < LEAST_FREE_MIB)
		finding_bad(f,
			    "remove old checkpoints (checkpoint.keep_latest_k), or set "
			    "runs.folder",
			    "%s: %lld MiB are free", runs, (long long)mib);
	else if (st.f_files > 0 && st.f_favail < LEAST_INODES)
		finding_bad(f, "remove small files: runs.retain_logs does so for logs",
			    "%s: %llu inodes are free", runs, (unsigned long long)st.f_favail);
	else
		finding_fine(f, "%lld GiB and %llu inodes are free", (long long)mib >> 10,
			     (unsigned long long)st.f_favail);
	free(set);
}

/* --- people ----------------------------------------------------------------------------------- */

/* The folder may be reached by a link (home move), of the others none. A folder of a project hands
 * its group's bit on, which opens nothing; nor does what is advised. */
static void look_at_modes(const struct patient *p, struct finding *f)
{
	char *team = patient_setting(p, "team", "group");
	bool has_team = team != NULL;
	const struct {
		const char *name;
		mode_t allowed;
	} rows[] = {
		{ "", has_team ? 02750 : 0755 },
		{ "/lbd.sock", has_team ? 0660 : 0700 },
		{ "/switches", has_team ? 03770 : 0700 },
		{ "/ledger.db", 0640 },
	};

	free(team);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *path = path_join("%s%s", p->home, rows[i].name);
		mode_t most = rows[i].allowed | S_ISGID;
		struct stat st;
		int rc = rows[i].name[0] ? lstat(path, &st) : stat(path, &st);

		if (rc == 0 && (st.st_uid != geteuid() || (st.st_mode & 07777 & ~most))) {
			char word[SHELL_WORD_BYTES];
			const char *place = shell_word(path, word);
			char *fix = xasprintf("chown %u %s; chmod %o %s", geteuid(), place,
					      st.st_mode & rows[i].allowed, place);

			finding_bad(
				f, fix,
				"%s: uid %u, mode %04o; yours, and at most %04o, is what counts",
				path, st.st_uid, st.st_mode & 07777u, rows[i].allowed);
			free(fix);
			free(path);
			return;
		}
		free(path);
	}
	finding_fine(f, "folder, socket, switches and ledger are yours%s",
		     has_team ? " and the team's" : " alone");
}

struct team_group {
	const char *name;
	gid_t gid;
};

static bool is_in_group(const struct team_group *g, struct finding *f)
{
	gid_t groups[256];
	int count = getgroups(256, groups);

	if (getegid() == g->gid || geteuid() == 0)
		return true;
	for (int i = 0; i < count; i++)
		if (groups[i] == g->gid)
			return true;
	finding_bad(f, "ask to be added, then log in anew", "you are not in group %s", g->name);
	return false;
}

/* By its mode; what an access list says more than that is not judged. */
static bool may_pass(const struct stat *st, gid_t gid, const char *folder)
{
	return (st->st_mode & S_IXOTH) || (st->st_gid == gid && (st->st_mode & S_IXGRP)) ||
	       getxattr(folder, "system.posix_acl_access", NULL, 0) > 0;
}

/* A closed folder above the open one shuts everybody out, and nobody would see why. */
static bool leads_there(const struct patient *p, const struct team_group *g, struct finding *f)
{
	char *folder = xstrdup(p->home), *fix, word[SHELL_WORD_BYTES];
	struct stat st;
	bool is_open = true;

	for (char *slash = folder; is_open && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		is_open = stat(folder, &st) < 0 || may_pass(&st, g->gid, folder);
		if (is_open)
			*slash = '/';
	}
	if (!is_open) {
		fix = xasprintf("chmod o+x %s, or set LB_HOME to a folder that the team can reach",
				shell_word(folder, word));
		finding_bad(f, fix, "the way to %s is closed to group %s: %s has mode %04o",
			    p->home, g->name, folder, st.st_mode & 07777u);
		free(fix);
	}
	free(folder);
	return is_open;
}

static bool is_told(const struct patient *p, const struct team_group *g, struct finding *f)
{
	char *folder = patient_setting(p, "team", "folder");
	struct err why = { 0 };
	int fd = folder ? team_open(folder, g->name, &why) : -1;

	if (fd >= 0)
		close(fd);
	free(folder);
	if (why.code != ERR_NONE)
		finding_bad(f, "see team.folder in man lbd.toml", "%s", why.text);
	return why.code == ERR_NONE;
}

/* Those that were made before the team was named stay closed to it. */
static bool is_open_run(const char *folder, gid_t gid)
{
	struct stat st;

	return lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	       st.st_gid == gid || (st.st_mode & S_IROTH) ||
	       getxattr(folder, "system.posix_acl_access", NULL, 0) > 0;
}

static bool are_runs_open(const struct patient *p, const struct team_group *g, struct finding *f)
{
	char *given = patient_setting(p, "runs", "folder"), *fix;
	char *runs = given ? xstrdup(given) : path_join("%s/runs", p->home);
	DIR *dir = opendir(runs);
	const struct dirent *entry;
	char word[SHELL_WORD_BYTES];
	int closed = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		char *run = path_join("%s/%s", runs, entry->d_name);

		closed += entry->d_name[0] != '.' && !is_open_run(run, g->gid);
		free(run);
	}
	if (dir)
		closedir(dir);
	if (closed > 0) {
		const char *place = shell_word(runs, word);

		fix = xasprintf("chgrp -R %s %s && find %s -type d -exec chmod g+s {} +", g->name,
				place, place);
		finding_bad(f, fix,
			    "group %s cannot look into %d run%s, made before it was the team",
			    g->name, closed, closed == 1 ? "" : "s");
		free(fix);
	}
	free(runs);
	free(given);
	return closed == 0;
}

static void look_at_team(const struct patient *p, struct finding *f)
{
	char *name = patient_setting(p, "team", "group");
	struct team_group g = { .name = name };

	if (p->config == NULL)
		finding_skip(f, "nobody knows while lbd.toml is wrong");
	else if (!group_id(name, &g.gid))
		finding_skip(f, "no team.group in lbd.toml: only you may stop these runs");
	else if (is_in_group(&g, f) && leads_there(p, &g, f) && is_told(p, &g, f) &&
		 are_runs_open(p, &g, f))
		finding_fine(f, "group %s", name);
	free(name);
}

const struct check machine_checks[] = {
	{ "lbd", look_at_lbd },
	{ "ledger", look_at_ledger },
	{ "backup", look_at_backup },
	{ "file system", look_at_file_system },
	{ "locks", look_at_locks },
	{ "clock", look_at_clock },
	{ "space", look_at_space },
	{ "modes", look_at_modes },
	{ "team", look_at_team },
	{ "GPUs", look_at_gpus },
	{ NULL, NULL },
};
