/* SPDX-License-Identifier: MIT */
/* local_jobs.c - the folder of the local scheduler's jobs, and the list of them in memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/needs.h"
#include "slurm/batch/sbatch_values.h"

enum { RECORD_MAX_BYTES = 1 << 20, KEEP_ENDED_SECONDS = 600 };

static char *path_of(const struct local_jobs *jobs, uint32_t job_id, const char *suffix)
{
	return path_join("%s/%u.%s", jobs->folder, job_id, suffix);
}

static void job_forget(const struct local_jobs *jobs, uint32_t job_id)
{
	char *record = path_of(jobs, job_id, "json"), *lock = path_of(jobs, job_id, "lock");

	unlink(record);
	unlink(lock);
	free(record);
	free(lock);
}

/* --- records ---------------------------------------------------------------------------------- */
typedef int (*file_writer)(const char *path, const void *data, size_t len, mode_t mode,
			   struct err *err);

static int record_write(const struct local_jobs *jobs, const struct local_job *job,
			file_writer write_file, struct err *err)
{
	char *path = path_of(jobs, job->status.ref.job_id, "json"), *text = local_record_text(job);
	int rc = write_file(path, text, strlen(text), 0600, err);

	free(text);
	free(path);
	return rc;
}

int local_job_save(const struct local_jobs *jobs, const struct local_job *job, struct err *err)
{
	return record_write(jobs, job, file_write_atomic, err);
}

static int record_sync(const struct local_jobs *jobs, const struct local_job *job, struct err *err)
{
	char *path = path_of(jobs, job->status.ref.job_id, "json");
	int rc = file_sync(path, err);

	free(path);
	return rc;
}

/* All are written before the first is synced: a journal takes them in one. */
int local_jobs_save(const struct local_jobs *jobs, const struct job_ref *ref, struct err *err)
{
	const struct local_job *job;
	bool is_array = false;
	int rc = 0;

	for (job = jobs->first; job && rc == 0; job = job->next) {
		if (!local_job_is(job, ref))
			continue;
		is_array = job->task.array_id != 0;
		rc = record_write(jobs, job, is_array ? file_write_visible : file_write_atomic,
				  err);
	}
	for (job = jobs->first; is_array && job && rc == 0; job = job->next)
		if (local_job_is(job, ref))
			rc = record_sync(jobs, job, err);
	return is_array && rc == 0 ? folder_sync(jobs->folder, err) : rc;
}

/* --- liveness --------------------------------------------------------------------------------- */
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

/* With its record. */
static void job_remove(struct local_jobs *jobs, struct local_job *job)
{
	struct local_job **at = &jobs->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job_forget(jobs, job->status.ref.job_id);
	local_job_free(job);
}

/* Removes every job, or whole array, of which this is true. */
static void remove_where(struct local_jobs *jobs,
			 bool (*is_over)(struct local_job *const *tasks, size_t count))
{
	size_t all, n;
	struct local_job **list = local_jobs_sorted(jobs, &all);

	for (size_t i = 0; i < all; i += n) {
		n = local_jobs_together(list + i, all - i);
		if (!is_over(list + i, n))
			continue;
		for (size_t task = i; task < i + n; task++)
			job_remove(jobs, list[task]);
	}
	free(list);
}

static bool is_long_ended(struct local_job *const *tasks, size_t count)
{
	int64_t long_ago = clock_wall_ms() / 1000 - KEEP_ENDED_SECONDS;
	bool is = true;

	for (size_t i = 0; i < count && is; i++)
		is = tasks[i]->status.phase == JOB_ENDED && tasks[i]->status.end_time <= long_ago;
	return is;
}

void local_jobs_forget(struct local_jobs *jobs)
{
	remove_where(jobs, is_long_ended);
}

/* lbd died while it wrote the records of an array: the caller was never told of it. */
static bool is_partial(struct local_job *const *tasks, size_t count)
{
	bool is_held = true;

	for (size_t i = 0; i < count; i++)
		is_held = is_held && tasks[i]->status.phase == JOB_HELD;
	if (!is_held || tasks[0]->task.array_id == 0 || (int64_t)count >= tasks[0]->task.count)
		return false;
	log_info("local array %u was not fully submitted: dropped", tasks[0]->task.array_id);
	return true;
}

/* … or while it wrote down their release. */
static void release_the_rest(struct local_jobs *jobs)
{
	size_t all, n;
	struct local_job **list = local_jobs_sorted(jobs, &all);

	for (size_t i = 0; i < all; i += n) {
		bool is_released = false;

		n = local_jobs_together(list + i, all - i);
		for (size_t task = i; task < i + n; task++)
			is_released = is_released || list[task]->status.phase == JOB_PENDING ||
				      list[task]->status.phase == JOB_RUNNING;
		for (size_t task = i; task < i + n && is_released; task++)
			if (list[task]->status.phase == JOB_HELD)
				local_job_wait(list[task]);
	}
	free(list);
}

/* --- all of them ------------------------------------------------------------------------------ */
static void load_record(struct local_jobs *jobs, uint32_t job_id)
{
	struct err err = { 0 };
	char *path = path_of(jobs, job_id, "json");
	json_t *o = js_load(path, RECORD_MAX_BYTES, &err);
	struct local_job *job = o ? local_record_parse(o) : NULL;

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
	remove_where(jobs, is_partial);
	release_the_rest(jobs);
	local_jobs_forget(jobs);
	return 0;
}

void local_jobs_fini(struct local_jobs *jobs)
{
	while (jobs->first) {
		struct local_job *job = jobs->first;

		jobs->first = job->next;
		local_job_free(job);
	}
	free(jobs->folder);
}

/* The counter is on disk before its value is used: ids never repeat. */
static int draw_ids(struct local_jobs *jobs, uint32_t count, uint32_t *first, struct err *err)
{
	char *path = counter_path(jobs), text[16];
	int len = snprintf(text, sizeof(text), "%u\n", jobs->next_id + count);
	int rc = file_write_atomic(path, text, (size_t)len, 0600, err);

	free(path);
	if (rc)
		return -1;
	*first = jobs->next_id;
	jobs->next_id += count;
	return 0;
}

static struct local_job *job_of_request(const struct job_request *request,
					const struct needs *needs, uint32_t job_id)
{
	struct local_job *job = local_job_create(request->token, request->ledger_id, job_id);
	struct strv env = { 0 };

	job->script_path = xstrdup(request->script_path);
	job->workdir = js_bytes_take(json_object_get(request->fields, "work_dir"));
	job->output = xstrdup(request->output);
	strv_add_all(&env, request->open_env ? request->open_env : request->env);
	job->env = env.items;
	job->env_file = request->env_file ? xstrdup(request->env_file) : NULL;
	job->env_uid = request->env_uid;
	job->wants = needs->slots;
	job->time_seconds = needs->time_seconds;
	job->warn_seconds = needs->warn_seconds;
	return job;
}

/* Adds one job, or one task for each index; on failure, too, they are in the list. */
static int add_all(struct local_jobs *jobs, const struct job_request *request,
		   const struct needs *needs, const struct sbatch_indices *tasks, uint32_t first_id,
		   struct err *err)
{
	size_t count = tasks->count ? tasks->count : 1;
	int64_t now = clock_wall_ms() / 1000;
	struct job_ref ref;

	for (size_t i = 0; i < count; i++) {
		struct local_job *job = job_of_request(request, needs, first_id + (uint32_t)i);

		job->status.ref.submit_time = now;
		if (tasks->count)
			local_job_make_task(job, tasks, first_id, i);
		job->next = jobs->first;
		jobs->first = job;
	}
	ref = jobs->first->status.ref;
	ref.job_id = first_id;
	return local_jobs_save(jobs, &ref, err);
}

struct local_job *local_jobs_add(struct local_jobs *jobs, const struct job_request *request,
				 struct err *err)
{
	struct sbatch_indices tasks = { 0 };
	struct needs needs;
	uint32_t first_id;
	int rc;

	if (needs_read(request->fields, &needs, err) ||
	    (needs.array && sbatch_array(needs.array, LOCAL_ARRAY_MAX, &tasks, err)))
		return NULL;
	rc = draw_ids(jobs, tasks.count ? (uint32_t)tasks.count : 1, &first_id, err);
	if (rc == 0 && (rc = add_all(jobs, request, &needs, &tasks, first_id, err)))
		while (jobs->first && jobs->first->status.ref.job_id >= first_id)
			job_remove(jobs, jobs->first);
	free(tasks.items);
	return rc ? NULL : local_jobs_find_id(jobs, first_id);
}

struct local_job *local_jobs_find_id(struct local_jobs *jobs, uint32_t job_id)
{
	struct local_job *job = jobs->first;

	while (job && job->status.ref.job_id != job_id)
		job = job->next;
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
