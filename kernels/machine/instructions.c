/* SPDX-License-Identifier: MIT */
/* instructions.c - what the CPU has, narrowed by LB_CPU_ISA: to measure or to repeat on one machine
 * what another one does. */
#include "kernels/machine/instructions.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[] = {
	[INSTRUCTIONS_BASE] = "base",
	[INSTRUCTIONS_AVX2] = "avx2",
	[INSTRUCTIONS_AVX512] = "avx512",
	[INSTRUCTIONS_VNNI] = "vnni",
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

static enum instructions of_cpu(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
		return __builtin_cpu_supports("avx512vnni") ? INSTRUCTIONS_VNNI
							    : INSTRUCTIONS_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return INSTRUCTIONS_AVX2;
#endif
	return INSTRUCTIONS_BASE;
}

/* WORDS: unset, or none of them. */
static int wished(const char *text)
{
	int i = 0;

	while (i < WORDS && !(text && strcmp(text, words[i]) == 0))
		i++;
	return i;
}

enum instructions instructions_used(void)
{
	enum instructions have = of_cpu();
	int most = wished(getenv("LB_CPU_ISA"));

	return most < (int)have ? (enum instructions)most : have;
}

bool instructions_are_known(void)
{
	const char *text = getenv("LB_CPU_ISA");

	return !text || wished(text) < WORDS;
}
