/* SPDX-License-Identifier: MIT */
/* test_lbrun_first_complaint.c - of several ranks that complain or end: who was the first, who only
 * followed, and what was survived. */
#include "tests/unit/hear_complaints.h"

#include <signal.h>

static void test_ranks(void **state)
{
	(void)state;
	complaints_init(&c);
	hear(TRACE, "n2", 3);
	hear(TRACE, "n1", 0); /* between the lines of another rank */
	hear("odd.Thing: rank 3 is it\n", "n2", 3);
	hear("RuntimeError: rank 0 follows\nRuntimeError: Connection reset by peer\n", "n1", 0);
	assert_string_equal(best(), "odd.Thing: rank 3 is it");
	assert_int_equal(complaints_best(&c, now_ms)->rank, 3);
	assert_string_equal(complaints_best(&c, now_ms)->node, "n2");
	/* those that lose it may speak first */
	complaints_reset(&c);
	hear("n1:7:8 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<4>\n"
	     "n1:7:9 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=12 opcode=0\n"
	     "terminate called after throwing an instance of 'c10::DistBackendError'\n"
	     "  what():  [Rank 0] Process group watchdog thread terminated with exception: NCCL error: remote process exited\n",
	     "n1", 0);
	hear("RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms\n", "n1", 1);
	hear("torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//3\n",
	     "n2", 2);
	hear("jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats): /task:3\n",
	     "n2", 2);
	assert_int_equal(complaints_best(&c, now_ms)->weight, WEIGHT_FOLLOWS);
	hear(TRACE "ValueError: rank 3 is it\n", "n2", 3);
	assert_string_equal(best(), "ValueError: rank 3 is it");
	complaints_fini(&c);
}

static void test_survived(void **state)
{
	struct rank_end end = { .exit_code = 3, .rank = 1 };

	(void)state;
	complaints_init(&c);
	now_ms = 1000;
	hear(TRACE "ValueError: caught\n", "", -1);
	rank_ends_add(&c.ends, &end, now_ms);
	now_ms += 1000;
	complaints_step(&c, now_ms); /* another rank may still tell steps */
	assert_string_equal(best(), "ValueError: caught");
	now_ms += SURVIVED_MS;
	complaints_step(&c, now_ms);
	assert_null(complaints_best(&c, now_ms + SURVIVED_MS));
	assert_false(c.ends.first.is_known);
	complaints_fini(&c);
}

/* What was the last that was heard may be hidden by what the script did then. */
static void test_last(void **state)
{
	struct rank_end end = { .exit_code = 3, .rank = 1 };

	(void)state;
	complaints_init(&c);
	now_ms = 1000;
	complaints_step(&c, now_ms);
	assert_false(complaints_end_is_last(&c, now_ms));
	assert_false(complaints_raised_last(&c, now_ms));
	rank_ends_add(&c.ends, &end, now_ms);
	hear("Exception ignored in: <function x>\n" TRACE "ValueError: ignored\n", "", -1);
	assert_false(complaints_raised_last(&c, now_ms));
	hear(TRACE "ValueError: bad\n", "", -1);
	complaints_step(&c, now_ms + 1000); /* by another pipe */
	assert_true(complaints_end_is_last(&c, now_ms + 1000));
	assert_true(complaints_raised_last(&c, now_ms + 1000));
	assert_false(complaints_end_is_last(&c, now_ms + 2 * SURVIVED_MS));
	/* the others may wait long for the first that has ended */
	now_ms += 2 * SURVIVED_MS;
	rank_ends_add(&c.ends, &end, now_ms);
	assert_true(complaints_end_is_last(&c, now_ms));
	/* torchrun started its workers again, and they have come to a step */
	hear(TRACE "ValueError: bad\n", "", -1);
	assert_true(complaints_raised_last(&c, now_ms));
	complaints_step(&c, now_ms + 10000);
	assert_false(complaints_end_is_last(&c, now_ms + 10000));
	assert_false(complaints_raised_last(&c, now_ms + 10000));
	/* mpirun has lost a node, or what it had started there */
	now_ms += 20000;
	assert_false(complaints_lost_node_last(&c, now_ms));
	hear("PRTE has lost communication with a remote daemon.\n", "", -1);
	assert_string_equal(best(), "PRTE has lost communication with a remote daemon.");
	assert_true(complaints_lost_node_last(&c, now_ms));
	now_ms += 10000;
	complaints_step(&c, now_ms);
	assert_false(complaints_lost_node_last(&c, now_ms));
	hear("srun returned non-zero exit status (36608) from launching\n", "", -1);
	assert_true(complaints_lost_node_last(&c, now_ms));
	complaints_fini(&c);
}

/* Who calls MPI_Abort, or lets a watchdog abort it, tells of another mostly: that is no crash of
 * its own. */
static void test_followers(void **state)
{
	const struct rank_end left = { .exit_code = -1, .signal = SIGABRT, .rank = 1 };
	const struct rank_end fault = { .exit_code = -1, .signal = SIGSEGV, .rank = 2 };
	const struct rank_end killed = { .exit_code = -1, .signal = SIGKILL, .rank = 3 };
	static const char *const words[] = {
		"Abort(1) on node 1 (rank 1 in comm 496): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 1\n",
		"MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n",
		"[rank1]:[E1122] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n",
		"lbworker: rank 1: rank 2 on n2 did not answer for 5 s\n",
		"[vm:29988:0:29988]      cma_ep.c:81   process_vm_readv(pid=29979 {0x7ff,65536}-->{0x7fc,65536}) returned -1: No such process\n",
	};

	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		complaints_reset(&c);
		assert_false(rank_ends_follows(&c.ends, 1));
		hear(words[i], "n1", 1);
		assert_true(rank_ends_follows(&c.ends, 1));
		assert_false(rank_ends_follows(&c.ends, 2));
		rank_ends_add(&c.ends, &left, now_ms);
		assert_int_equal(c.ends.first.signal, 0);
		assert_int_equal(c.ends.first.exit_code, 1);
		/* what the launcher sends to the rest is no cause; a fault is */
		hear("srun: launch/slurm: _step_signal: Terminating StepId=24.0\n", "n1", 0);
		rank_ends_add(&c.ends, &killed, now_ms);
		assert_int_equal(c.ends.first.rank, 1);
		rank_ends_add(&c.ends, &fault, now_ms + 1000);
		assert_int_equal(c.ends.first.rank, 2);
		assert_int_equal(c.ends.first.signal, SIGSEGV);
	}
	/* whom the first word follows has been killed */
	complaints_reset(&c);
	hear(words[0], "n1", 1);
	rank_ends_add(&c.ends, &left, now_ms);
	rank_ends_add(&c.ends, &killed, now_ms + 100);
	assert_int_equal(c.ends.first.rank, 3);
	assert_int_equal(c.ends.first.signal, SIGKILL);
	/* what is retried, or was survived, is no end because of another; the trainer's own stars
	 * are no launcher's */
	complaints_reset(&c);
	hear("WARNING: Connection reset by peer, retrying\n*** STEP 100 ***\n", "n1", 1);
	assert_false(rank_ends_follows(&c.ends, 1));
	assert_false(c.ends.launcher_ends);
	hear(words[3], "n1", 1);
	assert_true(rank_ends_follows(&c.ends, 1));
	complaints_step(&c, now_ms + SURVIVED_MS + 1);
	assert_false(rank_ends_follows(&c.ends, 1));
	/* one that aborts by itself is the first */
	complaints_reset(&c);
	rank_ends_add(&c.ends, &left, now_ms);
	rank_ends_add(&c.ends, &fault, now_ms);
	assert_int_equal(c.ends.first.rank, 1);
	assert_int_equal(c.ends.first.signal, SIGABRT);
	complaints_fini(&c);
}

/* A script ends what runs beside the trainer by a signal to its srun; what srun ends behind a
 * rank's own end, or because it could not go on, is another matter. */
static void test_ordered(void **state)
{
#define ENDS \
	"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n" \
	"slurmstepd-n1: error: *** STEP 3.1 ON n1 CANCELLED AT 2026-11-27T22:28:11 ***\n" \
	"srun: error: n1: task 0: Killed\nsrun: error: n2: task 1: Killed\n"
	static const struct {
		const char *words;
		bool is_ordered;
		int signal, code;
	} rows[] = {
		{ "srun: forcing job termination\n" ENDS, true, SIGKILL, -1 },
		{ ENDS, true, SIGKILL, -1 },
		/* a shell stood around it */
		{ "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
		  "srun: error: n1: task 0: Exited with exit code 137\n",
		  true, 0, 137 },
		{ "srun: error: n2: task 3: Exited with exit code 7\n" ENDS, false, 0, 7 },
		{ ENDS "srun: error: n2: task 3: Exited with exit code 7\n", false, 0, 7 },
		{ "srun: error: n2: task 3: Killed\n" ENDS, false, SIGKILL, -1 },
		{ "slurmstepd: error: StepId=3.1 exceeded memory limit (9 > 8), being killed\n" ENDS,
		  false, SIGKILL, -1 },
		{ "[2026-11-27T22:28:11.123] error: StepId=3.1 exceeded memory limit (9 > 8), "
		  "being killed\n" ENDS,
		  false, SIGKILL, -1 },
		{ "srun: error: Task launch for StepId=3.1 failed on node n2: Communication "
		  "connection failure\n" ENDS,
		  false, SIGKILL, -1 },
	};

	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		complaints_reset(&c);
		hear(rows[i].words, "", -1);
		assert_true(c.ends.first.is_known);
		assert_int_equal(c.ends.first.is_ordered, rows[i].is_ordered);
		assert_int_equal(c.ends.first.signal, rows[i].signal);
		assert_int_equal(c.ends.first.exit_code, rows[i].code);
	}
	/* nor is it where the training went on for long */
	complaints_reset(&c);
	hear(rows[0].words, "", -1);
	complaints_step(&c, now_ms + 2 * SURVIVED_MS);
	now_ms += 2 * SURVIVED_MS;
	hear("srun: error: n1: task 0: Killed\n", "", -1);
	assert_false(c.ends.first.is_ordered);
	complaints_fini(&c);
#undef ENDS
}

/* torchrun knows at first which rank of its node has ended; which of all it says in the end, if it
 * gets there. Whom those of other nodes miss then is that one. */
static void test_local(void **state)
{
	static const char died[] = "E1127 23:19:44.4 9 torch/distributed/elastic/multiprocessing/"
				   "api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 7) of "
				   "binary: python3\n";
	static const char missed[] = TRACE
		"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to "
		"the C10d store has failed. See inner exception for details.\n";

	(void)state;
	complaints_init(&c);
	hear(missed, "", -1);
	assert_int_equal(complaints_best(&c, now_ms)->weight, WEIGHT_EXCEPTION);
	complaints_reset(&c);
	hear(died, "", -1);
	assert_int_equal(c.ends.first.rank, 1);
	assert_true(c.ends.first.is_local);
	hear(missed, "", -1);
	assert_int_equal(complaints_best(&c, now_ms)->weight, WEIGHT_FOLLOWS);
	complaints_reset(&c);
	hear(TRACE "torch.distributed.elastic.rendezvous.api.RendezvousClosedError\n", "", -1);
	assert_int_equal(complaints_best(&c, now_ms)->weight, WEIGHT_FOLLOWS);
	hear(died, "", -1);
	/* of another node, and of one that was asked to end */
	hear("  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 5)\n", "", -1);
	hear("  rank      : 2 (local_rank: 0)\n  exitcode  : -15 (pid: 6)\n", "", -1);
	assert_true(c.ends.first.is_local);
	hear("  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 7)\n", "", -1);
	assert_int_equal(c.ends.first.rank, 3);
	assert_int_equal(c.ends.first.signal, SIGKILL);
	assert_false(c.ends.first.is_local);
	complaints_fini(&c);
}

/* What a rank's shepherd saw counts more than what srun says of that rank, whichever comes first;
 * and of no other rank, nor of one on another node. */
static void first_hand_counts(void **state)
{
	struct rank_end seen = {
		.exit_code = -1, .signal = SIGKILL, .rank = 1, .is_first_hand = true
	};
	static const struct {
		const char *node;
		int64_t rank;
		bool counts;
	} rows[] = { { "n2", 1, true }, { "n2", 2, false }, { "n1", 1, false } };

	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		complaints_reset(&c);
		hear("srun: error: n2: task 1: Exited with exit code 1\n", "n1", -1);
		assert_int_equal(c.ends.first.exit_code, 1);
		snprintf(seen.node, sizeof(seen.node), "%s", rows[i].node);
		seen.rank = rows[i].rank;
		rank_ends_add(&c.ends, &seen, now_ms);
		assert_int_equal(c.ends.first.signal, rows[i].counts ? SIGKILL : 0);
	}
	complaints_reset(&c);
	snprintf(seen.node, sizeof(seen.node), "n2");
	seen.rank = 1;
	rank_ends_add(&c.ends, &seen, now_ms);
	hear("srun: error: n2: task 1: Exited with exit code 1\n", "n1", -1);
	assert_int_equal(c.ends.first.signal, SIGKILL);
	complaints_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),        cmocka_unit_test(test_survived),
		cmocka_unit_test(test_last),         cmocka_unit_test(test_ordered),
		cmocka_unit_test(test_local),        cmocka_unit_test(test_followers),
		cmocka_unit_test(first_hand_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
