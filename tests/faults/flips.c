/* SPDX-License-Identifier: MIT */
/* flips.c - lbworker on hardware that computes something else once, by LB_CONTROL: in the pass
 * number LB_FLIP_AT (from 1 on) one bit of a weight, a gradient or an activation is the other one.
 * "flip-anywhere": another bit in each process. Each function stands in front of the real one
 * (--wrap). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/lbworker/model/layer.h"
#include "worker/lbworker/optim/optimizer.h"

enum { BIT = 1 << 20, PLACE = 1234 };

static long pass;

static bool flips(const char *name)
{
	const char *control = getenv("LB_CONTROL"), *at = getenv("LB_FLIP_AT");

	return control && at && strcmp(control, name) == 0 && strtol(at, NULL, 10) == pass;
}

static void flip(void *memory, size_t element)
{
	((uint32_t *)memory)[element] ^= BIT;
}

void __real_model_queue(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
			bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg);
void __wrap_model_queue(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
			bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg);
void __wrap_model_queue(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
			bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg)
{
	pass++;
	if (flips("flip-weight"))
		flip(m->weights, PLACE);
	if (flips("flip-anywhere"))
		flip(m->weights, (size_t)getpid() % m->parameters);
	__real_model_queue(m, tokens, targets, scale, accumulate, loss_sum, behind, arg);
}

void __real_layer_backward(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s, bool accumulate);
void __wrap_layer_backward(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s, bool accumulate);
void __wrap_layer_backward(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s, bool accumulate)
{
	if (l == 0 && flips("flip-activation"))
		flip(k->attended, PLACE);
	__real_layer_backward(m, l, k, s, accumulate);
}

void __real_optimizer_update(const struct optimizer *o, struct model *model, void *m, void *v,
			     struct step_control *control, int64_t tokens);
void __wrap_optimizer_update(const struct optimizer *o, struct model *model, void *m, void *v,
			     struct step_control *control, int64_t tokens);
void __wrap_optimizer_update(const struct optimizer *o, struct model *model, void *m, void *v,
			     struct step_control *control, int64_t tokens)
{
	if (flips("flip-gradient"))
		flip(model->grads, PLACE);
	__real_optimizer_update(o, model, m, v, control, tokens);
}
