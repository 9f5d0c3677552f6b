/* SPDX-License-Identifier: MIT */
/* convert/ - weights written once more: in another type, for other programs.
 *
 * convert.h - a model of Hugging Face, of Meta or LitGPT, or the weights of a checkpoint of ours,
 * to one folder with config.json and model.safetensors that both can read, or back to the files of
 * others (torch/foreign.h). Weights trained with u-muP become those of a plain model: each times
 * its multiplier. */
#ifndef LBWORKER_CONVERT_H
#define LBWORKER_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/families/shape.h"
#include "worker/lbworker/torch/foreign.h"

/* A type of elements that can be asked for. */
struct convert_type {
	const char *name; /* "float32", "bfloat16", "float16" */
	enum st_type type;
	size_t bytes;
};
/* NULL when there is none of that name. */
const struct convert_type *convert_type_named(const char *name);

/* All borrowed. */
struct convert_order {
	const char *from, *to;
	const char *base;    /* the model that `from` was trained from; NULL: none, or not known */
	const char *adapter; /* a folder; NULL: none */
	size_t parts;        /* of Meta's */
	bool moments;
	const struct convert_type *type;
	const struct foreign_layout *layout; /* NULL: that of Hugging Face */
	uint64_t max_bytes;                  /* of a file's data */
	const struct model_flavor *flavor;   /* of a checkpoint that does not say its shape */
	const char *file;                    /* of `from`, that has the weights; NULL: the usual */
};

/* Reads `from`, and writes the new folder `to`, which appears whole or not at all; says on stdout
 * how much it was. 0, or -1 with err and nothing there. */
int convert(const struct convert_order *order, struct err *err);

/* The same with nothing but a type, of what was trained from `base` (may be NULL). */
int convert_model(const char *from, const char *base, const char *to, const char *dtype,
		  struct err *err);

#endif
