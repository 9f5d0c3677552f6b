/* SPDX-License-Identifier: MIT */
/* doctor_slurm.c - what lbd needs of Slurm, and what it asks of it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/config/keys.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "ctl/doctor/doctor.h"
#include "ctl/base/program.h"
#include "ctl/base/slurm_releases.h"

enum {
	COMMAND_MS = 20 * 1000,
	SLOW_MS = 3000,
	SKEW_S = 60,       /* munge refuses credentials that are 300 s old */
	MANY_CALLS = 120,  /* a minute */
	BACK_RELEASES = 2, /* a client may be so much older than its controller; from 24.11 on */
	BACK_RELEASES_2411 = 3,
};

static void skip_without_slurm(const struct patient *p, struct finding *f)
{
	char *text =
		p->conf_trouble
			? xasprintf("no Slurm here: SLURM_CONF, %.200s, cannot be read: runs use "
				    "this machine",
				    p->conf_trouble)
			: xstrdup("no Slurm here: runs use this machine");

	finding_skip(f, text);
	free(text);
}

static bool is_skipped(const struct patient *p, struct finding *f)
{
	if (!p->has_slurm)
		skip_without_slurm(p, f);
	else if (p->slurm == NULL)
		finding_skip(f, "slurmctld did not answer");
	return p->slurm == NULL;
}

/* What a command of Slurm's says, or NULL where there is no Slurm: then the check is skipped. */
static char *ask(const struct patient *p, struct finding *f, const char *const *argv, int *status,
		 struct err *err)
{
	char *text;

	if (!p->has_slurm) {
		skip_without_slurm(p, f);
		return NULL;
	}
	*status = program_output(argv, COMMAND_MS, &text, err);
	return text;
}

static void look_at_munge(const struct patient *p, struct finding *f)
{
	static const char *const argv[] = { "munge", "-n", NULL };
	struct err err = { 0 };
	int status;
	char *text = ask(p, f, argv, &status, &err);

	if (text == NULL)
		return;
	if (strstr(p->slurm ? p->slurm : "", "auth/slurm"))
		finding_skip(f, "this Slurm uses auth/slurm instead");
	else if (status == 0)
		finding_fine(f, "makes credentials");
	else if (err.code == ERR_NOT_FOUND || strstr(p->slurm ? p->slurm : "", "munge.socket") ||
		 strstr(p->slurm ? p->slurm : "", "socket="))
		finding_skip(f, "another socket than the usual one: what slurmctld says counts");
	else
		finding_bad(f,
			    "ask for munged to be started on this machine: systemctl status "
			    "munge",
			    "%s", status > 0 ? text : err.text);
	free(text);
}

/* "Slurmctld(backup) at b is UP"; where no line says so, who asks too often is not told. */
static const char *serving(char *text)
{
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (text_ends_with(line, " is UP"))
			return line;
	}
	return "answers";
}

static void look_at_slurmctld(const struct patient *p, struct finding *f)
{
	static const char *const argv[] = { "scontrol", "ping", NULL };
	int64_t begun_ms = clock_mono_ms();
	struct err err = { 0 };
	int status;
	char *text = ask(p, f, argv, &status, &err);

	if (text == NULL)
		return;
	begun_ms = clock_mono_ms() - begun_ms;
	if (p->slurm == NULL)
		finding_bad(f,
			    "jobs run on; ask the administrators. munge that is down looks the "
			    "same",
			    "does not answer: %.*s",
			    (int)strcspn(status >= 0 ? text : err.text, "\n"),
			    status >= 0 ? text : err.text);
	else if (begun_ms > SLOW_MS)
		finding_bad(f, "raise poll.interval and poll.idle_interval",
			    "answered in %lld ms only", (long long)begun_ms);
	else
		finding_fine(f, "%s, in %lld ms", serving(text), (long long)begun_ms);
	free(text);
}

/* The value of a line "Key = value" of scontrol show config; owned, NULL = none. */
static char *setting(const struct patient *p, const char *key)
{
	for (const char *line = p->slurm; line; line = strchr(line, '\n')) {
		size_t len = strlen(key);
		const char *at;

		line += *line == '\n';
		if (strncmp(line, key, len) != 0 || (line[len] != ' ' && line[len] != '='))
			continue;
		at = line + len + strspn(line + len, " =");
		return xstrndup(at, strcspn(at, "\n"));
	}
	return NULL;
}

/* The one that lbd uses, as it says; before it runs, lbd's neighbour. */
static char *helper_in_use(const struct patient *p)
{
	const char *told = js_str(p->version, "slurm_helper", NULL);
	char *beside = told ? NULL : path_sibling("lbd-slurm", NULL);

	if (told || beside)
		return told ? xstrdup(told) : beside;
	beside = path_sibling("lbd-slurm-commands", NULL);
	return beside ? beside : xstrdup("lbd-slurm");
}

static void judge_releases(struct finding *f, const char *ours, const char *theirs)
{
	int mine = slurm_release_index(ours), other = slurm_release_index(theirs);
	int back = other >= slurm_release_index("24.11") ? BACK_RELEASES_2411 : BACK_RELEASES;

	if (mine < 0 || other < 0)
		finding_fine(f, "lbd-slurm %.8s, slurmctld %s", ours, theirs ? theirs : "?");
	else if (mine > other || mine + back < other)
		finding_bad(f,
			    "build lbd-slurm against the libslurm of this cluster, or set "
			    "slurm.through = \"commands\" in lbd.toml",
			    "lbd-slurm was built for Slurm %.*s, slurmctld is %s",
			    (int)strcspn(ours, ")"), ours, theirs);
	else
		finding_fine(f, "lbd-slurm is for Slurm %.*s, slurmctld is %s",
			     (int)strcspn(ours, ")"), ours, theirs);
}

static void look_at_versions(const struct patient *p, struct finding *f)
{
	char *helper = is_skipped(p, f) ? NULL : helper_in_use(p), *text = NULL, *theirs = NULL;
	const char *const argv[] = { helper, "--version", NULL };
	struct err err = { 0 };
	const char *ours, *note = js_str(p->version, "slurm_note", NULL);
	int status;

	if (helper == NULL)
		return;
	if (p->version && !js_str(p->version, "slurm_helper", NULL)) {
		finding_bad(f,
			    "lbctl daemon restart, here, where scontrol works; a service has to "
			    "be told PATH and SLURM_CONF (systemctl --user edit lbd)",
			    "this lbd found no Slurm when it started: its runs use its machine");
		free(helper);
		return;
	}
	status = program_output(argv, COMMAND_MS, &text, &err);
	theirs = setting(p, "SLURM_VERSION");
	ours = text ? strstr(text, "(Slurm ") : NULL;
	if (ours)
		judge_releases(f, ours + strlen("(Slurm "), theirs);
	else if (status == 0)
		finding_fine(f, "none in use: Slurm %s is spoken to through its commands, %s",
			     theirs ? theirs : "", note ? note : "which take longer");
	else
		finding_bad(f,
			    "build lowbits where libslurm-dev is, or set slurm.through = "
			    "\"commands\" in lbd.toml",
			    "%s does not run: %s", helper, text ? text : err.text);
	free(theirs);
	free(text);
	free(helper);
}

/* A job that has ended must be seen in a poll before Slurm forgets it. */
static void look_at_job_age(const struct patient *p, struct finding *f)
{
	char *set = patient_setting(p, "poll", "idle_interval");
	const char *idle = set ? set : "15s";
	char *age = is_skipped(p, f) ? NULL : setting(p, "MinJobAge");
	int64_t idle_ms = 0, age_s = age ? strtoll(age, NULL, 10) : 0;

	duration_parse(idle, &idle_ms, NULL);
	if (age && age_s > 0 && age_s * 1000 < 2 * idle_ms)
		finding_bad(f, "set poll.idle_interval below half of MinJobAge",
			    "Slurm forgets ended jobs after %lld s, lbd looks every %s at rest",
			    (long long)age_s, idle);
	else if (age)
		finding_fine(f, "ended jobs are known for %lld s, lbd looks every %s at rest",
			     (long long)age_s, idle);
	free(age);
	free(set);
}

/* "Configuration data as of 2026-11-21T10:00:00": the controller's clock, in local time. */
static void look_at_controller_clock(const struct patient *p, struct finding *f)
{
	static const char key[] = "Configuration data as of ";
	const char *at = is_skipped(p, f) ? NULL : strstr(p->slurm, key);
	struct tm tm = { .tm_isdst = -1 };
	int64_t skew_s;

	if (at == NULL) {
		if (p->slurm)
			finding_skip(f, "the controller does not tell the time");
		return;
	}
	strptime(at + strlen(key), "%Y-%m-%dT%H:%M:%S", &tm);
	skew_s = clock_wall_ms() / 1000 - (int64_t)mktime(&tm);
	if (skew_s > SKEW_S || skew_s < -SKEW_S)
		finding_bad(f,
			    "have NTP (chrony) run on both machines: munge refuses what is 5 "
			    "minutes off",
			    "this machine and slurmctld differ by %lld s", (long long)skew_s);
	else
		finding_fine(f, "agrees with slurmctld's to %lld s",
			     (long long)(skew_s < 0 ? -skew_s : skew_s));
}

static void look_at_calls(const struct patient *p, struct finding *f)
{
	double calls = js_real(p->version, "calls_per_minute", -1);

	if (p->version == NULL || calls < 0)
		finding_skip(f, "lbd has not run for a minute yet");
	else if (p->has_slurm && calls > MANY_CALLS)
		finding_bad(f, "raise poll.interval",
			    "lbd asked its schedulers %.0f times in a minute", calls);
	else
		finding_fine(f, "lbd asked its schedulers %.0f times in the last minute", calls);
}

const struct check slurm_checks[] = {
	{ "munge", look_at_munge },
	{ "slurmctld", look_at_slurmctld },
	{ "libslurm", look_at_versions },
	{ "MinJobAge", look_at_job_age },
	{ "clock skew", look_at_controller_clock },
	{ "calls", look_at_calls },
	{ NULL, NULL },
};
