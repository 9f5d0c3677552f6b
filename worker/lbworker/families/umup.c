/* SPDX-License-Identifier: MIT */
/* umup.c - the formulas of umup.h, one function each. */
#include "worker/lbworker/families/umup.h"

#include <math.h>

#include "worker/lbworker/families/family.h"

static double between(double x, double low, double high)
{
	return exp(x * log(high) + (1 - x) * log(low));
}

static double attended_scale(const struct model_shape *s)
{
	double t = s->umup.context, head = (double)model_head_dim(s);
	double x = 1 / (1 + 4 * head / (s->umup.attention * s->umup.attention));

	return t > 1 ? between(x, sqrt(log(t) / t), 1) : 1;
}

static double swiglu_scale(const struct model_shape *s)
{
	double x = 1 / (1 + 1 / (s->umup.activation * s->umup.activation));

	return between(x, 0.5, sqrt(0.5));
}

/* What a feed-forward half adds to the stream; attention's half adds `ratio` times that. */
static double residual_scale(const struct model_shape *s)
{
	double ratio = s->umup.ratio;

	return s->umup.residual * sqrt(2 / (1 + ratio * ratio)) / sqrt((double)s->layers);
}

struct umup_scales umup_scales(const struct model_shape *s)
{
	double in = 1 / sqrt((double)s->dim), r = residual_scale(s);

	if (!s->umup.enable)
		return (struct umup_scales){ 1, 1, 1, 1, 1, 1, 0 };
	return (struct umup_scales){
		.qkv = (float)in,
		.out = (float)(s->umup.ratio * r * in / attended_scale(s)),
		/* x sigmoid(a x) = silu(a x)/a: one factor before, the other behind */
		.gate = (float)(s->umup.activation * in),
		.up = (float)in,
		.down = (float)(r / sqrt((double)s->ffn) / swiglu_scale(s) / s->umup.activation),
		.head = (float)(s->umup.loss / (double)s->dim),
		.scores = (float)(s->umup.attention / (double)model_head_dim(s)),
	};
}

double umup_rate(const struct model_shape *s, enum param param)
{
	double dim = (double)s->dim, layers = (double)s->layers;

	switch (param) {
	case PARAM_EMBEDDING:
		return 1 / sqrt(dim);
	case PARAM_HEAD:
		return 1;
	case PARAM_QKV:
	case PARAM_OUT:
	case PARAM_UP:
		return 1 / sqrt(dim * layers);
	case PARAM_DOWN:
		return 1 / sqrt((double)s->ffn * layers);
	default:
		return 0;
	}
}

/* Backwards: the logits' gradient has rms sqrt(V-1)/V a token; a product with a unit matrix
 * multiplies it by the root of that matrix' output width and its own multiplier. */
double umup_unit_gradient(const struct model_shape *s, enum param param)
{
	double dim = (double)s->dim, vocab = (double)s->vocab, r = residual_scale(s);
	double head = s->umup.loss / dim * sqrt(vocab - 1) / vocab, stream = head * sqrt(vocab);

	switch (param) {
	case PARAM_EMBEDDING:
		return stream / sqrt(vocab);
	case PARAM_HEAD:
		return head;
	case PARAM_QKV:
	case PARAM_OUT:
		return stream * s->umup.ratio * r / sqrt(dim);
	case PARAM_UP:
		return stream * r / sqrt(dim);
	case PARAM_DOWN:
		return stream * r / sqrt((double)s->ffn);
	default:
		return 1;
	}
}

int umup_check(const struct model_shape *s, struct err *err)
{
	const struct umup *u = &s->umup;

	if (!u->enable)
		return 0;
	if (s->family != MODEL_LLAMA)
		return err_set(err, ERR_USAGE, "u_mup is for llama, whose norms have no bias");
	if (s->tied)
		return err_set(err, ERR_USAGE,
			       "u_mup: the head cannot be the embedding, their "
			       "learning rates differ");
	if (!(u->attention > 0 && u->activation > 0 && u->residual > 0 && u->ratio > 0 &&
	      u->loss > 0 && u->context >= 1))
		return err_set(err, ERR_USAGE, "u_mup: every multiplier must be above 0");
	return 0;
}
