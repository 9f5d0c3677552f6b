/* SPDX-License-Identifier: MIT */
/* test_doctor.c - each check of lbctl doctor that needs no lbd, in a world where it is right and in
 * one where it is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "ctl/doctor/doctor.h"

static char folder[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_doctor.XXXXXX");
	return mkdtemp(folder) ? setenv("PATH", folder, 1) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return folder_remove(folder, NULL);
}

/* What a command of the site says, instead of the real one. */
static void command(const char *name, const char *script)
{
	char *path = xasprintf("%s/%s", folder, name), *text = xasprintf("#!/bin/sh\n%s\n", script);

	assert_int_equal(file_write_visible(path, text, strlen(text), 0755, NULL), 0);
	assert_int_equal(chmod(path, 0755), 0);
	free(path);
	free(text);
}

static struct finding seen;

static enum verdict look(const struct check *table, const char *name, const struct patient *p)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	assert_non_null(table->name);
	seen = (struct finding){ 0 };
	table->look(p, &seen);
	if (seen.verdict == VERDICT_FINDING && (seen.text[0] == '\0' || seen.fix[0] == '\0'))
		fail_msg("%s: a finding must say what and what to do: \"%s\" \"%s\"", name,
			 seen.text, seen.fix);
	return seen.verdict;
}

static void file_systems(void **state)
{
	struct patient right = { .home = folder }, wrong = { .home = "/no/such/folder" };

	(void)state;
	assert_int_equal(look(machine_checks, "file system", &right), VERDICT_FINE);
	assert_int_equal(look(machine_checks, "file system", &wrong), VERDICT_FINDING);
	assert_int_equal(look(machine_checks, "locks", &right), VERDICT_FINE);
	assert_int_equal(look(machine_checks, "locks", &wrong), VERDICT_FINDING);
	assert_int_equal(look(machine_checks, "clock", &right), VERDICT_FINE);
	assert_int_equal(look(machine_checks, "clock", &wrong), VERDICT_SKIPPED);
}

/* Nothing can be written to /proc: it has no room at all. */
static void space(void **state)
{
	char config[] = "\n[runs]\nfolder = \"/proc\"\n";
	struct patient wrong = { .home = folder, .config = config }, right = { .home = folder };

	(void)state;
	assert_int_equal(look(machine_checks, "space", &wrong), VERDICT_FINDING);
	assert_int_equal(look(machine_checks, "space", &right), VERDICT_FINE);
}

/* It may be reached by a link, and be a folder below a project's, which hands its group on; what is
 * advised opens nothing that was closed. */
static void modes(void **state)
{
	char *link = xasprintf("%s/home", folder);
	struct patient p = { .home = link };

	(void)state;
	assert_int_equal(symlink(folder, link), 0);
	assert_int_equal(look(machine_checks, "modes", &p), VERDICT_FINE);
	assert_int_equal(chmod(folder, 02700), 0);
	assert_int_equal(look(machine_checks, "modes", &p), VERDICT_FINE);
	assert_int_equal(chmod(folder, 0702), 0);
	assert_int_equal(look(machine_checks, "modes", &p), VERDICT_FINDING);
	assert_non_null(strstr(seen.fix, "; chmod 700 /"));
	assert_int_equal(chmod(folder, 0700), 0);
	free(link);
}

static void gpus(void **state)
{
	struct patient p = { .home = folder };

	(void)state;
	command("nvidia-smi", "echo 580.65.06");
	command("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'");
	assert_int_equal(look(machine_checks, "GPUs", &p), VERDICT_FINE);
	command("nvidia-smi", "echo 470.57.02");
	assert_int_equal(look(machine_checks, "GPUs", &p), VERDICT_FINDING);
}

static void munge_and_controller(void **state)
{
	char slurm[] = "MinJobAge = 300 sec\n";
	struct patient p = { .home = folder, .has_slurm = true, .slurm = slurm };

	(void)state;
	command("munge", "echo MUNGE:x");
	command("scontrol", "echo Slurmctld is UP");
	assert_int_equal(look(slurm_checks, "munge", &p), VERDICT_FINE);
	assert_int_equal(look(slurm_checks, "slurmctld", &p), VERDICT_FINE);
	command("munge", "echo no socket >&2; exit 1");
	command("scontrol", "echo DOWN; exit 1");
	assert_int_equal(look(slurm_checks, "munge", &p), VERDICT_FINDING);
	/* its configuration came from slurmctld: who asks too often is told that it is down */
	assert_int_equal(look(slurm_checks, "slurmctld", &p), VERDICT_FINE);
	p.slurm = NULL;
	assert_int_equal(look(slurm_checks, "slurmctld", &p), VERDICT_FINDING);
	p.has_slurm = false;
	assert_int_equal(look(slurm_checks, "munge", &p), VERDICT_SKIPPED);
}

static void job_age(void **state)
{
	char right_text[] = "MinJobAge               = 300 sec\n",
	     wrong_text[] = "MinJobAge = 2 sec\n";
	struct patient right = { .has_slurm = true, .slurm = right_text };
	struct patient wrong = { .has_slurm = true, .slurm = wrong_text };

	(void)state;
	assert_int_equal(look(slurm_checks, "MinJobAge", &right), VERDICT_FINE);
	assert_int_equal(look(slurm_checks, "MinJobAge", &wrong), VERDICT_FINDING);
}

static enum verdict skew_of(int seconds)
{
	time_t then = time(NULL) + seconds;
	char text[128];
	struct tm tm;
	struct patient p = { .has_slurm = true, .slurm = text };

	localtime_r(&then, &tm);
	strftime(text, sizeof(text), "Configuration data as of %Y-%m-%dT%H:%M:%S\n", &tm);
	return look(slurm_checks, "clock skew", &p);
}

static void clock_skew(void **state)
{
	(void)state;
	assert_int_equal(skew_of(0), VERDICT_FINE);
	assert_int_equal(skew_of(3600), VERDICT_FINDING);
	assert_int_equal(skew_of(-3600), VERDICT_FINDING);
}

static void calls(void **state)
{
	struct patient p = { .has_slurm = true,
			     .version = json_pack("{s:f}", "calls_per_minute", 12.0) };

	(void)state;
	assert_int_equal(look(slurm_checks, "calls", &p), VERDICT_FINE);
	json_object_set_new(p.version, "calls_per_minute", json_real(500));
	assert_int_equal(look(slurm_checks, "calls", &p), VERDICT_FINDING);
	json_decref(p.version);
	p.version = NULL;
	assert_int_equal(look(slurm_checks, "calls", &p), VERDICT_SKIPPED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_systems),         TEST(space),   TEST(modes),      TEST(gpus),
		TEST(munge_and_controller), TEST(job_age), TEST(clock_skew), TEST(calls),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
