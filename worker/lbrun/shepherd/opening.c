/* SPDX-License-Identifier: MIT */
/* opening.c - the beginning of an attempt, parameters, claim and all parts of the shepherd, and
 * its end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "worker/lbrun/shepherd/predecessor.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"

enum { EXIT_BROKEN = 70, JOB_START_MAX_MS = 24 * 3600 * 1000 };

/* --- all parts -------------------------------------------------------------------------------- */

static void on_bad_checkpoint(void *arg, const char *path, int64_t step, bool is_suspect,
			      const char *why)
{
	struct shepherd *s = arg;
	struct told_checkpoint bad = {
		.path = path, .layout = "", .step = step, .bytes = -1, .text = why
	};

	output_say(&s->output, "checkpoint skipped: %s", why);
	if (is_suspect) /* it is whole: a person may choose it */
		journal_note(&s->journal, s->facts.launch.number, "checkpoint_suspect", "%s", why);
	else
		record_checkpoint(s, &bad);
}

static void say(void *arg, const char *text)
{
	output_say(arg, "%s", text);
}

static int open_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&set);
	for (const int *signo = (const int[]){ SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1,
					       SIGUSR2, SIGCONT, 0 };
	     *signo; signo++)
		sigaddset(&set, *signo);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Slurm made out.log by the job's umask; what a trainer prints is for its owner and the team. A
 * file that somebody else named is as they want it. */
static void close_output(const struct shepherd *s)
{
	char *path = path_join("%s/out.log", s->folder);
	struct stat ours, out;

	if (fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) && lstat(path, &ours) == 0 &&
	    ours.st_ino == out.st_ino && ours.st_dev == out.st_dev && out.st_uid == geteuid() &&
	    (out.st_mode & 0027))
		fchmod(STDOUT_FILENO, out.st_mode & 0640);
	free(path);
}

static void open_parts(struct shepherd *s)
{
	const char *rank = getenv("SLURM_PROCID");
	char *spool = path_join("%s/spool.jsonl", s->folder);
	struct err why = { 0 };

	output_init(&s->output, STDOUT_FILENO, s->node, rank ? (int)strtol(rank, NULL, 10) : 0);
	close_output(s);
	script_output_open(s, rank ? (int)strtol(rank, NULL, 10) : 0);
	journal_open(&s->journal, spool, s->params.lbd_socket, s->params.run);
	s->journal.say = say;
	s->journal.arg = &s->output;
	free(spool);
	saves_open(s);
	staging_open(s);
	search_init(&s->search);
	s->search.on_bad = on_bad_checkpoint;
	s->search.arg = s;
	record_attempt_start(s);
	launch_listen(s);
	trainer_protocol_init(s);
	if (trainer_protocol_read_output(s, &why) < 0) {
		output_say(&s->output, "output is not read: %s", why.text);
		journal_note(&s->journal, 0, "output_not_read", "%s", why.text);
	}
	s->errors.on_bytes = s->output.on_bytes;
	s->errors.arg = s->output.arg;
}

/* --- the claim -------------------------------------------------------------------------------- */

static enum claim_state take_claim(struct shepherd *s, struct err *why)
{
	claim_of_this_process(&s->claim, s->params.token);
	if (failpoint(FP_CLAIM_BEFORE, why) == 0 &&
	    attempt_claim_take(s->folder, &s->claim, why) == 0) {
		failpoint(FP_CLAIM_TAKEN, NULL);
		return CLAIM_OURS;
	}
	return why->code == ERR_LOCKED ? CLAIM_TAKEN : CLAIM_FAILED;
}

/* The attempt cannot even begin. Only the one who would have had the claim may say so. */
static void record_broken(const struct shepherd *s, const char *text)
{
	struct attempt_exit e = { .cause = CAUSE_LAUNCH_FAIL,
				  .exit_code = -1,
				  .time_ms = clock_wall_ms() };
	struct attempt_claim held;

	if (attempt_claim_read(s->folder, &held, NULL) == 0)
		return;
	snprintf(e.token, sizeof(e.token), "%s", s->params.token);
	snprintf(e.text, sizeof(e.text), "%s", text);
	attempt_exit_write(s->folder, &e, NULL);
}

/* What Slurm did before lbrun, a prolog mostly, in whole seconds; older releases do not tell. */
static int64_t ms_of_job(void)
{
	const char *start = getenv("SLURM_JOB_START_TIME");
	int64_t ms = start ? clock_wall_ms() - 1000 * strtoll(start, NULL, 10) : 0;

	return ms > 0 && ms < JOB_START_MAX_MS ? ms : 0;
}

void opening_claim(struct shepherd *s)
{
	struct err why = { 0 };

	s->facts.claim = take_claim(s, &why);
	if (s->facts.claim == CLAIM_FAILED) {
		log_error("cannot claim the attempt: %s", why.text);
		record_broken(s, "the attempt could not be claimed");
		s->status = EXIT_BROKEN;
	}
	if (s->facts.claim != CLAIM_OURS)
		return;
	meters_start(s);
	heartbeats_start(s);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	open_parts(s);
	switch_watch_open(s);
	s->facts.claimed_ms = clock_mono_ms();
	starting_begin(&s->starting, STARTING_FENCE, s->facts.claimed_ms);
	starting_spent(&s->starting, STARTING_JOB, ms_of_job());
	s->facts.was_node_lost = predecessor_may_write(s->params.run_dir, s->params.number,
						       saves_task(s), &s->claim);
	if (s->params.preflight_ms > 0)
		s->facts.checks_failed = preflight_failed_before(s->params.run_dir,
								 s->params.number);
}

/* --- before and after ------------------------------------------------------------------------- */

static int read_params(struct shepherd *s, struct err *err)
{
	const struct attempt_params *p = &s->params;

	if (attempt_params_read(s->folder, &s->params, err) < 0)
		return -1;
	s->rules = checkpoint_rules_create(p->layout, p->pattern, p->complete_when, err);
	return s->rules ? 0 : err_wrap(err, "checkpoint");
}

int opening_read(struct shepherd *s, const char *folder)
{
	struct err why = { 0 };

	s->folder = s->orders_folder = folder;
	s->node = node_name();
	if (read_params(s, &why) < 0) {
		log_error("%s", why.text);
		return EXIT_BROKEN;
	}
	pruning_open(&s->pruning, &s->params);
	s->policy = (struct shepherd_policy){
		.params = &s->params,
		.is_srun = launcher_is_srun(&s->params),
		.in_slurm = getenv("SLURM_JOB_ID"),
		.finds_own = checkpoint_rules_is_own(s->rules),
	};
	if (s->policy.is_srun)
		s->policy.lease_ms = beat_lease_ms(s->params.watch.node_ms);
	shepherd_begin(&s->facts, &s->policy);
	allocation_open(&s->allocation, s->params.spare_nodes);
	s->facts.newest_claim = attempt_newest_claim(s->params.run_dir);
	s->facts.handed = &s->handed;
	s->facts.stop_text = s->stop_text;
	s->facts.trouble = s->trouble;
	s->facts.check_text = s->preflight.text;
	s->signal_fd = open_signals();
	return 0;
}

void opening_undo(struct shepherd *s)
{
	switch_watch_close(s);
	search_stop(&s->search);
	free(s->preflight.folder);
	usage_close(&s->usage);
	stage_close(&s->stage);
	allocation_close(&s->allocation);
	cache_close(&s->cache);
	journal_close(&s->journal);
	output_parser_fini(&s->parser);
	complaints_fini(&s->complaints);
	ranks_reset(&s->ranks);
	saves_close(s);
	pruning_close(&s->pruning);
	attempt_params_clear(&s->params);
}
