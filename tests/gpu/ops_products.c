/* SPDX-License-Identifier: MIT */
/* ops_products.c - matrix products, and what becomes of them. */
#include "tests/gpu/suite.h"
#include "kernels/load.h"

#include <math.h>

/* A weight's own memory: the device's copy of it is what is multiplied. */
static float *as_weights(struct suite *s, const struct tensor *t, size_t matrices)
{
	float *weights = s->be->alloc_weights(s->gpu, t->count, matrices);

	if (weights)
		s->be->upload(s->gpu, weights, t->cpu, t->count * sizeof(float));
	return weights;
}

void ops_gemm(struct suite *s)
{
	size_t most = pick(s, 70, 1500), m = size(s, most), n = size(s, most), k = size(s, most);
	bool weight = draw(s) % 2, is_gradient = !weight && draw(s) % 2, add_to = draw(s) % 2;
	bool ta = draw(s) % 2, tb = draw(s) % 2, has_bias = weight && draw(s) % 2;
	enum gemm_then then = is_gradient || add_to ? GEMM_PLAIN : (enum gemm_then)(draw(s) % 3);
	bool sum_a = is_gradient && ta && draw(s) % 2, sum_b = is_gradient && !sum_a && !tb;
	struct tensors all = { .count = 0 };
	struct tensor *a = random_tensor(s, &all, m * k, true, 1);
	struct tensor *b = random_tensor(s, &all, k * n + n, !weight, 1);
	struct tensor *c = add_to ? random_tensor(s, &all, m * n, !is_gradient, 1)
				  : poisoned(s, &all, m * n, !is_gradient);
	struct gemm g = { .m = m,
			  .n = n,
			  .k = k,
			  .lda = ta ? m : k,
			  .ldb = tb ? k : n,
			  .ldc = n,
			  .trans_a = ta,
			  .trans_b = tb,
			  .alpha = draw(s) % 2 ? 1.0f : 0.5f,
			  .beta = add_to ? 1.0f : 0.0f,
			  .b_is_weight = weight,
			  .c_is_gradient = is_gradient,
			  .then = then,
			  .gelu = draw(s) % 3 ? GELU_TANH : GELU_ERF };
	struct tensor *kept = then == GEMM_GELU_BACKWARD ? random_tensor(s, &all, m * n, true, 2)
							 : poisoned(s, &all, m * n, true);
	struct tensor *sum = gradient(s, &all, sum_a ? m : n, add_to);
	float *weights = weight ? as_weights(s, b, k * n) : NULL;

	shape(s, "%zux%zux%zu %c%c%s%s%s%s%s%s", m, n, k, ta ? 'T' : 'N', tb ? 'T' : 'N',
	      weight ? " weight" : "", is_gradient ? " gradient" : "", add_to ? " add" : "",
	      has_bias ? " bias" : "",
	      then == GEMM_GELU ? " gelu"
	      : then            ? " slope"
				: "",
	      sum_a   ? " sum a"
	      : sum_b ? " sum b"
		      : "");
	for (size_t i = 0; weight && s->compute == COMPUTE_BF16 && i < b->count; i++)
		b->cpu[i] = widen(narrow(b->cpu[i]));
	g.a = a->gpu;
	g.b = weights ? (void *)weights : b->gpu;
	g.c = c->gpu;
	g.bias = has_bias ? weights + k * n : NULL;
	g.kept = then ? kept->gpu : NULL;
	g.sum_a = sum_a ? sum->gpu : NULL;
	g.sum_b = sum_b ? sum->gpu : NULL;
	s->be->gemm(s->gpu, &g);
	g.a = a->cpu;
	g.b = b->cpu;
	g.c = c->cpu;
	g.bias = has_bias ? b->cpu + k * n : NULL;
	g.kept = then ? kept->cpu : NULL;
	g.sum_a = sum_a ? sum->cpu : NULL;
	g.sum_b = sum_b ? sum->cpu : NULL;
	backend_cpu()->gemm(s->cpu, &g);
	compare(s, "gemm", "c", c, (double)k);
	if (then == GEMM_GELU)
		compare(s, "gemm", "kept", kept, (double)k);
	if (sum_a || sum_b)
		compare(s, "gemm", "sum", sum, (double)k);
	s->be->free(s->gpu, weights);
	release(s, &all);
}
