/* SPDX-License-Identifier: MIT */
/* pipe/ - what the helpers share that speak with lbd over a pipe (slurm/wire.h): the loop of
 * requests, answers, and Slurm's commands as child processes.
 *
 * serve.h - a helper's life: requests in on stdin, answers out on stdout. */
#ifndef SLURM_PIPE_SERVE_H
#define SLURM_PIPE_SERVE_H

#include "slurm/pipe/answer.h"

struct op {
	const char *name;                                     /* "submit"; NULL ends the table */
	void (*run)(const json_t *request, struct answer *a); /* sets *a */
};

/* The whole of main: one operation at a time, one thread, until lbd goes. `version` is what
 * --version prints. Each operation may block for as long as Slurm likes: lbd holds the deadline and
 * the SIGKILL. Returns the exit status. */
int serve(const char *program, const char *version, const struct op *ops, int argc, char **argv);

#endif
