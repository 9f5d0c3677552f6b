/* SPDX-License-Identifier: MIT */
/* cuda.h - what the files of the CUDA backend share: the device, its errors, the operations.
 *
 * ops/ holds our own kernels, lib/ what NVIDIA's libraries compute (products: cuBLASLt, attention:
 * cuDNN), device/ the table of both, this folder what they need of the device. One .cu file holds
 * one operation: formula and thread mapping on top, kernels that take one struct, and launchers
 * that are entries of the table in kernels/backend.h. Everything is queued on dev->stream; nothing
 * here waits unless its comment says so. */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PLACE_SIZES = 4, STAGES = 2, WEIGHT_RANGES = 4, PROGRAMS = 16 };

/* An operation, for messages: its name, the sizes it works on (0: no more), where it is queued. */
struct place {
	const char *operation;
	size_t size[PLACE_SIZES];
	const char *file;
	int line;
};
#ifdef __cplusplus
#define AT(operation, a, b, c, d) (place{ operation, { a, b, c, d }, __FILE__, __LINE__ })
#else
#define AT(operation, a, b, c, d) (&(struct place){ operation, { a, b, c, d }, __FILE__, __LINE__ })
#endif

/* Weights. Computing in bf16, matrices lie as two arrays where their fp32 would lie: bf16, rounded
 * to nearest, ties away from 0, then the lower halves of their bits; x is (bf16 << 16) +
 * (int16_t)lower (ops/split.cu). Vectors are fp32, with a copy in bf16. Computing in fp32 there are
 * neither. */
struct weight_range {
	float *master;
	size_t count, split; /* of these, so many at the beginning in two halves */
	uint16_t *narrow;    /* of those behind them; NULL: none */
	float *whole;        /* JOINED fp32 on their way to the host; NULL: nothing is split */
};
enum { JOINED = 4 << 20 };

/* Pinned memory that small uploads pass through, so that they overlap what is queued. */
struct stage {
	void *memory;
	cudaEvent_t passed;
};

/* Device memory that is ours, and for what. */
struct mapping; /* shares.c */
struct block {
	void *memory;
	size_t bytes;
	const char *what;        /* a literal */
	struct mapping *mapping; /* NULL: of cudaMalloc */
};

struct program {
	uint64_t number;
	bool is_used, is_plain;   /* plain: it cannot be recorded */
	int seen;                 /* times run without a recording */
	cudaGraphExec_t recorded; /* NULL: not yet */
};

/* Memory that grows with what is asked of it. */
struct work_area {
	void *memory;
	size_t bytes;
	const char *what; /* a literal */
};

struct gemm_state;      /* lib/gemm.c */
struct expected;        /* expected.c */
struct attention_state; /* lib/attention.c */
struct marks;           /* marks.c */

struct device {
	cudaStream_t stream, fetches;
	cudaStream_t beside; /* products that run aside; NULL: none do (LB_CUDA_ASIDE=0) */
	cudaEvent_t computed, fetched, forked, joined;
	bool is_forked; /* since the last join */
	enum compute compute;
	bool deterministic;
	bool waits_always; /* LB_CUDA_WAIT=1: errors are told by the operation at fault */
	bool is_recording;
	/* a kernel before the one in front is through (after_earlier()); LB_CUDA_EARLY=0: not */
	bool begins_early;
	/* operands of few bits come with what writes them, and in one pass; LB_CUDA_FUSED=0: not */
	bool is_fused;
	int gpu;        /* its number, which each thread that calls CUDA has to say */
	int processors; /* multiprocessors */
	int capability; /* 90: 9.0 */
	void (*warn)(const char *text);
	char cache[256]; /* folder; "": nothing is kept */
	char name[64];   /* of the GPU */
	struct stage stage[STAGES];
	unsigned next_stage;
	struct weight_range weights[WEIGHT_RANGES];
	struct block *block;
	size_t blocks, blocks_room;
	struct block refused;     /* the last that there was no room for */
	struct work_area scratch; /* of one operation at a time */
	struct program program[PROGRAMS];
	unsigned next_program;
	int fetches_lost; /* were not even queued; read by other threads (__atomic) */
	struct gemm_state *gemms;
	struct expected *expected;
	struct attention_state *attentions;
	struct marks *marks;
	struct arrays *arrays; /* NULL: no other ranks */
	struct place last;     /* queued last */
	char text[BACKEND_TEXT_BYTES];
	char error[BACKEND_TEXT_BYTES]; /* first failure; "" = none */
};

/* The library's only exported name; its type is for whoever opens it. */
__attribute__((visibility("default"))) const struct backend *lbcuda_backend(void);

/* error.c */
/* Keeps the first failure: "OPERATION AxBxC: text (FILE:LINE)". */
void cuda_fail(struct device *dev, const struct place *at, const char *text);
/* Notes what was queued; false when `status` is a failure, which is kept. */
bool cuda_ok(struct device *dev, const struct place *at, cudaError_t status);
int cuda_finish(struct device *dev, char *why);

/* memory.c */
void *cuda_alloc(struct device *dev, size_t bytes, const char *what);
/* The same as it comes, not zeroed; cuda_give takes what either of them gave, and NULL. */
void *cuda_take(struct device *dev, size_t bytes, const char *what);
void cuda_give(struct device *dev, void *memory);
void cuda_memory(const struct device *dev, struct memory_use *out);
float *cuda_alloc_weights(struct device *dev, size_t count, size_t matrices);
/* Bytes [from, to) of an array, of which [own_from, own_to) are ours alone (struct share). */
struct byte_run {
	size_t from, to, own_from, own_to;
	int rest;
};
/* cuda_alloc of memory that the runs share, where the driver can; and weights in such memory. */
void *cuda_take_shares(struct device *dev, size_t bytes, const char *what,
		       const struct byte_run *run, size_t runs);
float *cuda_take_weights(struct device *dev, size_t count, size_t matrices,
			 const struct byte_run *run, size_t runs);
uint64_t cuda_available(const struct device *dev);
void cuda_free(struct device *dev, void *memory);
void cuda_zero(struct device *dev, void *memory, size_t bytes);
void *cuda_alloc_host(struct device *dev, size_t bytes);
void cuda_free_host(struct device *dev, void *memory);
/* At least that many bytes for one operation; NULL (and a failure) without memory. Grows, with a
 * wait, in the first steps only. */
void *cuda_scratch(struct device *dev, const struct place *at, size_t bytes);
/* The same of an area of one's own, which its owner gives back. What lay there is gone when it
 * grows. */
void *cuda_grown(struct device *dev, const struct place *at, struct work_area *area, size_t bytes);
/* A piece of weights in the compute type; `weights` itself in fp32, or where it is no such
 * piece. */
const void *cuda_narrow(const struct device *dev, const float *weights);
/* The same of a matrix; a failure where it computes in bf16 and this is none of its own. */
const void *cuda_table(struct device *dev, const struct place *at, const float *weights);
/* The lower halves of a piece of matrices, beside cuda_narrow(); NULL: it is not split. */
uint16_t *cuda_lower(const struct device *dev, const float *weights);
/* Brings `count` of the vectors' copies up to date; writes matrices, from fp32 [count]; and reads
 * them. */
void cuda_narrow_vectors(struct device *dev, float *weights, size_t count);
void cuda_split_weights(struct device *dev, float *weights, const float *from, size_t count);
void cuda_join_weights(struct device *dev, float *to, const float *weights, size_t count,
		       cudaStream_t stream);
/* How many of `count` floats from `at` on are split, or until the first one that is. */
size_t cuda_run(const struct device *dev, const void *at, size_t count, bool *is_split);
/* The range of weights that `at` lies in, or NULL. */
const struct weight_range *cuda_weights_at(const struct device *dev, const void *at);

/* shares.c. Addresses for so many bytes, laid out as the runs say, with *taken bytes behind them;
 * NULL: there is no room. Whether this driver can, and may. */
struct mapping *cuda_map(size_t bytes, const struct byte_run *run, size_t runs, size_t *taken);
void *cuda_mapped_at(const struct mapping *m);
void cuda_unmap(struct mapping *m); /* NULL is fine */
bool cuda_may_share(void);

/* parts.c, and how parts go to other ranks: arrays.c */
void *cuda_reserve_shares(struct device *dev, size_t count, size_t each, const struct share *share,
			  size_t shares);
float *cuda_alloc_weights_shares(struct device *dev, size_t count, size_t matrices,
				 const struct share *share, size_t shares);
void *cuda_reserve(struct device *dev, size_t bytes);
void cuda_discard(struct device *dev, void *memory, size_t bytes);
void cuda_copy(struct device *dev, void *to, const void *from, size_t bytes);
void *cuda_weights_wanted(struct device *dev, float *weights, size_t *each);
void cuda_weights_came(struct device *dev, float *weights, size_t count);
extern const struct arrays_table cuda_arrays;
/* Do all ranks say yes? Alone: yes. */
bool cuda_arrays_agree(struct device *dev, bool yes);
/* Runs a recorded program, in which arrays may go to other ranks. */
bool cuda_arrays_launch(struct device *dev, const struct place *at, cudaGraphExec_t program);

/* copies.c */
void cuda_upload(struct device *dev, void *to, const void *from, size_t bytes);
void cuda_download(struct device *dev, void *to, const void *from, size_t bytes);
void cuda_download_activations(struct device *dev, float *to, const void *from, size_t count);
void cuda_fetch(struct device *dev, void *to_host, const void *from, size_t bytes);
int cuda_fetched(struct device *dev, char *why);

/* beside.c: from fork to its end what is queued goes beside the rest; false: not, or a failure. */
bool cuda_fork(struct device *dev, const struct place *at);
void cuda_fork_end(struct device *dev, const struct place *at);
void cuda_join_beside(struct device *dev);

/* program.c */
bool cuda_replay(struct device *dev, uint64_t number);
void cuda_record(struct device *dev, uint64_t number);
bool cuda_record_end(struct device *dev, uint64_t number);
void cuda_programs_clear(struct device *dev);

/* marks.c */
uint32_t cuda_mark(struct device *dev);
/* The same in another stream's queue. */
uint32_t cuda_mark_in(struct device *dev, cudaStream_t stream);
double cuda_mark_us(struct device *dev, uint32_t mark);
void cuda_marks_clear(struct device *dev);
void cuda_marks_destroy(struct device *dev);

/* ranges.c */
void cuda_range_push(struct device *dev, const char *name);
void cuda_range_pop(struct device *dev);

/* lib/gemm.c, and lib/narrow.c for operands of few bits. open: cuBLASLt; false with a line in
 * why. */
bool cuda_gemm_open(struct device *dev, char *why);
void cuda_gemm_close(struct device *dev);
/* The library's, as "cuBLASLt 13.1". */
void cuda_gemm_version(char *out, size_t bytes);
void cuda_gemm(struct device *dev, const struct gemm *g);
char *cuda_choices(struct device *dev);
int cuda_choose(struct device *dev, const char *text);

/* lib/attention.c, and ops/attention_own.cu for what cuDNN does not do. open() is for bf16, which
 * is hopeless without cuDNN: false and a failure. */
bool cuda_attention_open(struct device *dev);
void cuda_attention_close(struct device *dev);
void cuda_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			    const struct attention *a);
void cuda_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
			     const float *lse, const void *qkv, const float *table,
			     const struct attention *a);
void cuda_own_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
				const struct attention *a);
void cuda_own_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
				 const float *lse, const void *qkv, const struct attention *a);
/* What cuDNN's backward pass leaves, in bf16, beside what it writes to dqkv. */
struct heads_left {
	const void *dk, *dv; /* of every query head, [batch,T,H,C] each; NULL: in dqkv */
	const float *table;  /* of rope(), by which queries and keys are turned back; NULL: not */
};
void cuda_heads_backward(struct device *dev, void *dqkv, const struct heads_left *left,
			 const struct attention *a);

/* ops/, one file each; contracts in kernels/backend.h. */
void cuda_normal(struct device *dev, float *to, size_t count, const struct normal *n);
void cuda_embed_forward(struct device *dev, void *out, const float *table, const int32_t *tokens,
			size_t rows, size_t dim);
void cuda_embed_backward(struct device *dev, float *dtable, const void *dout, const int32_t *tokens,
			 size_t rows, size_t dim);
void cuda_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			  const void *delta, const float *weight, size_t rows, size_t dim,
			  float eps);
void cuda_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			   const void *x, const float *rstd, const float *weight, size_t rows,
			   size_t dim, bool accumulate);
void cuda_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd, void *sum,
			    const void *x, const void *delta, const float *weight,
			    const float *bias, size_t rows, size_t dim, float eps);
void cuda_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
			     const void *dout, const void *x, const float *mean, const float *rstd,
			     const float *weight, size_t rows, size_t dim, bool accumulate);
void cuda_bias_forward(struct device *dev, void *y, const float *bias, size_t rows, size_t dim);
void cuda_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows, size_t dim,
			bool accumulate);
void cuda_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
			    size_t seq, size_t dim);
void cuda_positions_backward(struct device *dev, float *dtable, const void *dx, size_t rows,
			     size_t seq, size_t dim, bool accumulate);
void cuda_rope(struct device *dev, void *qkv, const float *table, const struct attention *a,
	       bool inverse);
void cuda_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			 size_t width);
void cuda_swiglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			  size_t rows, size_t width);
void cuda_geglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			size_t width);
void cuda_geglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			 size_t rows, size_t width);
void cuda_qk_norm_forward(struct device *dev, void *qkv, float *rstd, const void *raw,
			  const float *query_weight, const float *key_weight,
			  const struct qk_norm *n);
void cuda_qk_norm_backward(struct device *dev, void *dqkv, float *dquery_weight, float *dkey_weight,
			   const void *raw, const float *rstd, const float *query_weight,
			   const float *key_weight, const struct qk_norm *n, bool accumulate);
void cuda_scaled_sum(struct device *dev, void *out, const void *x, float factor, const void *delta,
		     size_t count);
void cuda_softcap(struct device *dev, void *x, size_t count, float cap);
void cuda_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
		       enum gelu_form form);
void cuda_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x, size_t count,
			enum gelu_form form);
void cuda_cross_entropy(struct device *dev, float *loss, void *logits, const int32_t *targets,
			size_t rows, size_t vocab, float scale);
void cuda_cross_entropy_with(struct device *dev, float *loss, void *logits, const int32_t *targets,
			     size_t rows, size_t vocab, float scale,
			     const struct loss_terms *terms);
void cuda_sum_squares(struct device *dev, double *sum, const void *x, size_t count, bool narrow,
		      bool accumulate);
void cuda_piece_squares(struct device *dev, double *sums, const float *x, size_t count);
void cuda_sum_losses(struct device *dev, double *sum, const float *loss, size_t rows,
		     bool accumulate);
void cuda_decide(struct device *dev, struct step_control *d);
/* ops/decide.cu: of which generation the code is that this GPU was given, as 90; or why there is
 * none. */
const char *cuda_code(int *generation);
/* Whether it has after_earlier()'s instructions. */
bool cuda_waits_for_earlier(void);
void cuda_adamw(struct device *dev, float *weight, void *m, void *v, const void *grad, size_t count,
		const struct adamw *a, const struct step_control *d);
void cuda_add(struct device *dev, float *to, const float *from, size_t count);
/* to[i] = from[i] rounded to nearest even. */
void cuda_cast_bf16(struct device *dev, uint16_t *to, const float *from, size_t count);
/* Between fp32 and its two halves, to the bit but for what a NaN looks like. */
void cuda_split(struct device *dev, uint16_t *narrow, uint16_t *lower, const float *from,
		size_t count);
void cuda_join(struct device *dev, float *to, const uint16_t *narrow, const uint16_t *lower,
	       size_t count);
/* out[c] (+)= sum over r < rows, in order, of partial[r * stride + c]. */
void cuda_column_sum(struct device *dev, float *out, const float *partial, size_t rows,
		     size_t stride, size_t columns, bool accumulate);

#ifdef __cplusplus
}
#endif

#endif
