/* SPDX-License-Identifier: MIT */
/* accounting_lines.h - what sacct's lines say of jobs. */
#ifndef SLURM_ACCOUNTING_LINES_H
#define SLURM_ACCOUNTING_LINES_H

#include <jansson.h>
#include <stdbool.h>

#include "slurm/scheduler.h"

/* What is asked for, with --parsable2 and times in seconds since the epoch. sacct takes 128 off an
 * exit status of 128 and more (print_fields of sacct/print.c): such a code is not what the job
 * returned. */
#define ACCOUNTING_FIELDS "JobID,State,ExitCode,Reason,Start,End,NodeList,Submit"

/* What all that sacct printed says of this job, or of an array's tasks: *found stands for all of
 * it, *body (owned) is {"cancelled":[…],"known":[task…],"more":bool,"nodes":names}, "cancelled" as
 * in a poll (wire.h), with who did it, "more": some of it is not over; *found borrows its names of
 * nodes from there. False: nothing of it is over. */
bool accounting_read(const char *text, const struct job_ref *job, struct job_status *found,
		     json_t **body);

#endif
