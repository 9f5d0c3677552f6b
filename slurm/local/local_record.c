/* SPDX-License-Identifier: MIT */
/* local_record.c - a job of the local scheduler as JSON, and back. */
#include <stddef.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/strv.h"
#include "slurm/local/local_jobs.h"

enum { RECORD_VERSION = 1 };

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

static const struct {
	const char *key;
	size_t offset;
} task_numbers[] = {
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

char *local_record_text(const struct local_job *job)
{
	const struct job_status *st = &job->status;
	json_t *o = json_object();
	char *text;

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
	json_decref(o);
	return text;
}

static void parse_env(const json_t *o, struct local_job *job)
{
	const json_t *list = json_object_get(o, "env");
	struct strv env = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++) {
		char *entry = js_bytes_take(json_array_get(list, i));

		if (entry)
			strv_add(&env, entry);
	}
	job->env = env.items;
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
		*(int64_t *)((char *)task + task_numbers[i].offset) = js_int(o, task_numbers[i].key,
									     0);
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
	int64_t age_ms;

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
	age_ms = clock_wall_ms() - 1000 * job->status.start_time;
	job->began_ms = clock_mono_ms() - (age_ms > 0 ? age_ms : 0);
	job->status.end_time = js_int(o, "end", 0);
}

struct local_job *local_record_parse(const json_t *o)
{
	const char *token = js_str(o, "token", "");
	enum job_phase phase = phase_from_word(js_str(o, "phase", ""));
	int64_t job_id = js_int(o, "job_id", 0);
	struct local_job *job;

	if (js_int(o, "version", 0) != RECORD_VERSION || strlen(token) != TOKEN_HEX ||
	    phase == JOB_PHASE_COUNT || job_id <= 0 || job_id > UINT32_MAX)
		return NULL;
	job = local_job_create(token, js_str(o, "ledger_id", ""), (uint32_t)job_id);
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
		local_job_free(job);
		return NULL;
	}
	return job;
}
