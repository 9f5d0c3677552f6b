/* SPDX-License-Identifier: MIT */
/* checkpoint_copy.h - what a checkpoint is written from, and its files. Private to
 * checkpoint_copy.c, checkpoint_files.c and checkpoint.c. */
#ifndef LBWORKER_CHECKPOINT_COPY_H
#define LBWORKER_CHECKPOINT_COPY_H

#include "worker/lbworker/checkpoint/checkpoint.h"

struct checkpoint_copy {
	const struct model *model; /* the whole one: names and shape only */
	const struct model *here;  /* what there is of it on this rank, and its device */
	struct train_state state;
	float *weights, *moment[2]; /* one allocation, which starts at weights */
	/* whose values and moments lie at `adapters`; or NULL: then those of all weights do */
	const struct lora *lora;
	const char *base; /* borrowed, as all of the parts */
	float *adapters;
	float *mean;    /* behind them, of weights; NULL: none is kept */
	uint16_t *lost; /* behind that; NULL: none is kept */
	bool is_narrow; /* moments are still bf16, at the start of their room */
	const struct tokenizer_file *tokenizer; /* borrowed; or NULL */
	float *amax;   /* of past steps, for delayed scaling; NULL: there is none */
	char *choices; /* of the device; NULL: it makes none */
};

/* All bytes are here, in fp32; any thread may wait for that. */
int checkpoint_copy_complete(struct checkpoint_copy *copy, struct err *err);

enum { CHECKPOINT_FILES_MAX = 8 };
/* The files that it becomes: their names, in the order in which a manifest lists them; returns how
 * many. */
size_t checkpoint_files(const struct checkpoint_copy *copy,
			const char *names[CHECKPOINT_FILES_MAX]);
/* Writes them all into a folder. */
int checkpoint_files_write(const struct checkpoint_copy *copy, const char *folder, struct err *err);

#endif
