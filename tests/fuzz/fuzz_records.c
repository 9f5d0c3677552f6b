/* SPDX-License-Identifier: MIT */
/* fuzz_records.c - the small files of an attempt, by whichever version of lbrun: parameters, claim,
 * order, exit. The first byte says which. */
#include "tests/fuzz/fuzz.h"

#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/run/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "attempt.json", "claim", "order", "exit.json" };
	const char *folder = fuzz_path(".");
	unsigned which = size > 0 ? data[0] % 4 : 0;
	struct err err = { 0 };
	struct attempt_params params = { 0 };
	struct attempt_claim claim;
	struct attempt_order order;
	struct attempt_exit ended;

	if (size == 0)
		return 0;
	fuzz_file(names[which], data + 1, size - 1);
	if (which == 0 && attempt_params_read(folder, &params, &err) == 0)
		attempt_params_clear(&params);
	else if (which == 1)
		attempt_claim_read(folder, &claim, &err);
	else if (which == 2)
		attempt_order_read(folder, &order, &err);
	else if (which == 3)
		attempt_exit_read(folder, &ended, &err);
	return 0;
}
