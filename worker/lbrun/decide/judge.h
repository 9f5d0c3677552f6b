/* SPDX-License-Identifier: MIT */
/* judge.h - what the end of a launch amounts to, and whether there is another in place. Pure. */
#ifndef LBRUN_DECIDE_JUDGE_H
#define LBRUN_DECIDE_JUDGE_H

#include "common/run/attempt.h"
#include "worker/lbrun/decide/decide.h"

/* Could a launch in place do better? Not where a node broke this one, unless a spare has its
 * place. */
bool launch_has_sound_nodes(const struct shepherd_facts *f, const struct shepherd_policy *policy);
/* Is a rank of it on another node not known to have ended? With a lease it does by itself. */
bool launch_may_have_left_ranks(const struct shepherd_facts *f,
				const struct shepherd_policy *policy);
/* The same of an older attempt, by its exit record; NULL: it left none. */
bool attempt_may_have_left_ranks(const struct attempt_exit *end);
/* Did it tell of more than lie between two that it tells? */
bool launch_has_steps_left(const struct launch *l);
/* The step NEXT_FINISH of the launch that has ended. */
struct next launch_judge(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			 int64_t now_ms);

/* Why it shall end, with the scheduler's SIGTERM at an announced time limit told as the warning. */
enum stop_why stop_reason(const struct shepherd_facts *f);

/* Have launches in a row come to nothing, two of them or all but the last that the run has? Then
 * what they were started from may be why. */
bool launch_gets_nowhere(const struct shepherd_facts *f, const struct shepherd_policy *policy);

#endif
