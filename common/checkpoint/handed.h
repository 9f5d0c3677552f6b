/* SPDX-License-Identifier: MIT */
/* handed.h - which checkpoints were handed to the trainer, and what became of that.
 *
 * One that led to a failure before any new step is suspect: it may be whole and yet no good. The
 * next launch takes the one before. What is known lies in runs/NAME/resumes.json, written before
 * each launch, so that neither the end of a job nor the death of lbrun forgets it. */
#ifndef COMMON_CHECKPOINT_HANDED_H
#define COMMON_CHECKPOINT_HANDED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/checkpoints.h"

enum { HANDED_MAX = 64 };
#define HANDED_FILE "resumes.json"

struct handed_item {
	char *path;
	uint64_t stamp;   /* written again it is another one */
	int64_t step;     /* -1 = not known */
	int64_t failures; /* of launches from it, by the trainer's own fault, before any new step */
	char text[200];   /* how the last of them ended; "" = none did */
};

struct handed {
	char *file;
	bool is_first;        /* nothing was ever launched in this run */
	int64_t launches;     /* since the beginning, or since a person wanted to begin there */
	bool has_had;         /* some checkpoint was valid once */
	bool has_steps;       /* the trainer tells steps */
	bool has_rolled_back; /* after training diverged; once */
	bool is_own_reported; /* that the trainer finds its checkpoints itself */
	int64_t generation;   /* times that a person chose where to start from */
	int64_t first_told,
		/* oldest and newest step that any launch told first and last; -1 = none */
		best_told;
	struct handed_item items[HANDED_MAX];
	int count;
};

/* `name`: of the file below run_dir. What cannot be read counts as never written. */
void handed_load(struct handed *h, const char *run_dir, const char *name);
int handed_save(struct handed *h, struct err *err);
void handed_clear(struct handed *h);
/* A person chose where to start from: what was held against any of them is forgotten, and what a
 * node still has of before is none of the run's any more. */
void handed_forget(struct handed *h);

/* Before a launch from this one; saved by the caller. */
void handed_begin(struct handed *h, const char *path, uint64_t stamp, int64_t step);
/* It got to a new step: nothing is held against it, nor against those of earlier steps. */
void handed_good(struct handed *h, const char *path, uint64_t stamp);
/* The trainer's own failure before any new step. */
void handed_failed(struct handed *h, const char *path, uint64_t stamp, const char *text);

/* It led to a failure of the trainer's own. The death of lbrun, of the node or of the job says
 * nothing of it, however often. NULL = it is not suspect. */
const struct handed_item *handed_suspect(const struct handed *h, const char *path, uint64_t stamp);
/* Sets is_suspect of all in a checked list. */
void handed_mark(const struct handed *h, struct checkpoint_list *list);
/* "PATH: is suspect: …", for people; owned by the caller. NULL = it is not. */
char *handed_why(const struct handed *h, const struct checkpoint *c);

#endif
