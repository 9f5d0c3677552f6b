/* SPDX-License-Identifier: MIT */
/* limits.c - what shapes a model may have: sizes, heads, experts, sequences. */
#include "worker/lbworker/model/limits.h"

#include "worker/lbworker/families/family.h"

/* Limits that keep every product below within 64 bits; far above any model. */
enum { MAX_DIM = 1 << 17, MAX_FFN = 1 << 19, MAX_VOCAB = 1 << 24, MAX_LAYERS = 1 << 10 };
enum { MAX_ROWS = 1 << 28, MAX_EXPERTS = EXPERTS_MAX };

static bool within(size_t value, size_t max)
{
	return value >= 1 && value <= max;
}

int limits_check_sizes(const struct model_shape *s, struct err *err)
{
	const struct {
		const char *name;
		size_t value, max;
	} sizes[] = { { "vocab", s->vocab, MAX_VOCAB },
		      { "dim", s->dim, MAX_DIM },
		      { "ffn", s->ffn, MAX_FFN },
		      { "layers", s->layers, MAX_LAYERS },
		      { "heads", s->heads, s->dim },
		      { "kv_heads", s->kv_heads, s->heads },
		      { "positions", s->positions ? s->positions : 1, MAX_ROWS } };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!within(sizes[i].value, sizes[i].max))
			return err_set(err, ERR_USAGE, "model: %s %zu must be 1 to %zu",
				       sizes[i].name, sizes[i].value, sizes[i].max);
	return 0;
}

static int check_heads(const struct model_shape *s, struct err *err)
{
	bool is_own = s->head_dim != 0; /* not what dim gives */

	if (!is_own && (s->dim % s->heads != 0 || s->dim / s->heads % 2 != 0))
		return err_set(err, ERR_USAGE,
			       "model: dim %zu must be heads %zu times an even number", s->dim,
			       s->heads);
	if (s->head_dim % 2 != 0 || s->head_dim > MAX_DIM / s->heads)
		return err_set(err, ERR_USAGE,
			       "model: head_dim %zu must be even, and heads times it at most %d",
			       s->head_dim, MAX_DIM);
	if (is_own && s->heads * s->head_dim != s->dim &&
	    (!model_has_own_heads(s->family) || s->umup.enable))
		return err_set(err, ERR_USAGE,
			       "model: head_dim %zu must be dim / heads in %s, and with u-muP",
			       s->head_dim, model_family_name(s->family));
	if (s->heads % s->kv_heads != 0)
		return err_set(err, ERR_USAGE,
			       "model: heads %zu must be a multiple of kv_heads %zu", s->heads,
			       s->kv_heads);
	if (!model_has_own_heads(s->family) && s->heads != s->kv_heads)
		return err_set(err, ERR_USAGE, "model: %s has as many kv_heads as heads",
			       family_of(s->family)->name);
	if (s->rotary % 2 != 0 || s->rotary > model_head_dim(s))
		return err_set(err, ERR_USAGE,
			       "model: rotary %zu must be even and within a head of %zu", s->rotary,
			       model_head_dim(s));
	return 0;
}

static int check_experts(const struct model_shape *s, const struct model_options *o,
			 struct err *err)
{
	const struct model_experts *e = &s->experts;

	if (!model_has_experts(s->family))
		return e->count == 0 ? 0
				     : err_set(err, ERR_USAGE, "model: %s has no experts",
					       model_family_name(s->family));
	if (!within(e->count, MAX_EXPERTS) || !within(e->top, e->count) ||
	    !within(e->ffn, MAX_FFN) || e->shared > MAX_FFN / e->ffn || e->dense > s->layers ||
	    !(e->scale > 0 && e->scale < 1e6))
		return err_set(
			err, ERR_USAGE,
			"model: %zu of %zu experts of width %zu, %zu shared ones, %zu layers "
			"without, or a scale of %g cannot be",
			e->top, e->count, e->ffn, e->shared, e->dense, e->scale);
	if (!model_has_shared_experts(s->family) && e->shared > 0)
		return err_set(err, ERR_USAGE, "model: %s has no shared experts",
			       model_family_name(s->family));
	if (model_has_shared_experts(s->family) && e->shared == 0)
		return err_set(err, ERR_USAGE, "model: %s has at least one shared expert",
			       model_family_name(s->family));
	if (o->batch * o->seq > MAX_ROWS / e->top)
		return err_set(err, ERR_USAGE,
			       "model: batch %zu x seq_len %zu is too much for %zu experts a token",
			       o->batch, o->seq, e->top);
	return 0;
}

int limits_check(const struct model_shape *s, const struct model_options *o, struct err *err)
{
	if (limits_check_sizes(s, err) || check_heads(s, err))
		return -1;
	if (!within(o->batch, MAX_ROWS) || !within(o->seq, MAX_ROWS / o->batch))
		return err_set(err, ERR_USAGE, "model: batch %zu x seq_len %zu is out of range",
			       o->batch, o->seq);
	if ((s->window > 0 && !model_has_windows(s->family)) ||
	    ((s->query_scalar > 0 || s->score_softcap > 0 || s->logit_softcap > 0) &&
	     !model_has_softcaps(s->family)))
		return err_set(err, ERR_USAGE, "model: %s has no %s", model_family_name(s->family),
			       s->window > 0 && !model_has_windows(s->family) ? "sliding window"
									      : "softcaps");
	if (umup_check(s, err) || check_experts(s, o, err))
		return -1;
	if (o->context.degree > 1 && o->seq % (2 * (size_t)o->context.degree) != 0)
		return err_set(err, ERR_USAGE,
			       "model: seq_len %zu must be a multiple of %d where %d ranks share "
			       "a sequence: %zu would do",
			       o->seq, 2 * o->context.degree, o->context.degree,
			       (o->seq / (2 * (size_t)o->context.degree) + 1) * 2 *
				       (size_t)o->context.degree);
	if (family_of(s->family)->learned_positions && o->seq > s->positions)
		return err_set(err, ERR_USAGE, "model: seq_len %zu is more than its %zu positions",
			       o->seq, s->positions);
	return 0;
}
