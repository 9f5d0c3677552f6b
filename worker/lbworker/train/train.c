/* SPDX-License-Identifier: MIT */
/* train.c - the loop: sample, forward and backward, clip, update, tell, now and then save.
 *
 * A step is a function of the weights, the moments and the step's number only, which is why a
 * training that was killed anywhere goes on bit for bit from its last checkpoint. */
#include "worker/lbworker/train/train.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/ranks/arrays.h"
#include "worker/lbworker/telemetry/memory_report.h"
#include "worker/lbworker/telemetry/plan.h"
#include "worker/lbworker/train/expert_loads.h"
#include "worker/lbworker/train/shared_step.h"
#include "worker/lbworker/train/signals.h"

enum { EXCHANGES_TRACED = 16384 };

/* --- a step --------------------------------------------------------------------------------- */

/* Behind the last micro-batch: norm, decision, update. */
static void queue_update(void *arg)
{
	const struct queued *q = arg;
	struct training *t = q->t;
	const struct optimizer optimizer = config_optimizer(&t->config);

	backend_range(t->backend, t->device, "update");
	if (t->lora)
		lora_update(&optimizer, t->lora, t->control);
	else
		optimizer_update(&optimizer, t->model, &t->kept, t->control, q->tokens);
	backend_range_end(t->backend, t->device);
}

/* Behind the first micro-batch of several, where the noise of gradients is asked for. */
static void queue_first_squares(void *arg)
{
	const struct queued *q = arg;
	struct training *t = q->t;

	if (t->lora)
		lora_squares(t->lora, &t->control->first_squares);
	else
		optimizer_squares(t->model, &t->control->first_squares);
}

/* The gradient of the mean loss over all micro-batches, and the update. With one of them a device
 * that records runs a single program. */
static int queue_step(struct queued *q, struct err *err)
{
	struct training *t = q->t;
	int64_t each = t->config.local_batch_size;

	for (int64_t i = 0; i < q->batches; i++) {
		bool is_last = i + 1 == q->batches, tells = i == 0 && t->config.noise_scale;
		if (training_samples(t, t->data, (uint64_t)(t->state.samples + i * each), err))
			return -1;
		precision_pass(t->precision, (uint64_t)(t->state.samples + i * each));
		model_queue(t->model, t->tokens, t->targets, 1.0f / (float)q->tokens, i > 0,
			    &t->control->loss_sum,
			    is_last ? queue_update
			    : tells ? queue_first_squares
				    : NULL,
			    q);
		expert_loads_pass(t, true);
	}
	return 0;
}

/* --- validation ------------------------------------------------------------------------------ */

static int validate_all(struct training *t, int64_t passes, double *sum, struct err *err)
{
	double loss, weight;

	for (int64_t i = 0; i < passes; i++) {
		if (training_validation_samples(t, i, &weight, err) ||
		    model_loss(t->model, t->tokens, t->targets, &loss, err))
			return -1;
		*sum += weight * loss;
	}
	return 0;
}

/* The mean loss of the validation data; NAN when this is no step for it. */
static int validate(struct training *t, double *loss, struct err *err)
{
	const struct config *c = &t->config;
	double sum = 0;

	*loss = NAN;
	if (!t->validation ||
	    (t->state.step % c->validation_freq != 0 && t->state.step != c->steps))
		return 0;
	report_phase(t->report, "eval");
	int64_t passes = training_validation_passes(t);
	if (t->sharded ? shared_validation(t, passes, &sum, err)
		       : validate_all(t, passes, &sum, err))
		return err_wrap(err, "validation");
	*loss = sum / (double)training_validation_tokens(t);
	report_phase(t->report, "train");
	return 0;
}

static void begin_trace(struct training *t)
{
	const struct config *c = &t->config;

	if (!c->enable_profiling || (t->state.step + 1) % c->profile_freq != 0)
		return;
	t->untraced = t->backend;
	t->trace = trace_begin(t->backend);
	t->exchanges = xcalloc(EXCHANGES_TRACED, sizeof(*t->exchanges));
	(void)ranks_note(t->ranks, t->exchanges, EXCHANGES_TRACED);
	t->arrays = xcalloc(EXCHANGES_TRACED, sizeof(*t->arrays));
	trace_anchor(t->trace, t->device);
	(void)arrays_note(t->ranks, t->arrays, EXCHANGES_TRACED);
	t->backend = t->model->backend = trace_backend(t->trace);
}

static void end_trace(struct training *t, int64_t step, double start_us)
{
	struct err err = { 0 };

	if (!t->trace)
		return;
	char *folder = path_join("%s/%s", t->config.dump_folder, t->config.save_traces_folder);
	trace_span(t->trace, "step", start_us);
	trace_exchanges(t->trace, t->exchanges, ranks_note(t->ranks, NULL, 0));
	trace_arrays(t->trace, t->arrays, arrays_note(t->ranks, NULL, 0));
	free(t->exchanges);
	free(t->arrays);
	t->backend = t->model->backend = t->untraced;
	if (trace_end(t->trace,
		      &(struct trace_place){ folder, step, t->ranks->rank, t->ranks->size }, &err))
		log_warn("trace: %s", err.text);
	t->trace = NULL;
	free(folder);
}

/* What all ranks told in this step of the one before; in the first one there was none. */
static void take_rank_times(const struct training *t, struct report_step *s)
{
	if (!t->progress || t->ranks->size == 1 || t->notes[0].own_ms <= 0)
		return;
	for (int r = 0; r < t->ranks->size; r++)
		rank_times_add(&s->ranks, r, t->notes[r].own_ms, t->notes[r].data_ms);
	if (progress_is_logged(t->progress, s))
		progress_ranks(t->progress, s->step - 1, t->ranks->size, &t->notes[0].own_ms,
			       &t->notes[0].data_ms, sizeof(*t->notes));
}

static int tell(struct training *t, struct report_step *s, struct err *err)
{
	s->tokens = t->state.tokens;
	s->data_ms = t->data_s * 1e3;
	s->checkpoint_ms = checkpointer_waited_s(t->checkpointer) * 1e3;
	if (validate(t, &s->val_loss, err))
		return -1;
	t->data_s = 0;
	timeline_add(t->timeline, "step", s->step);
	take_rank_times(t, s);
	if (t->progress)
		progress_step(t->progress, s);
	for (int r = 1; r < s->ranks.count; r++) /* of the step before */
		report_pace(t->report, s->step, r, t->notes[r].own_ms, t->notes[r].data_ms);
	return 0;
}

/* Takes note of what the device decided; it left out what the spike filter would leave out. 1 when
 * there were too many of these (err says so). */
static int judge(struct training *t, const struct report_step *s, bool is_left_out, struct err *err)
{
	enum step_verdict verdict = spike_filter_judge(
		&t->state.spike_filter, &t->config.spike_rules, s->loss, s->grad_norm);

	if ((verdict == STEP_GO) == is_left_out)
		return err_set(err, ERR_INTERNAL,
			       "step %" PRId64 ": the device %s, loss %g, gradient "
			       "norm %g",
			       s->step, is_left_out ? "left it out" : "made the update", s->loss,
			       s->grad_norm);
	if (verdict == STEP_DIVERGED) {
		err_set(err, ERR_INTERNAL, "step %" PRId64 ": diverged: loss %g, gradient norm %g",
			s->step, s->loss, s->grad_norm);
		return 1;
	}
	if (verdict == STEP_SKIP && t->ranks->rank == 0)
		log_warn("step %" PRId64
			 " is left out: loss %g, gradient norm %g (usual %.3g); %" PRId64 " so far",
			 s->step, s->loss, s->grad_norm, t->state.spike_filter.usual_norm,
			 t->state.spike_filter.skipped);
	if (verdict != STEP_SKIP)
		t->state.loss = s->loss;
	return 0;
}

/* What a step that counted leaves behind beside new weights. */
static void keep_means(struct training *t, const struct queued *q, const struct step_control *d)
{
	const struct optimizer optimizer = config_optimizer(&t->config);
	const struct model_unit all = { 0, t->model->parameters };
	double ratio = (double)q->batches; /* of the batch to its first part */

	if (t->config.noise_scale && q->batches > 1 && !d->is_left_out)
		noise_scale_add(&t->state.noise, d->first_squares * ratio * ratio,
				(double)q->tokens / ratio, d->squares, (double)q->tokens);
	if (!t->kept.mean || d->is_left_out)
		return;
	for (size_t u = 0; t->sharded && u < t->model->units; u++)
		optimizer_average(&optimizer, t->model, &t->kept, t->state.averaged,
				  sharded_own(t->sharded, u));
	if (!t->sharded)
		optimizer_average(&optimizer, t->model, &t->kept, t->state.averaged, all);
	t->state.averaged++;
}

/* Where our first pass of a step begins that begins at `samples`. */
static int64_t next_of_ours(const struct training *t, int64_t samples)
{
	if (!t->sharded)
		return samples;
	int64_t batches = config_accumulate(&t->config, samples);
	return samples +
	       mesh_batch(sharded_mesh(t->sharded), 0, batches) * t->config.local_batch_size;
}

/* Queues the step, loads the next one's samples meanwhile, and waits once. */
static int run_step(struct queued *q, const struct report_step *s, struct step_control *d,
		    struct err *err)
{
	struct training *t = q->t;
	const struct optimizer optimizer = config_optimizer(&t->config);
	const struct optimizer_step step = {
		.lr = s->lr,
		.update = s->step - t->state.spike_filter.skipped,
		.norm_limit = spike_filter_limit(&t->state.spike_filter, &t->config.spike_rules),
	};
	int64_t next = t->state.samples + q->batches * t->config.local_batch_size;
	char why[BACKEND_TEXT_BYTES];

	*d = optimizer_control(&optimizer, &step);
	t->backend->upload(t->device, t->control, d, sizeof(*d));
	if (t->sharded ? shared_step(q, d, err) : queue_step(q, err))
		return -1;
	if (s->step < s->target_step) /* what is wrong with them shows when they are due */
		(void)training_samples(t, t->data, (uint64_t)next_of_ours(t, next), NULL);
	t->backend->download(t->device, d, t->control, sizeof(*d));
	if (t->backend->finish(t->device, why))
		return err_set(err, ERR_INTERNAL, "%s", why);
	return arrays_check(t->ranks, err);
}

/* Gradients and update. 1 when the training has diverged (weights untouched). */
static int compute(struct training *t, struct report_step *s, struct err *err)
{
	const struct config *c = &t->config;
	const struct schedule schedule = config_schedule(c);
	int64_t batches = config_accumulate(c, t->state.samples);
	int64_t tokens = batches * c->local_batch_size * c->seq_len;
	struct queued q = { t, batches, tokens };
	double start_us = clock_mono_us();
	struct step_control d;

	s->lr = schedule_lr(&schedule, s->step);
	precision_step(t->precision, s->step, t->progress && progress_is_logged(t->progress, s));
	double waited_s = t->ranks->waited_s;
	if (run_step(&q, s, &d, err))
		return err_wrap(err, "step %" PRId64, s->step);
	s->loss = d.loss_sum / (double)tokens;
	s->grad_norm = sqrt(d.squares);
	shared_step_note(t, &d);
	int rc = judge(t, s, d.is_left_out, err);
	if (rc != 0)
		return rc;
	if (expert_loads_step(t, d.is_left_out, s, err))
		return err_wrap(err, "step %" PRId64, s->step);
	keep_means(t, &q, &d);
	s->noise_tokens = t->config.noise_scale ? noise_scale_tokens(&t->state.noise) : NAN;
	t->state.step++;
	t->state.tokens += tokens;
	t->state.samples += batches * c->local_batch_size;
	double seconds = (clock_mono_us() - start_us) * 1e-6;
	s->step_ms = seconds * 1e3;
	s->own_ms = (seconds - (t->ranks->waited_s - waited_s)) * 1e3;
	t->note.own_ms = s->own_ms;
	t->note.data_ms = t->data_s * 1e3;
	s->tokens_per_s = (double)tokens / seconds;
	return 0;
}

/* One optimizer step, traced and told. 1 when the training has diverged. */
static int step(struct training *t, struct err *err)
{
	struct report_step s = { .step = t->state.step + 1, .target_step = t->config.steps };
	double start_us = clock_mono_us();
	char name[32];

	begin_trace(t);
	snprintf(name, sizeof(name), "step %" PRId64, s.step);
	backend_range(t->backend, t->device, name);
	int rc = compute(t, &s, err);
	if (rc == 0)
		arrays_have_begun(t->ranks);
	backend_range_end(t->backend, t->device);
	end_trace(t, s.step, start_us);
	return rc != 0 ? rc : tell(t, &s, err);
}

/* --- the loop ------------------------------------------------------------------------------- */

/* What was asked for between two steps: by a signal, or by lbrun. */
static unsigned orders(struct training *t)
{
	if (t->sharded) { /* all obey in the same step */
		unsigned all = t->orders;
		t->orders = 0;
		return all;
	}
	return report_orders(t->report) | (signals_ask_to_stop() ? REPORT_STOP : 0) |
	       (checkpointer_wants(t->checkpointer) ? REPORT_SAVE : 0);
}

static int save(struct training *t, struct err *err)
{
	if (t->sharded && shared_step_agree(t, err))
		return -1;
	int rc = checkpointer_save(t->checkpointer, err);

	report_phase(t->report, "train");
	return rc;
}

/* The last checkpoint must be there when we end. */
static int end_well(struct training *t, const char *status, struct err *err)
{
	if ((t->sharded && shared_step_agree(t, err)) || checkpointer_finish(t->checkpointer, err))
		return -1;
	const int64_t skipped = t->state.spike_filter.skipped;
	if (skipped > 0)
		printf("%" PRId64 " of %" PRId64
		       " steps were left out: loss or gradient was no number%s\n",
		       skipped, t->state.step,
		       t->config.spike_rules.spike_factor > 0 ? ", or a spike" : "");
	if (t->ranks->size > 1)
		printf("rank 0 sent %.3f MiB to the other ranks, and waited %.1f s for them\n",
		       (double)t->ranks->sent_bytes / (1 << 20), t->ranks->waited_s);
	report_bye(t->report, status);
	return 0;
}

static int loop(struct training *t, enum train_end *end, struct err *err)
{
	*end = TRAIN_DONE;
	report_phase(t->report, "train");
	if (t->state.step >= t->config.steps)
		printf("step %" PRId64 " of %" PRId64 ": nothing is left to train\n", t->state.step,
		       t->config.steps);
	while (t->state.step < t->config.steps) {
		int rc = step(t, err);
		if (rc > 0) {
			*end = TRAIN_DIVERGED;
			(void)checkpointer_wait(t->checkpointer, NULL);
			report_bye(t->report, "diverged");
		}
		if (rc != 0)
			return rc < 0 ? -1 : 0;
		if (checkpointer_collect(t->checkpointer, err))
			return -1;
		unsigned wanted = orders(t);
		if ((wanted & REPORT_STOP) && t->state.step < t->config.steps) {
			*end = TRAIN_STOPPED;
			return end_well(t, "stopped", err);
		}
		if ((checkpointer_due(t->checkpointer) || (wanted & REPORT_SAVE)) && save(t, err))
			return -1;
	}
	return end_well(t, "done", err);
}

/* A GPU that had no room: who holds it. */
static void explain(const struct training *t, const struct err *err)
{
	const struct config *c = &t->config;
	struct memory_use use = { 0 };
	struct plan plan;

	if (!t->device || !t->backend->memory)
		return;
	t->backend->memory(t->device, &use);
	if ((!use.refused && !t->is_too_large) || plan_make(&plan, c, NULL))
		return;
	plan_share(&plan, &t->mesh);
	char *folder = path_join("%s/%s", c->dump_folder, c->save_memory_snapshot_folder);
	memory_report(&(struct trace_place){ folder, t->state.step + 1, t->ranks->rank,
					     t->ranks->size },
		      &use, &plan, err->text, stderr);
	free(folder);
}

/* A GPU that has failed gives no memory either, before the first step is there to tell: what it
 * says is the cause. */
static bool has_failed(const struct training *t, struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	if (!t->device || (err->code != ERR_IO && !t->is_too_large) ||
	    t->backend->finish(t->device, why) == 0)
		return false;
	err_clear(err);
	err_set(err, ERR_INTERNAL, "%s", why);
	return true;
}

int train_run(const struct config *config, struct ranks *ranks, enum train_end *end,
	      struct err *err)
{
	struct training t;

	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write() */
	int rc = training_open(&t, config, ranks, err);
	bool is_broken = rc != 0 && has_failed(&t, err);
	signals_catch();
	if (rc == 0)
		rc = loop(&t, end, err);
	if (rc != 0 && !is_broken)
		explain(&t, err);
	if (rc != 0)
		ranks_fail(ranks, err); /* which may end us */
	training_close(&t);
	return rc;
}
