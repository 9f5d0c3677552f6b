/* SPDX-License-Identifier: MIT */
/* test_narrow.c - numbers of 16 bits, f16 and bf16, to float and back, rounded to the nearest. */
#include "tests/unit/unit.h"

#include <math.h>

#include "worker/lbworker/base/narrow.h"

static void test_all_halves_come_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= 0xffff; i++) {
		uint16_t in = (uint16_t)i, out;
		float wide;
		narrow_from_f16(&wide, &in, 1);
		narrow_to_f16(&out, &wide, 1);
		if (isnan(wide))
			assert_true((out & 0x7c00) == 0x7c00 && (out & 0x3ff) != 0);
		else
			assert_int_equal(out, in);
		narrow_from_bf16(&wide, &in, 1);
		narrow_to_bf16(&out, &wide, 1);
		if (isnan(wide))
			assert_true((out & 0x7f80) == 0x7f80 && (out & 0x7f) != 0);
		else
			assert_int_equal(out, in);
	}
}

struct rounded_pair {
	float from;
	uint16_t f16, bf16;
};

static const struct rounded_pair roundings[] = {
	{ 0.0f, 0x0000, 0x0000 },
	{ -0.0f, 0x8000, 0x8000 },
	{ 1.0f, 0x3c00, 0x3f80 },
	{ -2.0f, 0xc000, 0xc000 },
	{ 1.0f + 0x1p-11f, 0x3c00, 0x3f80 },     /* half a step of f16: to even */
	{ 1.0f + 3 * 0x1p-11f, 0x3c02, 0x3f80 }, /* to even, upwards */
	{ 1.0f + 0x1p-11f + 0x1p-20f, 0x3c01, 0x3f80 },
	{ 1.0f + 0x1p-8f, 0x3c04, 0x3f80 }, /* half a step of bf16 */
	{ 1.0f + 3 * 0x1p-8f, 0x3c0c, 0x3f82 },
	{ 65504.0f, 0x7bff, 0x4780 },
	{ 65519.0f, 0x7bff, 0x4780 },
	{ 65520.0f, 0x7c00, 0x4780 },
	{ 0x1p-14f, 0x0400, 0x3880 },
	{ 0x1p-24f, 0x0001, 0x3380 },
	{ 0x1p-25f, 0x0000, 0x3300 }, /* a tie with 0: even */
	{ 0x1.8p-25f, 0x0001, 0x3340 },
	{ 0x1.ffcp-15f, 0x0400, 0x3880 }, /* the largest subnormal is not enough */
	{ INFINITY, 0x7c00, 0x7f80 },
	{ 3.4e38f, 0x7c00, 0x7f80 },
};

static void test_rounding(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(roundings); i++) {
		uint16_t f16, bf16;
		narrow_to_f16(&f16, &roundings[i].from, 1);
		narrow_to_bf16(&bf16, &roundings[i].from, 1);
		if (f16 != roundings[i].f16 || bf16 != roundings[i].bf16)
			fail_msg("%a: f16 %04x, bf16 %04x", (double)roundings[i].from, f16, bf16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_halves_come_back),
		cmocka_unit_test(test_rounding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
