/* SPDX-License-Identifier: MIT */
/* load.h - backends that live in a library of their own, opened at run time. */
#ifndef KERNELS_LOAD_H
#define KERNELS_LOAD_H

#include "kernels/backend.h"

/* The table of liblbcuda.so, which lies beside the program or in ../lib/lowbits (LB_CUDA_LIBRARY:
 * exactly there). NULL with a line in why[BACKEND_TEXT_BYTES]. It stays open for good. */
const struct backend *backend_load_cuda(char *why);

#endif
