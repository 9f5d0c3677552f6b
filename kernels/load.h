/* SPDX-License-Identifier: MIT */
/* load.h - the backends: which table of the CPU's, and the one that lives in a library of its
 * own. */
#ifndef KERNELS_LOAD_H
#define KERNELS_LOAD_H

#include "kernels/backend.h"

/* The table of the CPU, for the instructions that it has (LB_CPU_ISA: for fewer of them). */
const struct backend *backend_cpu(void);

/* The table of liblbcuda.so, which lies beside the program or in ../lib/lowbits (LB_CUDA_LIBRARY:
 * exactly there). NULL with a line in why[BACKEND_TEXT_BYTES]. It stays open for good. */
const struct backend *backend_load_cuda(char *why);

#endif
