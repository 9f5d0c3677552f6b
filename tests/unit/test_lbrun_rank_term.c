/* SPDX-License-Identifier: MIT */
/* test_lbrun_rank_term.c - which processes start ranks, as far as their names and command lines
 * tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/lbrun/rank/rank_term.h"

#define ARGS(text) text, sizeof(text)

static void test_names(void **state)
{
	static const struct {
		const char *comm, *args;
		size_t size;
		enum launcher what;
	} cases[] = {
		{ "torchrun", ARGS("/usr/bin/python3\0/usr/bin/torchrun\0train.py"),
		  LAUNCHER_LOCAL },
		{ "python3", ARGS("python3\0-u\0/opt/bin/torchrun\0train.py"), LAUNCHER_LOCAL },
		{ "python3", ARGS("python3\0/opt/torchrun/train.py"), LAUNCHER_NONE },
		{ "python3", ARGS("python3\0-m\0torch.distributed.run\0train.py"), LAUNCHER_LOCAL },
		{ "python3.11", ARGS("python3.11\0-u\0-m\0torch.distributed.run"), LAUNCHER_LOCAL },
		{ "python3", ARGS("python3\0-u\0-m\0torchtitan.train"), LAUNCHER_NONE },
		{ "python3", ARGS("python3\0train.py\0-m\0torch.distributed.run"), LAUNCHER_NONE },
		{ "python3", ARGS("python3\0-m"), LAUNCHER_NONE },
		{ "python3", ARGS(""), LAUNCHER_NONE },
		{ "mpirun", ARGS("mpirun\0-np\0002\0train"), LAUNCHER_LOCAL },
		{ "hydra_bstrap_pr", ARGS("hydra_bstrap_proxy"), LAUNCHER_LOCAL },
		{ "srun", ARGS("srun\0train"), LAUNCHER_SRUN },
		{ "composer", ARGS("python3\0/opt/bin/composer\0train.py"), LAUNCHER_LOCAL },
		{ "python3", ARGS("python3\0-m\0composer\0train.py"), LAUNCHER_LOCAL },
		{ "uv", ARGS("uv\0run\0python\0train.py"), LAUNCHER_LOCAL },
		{ "tee", ARGS("tee\0train.log"), LAUNCHER_NONE },
		{ "lbrun", ARGS("lbrun\0--rank\0--\0train"), LAUNCHER_RANK },
		{ "sh", ARGS("sh\0-c\0srun train"), LAUNCHER_NONE },
		{ "lbworker", ARGS("lbworker\0-m\0torch.distributed.run"), LAUNCHER_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (launcher_is(cases[i].comm, cases[i].args, cases[i].size) != cases[i].what)
			fail_msg("case %zu: %s", i, cases[i].comm);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
