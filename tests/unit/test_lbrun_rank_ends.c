/* SPDX-License-Identifier: MIT */
/* test_lbrun_rank_ends.c - the end of a rank, as launchers tell of it. */
#include "tests/unit/hear_complaints.h"

/* clang-format off */
static const struct {
	const char *text;
	int code, signal, rank;
	const char *node;
} ends[] = {
	{"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 3) local_rank: 1 (pid: 4) of binary: /usr/bin/python3\n", 3, 0, 1, ""},
	{"E1122 10:00:00.1 12 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -11) local_rank: 2 (pid: 4) of binary: x\n", -1, 11, 2, ""},
	{"  exitcode  : -9 (pid: 17)\n", -1, 9, -1, ""},
	{"srun: error: n1: task 3: Exited with exit code 7\n", 7, 0, 3, "n1"},
	{"srun: error: n2: task 1: Segmentation fault (core dumped)\nsrun: error: n1: task 0: Terminated\n", -1, 11, 1, "n2"},
	{"srun: error: n1: tasks 0-3: Exited with exit code 2\n", 2, 0, 0, "n1"},
	{"srun: error: n2: task 3: Out Of Memory\n", -1, 9, 3, "n2"},
	{"mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal 11 (Segmentation fault).\n", -1, 11, 3, "n7"},
	{"  Process name: [[1,1],2]\n  Exit code:    3\n", 3, 0, 2, ""},
	{"prterun noticed that process rank 1 with PID 19645 on node vm exited on\nsignal 11 (Segmentation fault).\n", -1, 11, 1, ""},
	{"   Process name: [prterun-vm-19720@1,1]\n   Exit code:    7\n", 7, 0, 1, ""},
	{"MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n  Proc: [[63161,1],1]\n  Errorcode: 7\n", 7, 0, 1, ""},
	{"MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 3.\n", 3, 0, 1, ""},
	{"Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1\n", 3, 0, 1, ""},
	{"=   EXIT CODE: 139\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n", -1, 11, -1, ""},
	{"torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n", -1, 9, 1, ""},
	{"torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit code 3\n", 3, 0, 2, ""},
	{"[rank: 1] Child process with PID 123 terminated with code -9. Forcefully terminating all other processes to avoid zombies\n", -1, 9, 1, ""},
	{"ERROR:composer.cli.launcher:Rank 1 crashed with exit code -11.\nGlobal rank 0 (PID 100) exited with code -15\n", -1, 11, 1, ""},
	{"/x/slurm_script: line 3: 16050 Segmentation fault      (core dumped) python3 train.py\n", -1, 11, -1, ""},
	{"/x/slurm_script: line 3: torchrun: command not found\n", 127, 0, -1, ""},
	{"/x/slurm_script: 3: python3: not found\n", 127, 0, -1, ""},
	{"make: *** [Makefile:2: train] Killed\n", -1, 9, -1, ""},
	{"make[1]: *** [Makefile:2: train] Segmentation fault (core dumped)\nmake: *** [Makefile:9: all] Error 2\n", -1, 11, -1, ""},
	{"error: Recipe `train` was terminated on line 2 by signal 9\n", -1, 9, -1, ""},
	{"[ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python3', 'x.py'] exits with return code = -11\n", -1, 11, -1, ""},
	{"subprocess.CalledProcessError: Command '['/usr/bin/python3', 'x.py']' returned non-zero exit status 3.\n", 3, 0, -1, ""},
	{"subprocess.CalledProcessError: Command '['/usr/bin/python3', 'x.py']' died with <Signals.SIGSEGV: 11>.\n", -1, 11, -1, ""},
};
/* clang-format on */

static void test_ends(void **state)
{
	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		complaints_reset(&c);
		hear(ends[i].text, "", -1);
		assert_true(c.ends.first.is_known);
		assert_int_equal(c.ends.first.exit_code, ends[i].code);
		assert_int_equal(c.ends.first.signal, ends[i].signal);
		assert_int_equal(c.ends.first.rank, ends[i].rank);
		assert_string_equal(c.ends.first.node, ends[i].node);
		assert_int_equal(c.ends.first.oom, strstr(ends[i].text, "Memory") != NULL);
	}
	complaints_reset(&c);
	hear("srun: error: n1: task 3: Exited with exit code 0\nall exited with exit code 3\n"
	     "/x/slurm_script: line 3: nvidia-smi: command not found\n"
	     "make: *** [Makefile:2: train] Error 3\nmake: [Makefile:2: kill] Killed (ignored)\n"
	     "subprocess.CalledProcessError: Command '['rsync', 'a']' returned non-zero exit status 3.\n",
	     "", -1);
	assert_false(c.ends.first.is_known);
	complaints_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
