/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls.c - libslurm's start, its errors, and the one look at a job before it is touched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "slurm/helper/calls.h"
#include "slurm/pipe/known.h"
#include "slurm/job_result.h"

/* slurm.conf as it was when libslurm read it. */
static struct {
	bool is_loaded;
	dev_t dev;
	ino_t ino;
	struct timespec mtime;
	bool has_one_controller;
} conf;

enum {
	FRESH_MS = 250, /* who has just answered is not asked whether it is there */
	RULES_AGE_MS = 10 * 60 * 1000,
};

/* Monotonic: when a controller was there last; 0: not known. Written by any thread that fails. */
static _Atomic int64_t answered_ms;
static _Atomic bool is_first_away; /* a backup is in charge, if any is */

/* Does the file name exactly one controller, beyond doubt? With several, or with parts in other
 * files, only libslurm can tell who should answer. */
static bool names_one_controller(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	int hosts = 0, doubts = 0;

	if (!f)
		return false;
	while (getline(&line, &cap, f) >= 0) {
		const char *at = line + strspn(line, " \t");

		hosts += strncasecmp(at, "SlurmctldHost", 13) == 0;
		doubts += strncasecmp(at, "include", 7) == 0 || strncasecmp(at, "Backup", 6) == 0;
	}
	free(line);
	fclose(f);
	return hosts == 1 && doubts == 0;
}

/* slurm_init ends the process when it does not like the file, after a minute of retries when there
 * is none: look first. A file that was changed since is read again. */
static int load_conf(struct answer *a)
{
	const char *told, *path = path_slurm_conf(&told);
	struct stat st;

	if (path == NULL || stat(path, &st))
		return answer_set(a, SCHEDULER_DOWN, "%s: %s", told ? told : "slurm.conf",
				  strerror(errno));
	if (conf.is_loaded && conf.dev == st.st_dev && conf.ino == st.st_ino &&
	    conf.mtime.tv_sec == st.st_mtim.tv_sec && conf.mtime.tv_nsec == st.st_mtim.tv_nsec)
		return 0;
	if (conf.is_loaded)
		slurm_fini();
	slurm_init(path);
	conf.is_loaded = true;
	conf.dev = st.st_dev;
	conf.ino = st.st_ino;
	conf.mtime = st.st_mtim;
	conf.has_one_controller = names_one_controller(path);
	return 0;
}

/* SLURMCTLD_COMMUNICATIONS_BACKOFF, which headers before 23.02 lack: this user asks for too much at
 * once (rl_enable). libslurm waits and tries again by itself, but where it pings. */
enum { ASKED_TOO_OFTEN = SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR + 1 };

static int ping(void)
{
	int rc = slurm_ping(0);

	return (rc > 0 ? rc : rc < 0 ? errno : 0) == ASKED_TOO_OFTEN ? 0 : rc;
}

int slurm_ready(struct answer *a)
{
	slurm_conf_t *ctl = NULL;
	int rc;

	if (load_conf(a))
		return -1;
	if (answered_ms && clock_mono_ms() - answered_ms < FRESH_MS)
		return 0;
	rc = ping();
	answered_ms = rc == 0 ? clock_mono_ms() : 0;
	is_first_away = rc != 0;
	if (rc == 0)
		return 0;
	/* A backup may be in charge. Pinging one that does not exist reads past libslurm's own
	 * list, so an ordinary call has to find it, slowly. */
	if (!conf.has_one_controller) {
		rc = slurm_load_ctl_conf(0, &ctl);
		libslurm_free_conf(ctl);
		if (rc == 0)
			return 0;
	}
	rc = rc > 0 ? rc : errno;
	js_set_bool(a->body, rc == SLURM_PROTOCOL_VERSION_ERROR ? "unfit" : "unreachable", true);
	return answer_set(a, SCHEDULER_DOWN, "Slurm does not answer: %s", slurm_strerror(rc));
}

bool slurm_is_held(const slurm_job_info_t *job)
{
	return (job->job_state & SJ_MASK) == SJ_PENDING && job->priority == 0;
}

bool slurm_backup_serves(void)
{
	return is_first_away;
}

static bool is_in_federation(void)
{
	void *told = NULL;
	bool is;

	if (slurm_load_federation(&told) != 0 || !told)
		return false;
	is = ((const slurmdb_federation_rec_t *)told)->name != NULL;
	slurm_destroy_federation_rec(told);
	return is;
}

const struct slurm_rules *slurm_rules(void)
{
	static const struct slurm_rules unknown = { .qos_counts = true, .boots_hydra = true };
	static struct slurm_rules rules;
	static int64_t asked_ms;
	slurm_conf_t *ctl = NULL;

	if (asked_ms && clock_mono_ms() - asked_ms < RULES_AGE_MS)
		return &rules;
	if (slurm_load_ctl_conf(0, &ctl) != 0)
		return &unknown;
	asked_ms = clock_mono_ms();
	rules.qos_counts = ctl->accounting_storage_enforce != 0;
	rules.boots_hydra = !ctl->mpi_params ||
			    !strstr(ctl->mpi_params, "disable_slurm_hydra_bootstrap");
	snprintf(rules.only, sizeof(rules.only), "%s",
		 is_in_federation() && ctl->cluster_name ? ctl->cluster_name : "");
	libslurm_free_conf(ctl);
	return &rules;
}

/* Nothing was done, but may be when asked again. */
static bool is_passing(int code)
{
	switch (code) {
	case EAGAIN:
	case SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR:
	case ASKED_TOO_OFTEN:
	case ESLURM_ERROR_ON_DESC_TO_RECORD_COPY:
	case ESLURM_WRITING_TO_FILE:
	case ESLURM_TRANSITION_STATE_NO_UPDATE:
	case ESLURM_IN_STANDBY_MODE:
	case ESLURM_IN_STANDBY_USE_BACKUP:
		return true;
	default:
		return false;
	}
}

bool slurm_is_plugins_word(int code)
{
	return code < EINTR || code == EACCES || code == EINVAL;
}

static bool is_controllers_word(int code)
{
	return code == SLURM_ERROR || (code >= 2000 && code < 4000) ||
	       (code >= 7000 && code < 10000);
}

/* After a lost answer (time-outs, receive and authentication errors, whatever else) a change may
 * have been made; a mere look has done nothing. */
static enum scheduler_result judge(int code, bool has_acted)
{
	if (code == ESLURM_INVALID_JOB_ID || code == ESLURM_ALREADY_DONE)
		return SCHEDULER_GONE;
	if (is_passing(code))
		return SCHEDULER_DOWN;
	if (is_controllers_word(code) || (has_acted && slurm_is_plugins_word(code)))
		return SCHEDULER_REFUSED;
	return has_acted ? SCHEDULER_UNCLEAR : SCHEDULER_DOWN;
}

int slurm_or_nothing(int rc)
{
	return rc && (rc > 0 ? rc : errno) == ESLURM_ACCESS_DENIED ? 0 : rc;
}

int slurm_failed(struct answer *a, int rc, bool has_acted, const char *what)
{
	int code = rc > 0 ? rc : errno; /* some calls return the error, some set errno */

	answered_ms = 0;
	if (code == SLURM_PROTOCOL_VERSION_ERROR)
		js_set_bool(a->body, "unfit", true);
	return answer_set(a, judge(code, has_acted), "%s: %s (Slurm error %d)", what,
			  slurm_strerror(code), code);
}

const slurm_job_info_t *slurm_record(struct answer *a, uint32_t job_id, job_info_msg_t **list)
{
	int rc;

	*list = NULL;
	rc = libslurm_load_job(list, job_id, SHOW_ALL | SHOW_LOCAL);
	if (rc) {
		slurm_failed(a, rc, false, "looking for the job");
		return NULL;
	}
	for (uint32_t i = 0; i < (*list)->record_count; i++) {
		const slurm_job_info_t *job = &(*list)->job_array[i];

		if (job->job_id == job_id || job->array_job_id == job_id)
			return job;
	}
	answer_set(a, SCHEDULER_GONE, "job %u is not known to Slurm", job_id);
	return NULL;
}

static bool is_ours(const slurm_job_info_t *job, const char *token, int64_t submit_time)
{
	struct wire_row row = { .job_id = slurm_id_of(job),
				.submit_time = (int64_t)job->submit_time };

	return job->user_id == getuid() && row.submit_time == submit_time &&
	       (wire_comment_parse(job->comment, row.ledger_id, row.token) ||
		known_find_now(&row)) &&
	       strcmp(row.token, token) == 0;
}

/* Of an array each task that was sent back into the queue has a submission of its own. */
static bool has_ours(const job_info_msg_t *list, uint32_t job_id, const json_t *request)
{
	const char *token = js_str(request, "token", "-");
	int64_t submit_time = js_int(request, "submit_time", -1);
	bool has = false;

	for (uint32_t i = 0; i < list->record_count && !has; i++) {
		const slurm_job_info_t *job = &list->job_array[i];

		has = (job->job_id == job_id || job->array_job_id == job_id) &&
		      is_ours(job, token, submit_time);
	}
	return has;
}

int slurm_find(struct answer *a, const json_t *request, job_info_msg_t **list)
{
	uint32_t job_id = (uint32_t)js_int(request, "job_id", 0);
	const slurm_job_info_t *job;

	*list = NULL;
	if (slurm_ready(a))
		return -1;
	job = slurm_record(a, job_id, list);
	if (job && has_ours(*list, job_id, request))
		return 0;
	if (job)
		answer_set(a, SCHEDULER_GONE, "job %u is another one now", job_id);
	slurm_free_job_info_msg(*list);
	*list = NULL;
	return -1;
}
