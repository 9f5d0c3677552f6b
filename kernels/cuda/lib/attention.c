/* SPDX-License-Identifier: MIT */
/* attention.c - attention by cuDNN where it can, by our own kernels where it cannot: fp32, heads
 * that are no multiple of 8 wide or wider than 128, windows, documents and softcaps.
 *
 * Plans are made when a shape is first seen (some tenths of a second each) and kept; where there
 * are too many shapes, the one that was not used for longest makes room. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/lib/cudnn_api.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/lib/sdpa.h"

enum { SHAPES = 32, CHANNELS_STEP = 8, CHANNELS_MAX = 128 };
/* From this version on cuDNN clears the sum of dq itself. */
enum { CUDNN_CLEARS = 90600 };

struct shape {
	struct attention a;
	uint64_t used;   /* when last; 0: never, the place is free */
	bool is_refused; /* our kernels do it */
	struct sdpa_plan *forward, *backward;
	void *workspace;           /* of the larger of the two */
	void *accumulated, *along; /* SDPA_ACCUMULATED (NULL: deterministic), SDPA_ALONG */
	void *dk, *dv;             /* of all query heads, where these share keys; else NULL */
};

struct attention_state {
	struct cudnn api;
	cudnnHandle_t handle;
	struct shape shape[SHAPES];
	uint64_t clock; /* ticks with each use */
	bool is_told;   /* that some heads are none for cuDNN */
};

static bool same(const struct attention *a, const struct attention *b)
{
	return a->batch == b->batch && a->seq == b->seq && a->heads == b->heads &&
	       a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
	       a->interleaved == b->interleaved && a->scale == b->scale;
}

static void tell(const struct device *dev, const char *why)
{
	char text[BACKEND_TEXT_BYTES];

	snprintf(text, sizeof(text), "%.200s; attention runs on plain kernels, slowly", why);
	if (dev->warn)
		dev->warn(text);
}

bool cuda_attention_open(struct device *dev)
{
	const struct place *at = AT("open", 0, 0, 0, 0);
	struct attention_state *s = dev->attentions = calloc(1, sizeof(*s));
	char why[BACKEND_TEXT_BYTES] = "out of memory";

	if (!s || !cudnn_open(&s->api, why, sizeof(why))) {
		cuda_fail(dev, at, why);
		return false;
	}
	cudnnStatus_t status = s->api.create_handle(&s->handle);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api.set_stream(s->handle, dev->stream);
	if (status != CUDNN_STATUS_SUCCESS)
		cuda_fail(dev, at, s->api.error_string(status));
	return status == CUDNN_STATUS_SUCCESS;
}

/* Memory beside the plans; false when there is none. */
static bool take_memory(struct device *dev, struct shape *s)
{
	const struct attention *a = &s->a;
	size_t all = a->batch * a->heads * a->seq, forward = sdpa_plan_workspace(s->forward);
	size_t backward = sdpa_plan_workspace(s->backward);

	s->workspace = cuda_alloc(dev, forward > backward ? forward : backward, "attention");
	if (!dev->deterministic)
		s->accumulated = cuda_alloc(dev, all * a->head_dim * sizeof(float), "attention");
	s->along = cuda_alloc(dev, all * sizeof(float), "attention");
	if (a->heads != a->kv_heads) {
		s->dk = cuda_alloc(dev, all * a->head_dim * sizeof(uint16_t), "attention");
		s->dv = cuda_alloc(dev, all * a->head_dim * sizeof(uint16_t), "attention");
	}
	return s->workspace && (s->accumulated || dev->deterministic) && s->along &&
	       (a->heads == a->kv_heads || (s->dk && s->dv));
}

static void release(struct device *dev, struct shape *s)
{
	void *const memory[] = { s->workspace, s->accumulated, s->along, s->dk, s->dv };

	sdpa_plan_destroy(s->forward);
	sdpa_plan_destroy(s->backward);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		cuda_give(dev, memory[i]);
	*s = (struct shape){ .a = s->a, .used = s->used };
}

static void make_plans(struct device *dev, struct attention_state *state, struct shape *s)
{
	char why[BACKEND_TEXT_BYTES];

	s->forward = sdpa_plan_create(&state->api, state->handle, NULL, &s->a, SDPA_FORWARD, why,
				      sizeof(why));
	if (s->forward)
		s->backward = sdpa_plan_create(
			&state->api, state->handle, NULL, &s->a,
			dev->deterministic ? SDPA_BACKWARD_FIXED : SDPA_BACKWARD, why, sizeof(why));
	if (s->backward && take_memory(dev, s))
		return;
	tell(dev, s->backward ? "no memory for cuDNN's attention" : why);
	release(dev, s);
	s->is_refused = true;
}

static bool is_for_cudnn(struct device *dev, const struct attention *a)
{
	char why[BACKEND_TEXT_BYTES];

	if (dev->compute != COMPUTE_BF16)
		return false;
	bool masks = a->window > 0 || a->begin || a->softcap > 0;
	if (!masks && a->head_dim % CHANNELS_STEP == 0 && a->head_dim <= CHANNELS_MAX)
		return true;
	if (masks)
		snprintf(why, sizeof(why), "a window, documents or a softcap");
	else
		snprintf(why, sizeof(why), "heads of %zu: cuDNN has multiples of 8 up to 128",
			 a->head_dim);
	if (!dev->attentions->is_told)
		tell(dev, why);
	dev->attentions->is_told = true;
	return false;
}

/* The place of that shape, or of the one that was not used for longest, emptied. */
static struct shape *place_of(struct device *dev, const struct attention *a)
{
	struct attention_state *state = dev->attentions;
	struct shape *oldest = &state->shape[0];

	for (size_t i = 0; i < SHAPES; i++) {
		struct shape *s = &state->shape[i];
		if (s->used && same(&s->a, a))
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	if (oldest->used) {
		cuda_ok(dev, AT("attention", 0, 0, 0, 0), cudaStreamSynchronize(dev->stream));
		cuda_programs_clear(dev); /* they have its memory in them */
		release(dev, oldest);
		oldest->used = 0;
	}
	return oldest;
}

/* The plans for that shape, or NULL: our own kernels do it. */
static struct shape *planned(struct device *dev, const struct attention *a)
{
	struct attention_state *state = dev->attentions;

	if (!state || !state->handle || !is_for_cudnn(dev, a))
		return NULL;
	struct shape *s = place_of(dev, a);
	if (!s->used) {
		*s = (struct shape){ .a = *a };
		make_plans(dev, state, s);
	}
	s->used = ++state->clock;
	return s->is_refused ? NULL : s;
}

static void run(struct device *dev, const struct place *at, const struct shape *s,
		const struct sdpa_plan *plan, void *const pointers[SDPA_TENSORS])
{
	char why[BACKEND_TEXT_BYTES];

	cuda_range_push(dev, at->operation);
	if (sdpa_plan_run(plan, dev->attentions->handle, pointers, s->workspace, why, sizeof(why)))
		cuda_fail(dev, at, why);
	cuda_range_pop(dev);
	cuda_ok(dev, at, cudaGetLastError());
}

/* Element `offset` of an array of bf16; the library's table takes no const. */
static void *at_element(const void *array, size_t offset)
{
	const union {
		const uint16_t *given;
		void *taken;
	} at = { .given = (const uint16_t *)array + offset };

	return at.taken;
}

void cuda_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			    const struct attention *a)
{
	const struct place *at = AT("attention_forward", a->batch, a->seq, a->heads, a->head_dim);
	const struct heads heads = heads_of(a);
	const struct shape *s = planned(dev, a);

	if (!s) {
		cuda_own_attention_forward(dev, out, lse, qkv, a);
		return;
	}
	void *const pointers[SDPA_TENSORS] = {
		[SDPA_Q] = at_element(qkv, heads.query),
		[SDPA_K] = at_element(qkv, heads.key),
		[SDPA_V] = at_element(qkv, heads.value),
		[SDPA_OUT] = out,
		[SDPA_STATS] = lse,
	};
	run(dev, at, s, s->forward, pointers);
}

void cuda_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
			     const float *lse, const void *qkv, const float *table,
			     const struct attention *a)
{
	const struct place *at = AT("attention_backward", a->batch, a->seq, a->heads, a->head_dim);
	const struct heads heads = heads_of(a);
	const struct shape *s = planned(dev, a);

	if (!s) {
		cuda_own_attention_backward(dev, dqkv, dout, out, lse, qkv, a);
		if (table)
			cuda_rope(dev, dqkv, table, a, true);
		return;
	}
	void *const pointers[SDPA_TENSORS] = {
		[SDPA_Q] = at_element(qkv, heads.query),
		[SDPA_K] = at_element(qkv, heads.key),
		[SDPA_V] = at_element(qkv, heads.value),
		[SDPA_OUT] = at_element(out, 0),
		[SDPA_STATS] = at_element(lse, 0),
		[SDPA_DOUT] = at_element(dout, 0),
		[SDPA_DQ] = at_element(dqkv, heads.query),
		[SDPA_DK] = s->dk ? s->dk : at_element(dqkv, heads.key),
		[SDPA_DV] = s->dv ? s->dv : at_element(dqkv, heads.value),
		[SDPA_ALONG] = s->along,
		[SDPA_ACCUMULATED] = s->accumulated,
	};
	if (s->accumulated && dev->attentions->api.version() < CUDNN_CLEARS)
		cuda_zero(dev, s->accumulated,
			  a->batch * a->heads * a->seq * a->head_dim * sizeof(float));
	run(dev, at, s, s->backward, pointers);
	const struct heads_left left = { s->dk, s->dv, table };
	cuda_heads_backward(dev, dqkv, &left, a);
}

void cuda_attention_close(struct device *dev)
{
	struct attention_state *state = dev->attentions;

	if (!state)
		return;
	for (size_t i = 0; i < SHAPES; i++)
		release(dev, &state->shape[i]);
	if (state->handle)
		state->api.destroy_handle(state->handle);
	cudnn_close(&state->api);
	free(state);
	dev->attentions = NULL;
}
