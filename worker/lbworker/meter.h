/* SPDX-License-Identifier: MIT */
/* meter.h - how fast a step was, against what the model needs and what the machine can do.
 *
 * Floating-point operations of a token, forward and backward, by two conventions:
 *   PaLM    6 M + 12 L D T  (Chowdhery et al. 2022, appendix B): attention as if it saw all T tokens
 *   causal  6 M +  6 L D T: it sees half of them
 * M parameters in matrix products (the head, not the embedding table), L layers, D = heads * width
 * of a head, T tokens in a sequence. Recomputation does not count. MFU is PaLM's unless it says
 * causal, as everywhere else. */
#ifndef LBWORKER_METER_H
#define LBWORKER_METER_H

#include <stdint.h>

#include "worker/lbworker/model.h"

struct meter {
	double palm_flop, causal_flop;	/* a token */
	double peak_flops;		/* a second, 0: not known */
};

/* The peak is `peak_tflops` where that is above 0; otherwise fp32 multiply-adds are measured for a
 * few hundredths of a second on `threads` threads (0: all we may run on). */
void meter_init(struct meter *meter, const struct model *model, double peak_tflops,
		int64_t threads);

/* Share of the peak, NAN when that is not known. */
double meter_mfu(const struct meter *meter, double flop_per_token, double tokens_per_s);

/* Highest resident memory of this process so far, in bytes. */
uint64_t meter_memory_bytes(void);

#endif
