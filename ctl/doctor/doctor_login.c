/* SPDX-License-Identifier: MIT */
/* doctor_login.c - what login nodes do to a process that is to live there: they end it at logout,
 * limit it, or are another machine after the next login. Where one of these holds lbd may be a job
 * of Slurm's. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/host/cgroup.h"
#include "common/run/lease.h"
#include "ctl/base/text.h"
#include "ctl/doctor/doctor.h"

enum { FILE_MAX_BYTES = 1 << 20 };

/* Less than this of the limit's kind is worth a word. lbd itself takes a tenth of it; what people
 * start beside it (lbworker, compilers) shares it. */
static const int64_t least_memory_bytes = 4LL << 30, least_space_bytes = 2LL << 30,
		     least_cpu_s = 24 * 3600;

#define IN_SLURM "lbctl daemon start --in-slurm"

/* --- folders ---------------------------------------------------------------------------------- */

/* `folder`, or the nearest one above it that is there; owned. */
static char *nearest(const char *folder)
{
	char *path = xstrdup(folder), *slash;

	while (!file_exists(path) && (slash = strrchr(path, '/')) && slash > path)
		*slash = '\0';
	return path;
}

static void look_at_home(const struct patient *p, struct finding *f)
{
	char *folder = nearest(p->home);
	int problem = folder_try_file(folder, "x");

	if (problem == ENOSPC || problem == EDQUOT)
		finding_bad(f, "make room there, or set LB_HOME to a folder elsewhere",
			    "nothing can be written to %s: %s", folder, strerror(problem));
	else if (problem)
		finding_bad(f,
			    "set LB_HOME to a folder of yours that the compute nodes see, such as "
			    "one on scratch; root is nobody on most network file systems",
			    "nothing can be written to %s: %s", folder, strerror(problem));
	else
		finding_fine(f, "%s can be written to", folder);
	free(folder);
}

static void look_at_tmp(const struct patient *p, struct finding *f)
{
	static const char fix[] =
		"export TMPDIR=$HOME/tmp (and make it); lowbits needs none of it, "
		"compilers of trainers (Triton, torch.compile) do";
	const char *told = getenv("TMPDIR"), *folder = told && told[0] ? told : "/tmp";
	struct statvfs st;
	int problem = folder_try_file(folder, "x");

	(void)p;
	if (problem)
		finding_bad(f, fix, "nothing can be written to %s: %s", folder, strerror(problem));
	else if (statvfs(folder, &st) == 0 && (st.f_flag & ST_NOEXEC))
		finding_bad(f, fix, "%s is mounted noexec: no program starts from there", folder);
	else
		finding_fine(f, "%s takes files and programs", folder);
}

/* --- logout ----------------------------------------------------------------------------------- */

/* The last word of systemd's files on KillUserProcesses=. */
static bool kills_at_logout(void)
{
	static const char *const patterns[] = { "/etc/systemd/logind.conf",
						"/usr/lib/systemd/logind.conf.d/*.conf",
						"/etc/systemd/logind.conf.d/*.conf" };
	static const char key[] = "\nKillUserProcesses=";
	bool does = false;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		glob_t found = { 0 };

		glob(patterns[i], 0, NULL, &found);
		for (size_t k = 0; k < found.gl_pathc; k++) {
			char *text = file_read(found.gl_pathv[k], FILE_MAX_BYTES, NULL, NULL);
			const char *at = text ? strstr(text, key) : NULL;

			if (at)
				does = strchr("yYtT1", at[sizeof(key) - 1]) != NULL;
			free(text);
		}
		globfree(&found);
	}
	return does;
}

static bool lingers(void)
{
	struct account me;
	char *path;
	bool does;

	if (!account_of(geteuid(), &me))
		return false;
	path = path_join("/var/lib/systemd/linger/%s", me.name);
	does = file_exists(path);
	free(path);
	account_clear(&me);
	return does;
}

/* Whether the lbd that answers is a service of systemd's for this person. */
static bool is_user_service(const struct patient *p)
{
	char *path = path_join("/proc/%lld/cgroup", (long long)js_int(p->version, "pid", 0));
	char *text = p->version ? file_read(path, FILE_MAX_BYTES, NULL, NULL) : NULL;
	bool is = text && strstr(text, "/user@");

	free(text);
	free(path);
	return is;
}

static void look_at_logout(const struct patient *p, struct finding *f)
{
	static const char fix[] = "loginctl enable-linger, then systemctl --user enable --now lbd; "
				  "where that is not allowed: " IN_SLURM;
	char *session = path_join("/run/user/%u/systemd/private", geteuid());

	if (!file_exists("/run/systemd/system"))
		finding_skip(f, "no systemd here: lbctl daemon start, not systemctl --user");
	else if (lingers())
		finding_fine(f, "lingering is on: what is yours lives on");
	else if (kills_at_logout())
		finding_bad(f, fix,
			    "systemd ends your processes at logout (KillUserProcesses=yes), and "
			    "lingering is off");
	else if (is_user_service(p))
		finding_bad(f, fix,
			    "lbd is a service of your login: it ends with it, as lingering is off");
	else if (!file_exists(session))
		finding_skip(
			f, "no systemd session of yours: lbctl daemon start, not systemctl --user");
	else
		finding_fine(f, "what lbctl daemon start starts lives on");
	free(session);
}

/* --- limits ----------------------------------------------------------------------------------- */

/* -1: none. */
static int64_t limit_of(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
		       ? -1
		       : (int64_t)limit.rlim_cur;
}

static void look_at_limits(const struct patient *p, struct finding *f)
{
	static const char fix[] = IN_SLURM
		", where the node's limits are those of a job; and large work (lbworker "
		"tokenize, builds) in jobs";
	int64_t memory = cgroup_memory_bytes(), space = limit_of(RLIMIT_AS),
		cpu_s = limit_of(RLIMIT_CPU);
	char size[NUMBER_TEXT_MAX], time[CLOCK_TEXT_MAX];

	(void)p;
	if (cpu_s >= 0 && cpu_s < least_cpu_s)
		finding_bad(f, fix, "a process ends after %s of CPU time (ulimit -t), lbd too",
			    duration_text(cpu_s * 1000, time));
	else if (space >= 0 && space < least_space_bytes)
		finding_bad(f, fix, "a process may have %s of addresses (ulimit -v)",
			    size_text(space, size));
	else if (memory >= 0 && memory < least_memory_bytes)
		finding_bad(f, fix,
			    "your processes here share %s of memory, and one that takes too much "
			    "may end lbd",
			    size_text(memory, size));
	else
		finding_fine(f, "of CPU time, addresses and memory there is enough");
}

/* --- which machine ---------------------------------------------------------------------------- */

static void judge_absent(const struct lease *lease, struct finding *f)
{
	char text[CLOCK_TEXT_MAX];
	int64_t silent_ms = clock_wall_ms() - lease->renewed_ms;

	duration_text(silent_ms > 0 ? silent_ms : 0, text);
	if (lease->ended_ms && strstr(lease->why, "SIGHUP"))
		finding_bad(f, "lbctl daemon start; if that ends at each logout: " IN_SLURM,
			    "lbd does not run: %s", lease->why);
	else if (lease->ended_ms)
		finding_skip(f, "lbd does not run: it was ended");
	else if (lease_is_here(lease) && lease_is_alive_here(lease))
		finding_fine(f, "lbd lives here, but does not answer");
	else if (lease_is_here(lease))
		finding_bad(
			f, "lbctl daemon start; if it dies again at logout: " IN_SLURM,
			"lbd died here without a word, last heard of %s ago: at a logout, or by a "
			"limit?",
			text);
	else if (lease_is_silent(lease))
		finding_bad(f, "lbctl daemon start takes its place",
			    "lbd ran on %s, last heard of %s ago", lease->host, text);
	else
		finding_bad(
			f,
			"ssh there: commands work where lbd is, and switches ($LB_HOME/switches) "
			"everywhere",
			"lbd runs on %s, which is another machine", lease->host);
}

static void look_at_login_node(const struct patient *p, struct finding *f)
{
	char *path = lease_path(p->home, 0);
	struct lease lease = { 0 };

	lease_read(path, &lease, NULL);
	free(path);
	if (p->version)
		finding_fine(f, "lbd runs on this machine");
	else if (lease.generation == 0)
		finding_skip(f, "lbd has not run yet");
	else
		judge_absent(&lease, f);
}

const struct check login_checks[] = {
	{ "home", look_at_home },
	{ "TMPDIR", look_at_tmp },
	{ "logout", look_at_logout },
	{ "limits", look_at_limits },
	{ "login node", look_at_login_node },
	{ NULL, NULL },
};
