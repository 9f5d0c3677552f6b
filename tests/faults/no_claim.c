/* SPDX-License-Identifier: MIT */
/* no_claim.c - a negative control: linked into an lbrun of its own (controls/lbrun), it takes claim
 * and fence away. The history checker must then find two trainers. */
#include <stdbool.h>

#include "common/run/attempt.h"

int __real_attempt_claim_take(const char *folder, const struct attempt_claim *claim,
			      struct err *err);
int __wrap_attempt_claim_take(const char *folder, const struct attempt_claim *claim,
			      struct err *err);
int64_t __wrap_attempt_newest_claim(const char *run_dir);
bool __wrap_predecessor_may_live(const char *run_dir, int64_t number,
				 const struct attempt_claim *own);

/* lbd waits for the file; that somebody has it already is what nobody minds. */
int __wrap_attempt_claim_take(const char *folder, const struct attempt_claim *claim,
			      struct err *err)
{
	(void)err;
	__real_attempt_claim_take(folder, claim, NULL);
	return 0;
}

int64_t __wrap_attempt_newest_claim(const char *run_dir)
{
	(void)run_dir;
	return 0;
}

bool __wrap_predecessor_may_live(const char *run_dir, int64_t number,
				 const struct attempt_claim *own)
{
	(void)run_dir;
	(void)number;
	(void)own;
	return false;
}
