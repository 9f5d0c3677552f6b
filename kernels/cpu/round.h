/* SPDX-License-Identifier: MIT */
/* round.h - rounding to a format in vectors (formats/grid.h), and random numbers for it. */
#ifndef KERNELS_CPU_ROUND_H
#define KERNELS_CPU_ROUND_H

#include "kernels/cpu/cpu.h"
#include "kernels/formats/grid.h"

/* words[i] = random_word(stream, first + i). random.c */
void random_words(uint32_t *words, const struct random_stream *stream, uint64_t first,
		  size_t count);

#endif
