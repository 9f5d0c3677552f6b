/* SPDX-License-Identifier: MIT */
/* test_rng.c - known answers of Philox, and that the sample order visits everything once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "worker/lbworker/base/rng.h"

/* From the kat_vectors of the authors' Random123. */
static void test_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} cases[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t out[4];
		philox4x32_10(out, cases[i].counter, cases[i].key);
		assert_memory_equal(out, cases[i].out, sizeof(out));
	}
}

static void test_bijection(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 16, 17, 255, 1000, 4097, 100003 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t epoch = 0; epoch < 3; epoch++) {
			const struct rng rng = { .seed = 5, .stream = RNG_ORDER, .step = epoch };
			char *seen = xcalloc(sizes[i], 1);
			for (uint64_t at = 0; at < sizes[i]; at++) {
				uint64_t to = rng_permute(&rng, at, sizes[i]);
				assert_true(to < sizes[i]);
				assert_int_equal(seen[to], 0);
				seen[to] = 1;
			}
			free(seen);
		}
}

/* Another epoch or seed is another order, and no order is close to "as it comes". */
static void test_orders_differ(void **state)
{
	enum { SIZE = 1000 };
	const struct rng orders[] = {
		{ .seed = 5, .stream = RNG_ORDER, .step = 0 },
		{ .seed = 5, .stream = RNG_ORDER, .step = 1 },
		{ .seed = 6, .stream = RNG_ORDER, .step = 0 },
		{ .seed = 5 + ((uint64_t)1 << 32), .stream = RNG_ORDER, .step = 0 },
	};
	const size_t count = sizeof(orders) / sizeof(orders[0]);

	(void)state;
	for (size_t a = 0; a < count; a++)
		for (size_t b = 0; b <= a; b++) {
			int same = 0;
			for (uint64_t i = 0; i < SIZE; i++) {
				uint64_t other = a == b ? i : rng_permute(&orders[b], i, SIZE);
				same += rng_permute(&orders[a], i, SIZE) == other;
			}
			assert_in_range(same, 0, 12);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_bijection),
		cmocka_unit_test(test_orders_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
