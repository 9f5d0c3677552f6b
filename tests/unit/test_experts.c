/* SPDX-License-Identifier: MIT */
/* test_experts.c - which rows go where, in which order, with what weight; and what evens them out.
 * What experts compute is held against transformers by test_model.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/load.h"
#include "worker/lbworker/model/model.h"

enum { ROWS = 301, EXPERTS = 11, TOP = 3 };

static struct {
	float logits[ROWS * EXPERTS], scores[ROWS * EXPERTS], weight[ROWS * TOP];
	int32_t expert[ROWS * TOP], place[ROWS * TOP], choice[ROWS * TOP], begin[EXPERTS + 1];
} at;

static struct device *device;

static struct routing routing_of(bool sigmoid, bool normed)
{
	return (struct routing){ ROWS,      EXPERTS,   TOP,       sigmoid,  normed,    2.5f,
				 at.scores, at.weight, at.expert, at.place, at.choice, at.begin };
}

/* Every choice has one place, and places are in the order of experts, then of rows. */
static void check_places(const struct routing *r)
{
	assert_int_equal(r->begin[0], 0);
	assert_int_equal(r->begin[EXPERTS], ROWS * TOP);
	for (int32_t e = 0; e < EXPERTS; e++)
		for (int32_t p = r->begin[e]; p < r->begin[e + 1]; p++) {
			assert_int_equal(r->expert[r->choice[p]], e);
			assert_int_equal(r->place[r->choice[p]], p);
			assert_true(p == r->begin[e] || r->choice[p] > r->choice[p - 1]);
		}
}

/* No expert that was left out is better than one that was chosen. */
static void check_choices(const struct routing *r, const float *bias)
{
	for (size_t row = 0; row < ROWS; row++) {
		const int32_t *chosen = r->expert + row * TOP;
		const float *scores = r->scores + row * EXPERTS;
		double sum = 0, worst = INFINITY;
		bool is_chosen[EXPERTS] = { false };
		for (int k = 0; k < TOP; k++) {
			assert_in_range(chosen[k], 0, EXPERTS - 1);
			assert_true(k == 0 || chosen[k] > chosen[k - 1]);
			is_chosen[chosen[k]] = true;
			worst = fmin(worst,
				     (double)(scores[chosen[k]] + (bias ? bias[chosen[k]] : 0)));
			sum += (double)scores[chosen[k]];
		}
		for (int e = 0; e < EXPERTS; e++)
			if (!is_chosen[e])
				assert_true((double)(scores[e] + (bias ? bias[e] : 0)) <= worst);
		for (int k = 0; k < TOP; k++) {
			double weight = 2.5 * (double)scores[chosen[k]] / (r->normed ? sum : 1);
			assert_true(fabs((double)r->weight[row * TOP + (size_t)k] - weight) < 1e-6);
		}
	}
}

static void test_routes(void **state)
{
	float bias[EXPERTS];

	(void)state;
	for (int e = 0; e < EXPERTS; e++)
		bias[e] = 0.3f * sinf((float)e);
	for (int i = 0; i < ROWS * EXPERTS; i++)
		at.logits[i] = 3 * sinf((float)i * 1.7f);
	for (int kind = 0; kind < 4; kind++) {
		const struct routing r = routing_of(kind & 1, kind & 2);
		backend_cpu()->route_forward(device, at.logits, kind & 1 ? bias : NULL, &r);
		check_places(&r);
		check_choices(&r, kind & 1 ? bias : NULL);
	}
}

/* Of experts alike the first; and whatever the logits are, nothing is written where it does not
 * belong. */
static void test_alike(void **state)
{
	const struct routing r = routing_of(false, true);

	(void)state;
	memset(at.logits, 0, sizeof(at.logits));
	backend_cpu()->route_forward(device, at.logits, NULL, &r);
	check_places(&r);
	for (int i = 0; i < ROWS * TOP; i++)
		assert_int_equal(r.expert[i], i % TOP);
	for (int i = 0; i < ROWS * EXPERTS; i++)
		at.logits[i] = NAN;
	backend_cpu()->route_forward(device, at.logits, NULL, &r);
	check_places(&r);
	/* one that is no number is not chosen where it stands first */
	const struct routing apart = routing_of(true, false);
	for (int i = 0; i < ROWS * EXPERTS; i++)
		at.logits[i] = i % EXPERTS == 0 ? NAN : (float)(i % EXPERTS);
	backend_cpu()->route_forward(device, at.logits, NULL, &apart);
	for (int i = 0; i < ROWS * TOP; i++)
		assert_int_not_equal(apart.expert[i], 0);
}

/* Rows that go to experts and come back as they are, are K times themselves; weighted, the sum of
 * weights. */
static void test_there_and_back(void **state)
{
	enum { WIDTH = 5 };
	static float x[ROWS * WIDTH], y[ROWS * TOP * WIDTH], z[ROWS * WIDTH];
	const struct routing r = routing_of(false, true);
	const struct backend *be = backend_cpu();

	(void)state;
	for (int i = 0; i < ROWS * EXPERTS; i++)
		at.logits[i] = cosf((float)i);
	for (int i = 0; i < ROWS * WIDTH; i++)
		x[i] = (float)(i % 17);
	be->route_forward(device, at.logits, NULL, &r);
	be->rows_to_experts(device, y, x, WIDTH, &r);
	be->rows_from_experts(device, z, y, WIDTH, false, false, &r);
	for (int i = 0; i < ROWS * WIDTH; i++)
		assert_true(z[i] == TOP * x[i]);
	be->rows_from_experts(device, z, y, WIDTH, true, true, &r); /* added to what is there */
	for (int i = 0; i < ROWS * WIDTH; i++)
		assert_true(fabsf(z[i] - (TOP + 2.5f) * x[i]) < 1e-4f);
}

static const struct model_shape small = {
	.family = MODEL_DOTS1,
	.vocab = 29,
	.dim = 16,
	.layers = 3,
	.heads = 2,
	.kv_heads = 2,
	.ffn = 24,
	.norm_eps = 1e-5f,
	.rope_theta = 10000,
	.experts = { .count = 4,
		     .top = 2,
		     .ffn = 8,
		     .shared = 1,
		     .dense = 1,
		     .normed = true,
		     .scale = 1 },
};

static struct model *make(const struct model_shape *shape)
{
	const struct model_options options = { .batch = 2, .seq = 7 };
	struct err err = { 0 };
	struct model *m;

	if (model_create(&m, shape, backend_cpu(), device, &options, &err))
		fail_msg("%s", err.text);
	model_init_weights(m, 3, 0.5);
	return m;
}

static const struct model_tensor *find(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->tensors; i++)
		if (strcmp(m->tensor[i].name, name) == 0)
			return &m->tensor[i];
	fail_msg("no tensor %s", name);
	return NULL;
}

/* Backward passes count every choice, and only those of layers with experts. */
static void test_loads(void **state)
{
	int32_t tokens[14];
	struct model *m = make(&small);
	struct err err = { 0 };
	double loss;

	(void)state;
	for (int i = 0; i < 14; i++)
		tokens[i] = i * 5 % 29;
	assert_int_equal(model_loss(m, tokens, tokens, &loss, &err), 0);
	for (int pass = 1; pass < 3; pass++) {
		assert_int_equal(model_backprop(m, tokens, tokens, 1, false, &loss, &err), 0);
		for (size_t l = 0; l < 3; l++) {
			uint64_t sum = 0;
			for (size_t e = 0; e < 4; e++)
				sum += m->loads[l * 4 + e];
			assert_int_equal(sum, l == 0 ? 0 : 14 * 2 * pass);
		}
	}
	model_destroy(m);
}

/* By the sign of what an expert lacks of the mean, less the mean of these signs. */
static void test_balance(void **state)
{
	static const uint64_t loads[12] = { 9, 9, 9, 9, 10, 4, 5, 5, 6, 6, 6, 6 };
	static const float want[4] = { -0.15f, 0.05f, 0.05f, 0.05f };
	struct model *m = make(&small);
	const struct model_tensor *one = find(m, "model.layers.1.mlp.gate.e_score_correction_bias");
	const struct model_tensor *two = find(m, "model.layers.2.mlp.gate.e_score_correction_bias");

	(void)state;
	assert_true(one->is_balance && one->columns == 0 && one->rows == 4);
	model_balance(m, loads, 0.1);
	model_balance(m, loads, 0.1);
	for (size_t e = 0; e < 4; e++) {
		assert_true(fabsf(m->weights[one->offset + e] - 2 * want[e]) < 1e-6f);
		assert_true(m->weights[two->offset + e] == 0);
	}
	model_destroy(m);
}

static void test_shapes_refused(void **state)
{
	struct {
		const char *text;
		struct model_shape shape;
	} cases[] = { { "5 of 4 experts", small },          { "0 of 4", small },
		      { "4 layers without", small },        { "at least one shared", small },
		      { "qwen3_moe has no shared", small }, { "llama has no experts", small } };
	const struct model_options options = { .batch = 1, .seq = 4 };
	struct model_cost cost;

	(void)state;
	cases[0].shape.experts.top = 5;
	cases[1].shape.experts.top = 0;
	cases[2].shape.experts.dense = 4;
	cases[3].shape.experts.shared = 0;
	cases[4].shape.family = MODEL_QWEN3_MOE;
	cases[5].shape.family = MODEL_LLAMA;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		assert_int_equal(model_cost(&cost, &cases[i].shape, &options, &err), -1);
		if (!strstr(err.text, cases[i].text))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].text, err.text);
	}
}

static int open_device(void **state)
{
	const struct backend_options options = { .threads = 3 };

	(void)state;
	device = backend_cpu()->open(&options, (char[BACKEND_TEXT_BYTES]){ 0 });
	return device ? 0 : -1;
}

static int close_device(void **state)
{
	(void)state;
	backend_cpu()->close(device);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),         cmocka_unit_test(test_alike),
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_loads),
		cmocka_unit_test(test_balance),        cmocka_unit_test(test_shapes_refused),
	};
	return cmocka_run_group_tests(tests, open_device, close_device);
}
