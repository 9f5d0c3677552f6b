/* SPDX-License-Identifier: MIT */
/* predecessor.c - asks of each older attempt whether its lbrun may still live. */
#include "worker/lbrun/shepherd/predecessor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/paths.h"

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
	return old->pid > 0 && kill((pid_t)old->pid, 0) < 0 && errno == ESRCH;
}

/* *began: it was claimed. */
static bool may_live(const char *folder, const struct attempt_claim *own, bool *began)
{
	struct attempt_claim old;
	struct attempt_exit ended;

	*began = attempt_claim_read(folder, &old, NULL) == 0;
	return *began && attempt_exit_read(folder, &ended, NULL) < 0 && !is_known_dead(&old, own);
}

bool predecessor_may_live(const char *run_dir, int64_t number, const struct attempt_claim *own)
{
	int64_t least = number - OLDER_LOOKS;
	bool lives = false, began;
	int looked = 0;

	for (int64_t n = number - 1; n >= 1 && n >= least && looked < OLDER_DEPTH && !lives; n--) {
		char *folder = path_join("%s/attempts/%lld", run_dir, (long long)n);

		lives = may_live(folder, own, &began);
		looked += began;
		free(folder);
	}
	return lives;
}
