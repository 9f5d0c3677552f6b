/* SPDX-License-Identifier: MIT */
/* test_lbrun_complaints.c - why it died, from what it printed: texts as Python, NCCL, launchers and
 * kernels write them. */
#include "tests/unit/unit.h"

#include "common/base/redact.h"
#include "worker/lbrun/trainer/complaints.h"

static struct complaints c;
static int64_t now_ms;

static void hear(const char *text, const char *node, int64_t rank)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[1000];
		struct heard heard = { line, len, node, rank, true, now_ms };

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		complaints_hear(&c, &heard);
		text += len + (text[len] == '\n');
	}
}

static const char *best(void)
{
	const struct complaint *b = complaints_best(&c, now_ms);

	return b ? b->text : "";
}

#define TRACE \
	"Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in <module>\n    main()\n"

/* clang-format off */
static const struct {
	const char *text, *want, *advice; /* NULL = none */
} deaths[] = {
	{TRACE "ValueError: bad shape\n", "ValueError: bad shape", NULL},
	{TRACE "    raise OSError(28, \"No space left on device\")\nValueError: bad\n", "ValueError: bad", NULL},
	{TRACE "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n"
	 TRACE "RuntimeError: no such key\n", "RuntimeError: no such key", NULL},
	{TRACE "mylib.Boom\n", "mylib.Boom", NULL},
	{TRACE "mylib.oops: it broke\nbye\n", "mylib.oops: it broke", NULL},
	{"step 1 loss 2\n" TRACE "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n",
	 "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", "the GPU's memory"},
	{TRACE "ModuleNotFoundError: No module named 'flash_attn'\n",
	 "ModuleNotFoundError: No module named 'flash_attn'", "not in the job's environment"},
	{TRACE "OSError: [Errno 28] No space left on device\n",
	 "OSError: [Errno 28] No space left on device", "a disk is full"},
	{TRACE "OSError: [Errno 122] Disk quota exceeded: '/x'\n",
	 "OSError: [Errno 122] Disk quota exceeded: '/x'", "quota"},
	{"RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28) in /dev/shm\n",
	 "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28) in /dev/shm", "/dev/shm is full"},
	{TRACE "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
	 "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", "/dev/shm is full"},
	{TRACE "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'\n",
	 "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'", "run.workdir"},
	{TRACE "PermissionError: [Errno 13] Permission denied: '/x'\n",
	 "PermissionError: [Errno 13] Permission denied: '/x'", "may not"},
	{TRACE "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE\n",
	 "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE", "port"},
	{TRACE "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n",
	 "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "driver is too old"},
	{TRACE "RuntimeError: CUDA error: an illegal memory access was encountered\n",
	 "RuntimeError: CUDA error: an illegal memory access was encountered", "CUDA_LAUNCH_BLOCKING"},
	{"RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
	 "RuntimeError: CUDA error: no kernel image is available for execution on the device", "H100"},
	{"n1:12:34 [0] NCCL INFO Using network Socket\n"
	 "n1:12:34 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<5> failed : Connection timed out\n"
	 TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1\n",
	 "n1:12:34 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<5> failed : Connection timed out", "NCCL_DEBUG"},
	{"slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks have been OOM Killed.\n",
	 "slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks have been OOM Killed.", "slurm.mem"},
	{"Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
	 "  File \"/w/train.py\", line 12 in forward\n  File \"/w/train.py\", line 20 in main\n",
	 "Fatal Python error: Segmentation fault; File \"/w/train.py\", line 12 in forward", NULL},
	{"terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad magic\n",
	 "terminate called after throwing an instance of 'std::runtime_error'; what():  bad magic", NULL},
	{"train: loss.c:12: step: Assertion `x > 0' failed.\n", "train: loss.c:12: step: Assertion `x > 0' failed.", NULL},
	{"sh: 1: trian.py: not found\n", "sh: 1: trian.py: not found", "PATH"},
	{"usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lrr 3\n", "train.py: error: unrecognized arguments: --lrr 3", NULL},
	{"./train: error while loading shared libraries: libx.so: cannot open shared object file\n",
	 "./train: error while loading shared libraries: libx.so: cannot open shared object file", "environment"},
	{"mca: unable to open mca_x: libnl-3.so: cannot open shared object file: No such file (ignored)\n"
	 "ValueError: bad shard\n", "ValueError: bad shard", NULL},
	{"train: cannot open the corpus\n", "train: cannot open the corpus", NULL},
	{"first: all is well\nlast words\n", "last words", NULL},
	/* the first error, not what follows from it; no bars, warnings and counts */
	{"ERROR: the shard 7 is bad\nerror: giving up\n", "ERROR: the shard 7 is bad", NULL},
	{"0 errors\nUserWarning: this error is none\nthe end\n 10%|# | 1/10 [00:01<00:09, 1it/s]\n", "the end", NULL},
	{TRACE "ValueError: bad\nE0102 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: /usr/bin/python3\n"
	 TRACE "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", "ValueError: bad", NULL},
	{"[rank3]: " "Traceback (most recent call last):\n[rank3]:   File \"x.py\", line 1, in f\n[rank3]: odd.Thing: 7\n", "odd.Thing: 7", NULL},
};
/* clang-format on */

static void test_deaths(void **state)
{
	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		const struct complaint *b;

		complaints_reset(&c);
		hear(deaths[i].text, "", -1);
		b = complaints_best(&c, now_ms);
		if (strcmp(best(), deaths[i].want) != 0)
			print_error("%s\n", deaths[i].text);
		assert_string_equal(best(), deaths[i].want);
		if (!deaths[i].advice)
			assert_null(b->advice);
		else
			assert_non_null(b->advice ? strstr(b->advice, deaths[i].advice) : NULL);
	}
	complaints_fini(&c);
}

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
	complaints_fini(&c);
}

static void test_survived(void **state)
{
	struct rank_end end = { .exit_code = 3, .rank = 1 };

	(void)state;
	complaints_init(&c);
	now_ms = 1000;
	hear(TRACE "ValueError: caught\n", "", -1);
	complaints_rank_ended(&c, &end, now_ms);
	now_ms += 1000;
	complaints_step(&c, now_ms); /* another rank may still tell steps */
	assert_string_equal(best(), "ValueError: caught");
	now_ms += COMPLAINT_SURVIVED_MS;
	complaints_step(&c, now_ms);
	assert_null(complaints_best(&c, now_ms + COMPLAINT_SURVIVED_MS));
	assert_false(c.end.is_known);
	complaints_fini(&c);
}

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
	{"mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal 11 (Segmentation fault).\n", -1, 11, 3, "n7"},
	{"  Process name: [[1,1],2]\n  Exit code:    3\n", 3, 0, -1, ""},
	{"=   EXIT CODE: 139\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n", -1, 11, -1, ""},
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
		assert_true(c.end.is_known);
		assert_int_equal(c.end.exit_code, ends[i].code);
		assert_int_equal(c.end.signal, ends[i].signal);
		assert_int_equal(c.end.rank, ends[i].rank);
		assert_string_equal(c.end.node, ends[i].node);
	}
	complaints_reset(&c);
	hear("srun: error: n1: task 3: Exited with exit code 0\nall exited with exit code 3\n"
	     "subprocess.CalledProcessError: Command '['rsync', 'a']' returned non-zero exit status 3.\n",
	     "", -1);
	assert_false(c.end.is_known);
	complaints_fini(&c);
}

static void test_redact(void **state)
{
	char *env[] = { TEXT("HOME=/home/ada"), TEXT("MY_API_KEY=abc123def"), TEXT("A_TOKEN=xy"),
			NULL };
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "the key abc123def is bad", "the key *** is bad" },
		{ "401 for hf_abcdefghijklmnopqrst at /home/ada xy",
		  "401 for *** at /home/ada xy" },
		{ "GET https://ada:pass1@host/x?token=abcdefgh&y=1",
		  "GET https://***@host/x?token=***&y=1" },
		{ "Authorization: Bearer abc.def-ghi, twice Bearer abc.def-ghi",
		  "Authorization: Bearer ***, twice Bearer ***" },
		{ "unexpected token in line 3, the password is wrong",
		  "unexpected token in line 3, the password is wrong" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "%s", rows[i].text);
		redact(text, env);
		assert_string_equal(text, rows[i].want);
	}
}

/* Bytes of all kinds. */
static void test_hostile(void **state)
{
	uint32_t random = 1;
	char line[4096];

	(void)state;
	complaints_init(&c);
	for (int i = 0; i < 500; i++) {
		struct heard heard = { line, sizeof(line) - 1, "", -1, true, i };

		for (size_t k = 0; k < sizeof(line) - 1; k++) {
			random = random * 1664525 + 1013904223;
			line[k] = i % 2 ? "error: [rank]No such 0%.' \x01"[(random >> 24) % 27]
					: (char)((random >> 24) | 1);
		}
		line[sizeof(line) - 1] = '\0';
		complaints_hear(&c, &heard);
		if (complaints_best(&c, i))
			assert_true(strlen(complaints_best(&c, i)->text) < COMPLAINT_BYTES);
	}
	complaints_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deaths),   cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_survived), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_redact),   cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
