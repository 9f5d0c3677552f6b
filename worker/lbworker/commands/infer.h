/* SPDX-License-Identifier: MIT */
/* infer.h - what eval and generate have in common: their command line, and a model to ask. */
#ifndef LBWORKER_INFER_H
#define LBWORKER_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/base/device.h"
#include "worker/lbworker/model/model.h"

/* borrowed words; 0 or NULL: not given */
struct infer_arguments {
	const char *model, *data, *logits, *prompt, *prompt_tokens, *tokenizer;
	const char *begin, *text, *choices, *scores;
	int64_t seq_len, samples, tokens, seed, top_k;
	bool averaged; /* the mean of weights that a training kept, not the last ones */
	bool no_cache; /* each token from all before it anew */
	double temperature, top_p;
	enum device_choice device;
	enum compute compute;
};

/* argv[0] says which of the two; an option of the other one is refused. */
int infer_parse(struct infer_arguments *arguments, int argc, char **argv, struct err *err);

struct infer {
	char *folder;    /* that `model` means: model_path.h */
	char *tokenizer; /* a file: as asked for, or the model's own; NULL: there is none */
	struct opened on;
	struct model_shape shape;
	struct model_options options;
	struct model *model;
};

/* The shape and the sequence alone, before anything takes time or memory. */
int infer_read(struct infer *infer, const struct infer_arguments *arguments, struct err *err);
/* The device and the weights, after infer_read. */
int infer_open(struct infer *infer, const struct infer_arguments *arguments, struct err *err);
void infer_close(struct infer *infer); /* whatever came of the two above */

#endif
