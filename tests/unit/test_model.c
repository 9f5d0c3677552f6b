/* SPDX-License-Identifier: MIT */
/* test_model.c - the decoder against numbers of an independent PyTorch program
 * (tests/golden/llama_reference.py): every loss and every gradient, tied and untied. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/mem.h"
#include "worker/lbworker/model.h"
#include "worker/lbworker/safetensors.h"
#include "tests/unit/source.h"

/* Both sides start from the same fp32 weights; the reference computes in fp64. */
static const double LOSS_TOLERANCE = 2e-6;	/* relative */
static const double GRAD_TOLERANCE = 2e-5;	/* of the tensor's largest gradient */

struct golden {
	const char *path;
	struct model_shape shape;
	size_t batch, seq;
};

static const struct golden goldens[] = {
	{ "tests/golden/llama_tied.safetensors",
	  { .vocab = 37, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 40,
	    .tied = true, .norm_eps = 1e-5f, .rope_theta = 10000.0 }, 2, 9 },
	{ "tests/golden/llama_untied.safetensors",
	  { .vocab = 50, .dim = 24, .layers = 2, .heads = 6, .kv_heads = 2, .ffn = 36,
	    .tied = false, .norm_eps = 1e-5f, .rope_theta = 10000.0 }, 3, 5 },
};

struct fixture {
	struct device *device;
	struct model *model;
	struct st_file *file;
	const int32_t *tokens, *targets;
	const float *losses;
	size_t rows;
};

static const void *find(const struct st_file *file, const char *name, enum st_type type,
			uint64_t rows, uint64_t columns)
{
	const uint64_t shape[ST_MAX_DIMENSIONS] = { rows, columns };
	struct err err = { 0 };
	const struct st_tensor *t = st_find(file, name, type, shape, &err);

	if (!t)
		fail_msg("%s", err.text);
	return t->data;
}

static void open_golden(struct fixture *f, const struct golden *g, int threads)
{
	const struct backend_options options = { .threads = threads };
	char why[BACKEND_TEXT_BYTES];
	struct err err = { 0 };

	f->device = backend_cpu.open(&options, why);
	assert_non_null(f->device);
	assert_int_equal(model_create(&f->model, &g->shape, &backend_cpu, f->device, g->batch,
				      g->seq, &err), 0);
	f->file = st_open(source_path(g->path), &err);
	if (!f->file)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < f->model->tensors; i++) {
		const struct model_tensor *t = &f->model->tensor[i];
		size_t count = t->rows * (t->columns ? t->columns : 1);
		memcpy(f->model->weights + t->offset,
		       find(f->file, t->name, ST_F32, t->rows, t->columns), count * sizeof(float));
	}
	f->tokens = find(f->file, "tokens", ST_I32, g->batch, g->seq);
	f->targets = find(f->file, "targets", ST_I32, g->batch, g->seq);
	f->losses = find(f->file, "losses", ST_F32, g->batch, g->seq);
	f->rows = g->batch * g->seq;
}

static void close_golden(struct fixture *f)
{
	st_close(f->file);
	model_destroy(f->model);
	backend_cpu.close(f->device);
}

static double loss_sum(const struct fixture *f)
{
	double sum = 0;
	for (size_t i = 0; i < f->rows; i++)
		sum += (double)f->losses[i];
	return sum;
}

static void check_gradient(const struct fixture *f, const struct model_tensor *t)
{
	size_t count = t->rows * (t->columns ? t->columns : 1), worst = 0;
	const float *have = f->model->grads + t->offset;
	char name[128];
	double largest = 0, error = 0;

	snprintf(name, sizeof(name), "grad.%s", t->name);
	const float *want = find(f->file, name, ST_F32, t->rows, t->columns);
	for (size_t i = 0; i < count; i++) {
		double e = fabs((double)have[i] - (double)want[i]);
		largest = fmax(largest, fabs((double)want[i]));
		if (!(e <= error)) {	/* true for NaN */
			error = e;
			worst = i;
		}
	}
	if (!(error <= GRAD_TOLERANCE * largest))
		fail_msg("%s[%zu]: %.9g, reference %.9g (largest %.3g)", t->name, worst,
			 (double)have[worst], (double)want[worst], largest);
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		struct fixture f = { 0 };
		struct err err = { 0 };
		double sum, plain;
		open_golden(&f, &goldens[i], 2);
		double want = loss_sum(&f);
		assert_int_equal(model_loss(f.model, f.tokens, f.targets, &plain, &err), 0);
		assert_int_equal(model_backprop(f.model, f.tokens, f.targets,
						1.0f / (float)f.rows, false, &sum, &err), 0);
		assert_true(plain == sum);
		if (!(fabs(sum - want) <= LOSS_TOLERANCE * want))
			fail_msg("%s: loss %.9g, reference %.9g", goldens[i].path, sum, want);
		for (size_t k = 0; k < f.model->tensors; k++)
			check_gradient(&f, &f.model->tensor[k]);
		close_golden(&f);
	}
}

/* Two passes of half the scale are one pass, up to rounding; and nothing old is left over. */
static void test_accumulate(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		struct fixture f = { 0 };
		struct err err = { 0 };
		double sum;
		open_golden(&f, &goldens[i], 2);
		for (int pass = 0; pass < 4; pass++)
			assert_int_equal(model_backprop(f.model, f.tokens, f.targets,
							0.5f / (float)f.rows, pass % 2 == 1, &sum,
							&err), 0);
		for (size_t k = 0; k < f.model->tensors; k++)
			check_gradient(&f, &f.model->tensor[k]);
		close_golden(&f);
	}
}

/* Bit for bit the same gradients from one thread and from five. */
static void test_threads(void **state)
{
	struct fixture one = { 0 }, five = { 0 };
	struct err err = { 0 };
	double a, b;

	(void)state;
	open_golden(&one, &goldens[0], 1);
	open_golden(&five, &goldens[0], 5);
	assert_int_equal(model_backprop(one.model, one.tokens, one.targets, 1, false, &a, &err), 0);
	assert_int_equal(model_backprop(five.model, five.tokens, five.targets, 1, false, &b, &err),
			 0);
	assert_true(a == b);
	assert_memory_equal(one.model->grads, five.model->grads,
			    one.model->parameters * sizeof(float));
	close_golden(&one);
	close_golden(&five);
}

static void test_shapes_refused(void **state)
{
	static const struct {
		const char *text;
		struct model_shape shape;
	} cases[] = {
		{ "heads", { .vocab = 8, .dim = 8, .layers = 1, .heads = 3, .kv_heads = 1, .ffn = 8 } },
		{ "kv_heads", { .vocab = 8, .dim = 12, .layers = 1, .heads = 3, .kv_heads = 2, .ffn = 8 } },
		{ "zero", { .vocab = 0, .dim = 8, .layers = 1, .heads = 2, .kv_heads = 1, .ffn = 8 } },
	};
	const struct backend_options options = { .threads = 1 };
	char why[BACKEND_TEXT_BYTES];
	struct device *device = backend_cpu.open(&options, why);
	struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		assert_int_equal(model_create(&model, &cases[i].shape, &backend_cpu, device, 1, 4,
					      &err), -1);
		assert_null(model);
		assert_non_null(strstr(err.text, cases[i].text));
	}
	backend_cpu.close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_accumulate),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_shapes_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
