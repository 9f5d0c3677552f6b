/* SPDX-License-Identifier: MIT */
/* test_modes.c - which products of few bits matrix units make of codes, and scales of a byte; what
 * the plan says of both. */
#include <math.h>
#include <stdlib.h>

#include "kernels/formats/modes.h"
#include "kernels/formats/scale.h"
#include "tests/unit/unit.h"
#include "worker/lbworker/recipes/recipe.h"
#include "worker/lbworker/telemetry/plan.h"

enum { NONE = -1 };

/* clang-format off */
static const struct {
	const char *a, *b;
	struct product_sizes sizes;
	int capability, layout[2];
	const char *why;
} rows[] = {
	{ "e4m3fn tensor", "e4m3fn tensor", { 16, 32, 48 }, 89, { LAYOUT_SCALAR, LAYOUT_SCALAR }, NULL },
	{ "e5m2 tensor", "e4m3fn tensor", { 16, 32, 48 }, 100, { LAYOUT_SCALAR, LAYOUT_SCALAR }, NULL },
	{ "e5m2 tensor", "e5m2 tensor", { 16, 32, 48 }, 100, { NONE, NONE }, "no such pair" },
	{ "e4m3fn tensor", "e4m3fn tensor", { 16, 32, 48 }, 80, { NONE, NONE }, "no such pair" },
	{ "e4m3fn tensor", "e4m3fn tensor", { 8, 32, 48 }, 90, { NONE, NONE }, "no multiples of 16" },
	{ "e4m3fn row pow2", "e4m3fn row pow2", { 16, 32, 48 }, 90, { LAYOUT_VECTOR, LAYOUT_VECTOR }, NULL },
	{ "e4m3fn row pow2", "e4m3fn tensor pow2", { 16, 32, 48 }, 90, { LAYOUT_VECTOR, LAYOUT_VECTOR }, NULL },
	{ "e4m3fn row pow2", "e4m3fn row pow2", { 16, 32, 64 }, 100, { LAYOUT_E8M0, LAYOUT_E8M0 }, NULL },
	{ "e4m3fn row", "e4m3fn row", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "e4m3fn 1x128", "e4m3fn 128x128", { 16, 32, 48 }, 90, { LAYOUT_VEC128, LAYOUT_BLOCKS }, NULL },
	{ "e4m3fn 128x128", "e4m3fn 128x128", { 16, 32, 48 }, 90, { NONE, NONE }, "no such pair" },
	{ "e4m3fn 1x128", "e4m3fn 128x128", { 16, 32, 128 }, 100, { NONE, NONE }, "no such pair" },
	{ "e4m3fn 1x32 up", "e4m3fn 1x32 up", { 16, 32, 64 }, 100, { LAYOUT_E8M0, LAYOUT_E8M0 }, NULL },
	{ "e5m2 32x32 floor", "e4m3fn 1x64 even", { 16, 32, 64 }, 120, { LAYOUT_E8M0, LAYOUT_E8M0 }, NULL },
	{ "e4m3fn 1x32 up", "e4m3fn 1x32 up", { 16, 32, 64 }, 90, { NONE, NONE }, "no such pair" },
	{ "e4m3fn 1x32 up", "e4m3fn 1x32 up", { 16, 32, 48 }, 100, { NONE, NONE }, "summed over, of 32" },
	{ "e4m3fn 1x16 up", "e4m3fn 1x32 up", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "e2m3 1x32 up", "e2m3 1x32 up", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "e2m1 1x16 e4m3 hadamard", "e2m1 16x16 e4m3 hadamard", { 16, 32, 64 }, 100, { LAYOUT_E4M3, LAYOUT_E4M3 }, NULL },
	{ "e2m1 1x16 e4m3", "e2m1 1x32 up", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "e2m1 1x32 up", "e2m1 1x32 up", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "e2m1 1x16 e4m3", "e2m1 1x16 e4m3", { 16, 24, 64 }, 100, { NONE, NONE }, "no multiples of 16" },
	{ "e4m3fn 1x16 e4m3", "e4m3fn 1x16 e4m3", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "int8 row", "int8 row", { 16, 32, 64 }, 100, { NONE, NONE }, "no such pair" },
	{ "-", "e4m3fn tensor", { 16, 32, 64 }, 100, { NONE, NONE }, "stays as it is" },
};
/* clang-format on */

static void test_modes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum scale_layout layout[2];
		struct operand_cast a, b;
		struct err err = { 0 };
		assert_int_equal(slot_parse(&a, rows[i].a, &err), 0);
		assert_int_equal(slot_parse(&b, rows[i].b, &err), 0);
		const char *why = codes_refused(&a, &b, &rows[i].sizes, rows[i].capability, layout);
		if (!why != !rows[i].why || (why && !strstr(why, rows[i].why)))
			fail_msg("%s by %s: %s", rows[i].a, rows[i].b, why ? why : "taken");
		for (int j = 0; !why && j < 2; j++)
			assert_int_equal(layout[j], rows[i].layout[j]);
	}
}

/* As format_encode has them. */
static void test_codes(void **state)
{
	const struct format_cast nearest = { ROUND_NEAREST_EVEN, true };
	const float tensors[] = { 1, 0.3f, 0x1p-126f, 7e9f, 2.5e-5f };
	struct format e8m0, e4m3;

	(void)state;
	assert_true(format_find("e8m0", &e8m0) && format_find("e4m3fn", &e4m3));
	for (int e = -127; e <= 127; e++) {
		float scale = power_of_two(e).scale;
		assert_int_equal(e8m0_code(scale), format_encode(&e8m0, scale, &nearest, 0));
	}
	assert_int_equal(e8m0_code(NAN), 255);
	for (uint32_t code = 0; code < 127; code++) {
		float scale = format_decode(&e4m3, code);
		assert_int_equal(e4m3_code(scale), code);
		for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++)
			assert_int_equal(level_code(scale * tensors[i], tensors[i]), code);
	}
	assert_int_equal(e4m3_code(NAN), 127);
	assert_int_equal(level_code(NAN, 1), 127);
}

static void said(const struct config *c, const char *device, char *out, size_t bytes)
{
	memset(out, 0, bytes);
	FILE *to = fmemopen(out, bytes, "w");

	assert_non_null(to);
	plan_few_bits_print(c, plan_device_find(device, NULL), to);
	fclose(to);
}

static void test_plan(void **state)
{
	char recipe[16] = "nvfp4", text[512] = "";
	struct config c = { .local_batch_size = 1, .seq_len = 1024, .recipe = recipe };

	(void)state;
	c.shape = model_flavor_find(MODEL_LLAMA, "124M", NULL)->shape;
	/* 12 layers of four matrices, and the head, in three products each */
	said(&c, "H200", text, sizeof(text));
	assert_string_equal(
		text, "  few bits   0 products by codes; 147 emulated: its matrix units have no "
		      "such pair of formats and scales\n");
	said(&c, "B200", text, sizeof(text));
	assert_string_equal(text, "  few bits   147 products by codes\n");
	c.seq_len = 1040;
	said(&c, "B200", text, sizeof(text));
	assert_string_equal(text,
			    "  few bits   98 products by codes; 49 emulated: sizes that are no "
			    "multiples of 16, or, summed over, of 32\n");
	c.only_faster = true;
	said(&c, "B200", text, sizeof(text));
	assert_non_null(
		strstr(text, "98 products by codes where they are faster; 49 as they are: "));
	snprintf(recipe, sizeof(recipe), "none");
	said(&c, "B200", text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_plan),
	};
	return cmocka_run_group_tests_name("modes", tests, NULL, NULL);
}
