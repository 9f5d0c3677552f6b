/* SPDX-License-Identifier: MIT */
/* trainer_env.c - takes variables that were meant for another job out of the environment. */
#include "common/run/trainer_env.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void trainer_env_forget(void)
{
	static const char *const names[] = {
		TRAINER_JOB_VARIABLE, "LB_SOCKET",      "LB_ATTEMPT",
		"LB_LAUNCH",          "LB_RANK",        "LB_MTBF_S",
		"LB_CHECKPOINT_DIR",  "LB_RESUME_FROM", "LB_SHARED_DIR",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

void trainer_env_forget_inherited(void)
{
	const char *meant = getenv(TRAINER_JOB_VARIABLE), *job = getenv("SLURM_JOB_ID");

	if (meant && job && strcmp(meant, job) != 0)
		trainer_env_forget();
}
