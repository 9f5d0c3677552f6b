/* SPDX-License-Identifier: MIT */
/* test_umup.c - u-muP: its table by width, gradients against finite differences of the loss, and
 * that one learning rate moves models of different widths alike, which it does not without u-muP.
 * test_model.c holds a whole model against the paper's own form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "kernels/load.h"
#include "worker/lbworker/families/family.h"
#include "worker/lbworker/optim/optimizer.h"
#include "worker/lbworker/base/rng.h"

enum { VOCAB = 64, HEAD = 16, LAYERS = 2, BATCH = 4, SEQ = 32, ROWS = BATCH * SEQ };

static struct model_shape shape_of(size_t width, bool umup)
{
	return (struct model_shape){
		.vocab = VOCAB,
		.dim = width,
		.layers = LAYERS,
		.heads = width / HEAD,
		.kv_heads = width / HEAD,
		.ffn = 3 * width,
		.norm_eps = 1e-5f,
		.rope_theta = 10000,
		.umup = { umup, 1, 1, 1, 1, 1, SEQ },
	};
}

static void is_near(double have, double want, const char *what, size_t width)
{
	if (!(fabs(have - want) <= 1e-6 * fabs(want)))
		fail_msg("%s at width %zu: %.9g, not %.9g", what, width, have, want);
}

static void test_table(void **state)
{
	static const size_t widths[] = { 64, 256, 1024 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct model_shape s = shape_of(widths[i], true);
		struct umup_scales u = umup_scales(&s);
		double d = (double)widths[i], n = LAYERS;
		is_near((double)u.qkv, 1 / sqrt(d), "qkv", widths[i]);
		is_near((double)u.up, 1 / sqrt(d), "up", widths[i]);
		is_near((double)u.gate, 1 / sqrt(d), "gate", widths[i]);
		is_near((double)u.head, 1 / d, "head", widths[i]);
		is_near((double)u.scores, 1.0 / HEAD, "scores", widths[i]);
		/* 0.5^0.5 * 0.7071^0.5 = 0.5946; sqrt(ln 32/32)^(1 - 1/65) */
		is_near((double)u.down, 1 / sqrt(3 * d) / sqrt(n) / pow(2, -0.75), "down",
			widths[i]);
		is_near((double)u.out, 1 / sqrt(d) / sqrt(n) / pow(sqrt(log(32) / 32), 64.0 / 65),
			"out", widths[i]);
		is_near(umup_rate(&s, PARAM_EMBEDDING), 1 / sqrt(d), "embedding", widths[i]);
		is_near(umup_rate(&s, PARAM_QKV), 1 / sqrt(d * n), "qkv's rate", widths[i]);
		is_near(umup_rate(&s, PARAM_DOWN), 1 / sqrt(3 * d * n), "down's rate", widths[i]);
		is_near(umup_rate(&s, PARAM_HEAD), 1, "head's rate", widths[i]);
		assert_true(umup_rate(&s, PARAM_NORM1) == 0 &&
			    umup_rate(&s, PARAM_FINAL_NORM) == 0);
	}
	struct model_shape s = shape_of(64, false);
	struct umup_scales u = umup_scales(&s);
	assert_true(u.qkv == 1 && u.out == 1 && u.gate == 1 && u.up == 1 && u.down == 1 &&
		    u.head == 1 && u.scores == 0);
}

struct fixture {
	struct device *device;
	struct model *model;
	int32_t tokens[ROWS], targets[ROWS];
	float *m, *v;
};

static void open_model(struct fixture *f, const struct model_shape *shape)
{
	const struct backend_options host = { .threads = 2 };
	const struct model_options options = { .batch = BATCH, .seq = SEQ };
	const struct rng rng = { .seed = 11 };
	char why[BACKEND_TEXT_BYTES];
	struct err err = { 0 };

	f->device = backend_cpu()->open(&host, why);
	assert_non_null(f->device);
	if (model_create(&f->model, shape, backend_cpu(), f->device, &options, &err))
		fail_msg("%s", err.text);
	model_init_weights(f->model, 5, 0.02);
	for (size_t i = 0; i < ROWS; i++) {
		uint32_t words[4];
		rng_words(&rng, i, words);
		f->tokens[i] = (int32_t)(words[0] % VOCAB);
		f->targets[i] = (int32_t)(words[1] % VOCAB);
	}
	f->m = xcalloc(f->model->parameters, sizeof(float));
	f->v = xcalloc(f->model->parameters, sizeof(float));
}

static void close_model(struct fixture *f)
{
	free(f->m);
	free(f->v);
	model_destroy(f->model);
	backend_cpu()->close(f->device);
}

static double backprop(struct fixture *f)
{
	struct err err = { 0 };
	double sum;

	assert_int_equal(
		model_backprop(f->model, f->tokens, f->targets, 1.0f / ROWS, false, &sum, &err), 0);
	return sum / ROWS;
}

static double rms(const float *x, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum / (double)count);
}

/* Along each tensor's own gradient the loss changes by |gradient| a unit of way. */
static void test_differences(void **state)
{
	struct fixture f = { 0 };
	struct model_shape shape = shape_of(32, true);

	(void)state;
	shape.umup = (struct umup){ true, 1.5, 0.7, 0.8, 1.25, 1.3, SEQ };
	open_model(&f, &shape);
	backprop(&f);
	float *grads = xmalloc(f.model->parameters * sizeof(float));
	float *kept = xmalloc(f.model->parameters * sizeof(float));
	memcpy(grads, f.model->grads, f.model->parameters * sizeof(float));
	memcpy(kept, f.model->weights, f.model->parameters * sizeof(float));
	for (size_t i = 0; i < f.model->tensors; i++) {
		const struct model_tensor *t = &f.model->tensor[i];
		size_t count = t->rows * (t->columns ? t->columns : 1);
		double norm = rms(grads + t->offset, count) * sqrt((double)count);
		double way = 0.1, loss[2];
		for (int side = 0; side < 2; side++) {
			for (size_t k = t->offset; k < t->offset + count; k++)
				f.model->weights[k] = kept[k] + (float)((side ? way : -way) *
									(double)grads[k] / norm);
			loss[side] = backprop(&f);
		}
		memcpy(f.model->weights, kept, f.model->parameters * sizeof(float));
		double slope = (loss[1] - loss[0]) / (2 * way);
		if (!(norm > 0 && fabs(slope - norm) <= 0.02 * norm))
			fail_msg("%s: gradient %.6g, differences say %.6g", t->name, norm, slope);
	}
	free(grads);
	free(kept);
	close_model(&f);
}

/* Numbers of a trained layer's inputs and of gradients are near where the paper puts them. */
static void test_unit_scale(void **state)
{
	struct fixture f = { 0 };
	struct model_shape shape = shape_of(128, true);

	(void)state;
	open_model(&f, &shape);
	backprop(&f);
	for (size_t i = 0; i < f.model->tensors; i++) {
		const struct model_tensor *t = &f.model->tensor[i];
		size_t count = t->rows * t->columns;
		if (t->columns == 0)
			continue;
		double weight = rms(f.model->weights + t->offset, count);
		double gradient = rms((const float *)f.model->grads + t->offset, count) *
				  sqrt(ROWS) / t->unit_gradient;
		if (!(weight > 0.97 && weight < 1.03))
			fail_msg("%s starts with rms %g", t->name, weight);
		if (!(gradient > 0.05 && gradient < 20))
			fail_msg("%s: its gradient is %g times what it should be", t->name,
				 gradient);
	}
	close_model(&f);
}

/* How far some updates move the logits, rms. */
static double moved(size_t width, bool umup, double lr)
{
	enum { UPDATES = 4 };
	const struct optimizer optimizer = {
		.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .peak_lr = lr
	};
	struct model_shape shape = shape_of(width, umup);
	struct fixture f = { 0 };
	struct err err = { 0 };
	float *before = xmalloc(ROWS * VOCAB * sizeof(float));
	float *after = xmalloc(ROWS * VOCAB * sizeof(float));

	open_model(&f, &shape);
	assert_int_equal(model_logits(f.model, f.tokens, 0, ROWS, before, &err), 0);
	for (int64_t i = 1; i <= UPDATES; i++) {
		const struct optimizer_step step = { .lr = lr,
						     .update = i,
						     .norm_limit = INFINITY };
		struct step_control control = optimizer_control(&optimizer, &step);
		backprop(&f);
		optimizer_update(&optimizer, f.model, &(struct kept){ .m = f.m, .v = f.v },
				 &control, ROWS);
	}
	assert_int_equal(model_logits(f.model, f.tokens, 0, ROWS, after, &err), 0);
	for (size_t i = 0; i < ROWS * VOCAB; i++)
		after[i] -= before[i];
	double out = rms(after, ROWS * VOCAB);
	free(before);
	free(after);
	close_model(&f);
	return out;
}

static void test_transfer(void **state)
{
	(void)state;
	double umup = moved(256, true, 0.5) / moved(32, true, 0.5);
	double plain = moved(256, false, 0.004) / moved(32, false, 0.004);

	print_message("4 updates, width 256 against 32: logits move %.2f times as far, %.2f "
		      "without u-muP\n",
		      umup, plain);
	assert_true(umup > 0.6 && umup < 1.7);
	assert_true(plain > 2.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_unit_scale),
		cmocka_unit_test(test_transfer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
