/* SPDX-License-Identifier: MIT */
/* ops.c - every operation of the CUDA backend against the CPU's, tensor by tensor.
 *
 *   ops [--seed N] [--rounds N] [--large] [--fp32] [--deterministic] [--only OPERATION]
 *
 * Shapes and values are drawn anew each round: odd sizes, one row, a vocabulary that is a multiple
 * of nothing. What an operation must write holds NaN before. Inputs are rounded to bf16 for both
 * sides in bf16, so what differs is the operation alone. |got - want| <= absolute + relative |want|
 * is asked of every element; each line tells the worst one. The library is the one that the trainer
 * would open, so LB_CUDA_LIBRARY may name the emulated one. Exit 77: there is no GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/load.h"
#include "tests/gpu/suite.h"

enum { NO_GPU = 77 };

static const struct {
	const char *name;
	void (*run)(struct suite *s);
} operations[] = {
	{ "rmsnorm", ops_rmsnorm },
	{ "layernorm", ops_layernorm },
	{ "bias", ops_bias },
	{ "positions", ops_positions },
	{ "embedding", ops_embedding },
	{ "rope", ops_rope },
	{ "attention", ops_attention },
	{ "attention_long", ops_attention_long },
	{ "swiglu", ops_swiglu },
	{ "gelu", ops_gelu },
	{ "cross_entropy", ops_cross_entropy },
	{ "adamw", ops_adamw },
	{ "sum_squares", ops_sum_squares },
	{ "weights", ops_weights },
	{ "gemm", ops_gemm },
	{ "normal", ops_normal },
	{ "few_bits", ops_few_bits },
	{ "sent", ops_sent },
	{ "shares", ops_shares },
	{ "few_bits_products", ops_few_bits_products },
	{ "few_bits_exact", ops_few_bits_exact },
	{ "fused", ops_fused },
	{ "qk_norm", ops_qk_norm },
	{ "geglu", ops_geglu },
	{ "softcap", ops_softcap },
	{ "cross_entropy_with", ops_cross_entropy_with },
};

/* --- the program ------------------------------------------------------------------------------ */

static void say(const char *text)
{
	fprintf(stderr, "note: %s\n", text);
}

/* Reads the device's memory as the host's, which ends the program. */
static void peek(struct suite *s)
{
	const volatile float *there = s->be->alloc(s->gpu, sizeof(float), "a test");

	printf("the host reads %g of the device\n", (double)*there);
}

static int run(struct suite *s, int64_t rounds)
{
	const struct backend_options options = { .compute = s->compute,
						 .deterministic = s->deterministic,
						 .warn = say };
	const struct backend_options host = { .threads = 0 };
	char why[BACKEND_TEXT_BYTES];

	s->gpu = s->be->open(&options, why);
	if (!s->gpu) {
		printf("%s\n", why);
		return NO_GPU;
	}
	s->cpu = backend_cpu()->open(&host, why);
	printf("%s\n", s->be->describe(s->gpu));
	if (s->peeks)
		peek(s);
	for (int64_t round = 0; round < rounds; round++, s->seed++)
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			if (!s->only || strcmp(s->only, operations[i].name) == 0)
				operations[i].run(s);
	bool good = s->be->finish(s->gpu, why) == 0;
	if (!good)
		printf("not ok %s\n", why);
	s->be->close(s->gpu);
	backend_cpu()->close(s->cpu);
	printf("%s: %zu tensors compared in %s, %zu differ\n",
	       good && s->failed == 0 ? "agree" : "DISAGREE", s->compared,
	       s->compute == COMPUTE_BF16 ? "bf16" : "fp32", s->failed);
	return good && s->failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct suite s = { .compute = COMPUTE_BF16, .seed = 1 };
	char why[BACKEND_TEXT_BYTES];
	int64_t rounds = 4;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--large") == 0)
			s.large = true;
		else if (strcmp(argv[i], "--fp32") == 0)
			s.compute = COMPUTE_FP32;
		else if (strcmp(argv[i], "--deterministic") == 0)
			s.deterministic = true;
		else if (strcmp(argv[i], "--peek") == 0)
			s.peeks = true;
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			s.seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = strtoll(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			s.only = argv[++i];
		else
			return fprintf(stderr, "ops: unknown argument %s\n", argv[i]), 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.be = backend_load_cuda(why);
	if (!s.be) {
		printf("%s\n", why);
		return NO_GPU;
	}
	return run(&s, rounds);
}
