/* SPDX-License-Identifier: MIT */
/* meter.h - how fast a step was, against what the model needs and what the machine can do.
 *
 * Floating-point operations of a token, forward and backward, by two conventions:
 *   PaLM    6 M + 12 L D T  (Chowdhery et al. 2022, appendix B): attention as if it saw all T
 * tokens causal  6 M +  6 L D T: it sees half of them 6 N     of all N parameters, and 8 N where
 * every layer is computed again: the handbooks' rule of thumb (Bekman, Machine Learning
 * Engineering, after Narayanan et al. 2021), a cross-check M parameters in matrix products (the
 * head, not the embedding table), L layers, D = heads * width of a head, T tokens in a sequence.
 * Of experts those count that a token goes to. Recomputation does not count. MFU is PaLM's unless
 * it says causal, as everywhere else. */
#ifndef LBWORKER_METER_H
#define LBWORKER_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/lbworker/model/model.h"

struct token_flop {
	double palm, causal;
	double handbook;       /* 6 N */
	double handbook_again; /* 8 N */
};
struct token_flop meter_flop(const struct model_shape *shape, uint64_t parameters,
			     uint64_t multiplied, size_t seq);

struct meter {
	const struct model *model; /* borrowed */
	uint64_t most_held_bytes;
	struct token_flop flop;
	double peak_flops; /* a second, 0: not known */
	/* How it was measured, threads times at once, setting *busy when others took of the time;
	 * NULL: it was not, or it is not to be measured again. */
	double (*measure)(int threads, bool *busy);
	int threads;
	double times;
	int tries; /* left, while what was measured first is in doubt */
};

/* What shares are of: what all ranks that train together can do. What is measured is measured here,
 * and all have it so many times. */
struct meter_peak {
	double tflops;   /* of all; 0: it is measured */
	int64_t threads; /* to measure with on the CPU; 0: all we may run on */
	double times;
};

/* Measuring takes a few hundredths of a second: on the CPU fp32 multiply-adds, on a GPU its best
 * matrix product in the model's compute type. */
void meter_init(struct meter *meter, const struct model *model, const struct meter_peak *peak);

/* A step was computed at `flops` a second, by all. A peak below that cannot be, and one that was
 * measured on a busy machine need not be: both are measured again, and the highest counts. True
 * when the peak is another one now. */
bool meter_hold_against(struct meter *meter, double flops);

/* Share of the peak, NAN when that is not known. */
double meter_mfu(const struct meter *meter, double flop_per_token, double tokens_per_s);

/* The most so far, in bytes: of a GPU's memory what we hold there, by the times that its driver was
 * asked, which is no call for each step; else what was resident of this process. */
uint64_t meter_memory_bytes(struct meter *meter, bool asks);

#endif
