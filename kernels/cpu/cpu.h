/* SPDX-License-Identifier: MIT */
/* cpu/ - the operations on CPUs: their definition.
 *
 * cpu.h - what the files of the CPU backend share: the device, and how its loops are written.
 *
 * One file holds one operation: its formula and its split into tasks stand on top. Loops are plain
 * C; the folder is compiled once for each set of instructions (Makefile), and load.h picks one when
 * a program starts. Sums keep 16 partial sums in a fixed order (struct vec16), whatever the width
 * of the machine, and nothing is contracted to fused multiply-adds: all sets agree to the bit. Only
 * what multiplies (products/) fuses, with AVX-512, AVX2 and NEON alike; the base instructions of
 * x86 cannot, and differ from them in the last bits there. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/pool.h"

/* Helpers of loops must be part of them, to become vectors. */
#define CPU_INLINE static inline __attribute__((always_inline))

enum { CPU_LANES = 16, CPU_ALIGN_BYTES = 64 };

/* Sixteen floats in as many registers as that takes here: a vector that is wider than the machine's
 * would be kept in memory, and each sum would wait for it. */
#if defined(__AVX512F__)
enum { CPU_REGISTER = 16 };
#elif defined(__AVX2__)
enum { CPU_REGISTER = 8 };
#else
enum { CPU_REGISTER = 4 };
#endif
enum { CPU_REGISTERS = CPU_LANES / CPU_REGISTER };

typedef float cpu_register __attribute__((vector_size(sizeof(float) * CPU_REGISTER)));

struct vec16 {
	cpu_register part[CPU_REGISTERS];
};

/* Weights that an operation sees at one time, in bf16. */
enum rounded_piece { ROUNDED_MATRIX, ROUNDED_VECTOR, ROUNDED_BIAS, ROUNDED_PIECES };

/* Memory that is as large as the most that was asked for. */
struct cpu_room {
	float *at;
	size_t bytes;
};

struct device {
	struct pool *pool;
	unsigned threads;
	char **scratch; /* one area per worker, of scratch_bytes each */
	size_t scratch_bytes;
	struct cpu_room packed;       /* shared by all workers */
	struct cpu_room quantized[2]; /* operands of a product of few bits */
	bool rounds;                  /* computes in bf16: device/rounded.h */
	bool has_vnni;
	struct cpu_room rounded[ROUNDED_PIECES];
	char text[BACKEND_TEXT_BYTES];  /* describe() */
	char error[BACKEND_TEXT_BYTES]; /* first failure; "" = none */
};

/* error.c: keeps the first failure. */
void cpu_fail(struct device *dev, const char *what);
/* tasks.c: makes every worker's scratch at least this large; false (and a failure) without
 * memory. */
bool cpu_scratch(struct device *dev, size_t bytes);
/* The same for what workers share, and for operand 0 or 1 of a product as numbers of few bits; NULL
 * (and a failure) without memory. */
float *cpu_packed(struct device *dev, size_t bytes);
float *cpu_quantized(struct device *dev, int side, size_t bytes);
/* So much room; without memory NULL, and `lacking` is the failure. */
float *cpu_room(struct device *dev, struct cpu_room *room, size_t bytes, const char *lacking);

/* Tasks for `count` rows of `row_bytes`: large enough to be worth a task, small enough to share.
 * Depends on the shape only. */
size_t cpu_rows_per_task(size_t row_floats);

static inline size_t cpu_tasks(size_t count, size_t per_task)
{
	return (count + per_task - 1) / per_task;
}

static inline size_t cpu_round_up(size_t value, size_t to)
{
	return cpu_tasks(value, to) * to;
}

static inline size_t cpu_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* From any alignment. */
CPU_INLINE struct vec16 vec16_load(const float *from)
{
	struct vec16 v;

#pragma GCC unroll 4
	for (int i = 0; i < CPU_REGISTERS; i++)
		memcpy(&v.part[i], from + i * CPU_REGISTER, sizeof(v.part[i]));
	return v;
}

CPU_INLINE struct vec16 vec16_add(struct vec16 a, struct vec16 b)
{
#pragma GCC unroll 4
	for (int i = 0; i < CPU_REGISTERS; i++)
		a.part[i] += b.part[i];
	return a;
}

CPU_INLINE struct vec16 vec16_multiply(struct vec16 a, struct vec16 b)
{
#pragma GCC unroll 4
	for (int i = 0; i < CPU_REGISTERS; i++)
		a.part[i] *= b.part[i];
	return a;
}

/* (a - level) factor */
CPU_INLINE struct vec16 vec16_from_level(struct vec16 a, float level, float factor)
{
#pragma GCC unroll 4
	for (int i = 0; i < CPU_REGISTERS; i++)
		a.part[i] = (a.part[i] - level) * factor;
	return a;
}

CPU_INLINE void vec16_store(float to[CPU_LANES], struct vec16 v)
{
#pragma GCC unroll 4
	for (int i = 0; i < CPU_REGISTERS; i++)
		memcpy(to + i * CPU_REGISTER, &v.part[i], sizeof(v.part[i]));
}

/* Pairwise sum of the sixteen lanes. */
CPU_INLINE float cpu_lanes_sum(float lane[CPU_LANES])
{
	for (int width = CPU_LANES / 2; width > 0; width /= 2)
		for (int i = 0; i < width; i++)
			lane[i] += lane[i + width];
	return lane[0];
}

/* sum a[i] */
CPU_INLINE float cpu_sum(const float *a, size_t count)
{
	struct vec16 sum = { 0 };
	float lane[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES)
		sum = vec16_add(sum, vec16_load(a + i));
	vec16_store(lane, sum);
	for (size_t l = 0; i < count; i++, l++)
		lane[l] += a[i];
	return cpu_lanes_sum(lane);
}

/* sum a[i] b[i] */
CPU_INLINE float cpu_dot(const float *a, const float *b, size_t count)
{
	struct vec16 sum = { 0 };
	float lane[CPU_LANES];
	size_t i = 0;

	for (; i + CPU_LANES <= count; i += CPU_LANES)
		sum = vec16_add(sum, vec16_multiply(vec16_load(a + i), vec16_load(b + i)));
	vec16_store(lane, sum);
	for (size_t l = 0; i < count; i++, l++)
		lane[l] += a[i] * b[i];
	return cpu_lanes_sum(lane);
}

/* x + delta, which goes into sum; x alone where delta is NULL. A norm goes on with the result. */
CPU_INLINE const float *cpu_residual(float *restrict sum, const float *x,
				     const float *restrict delta, size_t count)
{
	if (!delta)
		return x;
	for (size_t i = 0; i < count; i++)
		sum[i] = x[i] + delta[i];
	return sum;
}

/* A task's columns of a gradient: added to what is there, or instead of it. */
CPU_INLINE void cpu_put_columns(float *restrict to, const float *sum, size_t count, bool accumulate)
{
	for (size_t i = 0; i < count; i++)
		to[i] = accumulate ? to[i] + sum[i] : sum[i];
}

/* a if `is`, else b; by bits, since compilers turn a ?: before a long formula into two formulas. */
CPU_INLINE float cpu_choose(bool is, float a, float b)
{
	uint32_t mask = -(uint32_t)is, x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x = (x & mask) | (y & ~mask);
	memcpy(&a, &x, sizeof(a));
	return a;
}

/* e^x to 1e-7 relative, branch-free so that loops over it vectorise: x = n ln2 + r, |r| <= ln2/2,
 * a polynomial for e^r, and 2^n put together from its bits. Held within -87..88; NaN stays NaN. */
CPU_INLINE float cpu_exp(float x)
{
	const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
	x = cpu_choose(x > 88.0f, 88.0f, x);
	x = cpu_choose(x < -87.0f, -87.0f, x);
	float shifted = x * 1.44269504f + magic;
	float n = shifted - magic;
	float r = x - n * 0.693359375f + n * 2.12194440e-4f;
	float p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	uint32_t bits;
	memcpy(&bits, &shifted, sizeof(bits));
	bits = (bits + 127u) << 23;
	float scale;
	memcpy(&scale, &bits, sizeof(scale));
	return p * scale;
}

/* (e^2x - 1)/(e^2x + 1), and its series where that would lose digits. */
CPU_INLINE float cpu_tanh(float x)
{
	float y = cpu_choose(x > 9.0f, 9.0f, x);
	y = cpu_choose(y < -9.0f, -9.0f, y);
	float squared = y * y;
	float series = 2.1869488e-2f;
	series = series * squared - 5.3968254e-2f;
	series = series * squared + 1.3333333e-1f;
	series = series * squared - 3.3333333e-1f;
	series = series * squared * y + y;
	float far = 1.0f - 2.0f / (cpu_exp(2.0f * y) + 1.0f);
	return cpu_choose(squared < 0.0625f, series, far);
}

/* Where a head lies in a row of qkv, in floats from the row's start. */
struct cpu_heads {
	size_t query, key, value; /* of head 0 */
	size_t step;              /* from one head to the next */
};

static inline struct cpu_heads cpu_heads(const struct attention *a)
{
	if (a->interleaved)
		return (struct cpu_heads){ 0, a->head_dim, 2 * a->head_dim, 3 * a->head_dim };
	return (struct cpu_heads){ 0, a->heads * a->head_dim,
				   (a->heads + a->kv_heads) * a->head_dim, a->head_dim };
}

/* memory.c */
uint64_t cpu_available(const struct device *dev);
/* At least `bytes`, aligned, in large pages where it fills some; for free(). NULL without
 * memory. */
void *cpu_aligned(size_t bytes);

/* Pieces of bias_forward, gelu_forward and gelu_backward, by one thread. */
void cpu_bias_add(float *y, const float *bias, size_t count);
void cpu_gelu(float *out, const float *x, size_t count, enum gelu_form form);
void cpu_gelu_slope(float *dx, const float *dout, const float *x, size_t count,
		    enum gelu_form form);
/* The same as gates of one row: out = gelu(gate) up, tanh form; gradients may be in place of gate
 * and up. */
void cpu_gelu_gate(float *out, const float *gate, const float *up, size_t count);
void cpu_gelu_gate_slope(float *dgate, float *dup, const float *dout, const float *gate,
			 const float *up, size_t count);

/* The operations, one file each; contracts in kernels/backend.h. */
void cpu_gemm(struct device *dev, const struct gemm *g);
void cpu_embed_forward(struct device *dev, void *out, const float *table, const int32_t *tokens,
		       size_t rows, size_t dim);
void cpu_embed_backward(struct device *dev, float *dtable, const void *dout, const int32_t *tokens,
			size_t rows, size_t dim);
void cpu_embed_slice_forward(struct device *dev, void *out, const float *table,
			     const int32_t *tokens, size_t rows, size_t dim,
			     const struct vocab_slice *slice);
void cpu_embed_slice_backward(struct device *dev, float *dtable, const void *dout,
			      const int32_t *tokens, size_t rows, size_t dim,
			      const struct vocab_slice *slice);
void cpu_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			 const void *delta, const float *weight, size_t rows, size_t dim,
			 float eps);
void cpu_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			  const void *x, const float *rstd, const float *weight, size_t rows,
			  size_t dim, bool accumulate);
void cpu_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd, void *sum,
			   const void *x, const void *delta, const float *weight, const float *bias,
			   size_t rows, size_t dim, float eps);
void cpu_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
			    const void *dout, const void *x, const float *mean, const float *rstd,
			    const float *weight, size_t rows, size_t dim, bool accumulate);
void cpu_bias_forward(struct device *dev, void *y, const float *bias, size_t rows, size_t dim);
void cpu_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows, size_t dim,
		       bool accumulate);
void cpu_positions_forward(struct device *dev, void *x, const float *table, size_t rows, size_t seq,
			   size_t dim);
void cpu_positions_backward(struct device *dev, float *dtable, const void *dx, size_t rows,
			    size_t seq, size_t dim, bool accumulate);
void cpu_rope(struct device *dev, void *qkv, const float *table, const struct attention *a,
	      bool inverse);
void cpu_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			   const struct attention *a);
void cpu_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
			    const float *lse, const void *qkv, const float *table,
			    const struct attention *a);
void cpu_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			size_t width);
void cpu_swiglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			 size_t rows, size_t width);
void cpu_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
		      enum gelu_form form);
void cpu_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x, size_t count,
		       enum gelu_form form);
void cpu_cross_entropy(struct device *dev, float *loss, void *logits, const int32_t *targets,
		       size_t rows, size_t vocab, float scale);
void cpu_loss_part(struct device *dev, struct loss_part *part, const void *logits,
		   const int32_t *targets, size_t rows, const struct vocab_slice *slice);
void cpu_loss_merge(struct device *dev, float *loss, void *logits, const int32_t *targets,
		    const struct loss_part *part, size_t rows, const struct vocab_slice *slice,
		    float scale);
void cpu_cross_entropy_with(struct device *dev, float *loss, void *logits, const int32_t *targets,
			    size_t rows, size_t vocab, float scale, const struct loss_terms *terms);
void cpu_softcap(struct device *dev, void *x, size_t count, float cap);
void cpu_scaled_sum(struct device *dev, void *out, const void *x, float factor, const void *delta,
		    size_t count);
void cpu_qk_norm_forward(struct device *dev, void *qkv, float *rstd, const void *raw,
			 const float *query_weight, const float *key_weight,
			 const struct qk_norm *n);
void cpu_qk_norm_backward(struct device *dev, void *dqkv, float *dquery_weight, float *dkey_weight,
			  const void *raw, const float *rstd, const float *query_weight,
			  const float *key_weight, const struct qk_norm *n, bool accumulate);
void cpu_geglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
		       size_t width);
void cpu_geglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			size_t rows, size_t width);
void cpu_route_forward(struct device *dev, const float *logits, const float *bias,
		       const struct routing *r);
void cpu_route_backward(struct device *dev, float *dlogits, const float *dweight, const float *push,
			const struct routing *r);
void cpu_rows_to_experts(struct device *dev, void *out, const void *x, size_t width,
			 const struct routing *r);
void cpu_rows_from_experts(struct device *dev, void *out, const void *y, size_t width,
			   bool weighted, bool accumulate, const struct routing *r);
void cpu_weigh_experts(struct device *dev, float *dweight, void *hidden, void *dhidden,
		       size_t width, const struct routing *r);
void cpu_normal(struct device *dev, float *to, size_t count, const struct normal *n);
void cpu_add(struct device *dev, float *to, const float *from, size_t count);
void cpu_sum_squares(struct device *dev, double *sum, const void *x, size_t count, bool narrow,
		     bool accumulate);
void cpu_sum_losses(struct device *dev, double *sum, const float *loss, size_t rows,
		    bool accumulate);
void cpu_decide(struct device *dev, struct step_control *d);
void cpu_adamw(struct device *dev, float *weight, void *m, void *v, const void *grad, size_t count,
	       const struct adamw *a, const struct step_control *d);
void cpu_quantize(struct device *dev, float *out, const float *in, const struct stored *shape,
		  const struct operand_use *use);
/* An operand whose codes are integers and whose scale does not change along the sum: codes [rows,
 * columns] without gaps, a scale for each row, or column, of what is not summed over; turned [rows,
 * columns] where the slot turns, else NULL. More than one element is summed over. */
struct cpu_integers {
	int8_t *codes;
	float *scales, *turned;
};
bool cpu_is_integer(const struct operand_use *use); /* false for NULL */
void cpu_quantize_integer(struct device *dev, const struct cpu_integers *to, const float *in,
			  const struct stored *shape, const struct operand_use *use);
void cpu_encode(struct device *dev, void *codes, const float *x, size_t count,
		const struct encoding *e);
void cpu_decode(struct device *dev, float *x, const void *codes, size_t count,
		const struct format *format);
void cpu_moments_get(struct device *dev, float *to, const uint8_t *codes, const float *scales,
		     size_t count, const float *map);
void cpu_moments_put(struct device *dev, uint8_t *codes, float *scales, const float *from,
		     size_t count, const float *map);
void cpu_weights_widen(struct device *dev, float *w, const uint16_t *lost, size_t count);
void cpu_weights_amax(struct device *dev, float *amax, const float *weights, size_t count);
void cpu_weights_encode(struct device *dev, uint8_t *codes, const float *weights, size_t count,
			const struct operand_cast *cast, const float *amax);
void cpu_weights_decode(struct device *dev, float *weights, const uint8_t *codes, size_t count,
			const struct operand_cast *cast, const float *amax);
void cpu_largest(struct device *dev, float *to, const float *from, size_t count);
void cpu_weights_narrow(struct device *dev, float *w, uint16_t *lost, size_t count,
			const struct encoding *how);
void cpu_average(struct device *dev, float *mean, const float *w, size_t count, float share);

/* The table of operations; the Makefile gives it a name for each set of instructions. */
extern const struct backend backend_cpu_set;

#endif
