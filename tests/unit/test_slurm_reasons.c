/* SPDX-License-Identifier: MIT */
/* test_slurm_reasons.c - Slurm's reasons: every number has a name and a sentence, and no sentence
 * is a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include "slurm/reasons.h"

enum { KNOWN = 221 };

static void test_every_number(void **state)
{
	char text[SLURM_REASON_TEXT_BYTES];

	(void)state;
	for (uint32_t i = 1; i < KNOWN; i++) {
		const char *name = slurm_reason_name(i);

		slurm_reason_text(name, text);
		assert_true(strlen(name) > 3 && strlen(name) < 48);
		if (strncmp(text, "Slurm says", 10) == 0 || strpbrk(text, "0123456789"))
			fail_msg("%s has no sentence: %s", name, text);
		/* two numbers may share a name */
		assert_string_equal(slurm_reason_name(slurm_reason_from_word(name)), name);
	}
	assert_string_equal(slurm_reason_name(0), "");
	assert_string_equal(slurm_reason_name(KNOWN), SLURM_REASON_UNKNOWN);
	slurm_reason_text(SLURM_REASON_UNKNOWN, text);
	assert_non_null(strstr(text, "squeue"));
}

static const struct row {
	const char *reason, *words;
} rows[] = {
	{ "Resources: 1 of 4 GPUs free", "not free yet" },
	{ "ReqNodeNotAvail, UnavailableNodes:n2", "down, drained or reserved" },
	{ "QOSMaxGRESPerUser", "its QOS allows no more GPUs or other GRES for one user; it waits" },
	{ "QOSMaxWallDurationPerJobLimit",
	  "its QOS allows no more time for one job: it will not start" },
	{ "AssocGrpCpuLimit", "its account allows no more CPUs for all its jobs together" },
	{ "AssocGrpCPURunMinutesLimit",
	  "CPUs times minutes of running jobs for all its jobs together" },
	{ "QOSMinCpuNotSatisfied", "asks for fewer CPUs than its QOS wants" },
	{ "MaxJobsPerAccount", "no more running jobs for one account" },
	{ "MaxGRESRunMinsPerUser",
	  "no more GPUs or other GRES times minutes of running jobs for one user" },
	{ "AssocMaxSubmitJobLimit", "no more jobs in the queue" },
	{ "", "not looked at it yet" },
	{ "SomethingNew", "Slurm says SomethingNew" },
};

static void test_sentences(void **state)
{
	char text[SLURM_REASON_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		slurm_reason_text(rows[i].reason, text);
		if (!strstr(text, rows[i].words))
			fail_msg("%s: %s", rows[i].reason, text);
	}
}

/* Numbers that newer releases gave a meaning, or another one. */
static void test_newer(void **state)
{
	struct slurm_limit limit;

	(void)state;
	assert_string_equal(slurm_reason_name(17), "NvidiaImexChannels");
	assert_string_equal(slurm_reason_name(33), "RaisedSignal");
	assert_string_equal(slurm_reason_name(199), "ReservationInvalid");
	assert_string_equal(slurm_reason_name(204), "MaxEnergyRunMinsPerAccount");
	assert_string_equal(slurm_reason_name(220), "MpiPortsBusy");
	assert_true(slurm_reason_limit("MaxCpuRunMinsPerUser", &limit) && limit.is_qos);
	assert_string_equal(limit.key, "MaxTRESRunMinsPU");
}

/* What squeue has in the place of a word, or behind it. */
static void test_told(void **state)
{
	static const struct {
		const char *told, *name;
	} all[] = {
		{ "Resources", "Resources" },
		{ "ReqNodeNotAvail, UnavailableNodes:n2", "ReqNodeNotAvail" },
		{ "RaisedSignal:9(Killed)", "RaisedSignal" },
		{ "Nodes required for job are DOWN, DRAINED or reserved", "Resources" },
		{ "Reservation night was deleted", "ReservationDeleted" },
		{ "Reservation night is invalid", "ReservationInvalid" },
		{ "job requeued in held state", "JobHeldUser" },
		{ "launch failed requeued held", "JobHeldUser" },
		{ "launch failure limit exceeded requeued held", "JobHoldMaxRequeue" },
		{ "burst_buffer/lua: slurm_bb_data_in: no space", "BurstBufferOperation" },
		{ "Burst buffer pre_run error", "BurstBufferOperation" },
		{ "uid 1000 not in group permitted to use this partition (a). groups allowed: b",
		  "InvalidAccount" },
		{ "Requested topology configuration is not available", SLURM_REASON_UNKNOWN },
		{ "BrandNew", SLURM_REASON_UNKNOWN },
		{ "None", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_string_equal(slurm_reason_name(slurm_reason_told(all[i].told)), all[i].name);
}

static void test_words(void **state)
{
	(void)state;
	assert_int_equal(slurm_reason_from_word("Resources"), 3);
	assert_int_equal(slurm_reason_from_word("TimeLimit"), 25);
	assert_int_equal(slurm_reason_from_word("nonsense"), 0);
}

static void test_everywhere(void **state)
{
	(void)state;
	assert_true(slurm_reason_is_everywhere("Licenses"));
	assert_true(slurm_reason_is_everywhere("Dependency"));
	assert_false(slurm_reason_is_everywhere("Resources"));
	assert_false(slurm_reason_is_everywhere("PartitionTimeLimit"));
	assert_false(slurm_reason_is_everywhere(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number), cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_words),        cmocka_unit_test(test_newer),
		cmocka_unit_test(test_told),         cmocka_unit_test(test_everywhere),
	};

	return cmocka_run_group_tests_name("slurm reasons", tests, NULL, NULL);
}
