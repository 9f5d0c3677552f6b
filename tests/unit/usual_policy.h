/* SPDX-License-Identifier: MIT */
/* usual_policy.h - the [restart] of a run that says little, for tests of what is decided. */
#ifndef TESTS_UNIT_USUAL_POLICY_H
#define TESTS_UNIT_USUAL_POLICY_H

#include "daemon/engine/decide/reconcile.h"

static const int64_t never[] = { 42 };
static const struct policy policy = {
	.max_without_progress = 3,
	.backoff_first_ms = 60000,
	.backoff_max_ms = 1800000,
	.kill_grace_ms = 10000,
	.stop_grace_ms = 300000,
	.never_on_exit_codes = never,
	.never_count = 1,
};

#endif
