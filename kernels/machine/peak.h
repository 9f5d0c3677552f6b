/* SPDX-License-Identifier: MIT */
/* peak.h - the fp32 fused-multiply-add rate of this machine, now: the ceiling of a trainer on
 * it. */
#ifndef KERNELS_MACHINE_PEAK_H
#define KERNELS_MACHINE_PEAK_H

/* Operations a second of `threads` threads (0: one for each core we may run on), the best of
 * several rounds that take some 10 ms each, one thread by its own CPU time; 0 when the CPU has no
 * FMA or threads cannot be started. */
double peak_fma_flops(int threads);

#endif
