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

#include "common/log.h"
#include "common/manifest.h"
#include "common/mem.h"
#include "worker/lbworker/checkpoint.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/model.h"
#include "worker/lbworker/plan.h"
#include "worker/lbworker/report.h"

struct train {
	const struct config *config;
	const struct backend *backend;
	struct device *device;
	struct model *model;
	float *m, *v;			/* moments, device */
	struct data *data;
	struct report *report;
	struct train_state state;
	struct checkpoint_rules rules;
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
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void warn(const char *text)
{
	log_warn("%s", text);
}

/* --- setting up ----------------------------------------------------------------------------- */

static int open_device(struct train *t, struct err *err)
{
	const struct backend_options options = { .threads = (int)t->config->threads, .warn = warn };
	char why[BACKEND_TEXT_BYTES];

	t->backend = &backend_cpu;
	t->device = t->backend->open(&options, why);
	if (!t->device)
		return err_set(err, ERR_IO, "%s", why);
	return 0;
}

static int open_data(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const struct data_options options = { .path = c->dataset_path, .seq = (size_t)c->seq_len,
					      .vocab = c->model->shape.vocab,
					      .seed = (uint64_t)c->seed,
					      .verify = c->dataset_verify };
	size_t count = (size_t)(c->local_batch_size * c->seq_len);

	t->data = data_open(&options, err);
	if (!t->data)
		return err_wrap(err, "training.dataset_path");
	t->tokens = xcalloc(count, sizeof(*t->tokens));
	t->targets = xcalloc(count, sizeof(*t->targets));
	return 0;
}

static int make_model(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const struct model_options options = config_model_options(c);
	struct plan plan;

	if (plan_make(&plan, c, err) ||
	    plan_fits(&plan, t->backend->available(t->device), err))
		return -1;
	if (model_create(&t->model, &c->model->shape, t->backend, t->device, &options, err))
		return -1;
	size_t bytes = t->model->parameters * sizeof(float);
	t->m = t->backend->alloc(t->device, bytes);
	t->v = t->backend->alloc(t->device, bytes);
	if (!t->m || !t->v)
		return err_set(err, ERR_IO, "no memory for the optimizer (%zu MiB)", 2 * bytes >> 20);
	return 0;
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
	const struct checkpoint_parts parts = { t->model, t->m, t->v, &t->state };
	char folder[PATH_MAX];

	t->state.seed = c->seed;
	t->state.seq_len = c->seq_len;
	snprintf(t->state.data_digest, sizeof(t->state.data_digest), "%s", data_digest(t->data));
	snprintf(t->state.config_digest, sizeof(t->state.config_digest), "%s", c->digest);
	t->saved_step = -1;
	int found = find_checkpoint(t, folder, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		model_init_weights(t->model, (uint64_t)c->seed, c->init_std);
		return 0;
	}
	if (checkpoint_load(&parts, folder, err))
		return err_wrap(err, "cannot resume");
	t->saved_step = t->state.step;
	t->saved_path = xstrdup(folder);
	printf("resumed from %s at step %" PRId64 "\n", folder, t->state.step);
	return 0;
}

static int set_up(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const char *attempt = getenv("LB_ATTEMPT");

	t->rules = (struct checkpoint_rules){
		.parent = c->checkpoint_path,
		.attempt = attempt ? (int64_t)strtoll(attempt, NULL, 10) : 0,
		.keep_latest_k = c->keep_latest_k, .keep_every = c->keep_every,
	};
	t->report = report_open(getenv("LB_SOCKET"));
	report_phase(t->report, "setup");
	if (open_device(t, err) || open_data(t, err) || make_model(t, err))
		return -1;
	printf("%s\n", t->backend->describe(t->device));
	printf("%s %s: %zu parameters; %" PRIu64 " tokens of data, %" PRId64
	       " tokens a step, %" PRId64 " steps\n",
	       model_family_name(c->model->shape.family), c->flavor, t->model->parameters, data_tokens(t->data),
	       c->accumulate * c->local_batch_size * c->seq_len, c->steps);
	return start_or_resume(t, err);
}

static void tear_down(struct train *t)
{
	if (t->device) {
		t->backend->free(t->device, t->m);
		t->backend->free(t->device, t->v);
		model_destroy(t->model);
		t->backend->close(t->device);
	}
	data_close(t->data);
	report_close(t->report);
	free(t->tokens);
	free(t->targets);
	free(t->saved_path);
}

/* --- a step --------------------------------------------------------------------------------- */

static int load_batch(struct train *t, uint64_t first, struct err *err)
{
	const struct config *c = t->config;

	for (int64_t i = 0; i < c->local_batch_size; i++)
		if (data_sample(t->data, first + (uint64_t)i, t->tokens + i * c->seq_len,
				t->targets + i * c->seq_len, err))
			return -1;
	return 0;
}

/* Gradient of the mean loss over `batches` micro-batches; *loss is that mean. */
static int gradients(struct train *t, int64_t batches, double *loss, struct err *err)
{
	const struct config *c = t->config;
	int64_t batch_tokens = batches * c->local_batch_size * c->seq_len;
	double sum = 0, part;

	for (int64_t i = 0; i < batches; i++) {
		uint64_t first = (uint64_t)(t->state.samples + i * c->local_batch_size);
		if (load_batch(t, first, err) ||
		    model_backprop(t->model, t->tokens, t->targets, 1.0f / (float)batch_tokens,
				   i > 0, &part, err))
			return -1;
		sum += part;
	}
	*loss = sum / (double)batch_tokens;
	return 0;
}

static void tell(struct train *t, const struct report_step *s)
{
	const struct config *c = t->config;

	if (isfinite(s->loss) && isfinite(s->grad_norm))	/* JSON has no other numbers */
		report_step(t->report, s);
	if (s->step % c->log_freq == 0 || s->step == 1 || s->step == c->steps)
		printf("step %" PRId64 "/%" PRId64 " loss %.4f grad_norm %.3f lr %.3e %.0f tokens/s\n",
		       s->step, c->steps, s->loss, s->grad_norm, s->lr, s->tokens_per_s);
}

static void update(struct train *t, const struct report_step *s)
{
	const struct optimizer optimizer = config_optimizer(t->config);
	const struct optimizer_step step = { .lr = s->lr, .norm = s->grad_norm,
					     .update = s->step - t->state.guard.skipped };

	optimizer_update(&optimizer, t->model, t->m, t->v, &step);
	t->state.loss = s->loss;
}

/* Updates, or leaves the step out, as the guard says. 1 when it has had enough (err says so). */
static int judge(struct train *t, const struct report_step *s, struct err *err)
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
		update(t, s);
	return 0;
}

/* One optimizer step. 1 when the training has diverged (weights untouched). */
static int step(struct train *t, struct err *err)
{
	const struct config *c = t->config;
	const struct schedule schedule = config_schedule(c);
	struct report_step s = { .step = t->state.step + 1, .target_step = c->steps };
	int64_t batches = config_accumulate(c, t->state.samples);
	int64_t tokens = batches * c->local_batch_size * c->seq_len;
	double start = now_s();

	if (gradients(t, batches, &s.loss, err))
		return err_wrap(err, "step %" PRId64, s.step);
	s.grad_norm = sqrt(t->backend->sum_squares(t->device, t->model->grads,
						   t->model->parameters));
	s.lr = schedule_lr(&schedule, s.step);
	if (judge(t, &s, err))
		return 1;
	t->state.step++;
	t->state.tokens += tokens;
	t->state.samples += batches * c->local_batch_size;
	double seconds = now_s() - start;
	s.tokens = t->state.tokens;
	s.step_ms = seconds * 1e3;
	s.tokens_per_s = (double)tokens / seconds;
	tell(t, &s);
	return 0;
}

/* --- checkpoints and the loop --------------------------------------------------------------- */

/* Publishes the present step, unless it is the newest checkpoint already; tells lbrun either way. */
static int save(struct train *t, struct err *err)
{
	const struct checkpoint_parts parts = { t->model, t->m, t->v, &t->state };
	char *path;

	if (t->state.step != t->saved_step) {
		double start = now_s();
		report_phase(t->report, "checkpoint");
		if (checkpoint_save(&parts, &t->rules, &path, err))
			return err_wrap(err, "checkpoint of step %" PRId64, t->state.step);
		free(t->saved_path);
		t->saved_path = path;
		t->saved_step = t->state.step;
		printf("checkpoint %s in %.2f s\n", path, now_s() - start);
	}
	report_checkpoint(t->report, t->saved_step, t->saved_path);
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
		if (rc > 0)
			*end = TRAIN_DIVERGED;
		if (rc != 0)
			return rc < 0 ? -1 : 0;
		unsigned orders = report_orders(t->report);
		bool stop = stop_signal != 0 || (orders & REPORT_STOP);
		if (stop || due(t) || (orders & REPORT_SAVE)) {
			if (save(t, err))
				return -1;
			report_phase(t->report, "train");
		}
		if (stop) {
			*end = TRAIN_STOPPED;
			report_bye(t->report, "stopped");
			return 0;
		}
	}
	if (save(t, err))
		return -1;
	*end = TRAIN_DONE;
	report_bye(t->report, "done");
	return 0;
}

int train_run(const struct config *config, enum train_end *end, struct err *err)
{
	struct train t = { .config = config };
	int rc;

	catch_signals();
	rc = set_up(&t, err);
	if (rc == 0)
		rc = loop(&t, end, err);
	tear_down(&t);
	return rc;
}
