/* SPDX-License-Identifier: MIT */
/* fma_peak.c - fma_peak [threads] prints the fp32 FMA rate of this machine, now, in GFLOP/s. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/machine/peak.h"

enum { TRIES = 4 }; /* other programs take their share: the best of a few is the machine's */

int main(int argc, char **argv)
{
	int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
	double best = 0;

	for (int i = 0; i < TRIES; i++) {
		double rate = peak_fma_flops(threads);

		best = rate > best ? rate : best;
	}
	if (best == 0) {
		fputs("fma_peak: needs a CPU with AVX2 and FMA, and a few threads at most\n",
		      stderr);
		return 2;
	}
	printf("%.0f\n", best * 1e-9);
	return 0;
}
