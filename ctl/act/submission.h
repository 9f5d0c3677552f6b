/* SPDX-License-Identifier: MIT */
/* submission.h - what a submission is made of. */
#ifndef CTL_ACT_SUBMISSION_H
#define CTL_ACT_SUBMISSION_H

#include <jansson.h>
#include <stddef.h>

struct ctl;
struct err;
struct operands;
struct options;

/* The arguments of a submission as PROTOCOL.md lists them, a new reference, or NULL with err. */
json_t *submission(const struct ctl *ctl, struct err *err);
/* args.set from --set; -1 with err when one is no section.key=value. */
int add_settings(json_t *args, const struct options *options, struct err *err);
/* Sends it and returns the answer, a new reference, or NULL with err; takes args. With --snapshot
 * the code is copied first. */
json_t *submission_send(struct ctl *ctl, json_t *args, struct err *err);
/* What lbd has to say of a run that it took, on stderr. */
void submission_note(const struct ctl *ctl, const json_t *answer);
/* submit with --sweep (submit_sweep.c). */
int submit_sweep(struct ctl *ctl, struct err *err);

/* --- batch.c --------------------------------------------------------------------------------- */
/* What sbatch would have sent: the whole environment, limits, umask. A new reference. */
json_t *batch_environment(void);
/* "script", "script_path", "arguments" of a submission. */
void batch_add_script(json_t *args, const char *file, const char *text,
		      const struct operands *operands);
/* The same of the script that sbatch makes of --wrap=COMMAND. */
void batch_add_wrap(json_t *args, const char *command);

#endif
