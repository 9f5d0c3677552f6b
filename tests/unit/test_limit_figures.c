/* SPDX-License-Identifier: MIT */
/* test_limit_figures.c - limits of accounting in what scontrol of 22.05 and 24.11 prints. */
#include "tests/unit/unit.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/pipe/limit_figures.h"

#define NONE "cpu=N(4),mem=N(2048),node=N(1),gres/gpu=N(0)"
#define ACCOUNT(name, user, parent, rest) \
	"ClusterName=mini Account=" name " UserName=" user \
	" Partition= Priority=0 ID=1 ParentAccount=" parent " Lft=1 DefAssoc=No " rest "\n"

static const char told[] = "Current Association Manager state\nAssociation Records\n" ACCOUNT(
	"lab", "", "root(1)", "GrpJobs=N(3) GrpTRES=cpu=64(60),mem=1024(10),gres/gpu=8(8) MaxJobs=")
	ACCOUNT("lab", "ada(1000)", "",
		"GrpJobs=N(2) GrpSubmitJobs=N(4) GrpTRES=" NONE
		" GrpTRESRunMins=cpu=6000(5990),mem=N(1) MaxJobs=2(2) MaxSubmitJobs=5(3) MaxWallPJ=60 MaxTRESPJ=cpu=4,node=2")
		ACCOUNT("lab", "bob(1)", "", "GrpJobs=N(2) MaxJobs=9(1)") ACCOUNT(
			"labs", "ada(1000)", "",
			"MaxJobs=7(7)") "QOS Records\n"
					"QOS=one(2) GrpJobs=4(4) GrpTRES=cpu=8(6),"
					"gres/gpu=2(1),gres/gpu:h100=2(2) MaxWallPJ=5 Account Limits= lab={MaxJobsPA=3(3) MaxTRESPA=cpu=4(4)} User Limits= 10={MaxJobsPU=8(8)} 1000={MaxJobsPU=1(1) MaxTRESPU=cpu=2(1),mem=N(512)}\n"
					"QOS=new(3) GrpJobs=N(1) Account Limits=No Accounts User Limits= ada(1000)={MaxJobsPU=6(5)}\n"
					"QOS=newer(4) User Limits= 1000(ada)={MaxJobsPU=7(6)}\n";

static void test_found(void **state)
{
	static const struct {
		const char *reason, *qos, *text; /* NULL = nothing is found */
	} rows[] = {
		{ "AssocMaxJobsLimit", "one", "you in account lab: 2 of 2 running jobs taken" },
		{ "AssocMaxSubmitJobLimit", "one",
		  "you in account lab: 3 of 5 jobs in the queue taken" },
		{ "AssocGrpCpuLimit", "one", "account lab: 60 of 64 CPUs taken" },
		{ "AssocGrpGRES", "one", "account lab: 8 of 8 gres/gpu taken" },
		{ "AssocGrpMemLimit", "one", "account lab: 10 of 1024 MB of memory taken" },
		{ "AssocGrpCPURunMinutesLimit", "one",
		  "you in account lab: 5990 of 6000 minutes of CPUs taken" },
		{ "AssocMaxWallDurationPerJobLimit", "one",
		  "you in account lab: at most 60 minutes of time for one job" },
		{ "AssocMaxCpuPerJobLimit", "one",
		  "you in account lab: at most 4 CPUs for one job" },
		{ "AssocGrpNodeLimit", "one", NULL },
		{ "QOSGrpJobsLimit", "one", "QOS one: 4 of 4 running jobs taken" },
		{ "QOSGrpCpuLimit", "one", "QOS one: 6 of 8 CPUs taken" },
		{ "QOSGrpGRES", "one", "QOS one: 2 of 2 gres/gpu:h100 taken" },
		{ "QOSMaxJobsPerUserLimit", "one",
		  "QOS one, for each user: 1 of 1 running jobs taken" },
		{ "QOSMaxJobsPerUserLimit", "new",
		  "QOS new, for each user: 5 of 6 running jobs taken" },
		{ "QOSMaxJobsPerUserLimit", "newer",
		  "QOS newer, for each user: 6 of 7 running jobs taken" },
		{ "QOSMaxCpuPerUserLimit", "one", "QOS one, for each user: 1 of 2 CPUs taken" },
		{ "MaxCpuPerAccount", "one", "QOS one, for each account: 4 of 4 CPUs taken" },
		{ "MaxJobsPerAccount", "one",
		  "QOS one, for each account: 3 of 3 running jobs taken" },
		{ "QOSMaxWallDurationPerJobLimit", "one",
		  "QOS one: at most 5 minutes of time for one job" },
		{ "QOSMaxNodePerUserLimit", "one", NULL },
		{ "QOSGrpJobsLimit", "on", NULL },
		{ "QOSGrpJobsLimit", NULL, NULL },
		{ "Priority", "one", NULL },
		{ "QOSMinGRES", "one", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct limit_of of = {
			.reason = rows[i].reason,
			.account = "lab",
			.qos = rows[i].qos,
			.uid = 1000,
		};
		json_t *o = limit_figures_read(&of, told, NULL, 0);

		if (!o != !rows[i].text)
			print_error("%s\n", rows[i].reason);
		if (rows[i].text)
			assert_string_equal(js_str(o, "text", ""), rows[i].text);
		else
			assert_null(o);
		json_decref(o);
	}
}

static void test_parent(void **state)
{
	struct limit_of of = { .reason = "AssocGrpNodeLimit", .account = "lab", .uid = 1000 };
	char parent[32] = "x";

	(void)state;
	assert_null(limit_figures_read(&of, told, parent, sizeof(parent)));
	assert_string_equal(parent, "root");
}

/* Cut off anywhere it is read to its end, and no further. */
static void test_cut(void **state)
{
	struct limit_of of = {
		.reason = "QOSMaxCpuPerUserLimit", .account = "lab", .qos = "one", .uid = 1000
	};

	(void)state;
	for (size_t len = 0; len < sizeof(told); len++) {
		char *text = xstrndup(told, len);
		char parent[8];

		json_decref(limit_figures_read(&of, text, parent, sizeof(parent)));
		of.reason = len % 2 ? "AssocGrpGRES" : "QOSMaxCpuPerUserLimit";
		free(text);
	}
}

/* More than all jobs together may have never comes free. */
static void test_beyond(void **state)
{
	static const struct {
		const char *reason, *text;
		int cpus, gpus;
	} rows[] = {
		{ "QOSGrpCpuLimit", "QOS one: 6 of 8 CPUs taken", 8, 0 },
		{ "QOSGrpCpuLimit",
		  "QOS one: 8 CPUs in all, the job asks for 9: it will not start as it is", 9, 0 },
		{ "AssocGrpGRES",
		  "account lab: 8 gres/gpu in all, the job asks for 9: it will not start as it is",
		  1, 9 },
		{ "AssocGrpCPURunMinutesLimit",
		  "you in account lab: 6000 minutes of CPUs in all, the job asks for 6060: it will "
		  "not start as it is",
		  101, 0 },
		{ "AssocMaxCpuPerJobLimit", "you in account lab: at most 4 CPUs for one job", 9,
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *totals = json_pack("{s:i, s:i}", "cpus", rows[i].cpus, "gpus",
					   rows[i].gpus);
		struct limit_of of = { rows[i].reason, "lab", "one", 1000, totals, 60 };
		json_t *o = limit_figures_read(&of, told, NULL, 0);

		assert_string_equal(js_str(o, "text", ""), rows[i].text);
		json_decref(o);
		json_decref(totals);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_beyond),
		cmocka_unit_test(test_parent),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
