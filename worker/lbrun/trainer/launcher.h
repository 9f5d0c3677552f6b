/* SPDX-License-Identifier: MIT */
/* launcher.h - the words that start the trainer's ranks, and where they meet.
 *
 *   none       COMMAND
 *   srun       srun … lbrun --rank -- COMMAND                    once per task
 *   torchrun   torchrun … lbrun --rank -- COMMAND                on one node
 *              srun … lbrun --node K -- torchrun … lbrun --rank -- COMMAND
 *   profiler   in front of COMMAND, or of torchrun; it has an lbrun in front of itself
 *
 * A small lbrun stands in front of each rank, on its node: it prefixes what the rank prints, hands
 * signals on and lets nothing of it live on. */
#ifndef LBRUN_TRAINER_LAUNCHER_H
#define LBRUN_TRAINER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/attempt_params.h"

/* where the ranks of a launch find each other */
struct meeting {
	char host[256]; /* MASTER_ADDR */
	int64_t port;   /* MASTER_PORT */
	int64_t nodes;
};

bool launcher_is_srun(const struct attempt_params *p);

/* More than one process may be started: the trainer's output has prefixes, MASTER_ADDR is set. */
bool launcher_has_ranks(const struct attempt_params *p);
/* A lbrun --rank stands in front of the trainer, and says whose line each is. */
bool launcher_has_shepherds(const struct attempt_params *p);

/* The first host of the job: MASTER_ADDR and MASTER_PORT where the environment has them, else this
 * one by the name that others know it by, and a port that nobody listens on; `seed` makes it
 * another one for each launch. */
void meeting_choose(struct meeting *m, int64_t seed);

/* Of the job that we are in. */
int64_t launcher_nodes(void);
/* More than that no launcher starts in it, whatever a script asks for. */
int64_t launcher_most_ranks(void);

/* NULL-terminated, each owned by the caller. `self`: path of lbrun. `socket_folder`: what ranks in
 * a container have to see besides; NULL: nothing. */
char **launcher_argv(const struct attempt_params *p, const struct meeting *m, const char *self,
		     const char *socket_folder);

/* The words that check the job's nodes, with reports into `folder`; lbworker lies beside `self`. On
 * several nodes by srun, outside of containers, one rank a node where the trainer is not started by
 * srun. *is_srun: srun runs it, and its output has prefixes. */
char **launcher_check_argv(const struct attempt_params *p, const char *self, const char *folder,
			   bool *is_srun);

#endif
