/* SPDX-License-Identifier: MIT */
/* shared_step.c - passes by waves, sums of all ranks, the update of what is ours. */
#include "worker/lbworker/train/shared_step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/train/expert_loads.h"
#include "worker/lbworker/train/pipelined.h"
#include "worker/lbworker/train/signals.h"

/* Forward and backward of our share, one wave of passes after the other; their losses. */
static int queue_share(struct queued *q, double *loss, struct err *err)
{
	struct training *t = q->t;
	const struct mesh *mesh = sharded_mesh(t->sharded);
	int64_t each = t->config.local_batch_size;
	bool in_place = t->config.reduction == REDUCTION_FAST && mesh->size > 1;

	int64_t leaves = mesh_leaves(mesh, q->batches);

	for (int64_t first = 0, wave = 0; first < leaves; first += mesh->size, wave++) {
		int64_t batch = mesh_batch(mesh, first, q->batches);
		if (training_samples(t, t->data, (uint64_t)(t->state.samples + batch * each), err))
			return -1;
		precision_pass(t->precision, (uint64_t)(t->state.samples + batch * each));
		sharded_wave(t->sharded, first, leaves, first + mesh->size >= leaves);
		model_queue(t->model, t->tokens, t->targets, 1.0f / (float)q->tokens,
			    in_place && wave > 0, &t->control->loss_sum, NULL, NULL);
		expert_loads_pass(t, first + mesh->rank < leaves);
		t->backend->download(t->device, &loss[wave], &t->control->loss_sum, sizeof(*loss));
		if (in_place &&
		    wave > 0) /* they are added up on the way: the whole is in the last */
			loss[wave - 1] = 0;
	}
	return 0;
}

void shared_step_note(struct training *t, const struct step_control *d)
{
	uint64_t bits[3];

	memcpy(&bits[0], &d->loss_sum, sizeof(bits[0]));
	memcpy(&bits[1], &d->squares, sizeof(bits[1]));
	bits[2] = d->is_left_out;
	t->note.decision = (bits[0] * 31 + bits[1]) * 31 + bits[2];
}

/* All find the same, and the first says it. */
static int say_apart(struct training *t, int rank, struct err *err)
{
	t->ranks->all_know = true;
	t->ranks->is_told = t->ranks->rank != 0;
	return err_set(err, ERR_INTERNAL,
		       "rank %d came to another end of step %" PRId64 " than rank 0", rank,
		       t->state.step);
}

/* Who came to another decision in the step before has other weights by now. */
static int check_notes(struct training *t, struct err *err)
{
	for (int r = 0; r < t->ranks->size; r++) {
		const struct rank_note *n = &t->notes[r];
		t->orders |= n->orders;
		if (n->decision != t->notes[0].decision || n->step != t->notes[0].step)
			return say_apart(t, r, err);
	}
	return 0;
}

int shared_step_agree(struct training *t, struct err *err)
{
	uint64_t *all = xcalloc((size_t)t->ranks->size, sizeof(*all));
	int rc = ranks_gather(t->ranks, &t->note.decision, sizeof(*all), all, err);

	for (int r = 1; rc == 0 && r < t->ranks->size; r++)
		if (all[r] != all[0])
			rc = say_apart(t, r, err);
	free(all);
	return rc;
}

/* The sums over all ranks go into the control, then each updates what it holds. */
static int update_share(struct queued *q, const double *loss, struct step_control *d,
			struct err *err)
{
	struct training *t = q->t;
	const struct optimizer optimizer = config_optimizer(&t->config);
	const struct optimizer_gather gather = { sharded_gather_gradients,
						 sharded_release_gradients, t->sharded };
	struct step_sums sums;

	t->note.orders |= report_orders(t->report) | (signals_ask_to_stop() ? REPORT_STOP : 0) |
			  (checkpointer_wants(t->checkpointer) ? REPORT_SAVE : 0);
	t->note.step = t->state.step;
	int64_t leaves = mesh_leaves(sharded_mesh(t->sharded), q->batches);
	if (sharded_sum(t->sharded, loss, leaves, &t->note, t->notes, &sums, err) ||
	    check_notes(t, err))
		return -1;
	t->note.orders = 0;
	d->loss_sum = sums.loss;
	d->squares = sums.squares;
	t->backend->upload(t->device, t->control, d, sizeof(*d));
	t->backend->decide(t->device, t->control);
	sharded_updated(t->sharded);
	for (size_t u = 0; u < t->model->units; u++) {
		if (model_unit_here(t->model, u).count == 0)
			continue;
		optimizer_update_unit(&optimizer, t->model, &t->kept, t->control, q->tokens, u,
				      sharded_own(t->sharded, u), &gather);
		sharded_ahead(t->sharded, u);
	}
	return 0;
}

int shared_step(struct queued *q, struct step_control *d, struct err *err)
{
	double *loss = xcalloc((size_t)q->batches, sizeof(*loss));
	int rc = q->t->mesh.pipeline > 1 ? pipelined_passes(q, loss, err)
					 : queue_share(q, loss, err);

	if (rc == 0)
		rc = update_share(q, loss, d, err);
	free(loss);
	return rc;
}

/* --- validation ------------------------------------------------------------------------------ */

static int validation_pass(struct training *t, int64_t pass, double *loss, struct err *err)
{
	double weight;

	if (training_validation_samples(t, pass, &weight, err))
		return -1;
	int rc = t->mesh.pipeline > 1 ? pipelined_loss(t, loss, err)
				      : model_loss(t->model, t->tokens, t->targets, loss, err);
	*loss *= weight;
	return rc;
}

int shared_validation(struct training *t, int64_t passes, double *sum, struct err *err)
{
	const struct mesh *mesh = sharded_mesh(t->sharded);
	double *loss = xcalloc((size_t)passes, sizeof(*loss));
	int rc = 0;

	int64_t leaves = mesh_leaves(mesh, passes);

	for (int64_t first = 0, wave = 0; rc == 0 && first < leaves; first += mesh->size, wave++)
		rc = validation_pass(t, mesh_batch(mesh, first, passes), &loss[wave], err);
	if (rc == 0)
		rc = sharded_losses(t->sharded, loss, leaves, sum, err);
	free(loss);
	return rc;
}
