/* SPDX-License-Identifier: MIT */
/* kernel_digest.c - one line for each operation of the CPU backend: its name and a digest of all it
 * computes from fixed inputs of awkward sizes. Built once as the library has it and once for each
 * set of instructions alone (see the Makefile): instructions.t compares what they print.
 *
 *   kernel_digest [THREADS] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernels/load.h"
#include "kernels/cpu/cpu.h"
#include "kernels/formats/operand.h"

enum { ROWS = 37, DIM = 83, WIDTH = 61, VOCAB = 517, TABLE = 23, FLOATS = ROWS * VOCAB };

static struct device *dev;
static float x[FLOATS], y[FLOATS], z[FLOATS], w[FLOATS], b[FLOATS], s[FLOATS], t[FLOATS];
static int32_t tokens[ROWS];

/* Fixed noise in -2..2, another for each array. */
static void fill(float *a, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < FLOATS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		a[i] = (float)(int32_t)(state >> 40) * 0x1p-22f - 2.0f;
	}
}

static void fill_all(void)
{
	float *const all[] = { x, y, z, w, b, s, t };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fill(all[i], i + 1);
	for (size_t i = 0; i < ROWS; i++)
		tokens[i] = (int32_t)(i * 7 % TABLE);
}

/* All arrays, whatever the operation wrote. */
static void tell(const char *name)
{
	const float *const all[] = { x, y, z, w, b, s, t };
	XXH64_hash_t digest = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		digest = XXH3_64bits_withSeed(all[i], sizeof(x), digest);
	printf("%s %016" PRIx64 "\n", name, (uint64_t)digest);
	fill_all();
}

static const struct attention heads = {
	.batch = 1, .seq = ROWS, .heads = 3, .kv_heads = 1, .head_dim = 18, .rotary = 10
};

static void norms(void)
{
	backend_cpu()->rmsnorm_forward(dev, y, s, t, x, z, w, ROWS, DIM, 1e-5f);
	tell("rmsnorm_forward");
	backend_cpu()->rmsnorm_backward(dev, y, t, z, x, s, w, ROWS, DIM, true);
	tell("rmsnorm_backward");
	backend_cpu()->layernorm_forward(dev, y, s, t, NULL, x, NULL, w, b, ROWS, DIM, 1e-5f);
	tell("layernorm_forward");
	backend_cpu()->layernorm_backward(dev, y, t, b, z, x, s, s + ROWS, w, ROWS, DIM, false);
	tell("layernorm_backward");
}

static void tables(void)
{
	backend_cpu()->embed_forward(dev, y, x, tokens, ROWS, DIM);
	tell("embed_forward");
	backend_cpu()->embed_backward(dev, y, x, tokens, ROWS, DIM);
	tell("embed_backward");
	backend_cpu()->positions_forward(dev, y, x, ROWS, ROWS, DIM);
	tell("positions_forward");
	backend_cpu()->positions_backward(dev, y, x, ROWS, 1, DIM, true);
	tell("positions_backward");
	backend_cpu()->bias_forward(dev, y, b, ROWS, DIM);
	tell("bias_forward");
	backend_cpu()->bias_backward(dev, b, y, ROWS, DIM, true);
	tell("bias_backward");
}

static void activations(void)
{
	backend_cpu()->swiglu_forward(dev, y, x, ROWS, WIDTH);
	tell("swiglu_forward");
	backend_cpu()->swiglu_backward(dev, y, z, x, ROWS, WIDTH);
	tell("swiglu_backward");
	for (int form = GELU_ERF; form <= GELU_TANH; form++) {
		backend_cpu()->gelu_forward(dev, y, x, ROWS * WIDTH, (enum gelu_form)form);
		tell(form == GELU_ERF ? "gelu_forward" : "gelu_tanh_forward");
		backend_cpu()->gelu_backward(dev, y, z, x, ROWS * WIDTH, (enum gelu_form)form);
		tell(form == GELU_ERF ? "gelu_backward" : "gelu_tanh_backward");
	}
}

static void attentions(void)
{
	backend_cpu()->rope(dev, x, w, &heads, false);
	tell("rope");
	backend_cpu()->attention_forward(dev, y, s, x, &heads);
	tell("attention_forward");
	backend_cpu()->attention_forward(dev, y, s, x, &heads);
	backend_cpu()->attention_backward(dev, t, z, y, s, x, NULL, &heads);
	tell("attention_backward");
}

static void products(void)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		const struct gemm g = { .m = ROWS,
					.n = DIM,
					.k = WIDTH,
					.a = x,
					.b = w,
					.c = y,
					.lda = 90,
					.ldb = 90,
					.ldc = DIM,
					.trans_a = flags & 1,
					.trans_b = flags & 2,
					.alpha = 0.75f,
					.beta = flags & 4 ? 1.0f : 0.0f };
		backend_cpu()->gemm(dev, &g);
	}
	tell("gemm");
}

/* Exact sums: the same bits without fused multiply-adds, too. */
static void integers(void)
{
	const struct operand_cast by_row = { .format = { "int8", FORMAT_INTEGER, 8, 0, 7, 0 },
					     .scale = SCALE_FP32,
					     .across = 1 };
	const struct operand_use use = { .cast = &by_row };

	for (unsigned flags = 0; flags < 4; flags++) {
		const struct gemm g = { .m = ROWS,
					.n = DIM,
					.k = WIDTH,
					.a = x,
					.b = w,
					.c = flags == 3 ? z : y,
					.lda = 90,
					.ldb = 90,
					.ldc = DIM,
					.trans_a = flags & 1,
					.trans_b = flags & 2,
					.alpha = 0.75f,
					.beta = flags == 1 ? 1.0f : 0.0f,
					.use_a = &use,
					.use_b = &use };
		backend_cpu()->gemm(dev, &g);
	}
	tell("integers");
}

static void the_rest(void)
{
	const struct adamw a = {
		.rate = 1, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f
	};
	const struct step_control d = {
		.lr = 0.01f, .grad_scale = 0.5f, .step = 3, .to_m_hat = 3.69f, .to_v_hat = 7.01f
	};
	double sum;

	backend_cpu()->cross_entropy(dev, s, x, tokens, ROWS, VOCAB, 0.25f);
	tell("cross_entropy");
	for (size_t i = 0; i < FLOATS; i++)
		z[i] = z[i] < 0 ? -z[i] : z[i]; /* second moments */
	backend_cpu()->adamw(dev, x, y, z, w, FLOATS, &a, &d);
	tell("adamw");
	backend_cpu()->sum_squares(dev, &sum, x, FLOATS, false, false);
	memcpy(y, &sum, sizeof(sum));
	tell("sum_squares");
}

int main(int argc, char **argv)
{
	const struct backend_options options = { .threads = argc > 1
								    ? (int)strtol(argv[1], NULL, 10)
								    : 1 };
	char why[BACKEND_TEXT_BYTES];

	dev = backend_cpu()->open(&options, why);
	if (!dev) {
		fprintf(stderr, "kernel_digest: %s\n", why);
		return 1;
	}
	fill_all();
	norms();
	tables();
	activations();
	attentions();
	products();
	integers();
	the_rest();
	int rc = backend_cpu()->finish(dev, why);
	backend_cpu()->close(dev);
	return rc ? 1 : 0;
}
