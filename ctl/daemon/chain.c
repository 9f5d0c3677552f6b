/* SPDX-License-Identifier: MIT */
/* chain.c - lbd as a job of Slurm, of which each submits the next. */
#include "ctl/daemon/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "ctl/base/program.h"
#include "ctl/daemon/lbd.h"
#include "ctl/daemon/place.h"

enum {
	SLURM_MS = 30 * 1000, /* for one command */
	LOOK_MS = 100,
};

/* Of a job that serves, or will. */
#define LIVE "PENDING,RUNNING,SUSPENDED"

static char *job_path(const struct ctl *ctl)
{
	return path_join("%s/lbd.job", ctl->client.home);
}

/* The name of the chain of jobs, from the script; owned. NULL: there is none. */
static char *chain_name(const struct ctl *ctl)
{
	static const char key[] = "--job-name=";
	char *path = job_path(ctl), *text = file_read(path, 64 * 1024, NULL, NULL);
	const char *at = text ? strstr(text, key) : NULL;
	char *name = at ? xstrndup(at + strlen(key), strcspn(at + strlen(key), "\n")) : NULL;

	free(text);
	free(path);
	return name;
}

/* What people set for themselves: squeue would show less, scancel ask, or all of them go to another
 * cluster. The chain's own script does the same. */
static void forget_settings(void)
{
	static const char *const names[] = {
		"SQUEUE_ACCOUNT",      "SQUEUE_LICENSES", "SQUEUE_PARTITION", "SQUEUE_QOS",
		"SCANCEL_INTERACTIVE", "SLURM_CLUSTERS",  "SBATCH_CLUSTERS",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

static int slurm(const char *const argv[], char **out, struct err *err)
{
	char *text;
	int status;

	forget_settings();
	status = program_output(argv, SLURM_MS, &text, err);

	if (status > 0)
		status = err_set(err, ERR_SCHEDULER, "%s: %s", argv[0], text);
	if (out && status == 0)
		*out = text;
	else
		free(text);
	return status;
}

/* Jobs of the chain in these states, one number a line; owned, NULL with err. */
static char *chain_jobs(const char *name, const char *states, struct err *err)
{
	char *user = xasprintf("%u", geteuid()), *out = NULL;
	const char *const argv[] = { "squeue", "-h", "-o", "%i",   "-u", user,
				     "-n",     name, "-t", states, NULL };

	slurm(argv, &out, err);
	free(user);
	return out;
}

/* Of numbers, one a line, which are cut up. */
static int cancel_jobs(char *jobs, struct err *err)
{
	int rc = 0;

	for (char *save = NULL, *id = strtok_r(jobs, "\n", &save); id && rc == 0;
	     id = strtok_r(NULL, "\n", &save)) {
		const char *const argv[] = { "scancel", id, NULL };

		rc = slurm(argv, NULL, err);
	}
	return rc;
}

int chain_cancel_waiting(const struct ctl *ctl, struct err *err)
{
	char *name = chain_name(ctl), *waiting = name ? chain_jobs(name, "PENDING", err) : NULL;
	int rc = name && !waiting ? -1 : 0;

	if (waiting)
		rc = cancel_jobs(waiting, err);
	free(waiting);
	free(name);
	return rc;
}

/* The first look may come before a job that is just being submitted, and scancel behind the end of
 * one: the next look tells. One that completes may still be submitting the next, until its script
 * has ended; that its epilog takes long is nobody's trouble. */
int chain_end(const struct ctl *ctl, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + lbd_patience_ms(ctl);
	char *name = chain_name(ctl);
	bool is_over = name == NULL;
	int rc = 0;

	while (!is_over && rc == 0) {
		bool is_late = clock_mono_ms() >= end_ms;
		const char *states = is_late ? LIVE : LIVE ",COMPLETING";
		char *left = chain_jobs(name, states, err);

		is_over = left && left[0] == '\0';
		if (!left)
			rc = -1;
		else if (!is_over && is_late)
			rc = err_set(err, ERR_TIMEOUT,
				     "lbd has ended, and its jobs have not: squeue -n %s", name);
		else if (!is_over) {
			(void)cancel_jobs(left, &(struct err){ 0 });
			nap(LOOK_MS);
		}
		free(left);
	}
	free(name);
	return rc;
}

/* Until an lbd of this job holds the lease, and answers where it can be asked from here. */
static int await_job(struct ctl *ctl, int64_t job, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + lbd_patience_ms(ctl);
	struct found f;

	for (;;) {
		lbd_find(ctl, true, &f);
		json_decref(f.version);
		if (f.lease.job_id == job && (f.place == SERVES || f.place == ELSEWHERE))
			break;
		if (clock_mono_ms() >= end_ms)
			return err_set(err, ERR_TIMEOUT,
				       "lbd's job %lld does not run yet: see squeue -j %lld and "
				       "%s/lbd.log; it will serve once it does",
				       (long long)job, (long long)job, ctl->client.home);
		nap(LOOK_MS);
	}
	printf("lbd runs in job %lld on %s; its log is %s/lbd.log\n", (long long)job, f.lease.host,
	       ctl->client.home);
	return 0;
}

static char *write_job(struct ctl *ctl, struct err *err)
{
	char *path = job_path(ctl), *script = lbd_says(ctl, "--print-job", err);
	int status = script ? 0 : -1;

	if (status == 0)
		status = folder_make(ctl->client.home, 0700, err);
	if (status == 0)
		status = file_write_atomic(path, script, strlen(script), 0700, err);
	free(script);
	if (status == 0)
		return path;
	free(path);
	return NULL;
}

static int submit_job(const char *path, int64_t *job, struct err *err)
{
	const char *const argv[] = { "sbatch", "--parsable", path, NULL };
	char *out;

	if (slurm(argv, &out, err) != 0)
		return -1;
	*job = strtoll(out, NULL, 10); /* "17" or "17;cluster" */
	free(out);
	return *job > 0 ? 0 : err_set(err, ERR_SCHEDULER, "sbatch did not tell the job's number");
}

int chain_start(struct ctl *ctl, struct err *err)
{
	char *path = write_job(ctl, err), *name = path ? chain_name(ctl) : NULL, *there = NULL;
	int64_t job = 0;
	int rc = -1;

	if (name)
		there = chain_jobs(name, LIVE, err);
	if (there && there[0])
		rc = await_job(ctl, strtoll(there, NULL, 10), err);
	else if (there && submit_job(path, &job, err) == 0)
		rc = await_job(ctl, job, err);
	free(there);
	free(name);
	free(path);
	return rc;
}

int chain_signal(const struct lease *lease, struct err *err)
{
	char *job = xasprintf("%lld", (long long)lease->job_id);
	const char *const argv[] = { "scancel", "--batch", "--signal=TERM", job, NULL };
	int rc = slurm(argv, NULL, err);

	free(job);
	return rc;
}
