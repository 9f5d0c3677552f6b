/* SPDX-License-Identifier: MIT */
/* predecessor.c - asks of each older attempt whether its lbrun may still live. */
#include "worker/lbrun/shepherd/predecessor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "worker/lbrun/decide/judge.h"

void claim_of_this_process(struct attempt_claim *claim, const char *token)
{
	const char *slurm = getenv("SLURM_JOB_ID"), *job = slurm ? slurm : getenv("LB_JOB_ID");
	const char *restarts = getenv("SLURM_RESTART_COUNT");
	char *boot_id = file_read("/proc/sys/kernel/random/boot_id", 64, NULL, NULL);

	*claim = (struct attempt_claim){ .pid = getpid(), .time_ms = clock_wall_ms() };
	snprintf(claim->token, sizeof(claim->token), "%s", token);
	snprintf(claim->job_id, sizeof(claim->job_id), "%s", job ? job : "");
	claim->restart_count = restarts ? strtoll(restarts, NULL, 10) : 0;
	gethostname(claim->host, sizeof(claim->host) - 1);
	if (boot_id)
		snprintf(claim->boot_id, sizeof(claim->boot_id), "%.*s",
			 (int)strcspn(boot_id, "\n"), boot_id);
	free(boot_id);
}

static bool is_known_dead(const struct attempt_claim *old, const struct attempt_claim *own)
{
	if (strcmp(old->host, own->host) != 0 || own->boot_id[0] == '\0')
		return false;
	/* The same host, booted again since. */
	if (strcmp(old->boot_id, own->boot_id) != 0)
		return true;
	return old->pid > 0 && pid_is_gone(old->pid);
}

enum verdict { NO, YES, STOP }; /* STOP: those before it are of no interest either */

struct older {
	char *attempt;                   /* its folder */
	char *folder;                    /* of our task in it; else the same */
	const struct attempt_claim *own; /* ours */
	bool began;                      /* it was claimed */
};

typedef enum verdict look_fn(struct older *old);

static enum verdict may_live(struct older *old)
{
	struct attempt_claim claim;
	struct attempt_exit ended;

	old->began = attempt_claim_read(old->folder, &claim, NULL) == 0;
	return old->began && attempt_exit_read(old->folder, &ended, NULL) < 0 &&
			       !is_known_dead(&claim, old->own)
		       ? YES
		       : NO;
}

static enum verdict may_have_ranks(struct older *old)
{
	struct attempt_claim claim;
	struct attempt_exit ended;
	bool has_ended;

	old->began = attempt_claim_read(old->folder, &claim, NULL) == 0;
	if (!old->began)
		return NO;
	has_ended = attempt_exit_read(old->folder, &ended, NULL) == 0;
	if (attempt_may_have_left_ranks(has_ended ? &ended : NULL))
		return YES;
	return ended.launches > 0 ? STOP : NO;
}

/* The first launch behind a lost node has seen to what that one may still write, unless a person
 * chose where it began. */
static bool has_seen_to(const char *attempt, const struct attempt_exit *ended)
{
	struct attempt_params params;
	bool is_newest;

	if (ended->launches != 1)
		return ended->launches > 1;
	if (attempt_params_read(attempt, &params, NULL) < 0)
		return false;
	is_newest = strcmp(params.resume, "latest") == 0;
	attempt_params_clear(&params);
	return is_newest;
}

static enum verdict may_write(struct older *old)
{
	struct attempt_exit ended;

	if (may_live(old) == YES)
		return YES;
	if (!old->began || attempt_exit_read(old->folder, &ended, NULL) < 0)
		return NO;
	if (ended.cause == CAUSE_NODE_FAIL)
		return YES;
	return has_seen_to(old->attempt, &ended) ? STOP : NO;
}

static bool is_any(const char *run_dir, int64_t number, const char *task,
		   const struct attempt_claim *own, look_fn *look)
{
	int64_t least = number - OLDER_LOOKS;
	enum verdict verdict = NO;
	int looked = 0;

	for (int64_t n = number - 1; n >= 1 && n >= least && looked < OLDER_DEPTH && verdict == NO;
	     n--) {
		struct older old = { .own = own };

		old.attempt = path_join("%s/attempts/%lld", run_dir, (long long)n);
		old.folder = task ? path_join("%s/task-%s", old.attempt, task)
				  : xstrdup(old.attempt);
		verdict = look(&old);
		looked += old.began;
		free(old.folder);
		free(old.attempt);
	}
	return verdict == YES;
}

bool predecessor_may_live(const char *run_dir, int64_t number, const char *task,
			  const struct attempt_claim *own)
{
	return is_any(run_dir, number, task, own, may_live);
}

bool predecessor_may_have_ranks(const char *run_dir, int64_t number, const char *task,
				const struct attempt_claim *own)
{
	return is_any(run_dir, number, task, own, may_have_ranks);
}

bool predecessor_may_write(const char *run_dir, int64_t number, const char *task,
			   const struct attempt_claim *own)
{
	return is_any(run_dir, number, task, own, may_write);
}
