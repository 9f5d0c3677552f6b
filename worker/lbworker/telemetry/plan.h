/* SPDX-License-Identifier: MIT */
/* plan.h - what a training takes before it starts: bytes by class, arithmetic per token, and how
 * fast a device could be at the very best. */
#ifndef LBWORKER_PLAN_H
#define LBWORKER_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "worker/lbworker/config/config.h"

struct plan {
	struct model_cost cost;                            /* of our slice */
	struct model_cost whole;                           /* of the whole model */
	uint64_t weights, gradients, moments, activations; /* bytes on the device */
	uint64_t few_bits; /* of the activations: codes, their scales, operands made of them */
	uint64_t sums;     /* bytes that gradients of several ranks are added up in */
	uint64_t widest;   /* bytes of the weights that are used together at most */
	/* weights are two halves, of which products, and other ranks, want the upper one */
	bool are_split;
	bool is_fast;        /* ranks add up their own passes first: gradients stay whole */
	uint64_t codes;      /* of weights that go to other ranks as such */
	uint64_t checkpoint; /* bytes of host memory that one is written from */
	int64_t tokens;      /* in a step, once the batch is full */
	/* Forward and backward of one token. Of N parameters that are multiplied, with L layers of
	 * width D and T tokens: 6 N + 12 L D T (Chowdhery et al. 2022, PaLM), and with the half
	 * of attention that a causal mask leaves: 6 N + 6 L D T. */
	double flop_palm, flop_causal;
	double flop_handbook; /* 6 N of all parameters, 8 N with every layer again (meter.h) */
	double flop_again;    /* causal; what activation checkpointing adds */
};

static inline double gib(double bytes)
{
	return bytes / (double)((uint64_t)1 << 30);
}

/* A device by its data sheet. */
struct plan_device {
	const char *name, *about;
	double flops;              /* per second: dense matrix products */
	double bytes_per_s, bytes; /* of its memory */
	int capability;            /* 90: 9.0 */
};

/* Bytes on a GPU for operands of few bits. */
uint64_t plan_few_bits(const struct config *config);
/* A line on the products of few bits in the first step: how many the device's matrix units make of
 * the codes themselves, how many are emulated (or, with quantize.only_faster, stay as they are),
 * and why. Nothing where there are none. Sizes are those of a model in one piece. */
void plan_few_bits_print(const struct config *config, const struct plan_device *device, FILE *to);

int plan_make(struct plan *out, const struct config *config, struct err *err);
/* What one of several ranks takes: its part of each class by the stage, and what sums of gradients
 * are made in. */
void plan_share(struct plan *plan, const struct config_mesh *mesh);

/* For people: what each of `ranks` takes and sends, as the config shares the model; then every
 * other way of sharing it among them, and what fits on `device` (NULL: an 80 GB one). */
int plan_print_ranks(const struct config *config, int ranks, const struct plan_device *device,
		     FILE *to, struct err *err);
uint64_t plan_bytes(const struct plan *plan); /* on the device, all classes */

/* NULL when there is none of that name; names (if not NULL) then lists all. */
const struct plan_device *plan_device_find(const char *name, const char **names);

/* The one whose name is a word of a device's description; NULL: none that we know. */
const struct plan_device *plan_device_of(const char *description);

/* Tokens per second that no program can exceed: all arithmetic at the full rate, the optimizer's
 * bytes at the full bandwidth, nothing else at all. */
double plan_ceiling(const struct plan *plan, const struct plan_device *device);

/* For people; one device, or all of the table with NULL. */
void plan_print(const struct plan *plan, const struct config *config,
		const struct plan_device *device, FILE *to);

/* -1 with numbers when `available` bytes do not suffice. copy: what the one for checkpoints takes
 * of the same memory; 0: it lies elsewhere. */
int plan_fits(const struct plan *plan, uint64_t copy, uint64_t available, struct err *err);

#endif
