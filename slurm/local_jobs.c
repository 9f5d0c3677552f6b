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

static void env_drop(struct local_job *job)
{
	for (char **e = job->env; e && *e; e++)
		free(*e);
	free(job->env);
	job->env = NULL;
}

static void job_free(struct local_job *job)
{
	env_drop(job);
	free(job->env_file);
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

void local_job_hold(struct local_job *job)
{
	set_phase(job, JOB_HELD, "HELD");
	snprintf(job->status.reason, sizeof(job->status.reason), "JobHeldUser");
}

void local_job_wait(struct local_job *job)
{
	set_phase(job, JOB_PENDING, "PENDING");
	snprintf(job->status.reason, sizeof(job->status.reason), "Priority");
}

void local_job_run(struct local_job *job)
{
	set_phase(job, JOB_RUNNING, "RUNNING");
	job->status.reason[0] = '\0';
	job->status.start_time = now_seconds();
	env_drop(job);
}

void local_job_ending(struct local_job *job, enum cause cause, int exit_code, int signal)
{
	set_phase(job, JOB_ENDING, "COMPLETING");
	job->status.cause = job->is_cancelled	? CAUSE_KILLED :
			    job->is_timed_out	? CAUSE_TIMEOUT :
						  cause;
	job->status.exit_code = exit_code;
	job->status.signal = signal;
	job->status.end_time = now_seconds();
	job->status.reason[0] = '\0';
	job->is_child = false;
	job->ending_since_ms = clock_mono_ms();
	env_drop(job);
}

void local_job_ended(struct local_job *job)
{
	set_phase(job, JOB_ENDED, "ENDED");
	job->gpus = 0;
	CPU_ZERO(&job->cpus);
}

bool local_job_holds(const struct local_job *job)
{
	return job->status.phase == JOB_RUNNING || job->status.phase == JOB_ENDING;
}

/* --- records ------------------------------------------------------------------------------- */
static const char *const phase_words[JOB_PHASE_COUNT] = {
	"held", "pending", "released", "ending", "ended",
};

static enum job_phase phase_from_word(const char *word)
{
	for (int i = 0; i < JOB_PHASE_COUNT; i++)
		if (strcmp(phase_words[i], word) == 0)
			return (enum job_phase)i;
	return JOB_PHASE_COUNT;
}

static void add_env(json_t *o, const struct local_job *job)
{
	json_t *list = json_array();

	for (char **e = job->env; e && *e; e++)
		json_array_append_new(list, js_bytes(*e));
	json_object_set_new(o, "env", list);
	if (job->env_file)
		json_object_set_new(o, "env_file", js_bytes(job->env_file));
	js_set_int(o, "env_uid", job->env_uid);
}

static void add_slots(json_t *o, const struct local_job *job)
{
	char *gpus = gpus_text(job->gpus), *cpus = cpus_text(&job->cpus);

	js_set_int(o, "want_gpus", job->wants.gpus);
	js_set_int(o, "want_cpus", job->wants.cpus);
	js_set_int(o, "want_mem_mb", job->wants.mem_mb);
	js_set_str(o, "gpus", gpus);
	js_set_str(o, "cpus", cpus);
	js_set_int(o, "time_seconds", job->time_seconds);
	js_set_int(o, "warn_seconds", job->warn_seconds);
	js_set_int(o, "array_id", job->array_id);
	js_set_int(o, "array_index", job->array_index);
	js_set_int(o, "array_limit", job->array_limit);
	free(gpus);
	free(cpus);
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
	js_set_str(o, "phase", phase_words[st->phase]);
	json_object_set_new(o, "script", js_bytes(job->script_path));
	json_object_set_new(o, "workdir", js_bytes(job->workdir));
	json_object_set_new(o, "output", js_bytes(job->output));
	js_set_int(o, "pid", job->proc.pid);
	js_set_int(o, "start_ticks", job->proc.start_ticks);
	js_set_str(o, "boot_id", job->proc.boot_id);
	js_set_bool(o, "cancelled", job->is_cancelled);
	js_set_bool(o, "timed_out", job->is_timed_out);
	add_env(o, job);
	add_slots(o, job);
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
	local_job_hold(job);
	return job;
}

static void parse_env(const json_t *o, struct local_job *job)
{
	const json_t *list = json_object_get(o, "env");
	size_t count = 0;

	job->env = xcalloc(json_array_size(list) + 1, sizeof(*job->env));
	for (size_t i = 0; i < json_array_size(list); i++)
		if ((job->env[count] = js_bytes_take(json_array_get(list, i))))
			count++;
	job->env_file = js_bytes_take(json_object_get(o, "env_file"));
	job->env_uid = (unsigned)js_int(o, "env_uid", 0);
}

static void parse_slots(const json_t *o, struct local_job *job)
{
	job->wants.gpus = js_int(o, "want_gpus", 0);
	job->wants.cpus = js_int(o, "want_cpus", 0);
	job->wants.mem_mb = js_int(o, "want_mem_mb", 0);
	job->gpus = gpus_parse(js_str(o, "gpus", ""));
	cpus_parse(js_str(o, "cpus", ""), &job->cpus);
	job->time_seconds = js_int(o, "time_seconds", 0);
	job->warn_seconds = js_int(o, "warn_seconds", 0);
	job->array_id = (uint32_t)js_int(o, "array_id", 0);
	job->array_index = js_int(o, "array_index", 0);
	job->array_limit = js_int(o, "array_limit", 0);
}

static void parse_process(const json_t *o, struct local_job *job)
{
	job->proc.pid = js_int(o, "pid", 0);
	job->proc.start_ticks = js_int(o, "start_ticks", 0);
	snprintf(job->proc.boot_id, sizeof(job->proc.boot_id), "%s", js_str(o, "boot_id", ""));
	job->is_cancelled = js_bool(o, "cancelled", false);
	job->is_timed_out = js_bool(o, "timed_out", false);
}

static void parse_phase(const json_t *o, struct local_job *job, enum job_phase phase)
{
	if (phase == JOB_PENDING)
		local_job_wait(job);
	if (phase == JOB_RUNNING)
		local_job_run(job);
	if (phase >= JOB_ENDING)
		local_job_ending(job, cause_from_name(js_str(o, "cause", "lost")),
				 (int)js_int(o, "exit_code", -1), (int)js_int(o, "signal", 0));
	if (phase == JOB_ENDED)
		local_job_ended(job);
	job->status.start_time = js_int(o, "start", 0);
	job->status.end_time = js_int(o, "end", 0);
}

static struct local_job *job_parse(const json_t *o)
{
	const char *token = js_str(o, "token", "");
	enum job_phase phase = phase_from_word(js_str(o, "phase", ""));
	int64_t job_id = js_int(o, "job_id", 0);
	struct local_job *job;

	if (js_int(o, "version", 0) != RECORD_VERSION || strlen(token) != TOKEN_HEX ||
	    phase == JOB_PHASE_COUNT || job_id <= 0 || job_id > UINT32_MAX)
		return NULL;
	job = job_create(token, js_str(o, "ledger_id", ""), (uint32_t)job_id);
	job->script_path = js_bytes_take(json_object_get(o, "script"));
	job->workdir = js_bytes_take(json_object_get(o, "workdir"));
	job->output = js_bytes_take(json_object_get(o, "output"));
	job->status.ref.submit_time = js_int(o, "submit_time", 0);
	parse_env(o, job);
	parse_slots(o, job);
	parse_process(o, job);
	parse_phase(o, job, phase);
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
bool local_job_is_alive(const struct local_jobs *jobs, const struct local_job *job)
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

void local_jobs_forget(struct local_jobs *jobs)
{
	struct local_job **at = &jobs->first;
	int64_t long_ago = now_seconds() - KEEP_ENDED_SECONDS;

	while (*at) {
		struct local_job *job = *at;

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
	local_jobs_forget(jobs);
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

static char **env_copy(char *const *env)
{
	size_t count = 0;
	char **copy;

	while (env && env[count])
		count++;
	copy = xcalloc(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(env[i]);
	return copy;
}

struct slots slots_wanted(const struct job_request *r)
{
	int64_t tasks = r->ntasks_per_node > 0 ? r->ntasks_per_node : 1;

	return (struct slots){ .gpus = r->gpus_per_node, .cpus = tasks * r->cpus_per_task,
			       .mem_mb = r->mem_mb };
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
	job->env = env_copy(request->open_env ? request->open_env : request->env);
	job->env_file = request->env_file ? xstrdup(request->env_file) : NULL;
	job->env_uid = request->env_uid;
	job->wants = slots_wanted(request);
	job->time_seconds = request->time_seconds ? request->time_seconds :
						    request->time_minutes * 60;
	job->warn_seconds = request->warn_seconds;
	job->array_id = request->array_id;
	job->array_index = request->array_index;
	job->array_limit = request->array_limit;
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

static int by_number(const void *a, const void *b)
{
	const struct local_job *const *x = a, *const *y = b;
	uint32_t i = (*x)->status.ref.job_id, j = (*y)->status.ref.job_id;

	return (i > j) - (i < j);
}

struct local_job **local_jobs_sorted(const struct local_jobs *jobs, size_t *count)
{
	struct local_job **list;

	*count = 0;
	for (struct local_job *job = jobs->first; job; job = job->next)
		++*count;
	list = xcalloc(*count + 1, sizeof(struct local_job *));
	*count = 0;
	for (struct local_job *job = jobs->first; job; job = job->next)
		list[(*count)++] = job;
	if (*count > 1)
		qsort(list, *count, sizeof(struct local_job *), by_number);
	return list;
}
