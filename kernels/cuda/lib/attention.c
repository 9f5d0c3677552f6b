/* SPDX-License-Identifier: MIT */
/* attention.c - attention by cuDNN where it can, by our own kernels where it cannot: fp32, heads
 * that are no multiple of 8 wide, a backward pass that must give the same bits every time (cuDNN
 * adds dq up by atomics), or no cuDNN at all.
 *
 * Plans are made when a shape is first seen (some tenths of a second each) and kept. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/lib/cudnn_api.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/lib/sdpa.h"

enum { SHAPES = 8, CHANNELS_STEP = 8, CHANNELS_MAX = 128 };

struct shape {
	struct attention a;
	bool is_used, is_refused; /* refused: our kernels do it */
	struct sdpa_plan *forward, *backward;
	void *workspace;           /* of the larger of the two */
	void *accumulated, *along; /* SDPA_ACCUMULATED, SDPA_ALONG */
	void *dk, *dv;             /* of all query heads, where these share keys; else NULL */
};

struct attention_state {
	struct cudnn api;
	cudnnHandle_t handle; /* NULL: there is no cuDNN */
	struct shape shape[SHAPES];
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

static struct attention_state *opened(struct device *dev)
{
	char why[BACKEND_TEXT_BYTES];

	if (dev->attentions)
		return dev->attentions;
	struct attention_state *s = dev->attentions = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (!cudnn_open(&s->api, why, sizeof(why))) {
		tell(dev, why);
		return s;
	}
	cudnnStatus_t status = s->api.create_handle(&s->handle);
	if (status == CUDNN_STATUS_SUCCESS)
		status = s->api.set_stream(s->handle, dev->stream);
	if (status != CUDNN_STATUS_SUCCESS) {
		tell(dev, s->api.error_string(status));
		s->handle = NULL;
	}
	return s;
}

/* Memory beside the plans; false when there is none. */
static bool take_memory(struct device *dev, struct shape *s)
{
	const struct attention *a = &s->a;
	size_t all = a->batch * a->heads * a->seq, forward = sdpa_plan_workspace(s->forward);
	size_t backward = sdpa_plan_workspace(s->backward);

	s->workspace = cuda_alloc(dev, forward > backward ? forward : backward, "attention");
	s->accumulated = cuda_alloc(dev, all * a->head_dim * sizeof(float), "attention");
	s->along = cuda_alloc(dev, all * sizeof(float), "attention");
	if (a->heads != a->kv_heads) {
		s->dk = cuda_alloc(dev, all * a->head_dim * sizeof(uint16_t), "attention");
		s->dv = cuda_alloc(dev, all * a->head_dim * sizeof(uint16_t), "attention");
	}
	return s->workspace && s->accumulated && s->along &&
	       (a->heads == a->kv_heads || (s->dk && s->dv));
}

static void release(struct device *dev, struct shape *s)
{
	void *const memory[] = { s->workspace, s->accumulated, s->along, s->dk, s->dv };

	sdpa_plan_destroy(s->forward);
	sdpa_plan_destroy(s->backward);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		cuda_give(dev, memory[i]);
	*s = (struct shape){ .a = s->a, .is_used = s->is_used };
}

static void make_plans(struct device *dev, struct attention_state *state, struct shape *s)
{
	char why[BACKEND_TEXT_BYTES];

	s->forward = sdpa_plan_create(&state->api, state->handle, NULL, &s->a, false, why,
				      sizeof(why));
	if (s->forward)
		s->backward = sdpa_plan_create(&state->api, state->handle, NULL, &s->a, true, why,
					       sizeof(why));
	if (s->backward && take_memory(dev, s))
		return;
	tell(dev, s->backward ? "no memory for cuDNN's attention" : why);
	release(dev, s);
	s->is_refused = true;
}

/* The plans for that shape, or NULL: our own kernels do it. */
static struct shape *planned(struct device *dev, const struct attention *a)
{
	if (dev->compute != COMPUTE_BF16 || a->head_dim % CHANNELS_STEP != 0 ||
	    a->head_dim > CHANNELS_MAX)
		return NULL;
	struct attention_state *state = opened(dev);
	if (!state || !state->handle)
		return NULL;
	for (size_t i = 0; i < SHAPES; i++) {
		struct shape *s = &state->shape[i];
		if (!s->is_used) {
			s->is_used = true;
			s->a = *a;
			make_plans(dev, state, s);
		}
		if (same(&s->a, a))
			return s->is_refused ? NULL : s;
	}
	return NULL;
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
			     const float *lse, const void *qkv, const struct attention *a)
{
	const struct place *at = AT("attention_backward", a->batch, a->seq, a->heads, a->head_dim);
	const struct heads heads = heads_of(a);
	const struct shape *s = dev->deterministic ? NULL : planned(dev, a);

	if (!s) {
		cuda_own_attention_backward(dev, dqkv, dout, out, lse, qkv, a);
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
	cuda_zero(dev, s->accumulated, a->batch * a->heads * a->seq * a->head_dim * sizeof(float));
	run(dev, at, s, s->backward, pointers);
	if (s->dk)
		cuda_heads_sum(dev, dqkv, s->dk, s->dv, a);
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
