/* SPDX-License-Identifier: MIT */
/* instructions.h - the vector instructions that this CPU has and that we use. */
#ifndef KERNELS_MACHINE_INSTRUCTIONS_H
#define KERNELS_MACHINE_INSTRUCTIONS_H

#include <stdbool.h>

/* Each has all that the ones before it have. Other machines than x86 have one set, called base. */
enum instructions { INSTRUCTIONS_BASE, INSTRUCTIONS_AVX2, INSTRUCTIONS_AVX512, INSTRUCTIONS_VNNI };

/* The last of them that the CPU has and that LB_CPU_ISA (base, avx2, avx512, vnni) does not rule
 * out. VNNI: AVX-512 and its products of bytes. */
enum instructions instructions_used(void);

/* Whether LB_CPU_ISA is unset or one of its words. */
bool instructions_are_known(void);

#endif
