/* SPDX-License-Identifier: MIT */
/* pipelined.c - one half of a pass after the other, and between them what passes from stage to
 * stage. */
#include "worker/lbworker/train/pipelined.h"

#include "worker/lbworker/ranks/pipeline.h"

/* The rest of a step, as all of its halves see it. */
struct way {
	const struct queued *q;
	const struct mesh *mesh;
	int64_t leaves, waves;
	bool in_place; /* reduction = "fast": passes add to the gradient */
	double *loss;
};

static int stage_of(const struct training *t)
{
	return t->config.pipeline_rank;
}

static int place_of(const struct training *t, int64_t wave)
{
	return (int)(wave % t->config.pipeline_depth);
}

static struct comm_part stream_of(const struct training *t, const struct pipeline_half *h, bool in)
{
	const struct model *m = t->model;
	void *at = h->is_backward ? model_stream_gradient(m)
		   : in           ? model_stream_in(m, place_of(t, h->pass))
				  : model_stream_out(m, place_of(t, h->pass));

	return (struct comm_part){ at, model_stream_bytes(m) };
}

/* done, next: NULL at the ends. */
static void pass_on(struct training *t, const struct pipeline_half *done,
		    const struct pipeline_half *next)
{
	const struct pipeline_move move = pipeline_move(stage_of(t), t->mesh.pipeline, done, next);
	struct comm_part send[MODEL_STAGES_MAX] = { { NULL, 0 } };
	struct comm_part receive[MODEL_STAGES_MAX] = { { NULL, 0 } };
	const struct comm_part nothing[MODEL_STAGES_MAX] = { { NULL, 0 } };

	if (done && move.to >= 0)
		send[move.to] = stream_of(t, done, false);
	if (next && move.from >= 0)
		receive[move.from] = stream_of(t, next, true);
	if (move.one_by_one)
		(void)sharded_stream(t->sharded, send, nothing);
	if (move.to >= 0 || move.from >= 0)
		(void)sharded_stream(t->sharded, move.one_by_one ? nothing : send, receive);
}

static int forward(const struct way *w, int64_t wave, const struct model_half *half,
		   struct err *err)
{
	struct training *t = w->q->t;
	int64_t batch = mesh_batch(w->mesh, wave * w->mesh->size, w->q->batches);

	if (training_samples(t, t->data,
			     (uint64_t)(t->state.samples + batch * t->config.local_batch_size),
			     err))
		return -1;
	model_stage_forward(t->model, t->tokens, t->targets, half);
	if (stage_of(t) + 1 < t->mesh.pipeline)
		return 0;
	t->backend->download(t->device, &w->loss[wave], half->loss_sum, sizeof(*w->loss));
	if (half->accumulate) /* they are added up on the way: the whole is in the last */
		w->loss[wave - 1] = 0;
	return 0;
}

static int make_half(const struct way *w, const struct pipeline_half *h, struct err *err)
{
	struct training *t = w->q->t;
	int64_t first = h->pass * w->mesh->size;
	int64_t batch = mesh_batch(w->mesh, first, w->q->batches);
	const struct model_half half = {
		.at = place_of(t, h->pass),
		.gradients = true,
		.accumulate = w->in_place && h->pass > 0,
		.scale = 1.0f / (float)w->q->tokens,
		.loss_sum = &t->control->loss_sum,
	};

	precision_pass(t->precision,
		       (uint64_t)(t->state.samples + batch * t->config.local_batch_size));
	sharded_wave(t->sharded, first, w->leaves, h->pass + 1 == w->waves);
	if (!h->is_backward)
		return forward(w, h->pass, &half, err);
	model_stage_backward(t->model, &half);
	return 0;
}

int pipelined_passes(struct queued *q, double *loss, struct err *err)
{
	struct training *t = q->t;
	const struct mesh *mesh = sharded_mesh(t->sharded);
	const int64_t leaves = mesh_leaves(mesh, q->batches);
	const struct way w = {
		.q = q,
		.mesh = mesh,
		.leaves = leaves,
		.waves = (leaves + mesh->size - 1) / mesh->size,
		.in_place = t->config.reduction == REDUCTION_FAST && mesh->size > 1,
		.loss = loss,
	};
	struct pipeline_half now = { false, 0 };

	pass_on(t, NULL, &now);
	for (int64_t i = 0; i < 2 * w.waves; i++) {
		now = pipeline_half(stage_of(t), t->mesh.pipeline, w.waves, i);
		if (make_half(&w, &now, err))
			return -1;
		const struct pipeline_half next = pipeline_half(stage_of(t), t->mesh.pipeline,
								w.waves, i + 1);
		pass_on(t, &now, i + 1 < 2 * w.waves ? &next : NULL);
	}
	return 0;
}

int pipelined_loss(struct training *t, double *loss, struct err *err)
{
	const struct pipeline_half only = { false, 0 };
	const struct model_half half = { .loss_sum = &t->control->loss_sum };
	char why[BACKEND_TEXT_BYTES];

	precision_evaluating(t->precision, true);
	pass_on(t, NULL, &only);
	model_stage_forward(t->model, t->tokens, t->targets, &half);
	pass_on(t, &only, NULL);
	precision_evaluating(t->precision, false);
	t->backend->download(t->device, loss, half.loss_sum, sizeof(*loss));
	return t->backend->finish(t->device, why) ? err_set(err, ERR_INTERNAL, "%s", why) : 0;
}
