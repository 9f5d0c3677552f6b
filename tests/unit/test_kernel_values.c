/* SPDX-License-Identifier: MIT */
/* test_kernel_values.c - operations of the CPU backend against libm and plain sums. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/formats/float_bits.h"
#include "kernels/philox.h"
#include "tests/unit/cpu_device.h"

static void test_adamw(void **state)
{
	enum { COUNT = 70001 }; /* more than one task, and a tail */
	const struct adamw a = {
		.rate = 0.5f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f
	};
	struct step_control d = { .lr = 0.02f,
				  .grad_scale = 0.5f,
				  .step = 3,
				  .is_left_out = 1,
				  .to_m_hat = (float)(1 / (1 - pow(0.9, 3))),
				  .to_v_hat = (float)(1 / (1 - pow(0.95, 3))) };
	struct device *dev = open_device(2);
	float *w = noise(1, COUNT), *m = noise(2, COUNT), *v = noise(3, COUNT);
	float *g = noise(4, COUNT), *old = noise(1, COUNT), *old_m = noise(2, COUNT);

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		v[i] *= v[i];
	float *old_v = xmalloc(COUNT * sizeof(float));
	memcpy(old_v, v, COUNT * sizeof(float));
	backend_cpu()->adamw(dev, w, m, v, g, COUNT, &a, &d);
	assert_memory_equal(w, old, COUNT * sizeof(float));
	assert_memory_equal(m, old_m, COUNT * sizeof(float));
	d.is_left_out = 0;
	backend_cpu()->adamw(dev, w, m, v, g, COUNT, &a, &d);
	for (size_t i = 0; i < COUNT; i++) {
		double grad = 0.5 * (double)g[i];
		double mean = 0.9 * (double)old_m[i] + 0.1 * grad;
		double square = 0.95 * (double)old_v[i] + 0.05 * grad * grad;
		double direction = mean / (1 - pow(0.9, 3)) /
				   (sqrt(square / (1 - pow(0.95, 3))) + 1e-8);
		double want = (double)old[i] - 0.01 * (direction + 0.1 * (double)old[i]);
		assert_true(fabs((double)m[i] - mean) <= 1e-5);
		assert_true(fabs((double)v[i] - square) <= 1e-5 * (1 + square));
		assert_true(fabs((double)w[i] - want) <= 1e-5 * (1 + fabs(direction)));
	}
	free(w);
	free(m);
	free(v);
	free(g);
	free(old);
	free(old_m);
	free(old_v);
	backend_cpu()->close(dev);
}

/* bf16 by the 16 bits that backend.h names, one element at a time. */
static uint16_t narrowed(float x, const struct adamw *a, uint64_t i, uint32_t tensor)
{
	const uint32_t counter[4] = { (uint32_t)(i / 8), 0, tensor, 3 };
	const uint32_t key[2] = { (uint32_t)a->key, (uint32_t)(a->key >> 32) };
	uint32_t words[4];

	philox4x32_10(words, counter, key);
	return (uint16_t)((bits_of(x) + (words[i % 8 / 2] >> 16 * (i % 2) & 0xffffu)) >> 16);
}

static void test_bf16_moments(void **state)
{
	enum { COUNT = 66001 };
	const struct adamw a = { .rate = 1,
				 .beta1 = 0.9f,
				 .beta2 = 0.95f,
				 .eps = 1e-8f,
				 .bf16_moments = true,
				 .first = 13,
				 .key = 0x123456789abcdefu };
	const struct step_control d = {
		.lr = 0.02f, .grad_scale = 1, .step = 3, .to_m_hat = 1, .to_v_hat = 1
	};
	float *w = noise(1, COUNT), *g = noise(4, COUNT);
	uint16_t *m = xmalloc(2 * COUNT * sizeof(*m)), *v = m + COUNT;
	struct device *dev = open_device(2);

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		m[i] = (uint16_t)(0x3f00 + i % 200), v[i] = (uint16_t)(0x3e00 + i % 300);
	backend_cpu()->adamw(dev, w, m, v, g, COUNT, &a, &d);
	for (size_t i = 0; i < COUNT; i++) {
		float mean = 0.9f * float_of((uint32_t)(0x3f00 + i % 200) << 16) +
			     (1.0f - 0.9f) * g[i];
		float square = 0.95f * float_of((uint32_t)(0x3e00 + i % 300) << 16) +
			       (1.0f - 0.95f) * g[i] * g[i];
		assert_int_equal(m[i], narrowed(mean, &a, a.first + i, 0));
		assert_int_equal(v[i], narrowed(square, &a, a.first + i, 1));
	}
	backend_cpu()->close(dev);
	free(m);
	free(w);
	free(g);
}

/* The same bits for any number of threads and from any place on; mean and width as asked for; what
 * libm makes of the same words. */
static void test_normal(void **state)
{
	enum { COUNT = 200003, BEGIN = 4 * 777 };
	const struct normal whole = {
		.key = 0x123456789abcdefu, .tensor = 9, .step = 2, .std = 2.0
	};
	struct normal part = whole;
	float *x = xmalloc(2 * COUNT * sizeof(float)), *y = x + COUNT;
	double sum = 0, squares = 0, worst = 0;

	(void)state;
	part.first = BEGIN;
	for (int i = 0; i < 2; i++) {
		struct device *dev = open_device(i ? 3 : 1);
		backend_cpu()->normal(dev, i ? y + BEGIN : x, COUNT - (i ? BEGIN : 0),
				      i ? &part : &whole);
		backend_cpu()->close(dev);
	}
	assert_memory_equal(x + BEGIN, y + BEGIN, (COUNT - BEGIN) * sizeof(float));
	for (size_t i = 0; i < COUNT; i++) {
		const uint32_t counter[4] = { (uint32_t)(i / 4), 0, 9, 2 };
		const uint32_t key[2] = { 0x89abcdefu, 0x1234567u };
		uint32_t w[4];
		philox4x32_10(w, counter, key);
		const uint32_t *pair = w + (i % 4 / 2 * 2);
		double radius = sqrt(-2 * log(((double)pair[0] + 1) / 4294967296.0));
		double angle = 2 * 3.14159265358979323846 * ((double)pair[1] / 4294967296.0);
		double want = 2 * radius * (i % 2 ? sin(angle) : cos(angle));
		worst = fmax(worst, fabs((double)x[i] - want) / (1e-7 * fabs(want) + 1e-14));
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
	}
	assert_true(worst <= 1);
	assert_true(fabs(sum / COUNT) < 0.03);
	assert_true(fabs(sqrt(squares / COUNT) - 2.0) < 0.03);
	free(x);
}

static void test_sum_squares(void **state)
{
	const size_t count = ((size_t)3 << 20) + 77;
	float *x = noise(1, count);
	double want = 0, have[2];

	(void)state;
	for (size_t i = 0; i < count; i++)
		want += (double)x[i] * (double)x[i];
	for (int i = 0; i < 2; i++) {
		struct device *dev = open_device(i ? 3 : 1);
		backend_cpu()->sum_squares(dev, &have[i], x, count, false, false);
		backend_cpu()->close(dev);
	}
	assert_true(have[0] == have[1]);
	assert_true(fabs(have[0] - want) <= 1e-6 * want);
	free(x);
}

static void test_decide(void **state)
{
	static const struct {
		struct step_control d;
		float grad_scale;
		uint32_t is_left_out;
	} cases[] = {
		{ { .norm_limit = INFINITY, .norm_most = 1, .loss_sum = 5, .squares = 16 },
		  0.25f,
		  0 },
		{ { .norm_limit = INFINITY, .norm_most = 4, .loss_sum = 5, .squares = 16 }, 1, 0 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = 16 }, 1, 0 },
		{ { .norm_limit = 4, .norm_most = 1, .loss_sum = 5, .squares = 16 }, 0.25f, 0 },
		{ { .norm_limit = 3.9, .loss_sum = 5, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = NAN, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = INFINITY, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = NAN }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = INFINITY }, 1, 1 },
	};
	const float losses[] = { 1, 2.5f, 4 };
	struct device *dev = open_device(1);
	double sum = NAN;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct step_control d = cases[i].d;
		backend_cpu()->decide(dev, &d);
		assert_int_equal(d.is_left_out, cases[i].is_left_out);
		assert_true(d.grad_scale == cases[i].grad_scale);
	}
	backend_cpu()->sum_losses(dev, &sum, losses, 3, false);
	assert_true(sum == 7.5);
	backend_cpu()->sum_losses(dev, &sum, losses, 2, true);
	assert_true(sum == 11);
	backend_cpu()->close(dev);
}

static void test_exp(void **state)
{
	(void)state;
	for (int i = -8700; i <= 8800; i++) {
		double x = i * 0.01;
		double have = (double)cpu_exp((float)x), want = exp((double)(float)x);
		assert_true(fabs(have - want) <= 3e-7 * want);
	}
	assert_true(isnan(cpu_exp(NAN)));
}

/* Both forms against libm, tails too. */
static void test_gelu(void **state)
{
	struct device *dev = open_device(1);

	(void)state;
	for (int i = -4000; i <= 4000; i++) {
		float x = (float)i * 0.003f, have;
		double v = (double)x, want = v * 0.5 * erfc(-v * sqrt(0.5));
		backend_cpu()->gelu_forward(dev, &have, &x, 1, GELU_ERF);
		/* rounding of the exponent grows with it: x^2/2 times 6e-8 */
		double tolerance = 2e-6 + 2e-7 * v * v;
		if (!(fabs((double)have - want) <= tolerance * fabs(want) + 1e-37))
			fail_msg("gelu(%g) = %g, not %g", v, (double)have, want);
		double u = sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v);
		want = v / (1 + exp(-2 * u));
		backend_cpu()->gelu_forward(dev, &have, &x, 1, GELU_TANH);
		if (!(fabs((double)have - want) <= 10 * tolerance * fabs(want) + 1e-35))
			fail_msg("gelu by tanh(%g) = %g, not %g", v, (double)have, want);
	}
	backend_cpu()->close(dev);
}

/* A logit that is no number must show in the loss. */
static void test_nan_shows(void **state)
{
	struct device *dev = open_device(1);
	float z[35] = { 0 }, loss;
	const int32_t target = 1;

	(void)state;
	z[20] = NAN;
	backend_cpu()->cross_entropy(dev, &loss, z, &target, 1, 35, 1.0f);
	assert_false(isfinite(loss));
	backend_cpu()->close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adamw),  cmocka_unit_test(test_bf16_moments),
		cmocka_unit_test(test_normal), cmocka_unit_test(test_sum_squares),
		cmocka_unit_test(test_decide), cmocka_unit_test(test_exp),
		cmocka_unit_test(test_gelu),   cmocka_unit_test(test_nan_shows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
