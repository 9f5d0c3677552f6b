/* SPDX-License-Identifier: MIT */
/* test_lbrun_predecessor.c - what the folders of older attempts tell of who may still be there. */
#include "tests/unit/unit.h"

#include <sys/wait.h>

#include "common/base/files.h"
#include "common/base/paths.h"
#include "worker/lbrun/shepherd/predecessor.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

struct older {
	bool is_claimed, has_exit, left_ranks;
	enum cause cause;
	int64_t launches;
};

#define NEVER_BEGAN \
	{ \
		0 \
	}
#define SILENT \
	{ \
		.is_claimed = true \
	}
#define WELL \
	{ \
		.is_claimed = true, .has_exit = true, .cause = CAUSE_CRASH, .launches = 1 \
	}
#define NO_LAUNCH \
	{ \
		.is_claimed = true, .has_exit = true, .cause = CAUSE_LAUNCH_FAIL \
	}
#define LOST \
	{ \
		.is_claimed = true, .has_exit = true, .cause = CAUSE_LOST, .launches = 1 \
	}
#define LEFT \
	{ \
		.is_claimed = true, .has_exit = true, .cause = CAUSE_KILLED, .launches = 1, \
		.left_ranks = true \
	}

/* Oldest first. */
static const struct {
	const char *of;
	struct older attempts[3];
	bool may_live, may_have_ranks;
} cases[] = {
	{ "nobody", { NEVER_BEGAN, NEVER_BEGAN }, false, false },
	{ "one that ended well", { WELL }, false, false },
	{ "one without a word", { SILENT }, true, true },
	{ "one whose lbrun was killed", { LOST }, false, true },
	{ "one that says so", { LEFT }, false, true },
	{ "one before those that never began", { LEFT, NEVER_BEGAN, NEVER_BEGAN }, false, true },
	{ "one before one that launched nothing", { LOST, NO_LAUNCH }, false, true },
	{ "one before one that launched", { LOST, WELL }, false, false },
	{ "one before one that launched, and before another",
	  { SILENT, WELL, NO_LAUNCH },
	  true,
	  false },
};

static const struct attempt_claim own = { .token = TOKEN, .host = "here", .boot_id = "boot" };

static void make(const char *run, int number, const struct older *older)
{
	struct attempt_claim claim = own;
	struct attempt_exit end = { .cause = older->cause,
				    .launches = older->launches,
				    .left_ranks = older->left_ranks,
				    .token = TOKEN };
	char *folder = path_join("%s/attempts/%d", run, number);

	snprintf(claim.host, sizeof(claim.host), "elsewhere");
	assert_int_equal(folder_make(folder, 0700, NULL), 0);
	if (older->is_claimed)
		assert_int_equal(attempt_claim_take(folder, &claim, NULL), 0);
	if (older->has_exit)
		assert_int_equal(attempt_exit_write(folder, &end, NULL), 0);
	free(folder);
}

static void test_older(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *run = path_join("run%zu", i);
		bool may_live, may_have_ranks;

		for (int n = 0; n < 3; n++)
			make(run, n + 1, &cases[i].attempts[n]);
		may_live = predecessor_may_live(run, 4, NULL, &own);
		may_have_ranks = predecessor_may_have_ranks(run, 4, NULL, &own);
		if (may_live != cases[i].may_live || may_have_ranks != cases[i].may_have_ranks)
			fail_msg("%s: may live: %d, may have ranks: %d", cases[i].of, may_live,
				 may_have_ranks);
		free(run);
	}
}

/* Each of this host, and without a word: a process that lives, and one that has ended, but that
 * nobody has reaped. */
static void test_process(void **state)
{
	struct attempt_claim claim = own;
	pid_t child = fork();
	siginfo_t ended;

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(folder_make("here/attempts/1", 0700, NULL), 0);
	assert_int_equal(folder_make("here/attempts/3", 0700, NULL), 0);
	claim.pid = child;
	assert_int_equal(attempt_claim_take("here/attempts/1", &claim, NULL), 0);
	assert_false(predecessor_may_live("here", 2, NULL, &own));
	claim.pid = getpid();
	assert_int_equal(attempt_claim_take("here/attempts/3", &claim, NULL), 0);
	assert_true(predecessor_may_live("here", 4, NULL, &own));
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
