/* SPDX-License-Identifier: MIT */
/* attempt.h - the small files of an attempt's folder, runs/NAME/attempts/N/.
 *
 *   attempt.json  written by lbd before the job exists: all that lbrun must know
 *                 (attempt_params.h); holds no secrets
 *   job.sh        the batch script: lbrun is its interpreter, and its second line names this folder
 *   claim         taken once by the first lbrun (link(2)); who else comes exits 0 untouched
 *   spool.jsonl   progress (spool.h)
 *   out.log       output of the job; every line with its [host:rank]
 *   exit.json     lbrun's last act, after its last child is dead: what ended the attempt
 *   unheard/NODE  of a launch on several nodes: nobody answered NODE's heartbeats, and its ranks
 *                 have ended. Where most nodes say so and lbrun is silent, its node is lost, and
 *                 lbd, who reads this, goes on elsewhere
 *
 * All carry "version"; a reader refuses only a newer one. */
#ifndef COMMON_RUN_ATTEMPT_H
#define COMMON_RUN_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/base/names.h"
#include "common/run/run_state.h"

#define ATTEMPT_JOB_MARK "#LB attempt " /* begins the line of job.sh that names the folder */

struct attempt_claim {
	char token[TOKEN_HEX + 1];
	char job_id[32];       /* SLURM_JOB_ID, or the local job's; "" = none */
	int64_t restart_count; /* SLURM_RESTART_COUNT */
	char host[65];
	char boot_id[37];
	int64_t pid;
	int64_t time_ms;
};

struct attempt_exit {
	char token[TOKEN_HEX + 1];
	enum cause cause;
	int exit_code;           /* -1 = none */
	int signal;              /* 0 = none */
	bool is_final;           /* a relaunch would meet the same: only a person can help */
	bool is_node;            /* a node is to blame, not the run: its nodes were checked */
	bool left_ranks;         /* on other nodes, that may run until nobody answers them */
	bool is_unclear;         /* of an array: only the scheduler knows why some tasks ended */
	enum run_order switched; /* the switch file that ended it; ORDER_RUN = none did */
	int64_t launches;
	int64_t last_seq; /* lines in the spool */
	int64_t time_ms;
	char text[512]; /* one line for people */
};

struct attempt_unheard {
	char token[TOKEN_HEX + 1];
	int64_t launch, nodes; /* of this launch, which is on so many nodes */
	int64_t silent_ms;     /* so long nobody had answered */
};

/* ERR_LOCKED when somebody holds it already. */
int attempt_claim_take(const char *folder, const struct attempt_claim *claim, struct err *err);
/* ERR_NOT_FOUND when nobody does. */
int attempt_claim_read(const char *folder, struct attempt_claim *out, struct err *err);

int attempt_exit_write(const char *folder, const struct attempt_exit *e, struct err *err);
int attempt_exit_read(const char *folder, struct attempt_exit *out, struct err *err);

int attempt_unheard_write(const char *folder, const char *node, const struct attempt_unheard *u,
			  struct err *err);
int attempt_unheard_read(const char *folder, const char *node, struct attempt_unheard *out,
			 struct err *err);

/* The highest attempt number below runs/NAME/attempts that has a claim, 0 if none: an lbrun whose
 * own number is lower is fenced and must end its trainer. */
int64_t attempt_newest_claim(const char *run_dir);

#endif
