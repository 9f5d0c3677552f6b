/* SPDX-License-Identifier: MIT */
/* local_jobs.c - see local_jobs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
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
#include "slurm/sbatch_values.h"

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
	free(gpus);
	free(cpus);
}

static const struct { const char *key; size_t offset; } task_numbers[] = {
	{ "array_index", offsetof(struct local_task, index) },
	{ "array_count", offsetof(struct local_task, count) },
	{ "array_min", offsetof(struct local_task, lowest) },
	{ "array_max", offsetof(struct local_task, highest) },
	{ "array_step", offsetof(struct local_task, step) },
	{ "array_limit", offsetof(struct local_task, limit) },
};

static void add_task(json_t *o, const struct local_task *task)
{
	if (task->array_id == 0)
		return;
	js_set_int(o, "array_id", task->array_id);
	for (size_t i = 0; i < sizeof(task_numbers) / sizeof(task_numbers[0]); i++)
		js_set_int(o, task_numbers[i].key,
			   *(const int64_t *)((const char *)task + task_numbers[i].offset));
}

typedef int (*file_writer)(const char *path, const void *data, size_t len, mode_t mode,
			   struct err *err);

static int record_write(const struct local_jobs *jobs, const struct local_job *job,
			file_writer write_file, struct err *err)
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
	add_task(o, &job->task);
	js_set_int(o, "start", st->start_time);
	js_set_int(o, "end", st->end_time);
	js_set_str(o, "cause", cause_name(st->cause));
	js_set_int(o, "exit_code", st->exit_code);
	js_set_int(o, "signal", st->signal);
	text = js_line(o);
	rc = write_file(path, text, strlen(text), 0600, err);
	free(text);
	free(path);
	json_decref(o);
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
		rc = record_write(jobs, job, is_array ? file_write_visible : file_write_atomic, err);
	}
	for (job = jobs->first; is_array && job && rc == 0; job = job->next)
		if (local_job_is(job, ref))
			rc = record_sync(jobs, job, err);
	return is_array && rc == 0 ? folder_sync(jobs->folder, err) : rc;
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
}

static void parse_task(const json_t *o, struct local_task *task)
{
	task->array_id = (uint32_t)js_int(o, "array_id", 0);
	for (size_t i = 0; i < sizeof(task_numbers) / sizeof(task_numbers[0]); i++)
		*(int64_t *)((char *)task + task_numbers[i].offset) =
			js_int(o, task_numbers[i].key, 0);
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
	parse_task(o, &job->task);
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

/* With its record. */
static void job_remove(struct local_jobs *jobs, struct local_job *job)
{
	struct local_job **at = &jobs->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job_forget(jobs, job->status.ref.job_id);
	job_free(job);
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
	int64_t long_ago = now_seconds() - KEEP_ENDED_SECONDS;
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
		job_free(job);
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

static struct local_job *job_of_request(const struct job_request *request, uint32_t job_id)
{
	struct local_job *job = job_create(request->token, request->ledger_id, job_id);

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
	return job;
}

/* What lies between two indices, where it is the same everywhere; else 1, as in Slurm. */
static int64_t step_of(const struct sbatch_indices *tasks)
{
	int64_t step = tasks->count > 1 ? tasks->items[1] - tasks->items[0] : 1;

	for (size_t i = 2; i < tasks->count; i++)
		if (tasks->items[i] - tasks->items[i - 1] != step)
			return 1;
	return step;
}

/* The output of each task is its own. */
static void make_task(struct local_job *job, const struct sbatch_indices *tasks, uint32_t array_id,
		      size_t at)
{
	const char *name = strrchr(job->output, '/');
	char *output;

	job->task = (struct local_task){
		.array_id = array_id, .index = tasks->items[at], .count = (int64_t)tasks->count,
		.lowest = tasks->items[0], .highest = tasks->items[tasks->count - 1],
		.step = step_of(tasks), .limit = tasks->limit,
	};
	output = path_join("%.*s/task-%lld%s", (int)(name - job->output), job->output,
			   (long long)job->task.index, name);
	free(job->output);
	job->output = output;
}

/* Adds one job, or one task for each index; on failure, too, they are in the list. */
static int add_all(struct local_jobs *jobs, const struct job_request *request,
		   const struct sbatch_indices *tasks, uint32_t first_id, struct err *err)
{
	size_t count = tasks->count ? tasks->count : 1;
	int64_t now = now_seconds();
	struct job_ref ref;

	for (size_t i = 0; i < count; i++) {
		struct local_job *job = job_of_request(request, first_id + (uint32_t)i);

		job->status.ref.submit_time = now;
		if (tasks->count)
			make_task(job, tasks, first_id, i);
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
	uint32_t first_id;
	int rc;

	if (request->array && sbatch_array(request->array, LOCAL_ARRAY_MAX, &tasks, err))
		return NULL;
	rc = draw_ids(jobs, tasks.count ? (uint32_t)tasks.count : 1, &first_id, err);
	if (rc == 0 && (rc = add_all(jobs, request, &tasks, first_id, err)))
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

bool local_job_is(const struct local_job *job, const struct job_ref *ref)
{
	const struct job_ref *own = &job->status.ref;
	uint32_t known_as = job->task.array_id ? job->task.array_id : own->job_id;

	return known_as == ref->job_id && own->submit_time == ref->submit_time &&
	       strcmp(own->token, ref->token) == 0;
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

size_t local_jobs_together(struct local_job *const *sorted, size_t count)
{
	size_t n = 1;

	while (n < count && sorted[0]->task.array_id != 0 &&
	       sorted[n]->task.array_id == sorted[0]->task.array_id)
		n++;
	return n;
}

/* One that ends comes after those that wait: with all of them the array would be over. */
static int weight_of(const struct job_status *task)
{
	static const int weights[JOB_PHASE_COUNT] = {
		[JOB_RUNNING] = 4, [JOB_PENDING] = 3, [JOB_HELD] = 2, [JOB_ENDING] = 1,
	};

	return weights[task->phase];
}

static bool has_failed(const struct job_status *task)
{
	return task->phase >= JOB_ENDING && task->cause != CAUSE_COMPLETED;
}

void local_jobs_fold(struct local_job *const *tasks, size_t count, struct job_status *out)
{
	const struct job_status *shown = &tasks[0]->status, *failed = NULL;
	int64_t start = 0, end = 0;

	for (size_t i = 0; i < count; i++) {
		const struct job_status *task = &tasks[i]->status;

		if (weight_of(task) > weight_of(shown))
			shown = task;
		if (!failed && has_failed(task))
			failed = task;
		if (task->start_time > 0 && (start == 0 || task->start_time < start))
			start = task->start_time;
		if (task->end_time > end)
			end = task->end_time;
	}
	*out = *shown;
	if (tasks[0]->task.array_id == 0)
		return;
	out->ref.job_id = tasks[0]->task.array_id;
	out->start_time = start;
	out->end_time = out->phase >= JOB_ENDING ? end : 0;
	if (out->phase < JOB_ENDING || !failed)
		return;
	out->cause = failed->cause;
	out->exit_code = failed->exit_code;
	out->signal = failed->signal;
}
