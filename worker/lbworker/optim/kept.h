/* SPDX-License-Identifier: MIT */
/* kept.h - what an optimizer keeps from step to step, in the memory of the device. */
#ifndef LBWORKER_KEPT_H
#define LBWORKER_KEPT_H

#include "worker/lbworker/model/model.h"

enum { KEPT_WINDOW = 1 << 20 };

struct kept {
	/* moments (NULL with options.is_base), in the layout of the weights, as
	 * model->options.moments says; with 8 bits scales lie behind the codes, from
	 * kept_scales_at() on */
	void *m, *v;
	struct model_unit
		without_v; /* parameters whose v takes no memory and is not read: Muon's */
	float *mean;       /* of the weights over steps; NULL but with options.averaged */
	uint16_t *lost;    /* of bf16 weights, in bf16; NULL but with WEIGHTS_KAHAN */
	float *window[2];  /* MOMENTS_8BIT: KEPT_WINDOW of each moment in fp32; else NULL */
	float *work;       /* what Muon works in; else NULL */
};

/* Bytes of one moment, and of all that AdamW keeps. */
size_t kept_moment_bytes(enum moments kind, size_t parameters);
size_t kept_bytes(const struct model_options *options, size_t parameters);
size_t kept_lost_bytes(const struct model *model);
/* Of `count` moments from element `first` on (a multiple of MOMENTS_SHARE with 8 bits), without
 * scales: where they lie, in bytes. */
size_t kept_at(enum moments kind, size_t first);
size_t kept_scales_at(size_t parameters);
static inline size_t kept_scales(size_t count)
{
	return (count + MOMENTS_SHARE - 1) / MOMENTS_SHARE;
}

/* Zeroed; own[units]: what of each unit is ours, NULL: all; by_muon: Muon updates the matrices of
 * layers. -1 without memory; undo with kept_free either way. */
int kept_make(struct kept *kept, const struct model *model, const struct model_unit *own,
	      bool by_muon);
void kept_free(struct kept *kept, const struct model *model);

/* The maps of torchao's and bitsandbytes' 8-bit moments: of m, which has a sign, and of v. */
const float *kept_map(bool is_signed);

#endif
