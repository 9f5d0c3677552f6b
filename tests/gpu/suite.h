/* SPDX-License-Identifier: MIT */
/* suite.h - what the tests of operations share (ops.c): random shapes and values, the same tensor
 * on both devices, and a comparison that prints the worst element. */
#ifndef TESTS_GPU_SUITE_H
#define TESTS_GPU_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/load.h"
#include "kernels/backend.h"

enum { TENSORS_MAX = 16 };

struct suite {
	const struct backend *be;
	struct device *gpu, *cpu;
	enum compute compute;
	uint64_t seed;
	uint32_t drawn;
	bool large, deterministic, peeks;
	size_t compared, failed;
	const char *only;
	char shape[96];
};

uint32_t draw(struct suite *s);
size_t between(struct suite *s, size_t least, size_t most);
/* Often one, often odd, now and then a multiple of 64 so that vectors are read. */
size_t size(struct suite *s, size_t most);
size_t pick(const struct suite *s, size_t small, size_t large);
uint16_t narrow(float x);
float widen(uint16_t x);

struct tensor {
	size_t count;
	bool is_activation;
	float *cpu; /* the CPU device's memory is ours to read */
	void *gpu;
	float *got; /* host, after fetch() */
};

struct tensors {
	struct tensor t[TENSORS_MAX];
	size_t count;
};

bool is_narrow(const struct suite *s, const struct tensor *t);
void to_gpu(struct suite *s, const struct tensor *t);
struct tensor *add(struct suite *s, struct tensors *all, size_t count, bool is_activation);
/* Normal numbers times `scale`, the same on both sides to the bit. */
struct tensor *random_tensor(struct suite *s, struct tensors *all, size_t count, bool is_activation,
			     float scale);
/* The same as weights, of which the first `matrices` are matrices. */
struct tensor *random_weights(struct suite *s, struct tensors *all, size_t count, size_t matrices);
struct tensor *poisoned(struct suite *s, struct tensors *all, size_t count, bool is_activation);
/* A gradient: accumulated onto numbers, or poison to be replaced. */
struct tensor *gradient(struct suite *s, struct tensors *all, size_t count, bool accumulate);
struct tensor *random_ids(struct suite *s, struct tensors *all, size_t count, size_t below);
void release(struct suite *s, struct tensors *all);

/* terms: how many products were added up. */
void compare(struct suite *s, const char *operation, const char *name, struct tensor *t,
	     double terms);
/* The same with no tolerance: the same bits. */
void compare_bits(struct suite *s, const char *operation, const char *name, struct tensor *t);
/* Names the shape that the next comparisons are of. */
void shape(struct suite *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Both backends, one after the other, on their own copies of the same tensors. */
/* clang-format off */
#define BOTH(call, ...) \
	do { \
		{ const bool on_gpu = true; struct device *dev = s->gpu; (void)on_gpu; \
		  s->be->call(dev, __VA_ARGS__); } \
		{ const bool on_gpu = false; struct device *dev = s->cpu; (void)on_gpu; \
		  backend_cpu()->call(dev, __VA_ARGS__); } \
	} while (0)
#define ON(tensor) (on_gpu ? (tensor)->gpu : (void *)(tensor)->cpu)
/* clang-format on */

/* One draw of each operation: ops_rows.c, ops_attention.c, ops_products.c, ops_update.c,
 * ops_few_bits.c, ops_fused.c. */
void ops_rmsnorm(struct suite *s);
void ops_layernorm(struct suite *s);
void ops_bias(struct suite *s);
void ops_positions(struct suite *s);
void ops_embedding(struct suite *s);
void ops_rope(struct suite *s);
void ops_attention(struct suite *s);
void ops_attention_long(struct suite *s);
void ops_swiglu(struct suite *s);
void ops_geglu(struct suite *s);
void ops_qk_norm(struct suite *s);
void ops_softcap(struct suite *s);
void ops_gelu(struct suite *s);
void ops_cross_entropy(struct suite *s);
void ops_cross_entropy_with(struct suite *s);
void ops_adamw(struct suite *s);
void ops_sum_squares(struct suite *s);
void ops_gemm(struct suite *s);
void ops_normal(struct suite *s);
void ops_weights(struct suite *s);
void ops_few_bits(struct suite *s);
void ops_shares(struct suite *s);
void ops_sent(struct suite *s);
void ops_few_bits_products(struct suite *s);
void ops_few_bits_exact(struct suite *s);
void ops_fused(struct suite *s);

#endif
