/* SPDX-License-Identifier: MIT */
/* local_jobs.c - see local_jobs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/paths.h"
#include "slurm/local_jobs.h"

enum { RECORD_VERSION = 1, RECORD_MAX_BYTES = 1 << 20, KEEP_ENDED_SECONDS = 600 };

static char *path_of(const struct local_jobs *jobs, uint32_t job_id, const char *suffix)
{
	return path_join("%s/%u.%s", jobs->folder, job_id, suffix);
}

static int64_t now_seconds(void)
{
	return clock_wall_ms() / 1000;
}

void local_job_drop_env(struct local_job *job)
{
	for (char **e = job->env; e && *e; e++) {
		explicit_bzero(*e, strlen(*e));
		free(*e);
	}
	free(job->env);
	job->env = NULL;
}

static void job_free(struct local_job *job)
{
	local_job_drop_env(job);
	free(job->script_path);
	free(job->workdir);
	free(job->output);
	free(job);
}

static void job_forget(const struct local_jobs *jobs, uint32_t job_id)
{
	char *record = path_of(jobs, job_id, "json"), *lock = path_of(jobs, job_id, "lock");

	unlink(record);
	unlink(lock);
	free(record);
	free(lock);
}

static void set_phase(struct local_job *job, enum job_phase phase, const char *word)
{
	job->status.phase = phase;
	snprintf(job->status.state, sizeof(job->status.state), "%s", word);
}

void local_job_end(struct local_job *job, enum cause cause, int exit_code, int signal)
{
	set_phase(job, JOB_ENDED, "ENDED");
	job->status.cause = job->is_cancelled ? CAUSE_KILLED : cause;
	job->status.exit_code = exit_code;
	job->status.signal = signal;
	job->status.end_time = now_seconds();
	job->is_child = false;
	job->status.reason[0] = '\0';
	local_job_drop_env(job);
}

/* --- records ------------------------------------------------------------------------------- */
static const char *phase_word(enum job_phase phase)
{
	return phase == JOB_HELD ? "held" : phase == JOB_ENDED ? "ended" : "released";
}

int local_job_save(const struct local_jobs *jobs, const struct local_job *job, struct err *err)
{
	const struct job_status *st = &job->status;
	char *path = path_of(jobs, st->ref.job_id, "json");
	json_t *o = json_object();
	char *text;
	int rc;

	js_set_int(o, "version", RECORD_VERSION);
	js_set_str(o, "token", st->ref.token);
	js_set_int(o, "job_id", st->ref.job_id);
	js_set_int(o, "submit_time", st->ref.submit_time);
	js_set_str(o, "ledger_id", st->ledger_id);
	js_set_str(o, "phase", phase_word(st->phase));
	json_object_set_new(o, "script", js_bytes(job->script_path));
	json_object_set_new(o, "workdir", js_bytes(job->workdir));
	json_object_set_new(o, "output", js_bytes(job->output));
	js_set_int(o, "pid", job->proc.pid);
	js_set_int(o, "start_ticks", job->proc.start_ticks);
	js_set_str(o, "boot_id", job->proc.boot_id);
	js_set_bool(o, "cancelled", job->is_cancelled);
	js_set_int(o, "start", st->start_time);
	js_set_int(o, "end", st->end_time);
	js_set_str(o, "cause", cause_name(st->cause));
	js_set_int(o, "exit_code", st->exit_code);
	js_set_int(o, "signal", st->signal);
	text = js_line(o);
	rc = file_write_atomic(path, text, strlen(text), 0600, err);
	free(text);
	free(path);
	json_decref(o);
	return rc;
}

static struct local_job *job_create(const char *token, const char *ledger_id, uint32_t job_id)
{
	struct local_job *job = xcalloc(1, sizeof(*job));
	struct job_status *st = &job->status;

	snprintf(st->ref.token, sizeof(st->ref.token), "%s", token);
	snprintf(st->ledger_id, sizeof(st->ledger_id), "%s", ledger_id);
	st->ref.job_id = job_id;
	st->exit_code = -1;
	gethostname(st->nodes, sizeof(st->nodes) - 1);
	set_phase(job, JOB_HELD, "HELD");
	snprintf(st->reason, sizeof(st->reason), "JobHeldUser");
	return job;
}

static struct local_job *job_parse(const json_t *o)
{
	const char *phase = js_str(o, "phase", ""), *token = js_str(o, "token", "");
	int64_t job_id = js_int(o, "job_id", 0);
	struct local_job *job;

	if (js_int(o, "version", 0) != RECORD_VERSION || strlen(token) != TOKEN_HEX ||
	    job_id <= 0 || job_id > UINT32_MAX)
		return NULL;
	job = job_create(token, js_str(o, "ledger_id", ""), (uint32_t)job_id);
	job->script_path = js_bytes_take(json_object_get(o, "script"));
	job->workdir = js_bytes_take(json_object_get(o, "workdir"));
	job->output = js_bytes_take(json_object_get(o, "output"));
	job->status.ref.submit_time = js_int(o, "submit_time", 0);
	job->status.start_time = js_int(o, "start", 0);
	job->proc.pid = js_int(o, "pid", 0);
	job->proc.start_ticks = js_int(o, "start_ticks", 0);
	snprintf(job->proc.boot_id, sizeof(job->proc.boot_id), "%s", js_str(o, "boot_id", ""));
	job->is_cancelled = js_bool(o, "cancelled", false);
	job->status.reason[0] = '\0';
	if (strcmp(phase, "released") == 0)
		set_phase(job, JOB_RUNNING, "RUNNING");
	if (strcmp(phase, "ended") == 0) {
		local_job_end(job, cause_from_name(js_str(o, "cause", "lost")),
			      (int)js_int(o, "exit_code", -1), (int)js_int(o, "signal", 0));
		job->status.end_time = js_int(o, "end", 0);
	}
	if (!job->script_path || !job->workdir || !job->output) {
		job_free(job);
		return NULL;
	}
	return job;
}

/* --- liveness ------------------------------------------------------------------------------ */
int local_job_lock(const struct local_jobs *jobs, const struct local_job *job, struct err *err)
{
	char *path = path_of(jobs, job->status.ref.job_id, "lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		err_errno(err, "%s", path);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

static bool is_locked(const struct local_jobs *jobs, const struct local_job *job)
{
	char *path = path_of(jobs, job->status.ref.job_id, "lock");
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool is_held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	free(path);
	return is_held;
}

/* Two witnesses, either is enough: a job must never be taken for dead while it lives. */
static bool is_alive(const struct local_jobs *jobs, const struct local_job *job)
{
	return is_locked(jobs, job) || proc_is_alive(&job->proc);
}

/* lbd died between the start and the note of it: the lock's descriptor tells who runs. */
static void find_process(const struct local_jobs *jobs, struct local_job *job)
{
	char *path = path_of(jobs, job->status.ref.job_id, "lock");
	char *real = realpath(path, NULL);
	int64_t pid = real ? proc_find_by_fd(LOCAL_LOCK_FD, real) : 0;

	if (pid)
		proc_name_of(pid, &job->proc);
	free(real);
	free(path);
}

static void note_loss(const struct local_jobs *jobs, struct local_job *job)
{
	struct err err = { 0 };

	local_job_end(job, CAUSE_LOST, -1, 0);
	if (local_job_save(jobs, job, &err))
		log_warn("the end of a local job is not on disk: %s", err.text);
}

void local_jobs_refresh(struct local_jobs *jobs)
{
	struct local_job **at = &jobs->first;
	int64_t long_ago = now_seconds() - KEEP_ENDED_SECONDS;

	while (*at) {
		struct local_job *job = *at;

		if (job->status.phase == JOB_RUNNING && !job->is_child && !is_alive(jobs, job))
			note_loss(jobs, job);
		if (job->status.phase != JOB_ENDED || job->status.end_time > long_ago) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		job_forget(jobs, job->status.ref.job_id);
		job_free(job);
	}
}

/* --- all of them --------------------------------------------------------------------------- */
static void load_record(struct local_jobs *jobs, uint32_t job_id)
{
	struct err err = { 0 };
	char *path = path_of(jobs, job_id, "json");
	json_t *o = js_load(path, RECORD_MAX_BYTES, &err);
	struct local_job *job = o ? job_parse(o) : NULL;

	if (job_id >= jobs->next_id)
		jobs->next_id = job_id + 1;
	if (!job) {
		log_warn("%s is no record of a local job: %s", path, err.text);
	} else if (job->status.phase == JOB_HELD) {
		job_forget(jobs, job_id);
		job_free(job);
	} else {
		if (job->status.phase == JOB_RUNNING && !job->proc.pid)
			find_process(jobs, job);
		job->next = jobs->first;
		jobs->first = job;
	}
	json_decref(o);
	free(path);
}

static int load_all(struct local_jobs *jobs, struct err *err)
{
	DIR *dir = opendir(jobs->folder);
	struct dirent *entry;

	if (!dir)
		return err_errno(err, "%s", jobs->folder);
	while ((entry = readdir(dir))) {
		char *end;
		unsigned long job_id = strtoul(entry->d_name, &end, 10);

		if (job_id > 0 && job_id < UINT32_MAX && strcmp(end, ".json") == 0)
			load_record(jobs, (uint32_t)job_id);
	}
	closedir(dir);
	return 0;
}

static char *counter_path(const struct local_jobs *jobs)
{
	return path_join("%s/next_id", jobs->folder);
}

int local_jobs_init(struct local_jobs *jobs, const char *folder, struct err *err)
{
	char *path, *text;

	memset(jobs, 0, sizeof(*jobs));
	jobs->folder = xstrdup(folder);
	jobs->next_id = 1;
	if (folder_make(folder, 0700, err) || load_all(jobs, err))
		return -1;
	path = counter_path(jobs);
	text = file_read(path, 64, NULL, NULL);
	if (text && strtoul(text, NULL, 10) > jobs->next_id)
		jobs->next_id = (uint32_t)strtoul(text, NULL, 10);
	free(text);
	free(path);
	local_jobs_refresh(jobs);
	return 0;
}

void local_jobs_fini(struct local_jobs *jobs)
{
	while (jobs->first) {
		struct local_job *job = jobs->first;

		jobs->first = job->next;
		job_free(job);
	}
	free(jobs->folder);
}

/* The counter is on disk before its value is used: ids never repeat. */
static int draw_id(struct local_jobs *jobs, uint32_t *job_id, struct err *err)
{
	char *path = counter_path(jobs), text[16];
	int len = snprintf(text, sizeof(text), "%u\n", jobs->next_id + 1);
	int rc = file_write_atomic(path, text, (size_t)len, 0600, err);

	free(path);
	if (rc)
		return -1;
	*job_id = jobs->next_id++;
	return 0;
}

static char **env_copy(char *const *env, uint32_t job_id)
{
	size_t count = 0;
	char **copy;

	while (env && env[count])
		count++;
	copy = xcalloc(count + 3, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(env[i]);
	copy[count] = xasprintf("LB_LOCK_FD=%d", LOCAL_LOCK_FD);
	copy[count + 1] = xasprintf("LB_JOB_ID=%u", job_id);
	return copy;
}

struct local_job *local_jobs_add(struct local_jobs *jobs, const struct job_request *request,
				 struct err *err)
{
	struct local_job *job;
	uint32_t job_id;

	if (draw_id(jobs, &job_id, err))
		return NULL;
	job = job_create(request->token, request->ledger_id, job_id);
	job->status.ref.submit_time = now_seconds();
	job->script_path = xstrdup(request->script_path);
	job->workdir = xstrdup(request->workdir);
	job->output = xstrdup(request->output);
	job->env = env_copy(request->env, job_id);
	if (local_job_save(jobs, job, err)) {
		job_free(job);
		return NULL;
	}
	job->next = jobs->first;
	jobs->first = job;
	return job;
}

struct local_job *local_jobs_find_id(struct local_jobs *jobs, uint32_t job_id)
{
	struct local_job *job = jobs->first;

	while (job && job->status.ref.job_id != job_id)
		job = job->next;
	return job;
}

struct local_job *local_jobs_find(struct local_jobs *jobs, const struct job_ref *ref)
{
	struct local_job *job = local_jobs_find_id(jobs, ref->job_id);

	if (!job || job->status.ref.submit_time != ref->submit_time ||
	    strcmp(job->status.ref.token, ref->token) != 0)
		return NULL;
	return job;
}
