/* SPDX-License-Identifier: MIT */
/* reasons.h - why a job waits: Slurm's number for it, its name and a sentence. Pure. */
#ifndef SLURM_REASONS_H
#define SLURM_REASONS_H

#include <stdbool.h>
#include <stdint.h>

enum { SLURM_REASON_TEXT_BYTES = 200 };

/* The name of a number that only a newer Slurm knows. */
#define SLURM_REASON_UNKNOWN "UnknownReason"
/* Slurm has none for a job that has begun and does not run. */
#define SLURM_REASON_SUSPENDED "Suspended"
/* nor for one that has nodes which still boot */
#define SLURM_REASON_CONFIGURING "Configuring"

/* As squeue prints it: "Resources"; "" for "none". */
const char *slurm_reason_name(uint32_t number);
/* 0 for what is no such name. */
uint32_t slurm_reason_from_word(const char *word);
/* Of what squeue prints, which is what Slurm has to say besides instead of the word, or behind it:
 * "ReqNodeNotAvail, UnavailableNodes:n2". What is none of these has the name SLURM_REASON_UNKNOWN. */
uint32_t slurm_reason_told(const char *text);

/* What such a name means to the person who waits: half a sentence, without a full stop. Behind ":"
 * or "," more may stand ("Resources: 1 of 4 GPUs free"), which is left out. */
void slurm_reason_text(const char *reason, char out[SLURM_REASON_TEXT_BYTES]);

/* Does such a job wait for what is the same wherever and for however long it would run: a job, a
 * license? Slurm's plans for other places know nothing of that. */
bool slurm_reason_is_everywhere(const char *reason);

/* A limit of accounting, as "scontrol show assoc_mgr" has its figures. */
struct slurm_limit {
	bool is_qos;      /* else of the association: the account, or the user in it */
	char key[40];     /* "GrpTRES", "MaxJobsPU", "MaxWallPJ" */
	const char *tres; /* of GrpTRES and the like: "cpu"; "gres/", of any; NULL: none */
	const char *what; /* "CPUs" */
	bool is_minutes;  /* times minutes, or a time */
};

/* False: this reason is no limit with figures. */
bool slurm_reason_limit(const char *reason, struct slurm_limit *out);

#endif
