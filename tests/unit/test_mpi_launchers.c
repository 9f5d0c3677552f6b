/* SPDX-License-Identifier: MIT */
/* test_mpi_launchers.c - what MPI's launchers are told, and by whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/batch/mpi_launchers.h"

#define OPTION "--external-launcher"
#define BOOT "HYDRA_BOOTSTRAP"
#define ARGUMENTS "HYDRA_LAUNCHER_EXTRA_ARGS"

static void assert_has(const struct strv *env, const char *name, const char *value)
{
	const char *has = strv_get(env->items, name);

	if (value)
		assert_string_equal(has, value);
	else
		assert_null(has);
}

/* As Slurm's own sbatch has it in set_env_from_opts (src/common/env.c, 23.11 to 26.05). */
static void test_hydra(void **state)
{
	static const struct {
		const char *given;
		bool boots;
		const char *boot, *arguments;
	} rows[] = {
		{ "A=1", true, "slurm", OPTION },
		{ "A=1", false, NULL, NULL },
		{ BOOT "=slurm", false, "slurm", OPTION },
		{ BOOT "=ssh", true, "ssh", NULL },
		{ ARGUMENTS "=--overlap", true, "slurm", "--overlap" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct strv env = { 0 };

		strv_add(&env, xstrdup(rows[i].given));
		mpi_launchers_add(&env, rows[i].boots);
		assert_has(&env, BOOT, rows[i].boot);
		assert_has(&env, ARGUMENTS, rows[i].arguments);
		assert_has(&env, "I_MPI_" BOOT, rows[i].boots ? "slurm" : NULL);
		assert_has(&env, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
			   rows[i].boots ? OPTION : NULL);
		strv_free(env.items);
	}
}

static void test_open_mpi(void **state)
{
	struct strv env = { 0 };

	(void)state;
	strv_add(&env, xstrdup("PRTE_MCA_plm_slurm_args=--exact"));
	mpi_launchers_add(&env, false);
	assert_has(&env, "OMPI_MCA_plm_slurm_args", OPTION);
	assert_has(&env, "PRTE_MCA_plm_slurm_args", "--exact");
	strv_free(env.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hydra),
		cmocka_unit_test(test_open_mpi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
