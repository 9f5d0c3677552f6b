/* SPDX-License-Identifier: MIT */
/* train.c - the loop: sample, forward and backward, clip, update, report, now and then save.
 *
 * A step is a function of the weights, the moments and the step's number only, which is why a
 * training that was killed anywhere goes on bit for bit from its last checkpoint. */
#include "worker/lbworker/train.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/files.h"
#include "common/log.h"
#include "common/manifest.h"
#include "common/mem.h"
#include "worker/lbworker/checkpoint.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/hf.h"
#include "worker/lbworker/memory_report.h"
#include "worker/lbworker/model.h"
#include "worker/lbworker/plan.h"
#include "worker/lbworker/progress.h"
#include "worker/lbworker/report.h"
#include "worker/lbworker/saver.h"
#include "worker/lbworker/scratch.h"
#include "worker/lbworker/timeline.h"
#include "worker/lbworker/trace.h"

struct train {
	struct config own;		/* what was asked for, as far as the device can do it */
	const struct config *config;	/* &own */
	const struct backend *backend;
	struct device *device;
	struct model *model;
	void *m, *v;			/* moments, device */
	struct data *data, *validation;	/* validation may be NULL */
	struct report *report;
	struct progress *progress;
	struct trace *trace;		/* of the present step, or NULL */
	const struct backend *untraced;	/* the table to go back to then */
	struct timeline *timeline;	/* of memory, or NULL */
	bool is_too_large;		/* by the plan: nothing was begun */
	double data_s, checkpoint_s;	/* waited for, since the last step was told */
	struct train_state state;
	struct checkpoint_rules rules;
	struct checkpoint_parts parts;
	struct saver *saver;
	int64_t saved_step;		/* of the newest checkpoint known to be sound; -1: none */
	char *saved_path;
	int32_t *tokens, *targets;	/* [local_batch, seq] */
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
	stop_signal = number;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGXFSZ, SIG_IGN);	/* a file that may not grow is an error of write() */
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- setting up ----------------------------------------------------------------------------- */

static int open_device(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	char *cache = c->device_cache[0] == '/' ? xstrdup(c->device_cache)
						: xasprintf("%s/%s", c->dump_folder, c->device_cache);
	struct opened opened;
	int rc = device_open(&opened, &(struct device_order){
		.wish = (enum device_wish)c->device, .wish_name = "device.name = \"cuda\"",
		.compute_name = "training.mixed_precision_param", .notes = stdout,
		.threads = (int)c->threads, .compute = (enum compute)c->compute,
		.deterministic = c->deterministic, .cache = c->device_cache[0] ? cache : NULL,
	}, err);

	free(cache);
	t->backend = opened.backend;
	t->device = opened.device;
	t->own.compute = opened.compute;
	return rc;
}

static int open_data(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const struct data_options options = { .path = c->dataset_mix.count ? NULL : c->dataset_path,
					      .mix = c->dataset_mix.items,
					      .mix_count = c->dataset_mix.count,
					      .seq = (size_t)c->seq_len,
					      .vocab = c->shape.vocab,
					      .seed = (uint64_t)c->seed,
					      .verify = c->dataset_verify };
	struct data_options other = options;
	size_t count = (size_t)(c->local_batch_size * c->seq_len);

	other.path = c->validation_path;
	t->data = data_open(&options, err);
	if (!t->data)
		return err_wrap(err, "training.dataset_%s",
				c->dataset_mix.count ? "mix" : "path");
	t->validation = c->validation_enable ? data_open(&other, err) : NULL;
	if (c->validation_enable && !t->validation)
		return err_wrap(err, "validation.dataset_path");
	t->tokens = xcalloc(count, sizeof(*t->tokens));
	t->targets = xcalloc(count, sizeof(*t->targets));
	return 0;
}

static int make_model(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const struct model_options options = config_model_options(c);
	struct plan plan;

	if (plan_make(&plan, c, err))
		return -1;
	t->is_too_large = plan_fits(&plan, t->backend->available(t->device), err) != 0;
	if (t->is_too_large)
		return -1;
	if (model_create(&t->model, &c->shape, t->backend, t->device, &options, err))
		return -1;
	size_t bytes = t->model->parameters * (options.bf16_moments ? sizeof(uint16_t)
								      : sizeof(float));
	t->m = t->backend->alloc(t->device, bytes, "moments");
	t->v = t->backend->alloc(t->device, bytes, "moments");
	if (!t->m || !t->v)
		return err_set(err, ERR_IO, "no memory for the optimizer (%zu MiB)", 2 * bytes >> 20);
	t->parts = (struct checkpoint_parts){ t->model, t->m, t->v, &t->state };
	t->saver = saver_create(&t->parts, &t->rules, err);
	return t->saver ? 0 : -1;
}

static void on_bad_checkpoint(const char *path, const struct err *why, void *arg)
{
	(void)arg;
	log_warn("checkpoint %s is passed over: %s", path, why->text);
}

/* Where to go on from: LB_RESUME_FROM, else the newest valid one of our own folder. 1 found,
 * 0 start from scratch, -1. */
static int find_checkpoint(const struct train *t, char folder[PATH_MAX], struct err *err)
{
	const char *given = getenv("LB_RESUME_FROM");
	struct checkpoint_found found;

	if (given && given[0] != '\0') {
		if (manifest_verify(given, MANIFEST_DIGESTS, NULL, err))
			return err_wrap(err, "LB_RESUME_FROM");
		snprintf(folder, PATH_MAX, "%s", given);
		return 1;
	}
	int rc = checkpoint_newest_valid(t->rules.parent, &found, on_bad_checkpoint, NULL, err);
	if (rc < 0)
		return err_wrap(err, "cannot resume");
	if (rc > 0)
		snprintf(folder, PATH_MAX, "%s", found.path);
	return rc;
}

static int start_or_resume(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	char folder[PATH_MAX];

	t->state.seed = c->seed;
	t->state.seq_len = c->seq_len;
	snprintf(t->state.data_digest, sizeof(t->state.data_digest), "%s", data_digest(t->data));
	snprintf(t->state.config_digest, sizeof(t->state.config_digest), "%s", c->digest);
	t->saved_step = -1;
	if (scratch_sweep(t->rules.parent) > 0)
		log_info("%s: removed what killed writers left", t->rules.parent);
	int found = find_checkpoint(t, folder, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		if (c->initial_load_path[0] != '\0')
			return hf_load(t->model, c->initial_load_path, err)
				       ? err_wrap(err, "checkpoint.initial_load_path") : 0;
		model_init_weights(t->model, (uint64_t)c->seed, c->init_std);
		return 0;
	}
	if (checkpoint_load(&t->parts, folder, err))
		return err_wrap(err, "cannot resume");
	t->saved_step = t->state.step;
	t->saved_path = xstrdup(folder);
	printf("resumed from %s at step %" PRId64 "\n", folder, t->state.step);
	return 0;
}

static int open_timeline(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	struct timeline_classes classes;
	struct plan plan;
	char *folder;

	if (!c->enable_memory_snapshot)
		return 0;
	if (plan_make(&plan, c, err))
		return -1;
	const struct backend *gpu = t->backend->memory ? t->backend : NULL;
	classes = (struct timeline_classes){ .checkpoint_copy = plan.checkpoint };
	if (!gpu) {			/* else they are not in this process's memory */
		classes.weights = plan.weights;
		classes.gradients = plan.gradients;
		classes.moments = plan.moments;
		classes.activations = plan.activations;
	}
	folder = xasprintf("%s/%s", c->dump_folder, c->save_memory_snapshot_folder);
	t->timeline = timeline_open(folder, t->state.step + 1, &classes, gpu, t->device, err);
	free(folder);
	timeline_add(t->timeline, "set up before step", t->state.step + 1);
	return t->timeline ? 0 : err_wrap(err, "profiling.save_memory_snapshot_folder");
}

static int set_up(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const char *attempt = getenv("LB_ATTEMPT");

	t->rules = (struct checkpoint_rules){
		.parent = c->checkpoint_path,
		.attempt = attempt ? (int64_t)strtoll(attempt, NULL, 10) : 0,
		.run_dir = getenv("LB_RUN_DIR"),
		.keep_latest_k = c->keep_latest_k, .keep_every = c->keep_every,
	};
	t->report = report_open(getenv("LB_SOCKET"));
	report_phase(t->report, "setup");
	if (open_device(t, err) || open_data(t, err) || make_model(t, err))
		return -1;
	printf("%s\n", t->backend->describe(t->device));
	printf("%s %s: %zu parameters; %" PRIu64 " tokens of data, %" PRId64
	       " tokens a step, %" PRId64 " steps\n",
	       model_family_name(c->shape.family), c->flavor, t->model->parameters,
	       data_tokens(t->data),
	       c->accumulate * c->local_batch_size * c->seq_len, c->steps);
	if (start_or_resume(t, err) || open_timeline(t, err))
		return -1;
	t->progress = progress_open(c, t->model, t->report, t->state.step + 1, err);
	return t->progress ? 0 : -1;
}

static void tear_down(struct train *t)
{
	saver_destroy(t->saver);
	if (t->device) {
		t->backend->free(t->device, t->m);
		t->backend->free(t->device, t->v);
		model_destroy(t->model);
		t->backend->close(t->device);
	}
	data_close(t->data);
	data_close(t->validation);
	progress_close(t->progress);
	timeline_close(t->timeline);
	report_close(t->report);
	free(t->tokens);
	free(t->targets);
	free(t->saved_path);
}

/* --- a step --------------------------------------------------------------------------------- */

static int load_batch(struct train *t, const struct data *data, uint64_t first, struct err *err)
{
	const struct config *c = t->config;
	double start_us = trace_now();
	int rc = 0;

	backend_range(t->backend, t->device, "data");
	for (int64_t i = 0; rc == 0 && i < c->local_batch_size; i++)
		rc = data_sample(data, first + (uint64_t)i, t->tokens + i * c->seq_len,
				 t->targets + i * c->seq_len, err);
	backend_range_end(t->backend, t->device);
	t->data_s += (trace_now() - start_us) * 1e-6;
	trace_span(t->trace, "data", start_us);
	return rc;
}

/* Gradient of the mean loss over `batches` micro-batches; *loss is that mean. */
static int gradients(struct train *t, int64_t batches, double *loss, struct err *err)
{
	const struct config *c = t->config;
	int64_t batch_tokens = batches * c->local_batch_size * c->seq_len;
	double sum = 0, part;

	for (int64_t i = 0; i < batches; i++) {
		uint64_t first = (uint64_t)(t->state.samples + i * c->local_batch_size);
		if (load_batch(t, t->data, first, err) ||
		    model_backprop(t->model, t->tokens, t->targets, 1.0f / (float)batch_tokens,
				   i > 0, &part, err))
			return -1;
		sum += part;
	}
	*loss = sum / (double)batch_tokens;
	return 0;
}

/* The mean loss of the validation data; NAN when this is no step for it. */
static int validate(struct train *t, double *loss, struct err *err)
{
	const struct config *c = t->config;
	int64_t passes = c->validation_steps;
	double sum = 0, part;

	*loss = NAN;
	if (!t->validation || (t->state.step % c->validation_freq != 0 && t->state.step != c->steps))
		return 0;
	report_phase(t->report, "eval");
	if (passes < 0)
		passes = (int64_t)(data_samples(t->validation) - 1) / c->local_batch_size + 1;
	for (int64_t i = 0; i < passes; i++) {
		if (load_batch(t, t->validation, (uint64_t)(i * c->local_batch_size), err) ||
		    model_loss(t->model, t->tokens, t->targets, &part, err))
			return err_wrap(err, "validation");
		sum += part;
	}
	*loss = sum / (double)(passes * c->local_batch_size * c->seq_len);
	report_phase(t->report, "train");
	return 0;
}

static void begin_trace(struct train *t)
{
	const struct config *c = t->config;

	if (!c->enable_profiling || (t->state.step + 1) % c->profile_freq != 0)
		return;
	t->untraced = t->backend;
	t->trace = trace_begin(t->backend);
	t->backend = t->model->backend = trace_backend(t->trace);
}

static void end_trace(struct train *t, int64_t step, double start_us)
{
	char *folder = xasprintf("%s/%s", t->config->dump_folder, t->config->save_traces_folder);
	struct err err = { 0 };

	trace_span(t->trace, "step", start_us);
	if (t->trace) {
		t->backend = t->model->backend = t->untraced;
		if (trace_end(t->trace, folder, step, &err))
			log_warn("trace: %s", err.text);
		t->trace = NULL;
	}
	free(folder);
}

static int tell(struct train *t, struct report_step *s, struct err *err)
{
	s->tokens = t->state.tokens;
	s->data_ms = t->data_s * 1e3;
	s->checkpoint_ms = t->checkpoint_s * 1e3;
	if (validate(t, &s->val_loss, err))
		return -1;
	t->data_s = t->checkpoint_s = 0;
	timeline_add(t->timeline, "step", s->step);
	progress_step(t->progress, s);
	return 0;
}

static void update(struct train *t, const struct report_step *s, int64_t tokens)
{
	const struct optimizer optimizer = config_optimizer(t->config);
	const struct optimizer_step step = { .lr = s->lr, .norm = s->grad_norm,
					     .update = s->step - t->state.guard.skipped,
					     .tokens = tokens };

	backend_range(t->backend, t->device, "update");
	optimizer_update(&optimizer, t->model, t->m, t->v, &step);
	backend_range_end(t->backend, t->device);
	t->state.loss = s->loss;
}

/* Updates, or leaves the step out, as the guard says. 1 when it has had enough (err says so). */
static int judge(struct train *t, const struct report_step *s, int64_t tokens, struct err *err)
{
	enum guard_verdict verdict = guard_judge(&t->state.guard, &t->config->guard, s->loss,
						 s->grad_norm);

	if (verdict == GUARD_DIVERGED) {
		err_set(err, ERR_INTERNAL, "step %" PRId64 ": diverged: loss %g, gradient norm %g",
			s->step, s->loss, s->grad_norm);
		return 1;
	}
	if (verdict == GUARD_SKIP)
		log_warn("step %" PRId64 " is left out: loss %g, gradient norm %g (usual %.3g); %"
			 PRId64 " so far", s->step, s->loss, s->grad_norm,
			 t->state.guard.usual_norm, t->state.guard.skipped);
	else
		update(t, s, tokens);
	return 0;
}

/* Gradients and update. 1 when the training has diverged (weights untouched). */
static int compute(struct train *t, struct report_step *s, struct err *err)
{
	const struct config *c = t->config;
	const struct schedule schedule = config_schedule(c);
	int64_t batches = config_accumulate(c, t->state.samples);
	int64_t tokens = batches * c->local_batch_size * c->seq_len;
	double start = now_s();

	if (gradients(t, batches, &s->loss, err))
		return err_wrap(err, "step %" PRId64, s->step);
	s->grad_norm = sqrt(t->backend->sum_squares(t->device, t->model->grads,
						    t->model->parameters));
	s->lr = schedule_lr(&schedule, s->step);
	if (judge(t, s, tokens, err))
		return 1;
	t->state.step++;
	t->state.tokens += tokens;
	t->state.samples += batches * c->local_batch_size;
	double seconds = now_s() - start;
	s->step_ms = seconds * 1e3;
	s->tokens_per_s = (double)tokens / seconds;
	return 0;
}

/* One optimizer step, traced and told. 1 when the training has diverged. */
static int step(struct train *t, struct err *err)
{
	struct report_step s = { .step = t->state.step + 1, .target_step = t->config->steps };
	double start_us = trace_now();
	char name[32];

	begin_trace(t);
	snprintf(name, sizeof(name), "step %" PRId64, s.step);
	backend_range(t->backend, t->device, name);
	int rc = compute(t, &s, err);
	backend_range_end(t->backend, t->device);
	end_trace(t, s.step, start_us);
	return rc != 0 ? rc : tell(t, &s, err);
}

/* --- checkpoints and the loop --------------------------------------------------------------- */

/* What became of the checkpoint in flight, if it is through; with `wait` it will be. A disk that is
 * full or broken costs a checkpoint, not the training: -1 only when a newer attempt took over. */
static int collect(struct train *t, bool wait, struct err *err)
{
	struct saver_result r;

	if (!saver_collect(t->saver, wait, &r))
		return 0;
	if (!r.path && r.err.code == ERR_REFUSED)
		return err_set(err, ERR_REFUSED, "%s", r.err.text);
	if (!r.path) {
		log_warn("checkpoint of step %" PRId64 ": %s; older ones are as they were", r.step,
			 r.err.text);
		return 0;
	}
	free(t->saved_path);
	t->saved_path = r.path;
	t->saved_step = r.step;
	timeline_add(t->timeline, "checkpoint is written of step", r.step);
	printf("checkpoint %s in %.2f s, training waited %.3f s for the copy\n", r.path, r.write_s,
	       r.copy_s);
	report_checkpoint(t->report, t->saved_step, t->saved_path);
	return 0;
}

/* Only one is in flight: the next waits for it, which is said. */
static int make_room(struct train *t, struct err *err)
{
	double start = now_s();

	if (collect(t, false, err))
		return -1;
	if (!saver_busy(t->saver))
		return 0;
	if (collect(t, true, err))
		return -1;
	t->checkpoint_s += now_s() - start;
	printf("step %" PRId64 " waited %.2f s for the checkpoint before\n", t->state.step,
	       now_s() - start);
	return 0;
}

/* Begins a checkpoint of the present step, unless it is the newest already: then lbrun is told
 * again. */
static int save(struct train *t, struct err *err)
{
	if (make_room(t, err))
		return -1;
	if (t->state.step == t->saved_step) {
		report_checkpoint(t->report, t->saved_step, t->saved_path);
		return 0;
	}
	report_phase(t->report, "checkpoint");
	backend_range(t->backend, t->device, "checkpoint");
	t->checkpoint_s += saver_start(t->saver);
	backend_range_end(t->backend, t->device);
	timeline_copied(t->timeline);
	timeline_add(t->timeline, "checkpoint begins at step", t->state.step);
	return t->config->async_mode == ASYNC_DISABLED ? collect(t, true, err) : 0;
}

/* The last one must be there when we end. */
static int save_and_wait(struct train *t, struct err *err)
{
	if (save(t, err) || collect(t, true, err))
		return -1;
	if (t->saved_step != t->state.step)
		return err_set(err, ERR_IO, "the checkpoint of step %" PRId64
			       " could not be written", t->state.step);
	return 0;
}

static bool due(const struct train *t)
{
	int64_t interval = t->config->checkpoint_interval;
	return interval > 0 && t->state.step % interval == 0;
}

static int loop(struct train *t, enum train_end *end, struct err *err)
{
	report_phase(t->report, "train");
	while (t->state.step < t->config->steps) {
		int rc = step(t, err);
		if (rc > 0) {
			*end = TRAIN_DIVERGED;
			(void)collect(t, true, NULL);
		}
		if (rc != 0)
			return rc < 0 ? -1 : 0;
		if (collect(t, false, err))
			return -1;
		unsigned orders = report_orders(t->report);
		bool stop = stop_signal != 0 || (orders & REPORT_STOP);
		if (!stop && (due(t) || (orders & REPORT_SAVE))) {
			if (save(t, err))
				return -1;
			report_phase(t->report, "train");
		}
		if (stop) {
			if (save_and_wait(t, err))
				return -1;
			*end = TRAIN_STOPPED;
			report_bye(t->report, "stopped");
			return 0;
		}
	}
	if (save_and_wait(t, err))
		return -1;
	*end = TRAIN_DONE;
	report_bye(t->report, "done");
	return 0;
}

/* A GPU that had no room: who holds it. */
static void explain(const struct train *t, const struct err *err)
{
	const struct config *c = t->config;
	struct memory_use use = { 0 };
	struct plan plan;

	if (!t->device || !t->backend->memory)
		return;
	t->backend->memory(t->device, &use);
	if ((!use.refused && !t->is_too_large) || plan_make(&plan, c, NULL))
		return;
	char *folder = xasprintf("%s/%s", c->dump_folder, c->save_memory_snapshot_folder);
	memory_report(folder, t->state.step + 1, &use, &plan, err->text, stderr);
	free(folder);
}

int train_run(const struct config *config, enum train_end *end, struct err *err)
{
	struct train t = { .own = *config };
	int rc;

	t.config = &t.own;
	catch_signals();
	rc = set_up(&t, err);
	if (rc == 0)
		rc = loop(&t, end, err);
	if (rc != 0)
		explain(&t, err);
	tear_down(&t);
	return rc;
}
