/* SPDX-License-Identifier: MIT */
/* launch.c - the start of the trainer, and its last words. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/redact.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/interval.h"
#include "common/run/trainer_env.h"
#include "worker/lbrun/checkpoint/part.h"
#include "worker/lbrun/decide/judge.h"
#include "worker/lbrun/end/left_steps.h"
#include "worker/lbrun/end/reap.h"
#include "worker/lbrun/meter/meter.h"
#include "worker/lbrun/rank/rank.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"
#include "worker/lbrun/trainer/requeue.h"
#include "worker/lbrun/trainer/slurm_command.h"
#include "worker/lbrun/trainer/trainer.h"
#include "worker/lbrun/watch/nccl.h"
#include "worker/lbrun/watch/oom.h"

static const char proc_cgroup[] = "/proc/self/cgroup";
static const char cgroup_mount[] = "/sys/fs/cgroup";

/* --- what the trainer is given ---------------------------------------------------------------- */

static bool is_ours(const char *setting)
{
	static const char *const names[] = {
		"LB_SOCKET=",         "LB_RUN=",
		"LB_ATTEMPT=",        "LB_LAUNCH=",
		"LB_RUN_DIR=",        "LB_CHECKPOINT_DIR=",
		"LB_RESUME_FROM=",    "LB_RANK=",
		"LB_REQUEUE=",        "SLURM_RESTART_COUNT=",
		(METER_VARIABLE "="), (PART_VARIABLE "="),
		"LB_MTBF_S=",         (HEARTBEAT_VARIABLE "="),
		(CACHE_VARIABLE "="), (TRAINER_JOB_VARIABLE "="),
		"LB_SHARED_DIR=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (text_begins_with(setting, names[i]))
			return true;
	}
	return false;
}

/* For ranks that look there, as PyTorch's do. */
static void add_meeting(const struct meeting *m, struct strv *env)
{
	if (!getenv("MASTER_ADDR"))
		strv_add(env, xasprintf("MASTER_ADDR=%s", m->host));
	if (!getenv("MASTER_PORT"))
		strv_add(env, xasprintf("MASTER_PORT=%lld", (long long)m->port));
}

/* Between troubles of this job; published rates where lbd did not say. */
static int64_t mtbf_ms(const struct attempt_params *p)
{
	if (p->node_mtbf_ms > 0)
		return p->node_mtbf_ms / launcher_nodes();
	return (int64_t)(trouble_mtbf_s(&(struct troubles){ 0 }, (double)launcher_nodes()) * 1000);
}

/* Each rank opens that of its node. */
static char *cache_variable(const struct attempt_params *p)
{
	char *value = cache_for_ranks(p->cache, p->cache_bytes, p->cache_variables);
	char *setting = xasprintf(CACHE_VARIABLE "=%s", value);

	free(value);
	return setting;
}

static void make_env(const struct shepherd *s, const struct meeting *m, struct strv *env)
{
	char *stage, *beats;

	for (char **setting = environ; *setting; setting++) {
		if (!is_ours(*setting))
			strv_add(env, xstrdup(*setting));
	}
	/* a script has its environment as sbatch makes it, one of cron's as lbd(8) promises */
	if (!s->params.is_script && !getenv("LB_CRON"))
		nccl_recorder_env(env, s->folder);
	if (s->usage.folder && s->policy.is_srun)
		strv_add(env, xasprintf(METER_VARIABLE "=%lld:%s",
					(long long)s->params.watch.usage_ms, s->folder));
	if ((stage = stage_for_ranks(&s->stage)) != NULL)
		strv_add(env, xasprintf(PART_VARIABLE "=%s", stage));
	free(stage);
	if (s->cache.folder)
		cache_env(&s->cache, s->params.cache_variables, env);
	else if (s->params.cache && s->policy.is_srun)
		strv_add(env, cache_variable(&s->params));
	if ((beats = listener_for_ranks(&s->listener, m->host, s->facts.launch.number)) != NULL)
		strv_add(env, beats);
	if (s->params.node_mtbf_ms > 0)
		strv_add(env, xasprintf("LB_MTBF_S=%lld", (long long)mtbf_ms(&s->params) / 1000));
	if (s->server.path)
		strv_add(env, xasprintf("LB_SOCKET=%s", s->server.path));
	if (getenv("SLURM_JOB_ID"))
		strv_add(env, xasprintf(TRAINER_JOB_VARIABLE "=%s", getenv("SLURM_JOB_ID")));
	strv_add(env, xasprintf("LB_RUN=%s", s->params.run));
	strv_add(env, xasprintf("LB_ATTEMPT=%lld", (long long)s->params.number));
	strv_add(env, xasprintf("LB_LAUNCH=%lld", (long long)s->facts.launch.number));
	strv_add(env, xasprintf("LB_RUN_DIR=%s", s->params.run_dir));
	strv_add(env, xasprintf("LB_CHECKPOINT_DIR=%s", saves_folder(s)));
	if (stage_is_on(&s->stage))
		strv_add(env, xasprintf("LB_SHARED_DIR=%s", s->params.checkpoint_dir));
	if (s->search.found == 1)
		strv_add(env, xasprintf("LB_RESUME_FROM=%s", s->search.path));
	/* Slurm sets it where it requeues a job: scripts ask whether to go on from where they were,
	 * and how often they may ask for a requeue */
	if (s->handed.launches > 1 && (s->params.is_script || s->policy.in_slurm))
		strv_add(env,
			 xasprintf("SLURM_RESTART_COUNT=%lld", (long long)s->handed.launches - 1));
	if (launcher_has_ranks(&s->params))
		add_meeting(m, env);
	/* a batch script has the environment that sbatch makes, unless it says such a word */
	if (!s->params.is_script || requeue_is_meant(s->params.run_dir))
		requeue_prepare(s->folder, s->params.is_script, env);
}

static void choose_meeting(const struct shepherd *s, struct meeting *m)
{
	const char *job = getenv("SLURM_JOB_ID");

	*m = (struct meeting){ 0 };
	if (launcher_has_ranks(&s->params))
		meeting_choose(m,
			       (job ? strtoll(job, NULL, 10) : getpid()) + s->facts.launch.number);
}

static int make_argv(const struct shepherd *s, const struct meeting *m, struct strv *argv,
		     struct err *err)
{
	char self[PATH_MAX];

	if (path_own_program(self, err) < 0)
		return -1;
	argv->items = launcher_argv(&s->params, m, self, s->server.private_folder);
	while (argv->items[argv->count])
		argv->count++;
	return 0;
}

/* --- start ------------------------------------------------------------------------------------ */

static pid_t start(struct shepherd *s, struct err *err)
{
	struct strv argv = { 0 };
	struct strv env = { 0 };
	struct meeting meeting;
	bool has_prefixes = launcher_has_shepherds(&s->params);
	struct trainer_start what = { .workdir = s->params.workdir,
				      .input = s->params.is_script ? STDIN_FILENO : -1 };
	int output[2];
	pid_t pid = -1;

	choose_meeting(s, &meeting);
	listener_open(&s->listener, s->facts.launch.number);
	make_env(s, &meeting, &env);
	failpoint(FP_TRAINER_BEFORE, NULL);
	if (make_argv(s, &meeting, &argv, err) == 0) {
		what.argv = argv.items;
		what.env = env.items;
		pid = trainer_start(&what, output, err);
	}
	if (pid > 0) {
		output_attach(&s->output, 0, output[0], has_prefixes);
		output_attach(s->has_errors ? &s->errors : &s->output, 1, output[1], has_prefixes);
	}
	strv_free(argv.items);
	strv_free(env.items);
	return pid;
}

/* " (weights.dat is called like none, see docs/CHECKPOINTS.md)": what lies there all the same;
 * owned by the caller, "" = nothing. */
static char *called_otherwise(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char *text = NULL;

	while (dir && !text && (entry = readdir(dir)) != NULL)
		if (!name_is_temporary(entry->d_name))
			text = xasprintf(" (%.80s is called like none, see docs/CHECKPOINTS.md)",
					 entry->d_name);
	if (dir)
		closedir(dir);
	return text ? text : xstrdup("");
}

/* Said once: from then on the trainer is taken to know. */
static void note_own(struct shepherd *s)
{
	char *others;

	if (s->facts.launch.is_first)
		return;
	others = called_otherwise(s->params.checkpoint_dir);
	s->handed.is_own_reported = true;
	journal_note(
		&s->journal, s->facts.launch.number, "scratch",
		"no checkpoint in %s%s: the trainer starts from the beginning, unless it finds "
		"its own checkpoints (checkpoint.layout = \"own\")",
		s->params.checkpoint_dir, others);
	output_say(
		&s->output,
		"no checkpoint in %s%s: starting from the beginning, unless the trainer finds its "
		"own",
		s->params.checkpoint_dir, others);
	free(others);
}

/* Starting from nothing is right at first; later it is worth a word. */
static void note_scratch(struct shepherd *s)
{
	bool is_choice = s->facts.launch.number == 1 && strcmp(s->params.resume, "scratch") == 0;

	if (s->search.found == 1)
		return;
	if (is_choice) {
		output_say(&s->output, "asked to start from the beginning");
	} else if (s->search.text[0]) {
		journal_note(&s->journal, s->facts.launch.number, "scratch",
			     "%s in %s: the trainer starts from the "
			     "beginning",
			     s->search.text, s->params.checkpoint_dir);
		output_say(&s->output, "%s in %s: starting from the beginning", s->search.text,
			   s->params.checkpoint_dir);
	} else if (s->handed.has_had) {
		journal_note(&s->journal, s->facts.launch.number, "scratch",
			     "no checkpoint in %s: the trainer starts "
			     "from the beginning, although there had been one",
			     s->params.checkpoint_dir);
		output_say(&s->output, "no checkpoint in %s: starting from the beginning",
			   s->params.checkpoint_dir);
	} else if (!checkpoint_rules_is_own(s->rules) && !s->handed.is_own_reported) {
		note_own(s);
	}
}

/* Anew for each launch: the disk may be full by now, or have room again. Ranks that srun starts
 * open that of their node; where others start them, what we open here says nothing of the other
 * nodes. */
static void open_cache(struct shepherd *s)
{
	const struct cache_limits limits = { s->params.cache_bytes, CACHE_RESERVE_BYTES };
	struct err why = { 0 };

	cache_close(&s->cache);
	if (!s->params.cache || s->policy.is_srun)
		return;
	starting_enter(&s->starting, STARTING_CACHE, clock_mono_ms());
	if (launcher_nodes() > 1)
		err_set(&why, ERR_USAGE,
			"cache.folder: on several nodes it needs launcher \"srun\" or "
			"\"torchrun\"");
	else if (cache_open(&s->cache, s->params.cache, &limits, &why) == 0)
		return;
	output_say(&s->output, "%s" OUTPUT_PARSER_NO_CACHE, why.text);
	trainer_protocol_no_cache(s, s->node, why.text);
}

void launch_listen(struct shepherd *s)
{
	struct err why = { 0 };

	if (trainer_server_open(&s->server, s->folder, &why) == 0)
		return;
	output_say(&s->output, "trainers cannot report: %s", why.text);
	journal_note(&s->journal, s->facts.launch.number, "no_socket", "trainers cannot report: %s",
		     why.text);
}

void launch_begin(struct shepherd *s)
{
	struct launch *l = &s->facts.launch;
	struct err why = { 0 };

	open_cache(s);
	if (!trainer_server_is_there(&s->server)) {
		trainer_server_close(&s->server);
		launch_listen(s);
	}
	l->ooms_at_start = oom_kills(proc_cgroup, cgroup_mount);
	note_scratch(s);
	ranks_reset(&s->ranks);
	s->asking.every_ms = s->params.save_every_ms;
	s->asking.mtbf_ms = mtbf_ms(&s->params);
	output_parser_reset(&s->parser);
	complaints_reset(&s->complaints);
	starting_enter(&s->starting, STARTING_SILENT, clock_mono_ms());
	if (s->params.is_script)
		script_judge(s);
	l->pid = start(s, &why);
	failpoint(FP_TRAINER_STARTED, NULL);
	watch_init(&s->watch, &s->params.watch, clock_mono_ms());
	asking_begin(&s->asking, clock_mono_ms());
	record_launch_start(s);
	journal_sync(&s->journal);
	failpoint(FP_TRAINER_RECORDED, NULL);
	if (!l->is_first)
		edits_start(&s->edits, s->params.run_dir, NULL);
	if (l->pid > 0)
		return;
	l->cannot_start = true;
	l->may_start_later = err_is_passing(&why);
	launch_ended(l, 0, clock_mono_ms());
	snprintf(s->trouble, sizeof(s->trouble), "%s", why.text);
}

/* srun ends its whole step at once when it gets SIGTERM itself; scancel reaches the ranks. It may
 * fail while the controller is away: SIGKILL follows after the grace in any case. */
static void signal_steps(const char *job, const char *signal)
{
	slurm_command_start(
		(const char *[]){ "scancel", "--quiet", "--signal", signal, job, NULL });
}

void launch_term(struct shepherd *s)
{
	char *job = slurm_this_job();

	if (job && s->policy.is_srun)
		signal_steps(job, RANK_TERM_NAME);
	else if (rank_term_begin(&s->rank_term) && job)
		signal_steps(job, "TERM");
	free(job);
}

void launch_kill(struct shepherd *s)
{
	/* Ranks on nodes that srun cannot reach end, too, and those that it can end at once. */
	listener_close(&s->listener);
	/* It would wait for that node, and may end ranks before they have told that they end: it is
	 * killed once all others are quiet, or soon. */
	if (s->facts.lost_node[0] && s->facts.launch.is_heard)
		return;
	/* srun kills its step, on all nodes, and ends when that is gone; without it only the end of
	 * the job would reach the other nodes. */
	if (s->policy.is_srun) {
		kill(s->facts.launch.pid, SIGCONT);
		kill(s->facts.launch.pid, SIGTERM);
	} else {
		descendants_signal(SIGKILL);
	}
}

/* --- end -------------------------------------------------------------------------------------- */

static void weigh_memory(struct launch *l)
{
	l->ooms = oom_kills(proc_cgroup, cgroup_mount);
	l->limit_mb = oom_limit_mb(getenv("SLURM_MEM_PER_NODE"), getenv("SLURM_MEM_PER_CPU"),
				   getenv("SLURM_CPUS_ON_NODE"));
}

/* Of sruns that a script, or who else was started, had started: where srun is ours the end of the
 * job clears them. What completes ends the job, too. */
static bool may_leave_steps(const struct shepherd *s)
{
	const struct launch *l = &s->facts.launch;
	int64_t now_ms = clock_mono_ms();

	return s->policy.in_slurm && !s->policy.is_srun && s->facts.stop.why <= STOP_NODE &&
	       (l->wait_status != 0 || complaints_end_is_last(&s->complaints, now_ms) ||
		complaints_raised_last(&s->complaints, now_ms) ||
		complaints_lost_node_last(&s->complaints, now_ms));
}

static void end_left_steps(struct shepherd *s)
{
	char names[200];
	enum left_steps left = left_steps_end(s->folder, names, sizeof(names));

	s->facts.launch.has_steps = left == STEPS_STAY;
	if (left != STEPS_GONE)
		journal_note(&s->journal, s->facts.launch.number, "steps_left",
			     "%s lived on without srun%s", names,
			     left == STEPS_ENDED ? "; ended"
						 : ": only the end of the job ends that");
}

/* Where the signal before the limit is for the steps of a script, nobody else hears it. */
static bool steps_were_warned(const struct shepherd *s)
{
	/* Slurm may send it as much earlier */
	enum { EARLIER_MS = 60 * 1000 };
	int64_t left_ms;

	if (!s->policy.in_slurm || !s->params.is_script || s->params.warn_ms == 0 ||
	    s->facts.launch.wait_status != 0 || !launch_has_steps_left(&s->facts.launch))
		return false;
	left_ms = slurm_time_left_ms(s->folder);
	return left_ms >= 0 && left_ms <= s->params.warn_ms + EARLIER_MS;
}

/* Of a job without Slurm. */
static bool is_past_end(void)
{
	const char *end = getenv("LB_JOB_END_TIME");

	return end && clock_wall_ms() >= 1000 * strtoll(end, NULL, 10);
}

/* A scheduler's SIGTERM does not say what it is for. */
static bool was_limit(struct shepherd *s)
{
	if (s->facts.stop.why != STOP_SIGNALLED || s->facts.is_warned ||
	    !(s->policy.in_slurm ? slurm_is_at_limit(s->folder) : is_past_end()))
		return false;
	snprintf(s->stop_text, sizeof(s->stop_text), "the job's time limit came");
	return true;
}

/* So it is in the grace that a partition gives: a trainer that saves then, and exits with 0, is not
 * done, and one that SIGTERM kills is not started again in what is left of the job. One that has
 * told its last step is done. */
static bool steps_were_preempted(const struct shepherd *s)
{
	const struct launch *l = &s->facts.launch;
	bool may_be = l->wait_status != 0 || launch_has_steps_left(l) ||
		      (s->complaints.ends.launcher_ends && l->target_told < 0);

	return s->policy.in_slurm && s->facts.stop.why == STOP_NOT && may_be &&
	       slurm_is_preempted(s->folder);
}

void launch_drain(struct shepherd *s)
{
	struct launch *l = &s->facts.launch;

	failpoint(FP_TRAINER_ENDED, NULL);
	if (may_leave_steps(s))
		end_left_steps(s);
	listener_close(&s->listener);
	output_finish(&s->output, clock_mono_ms());
	if (s->has_errors)
		output_finish(&s->errors, clock_mono_ms());
	output_parser_end(&s->parser);
	trainer_protocol_write_left_step(s);
	trainer_server_drain(&s->server);
	trainer_server_drop_all(&s->server);
	saves_look(s, true);
	if (s->usage.folder)
		usage_look(&s->usage);
	weigh_memory(l);
	s->facts.is_warned |= steps_were_warned(s) || was_limit(s);
	l->is_preempted = steps_were_preempted(s);
	l->is_requeue_asked |= s->params.is_script && requeue_was_asked(s->folder);
	l->is_submitted = s->params.is_script && requeue_was_submitted(s->folder);
	l->rank_end = &s->complaints.ends.first;
	l->end_is_last = complaints_end_is_last(&s->complaints, clock_mono_ms());
	l->raised_last = complaints_raised_last(&s->complaints, clock_mono_ms());
	l->lost_node_last = complaints_lost_node_last(&s->complaints, clock_mono_ms());
	l->complaint = complaints_best(&s->complaints, clock_mono_ms());
}

static void tell(struct shepherd *s, bool progress)
{
	output_say(&s->output, "launch %lld ended: %s: %s%s", (long long)s->facts.launch.number,
		   cause_name(s->facts.ending.cause), s->facts.ending.text,
		   progress ? "; it made progress" : "");
}

void launch_finish(struct shepherd *s, const struct next *end)
{
	int64_t now_ms = clock_mono_ms(), ended_ms = s->facts.launch.ended_ms;

	redact(s->facts.ending.text, environ);
	saves_judge(s, end);
	record_start(s);
	record_launch_end(s, end);
	tell(s, end->made_progress);
	journal_sync(&s->journal);
	failpoint(FP_END_RECORDED, NULL);
	starting_begin(&s->starting, STARTING_CLEAR, ended_ms);
	starting_enter(&s->starting, STARTING_PAUSE, now_ms);
}
