/* SPDX-License-Identifier: MIT */
/* test_slots.c - who may start, row by row; and what is picked and written down of GPUs and
 * CPUs. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/batch/batch_counts.h"
#include "slurm/local/machine.h"
#include "slurm/local/needs.h"
#include "slurm/local/slots.h"

enum { MAX_JOBS = 5 };

/* clang-format off */
static const struct row {
	const char *name;
	struct slots machine;
	struct slot_job jobs[MAX_JOBS];
	enum slot_verdict want[MAX_JOBS];
	const char *reasons[MAX_JOBS];
	size_t count;
} rows[] = {
	{ "all fit", { 2, 4, 1000, 0 },
	  { { .wants = { .gpus = 1, .cpus = 2 } }, { .wants = { .gpus = 1, .mem_mb = 1000 } } },
	  { SLOT_STARTS, SLOT_STARTS }, { "", "" }, 2 },
	{ "what nobody asked for is not counted", { 1, 1, 1, 0 },
	  { { .wants = { 0 } }, { .wants = { 0 } }, { .wants = { .cpus = 1 } } },
	  { SLOT_STARTS, SLOT_STARTS, SLOT_STARTS }, { "", "", "" }, 3 },
	{ "GPUs are taken", { 4, 4, 0, 0 },
	  { { .wants = { .gpus = 3 }, .holds = true }, { .wants = { .gpus = 2 } } },
	  { SLOT_TAKEN, SLOT_NO_GPUS }, { "", "Resources: 1 of 4 GPUs free" }, 2 },
	{ "first come, first served", { 4, 4, 0, 0 },
	  { { .wants = { .gpus = 3 }, .holds = true },
	    { .wants = { .gpus = 4 } }, { .wants = { .gpus = 1 } } },
	  { SLOT_TAKEN, SLOT_NO_GPUS, SLOT_BEHIND },
	  { "", "Resources: 1 of 4 GPUs free", "Priority" }, 3 },
	{ "what the earlier one does not need may be had", { 4, 4, 0, 0 },
	  { { .wants = { .gpus = 3 }, .holds = true },
	    { .wants = { .gpus = 4, .cpus = 2 } }, { .wants = { .cpus = 2 } },
	    { .wants = { .cpus = 1 } } },
	  { SLOT_TAKEN, SLOT_NO_GPUS, SLOT_STARTS, SLOT_BEHIND },
	  { "", "Resources: 1 of 4 GPUs free", "", "Priority" }, 4 },
	{ "memory is what is missing", { 1, 1, 1000, 0 },
	  { { .wants = { .mem_mb = 900 }, .holds = true },
	    { .wants = { .mem_mb = 200 } }, { .wants = { .mem_mb = 50 } } },
	  { SLOT_TAKEN, SLOT_NO_MEM, SLOT_BEHIND },
	  { "", "Resources: 100 of 1000 MB free", "Priority" }, 3 },
	{ "so many jobs at once", { 0, 1, 1, 2 },
	  { { .wants = { 0 }, .holds = true }, { .wants = { 0 } }, { .wants = { 0 } } },
	  { SLOT_TAKEN, SLOT_STARTS, SLOT_NO_JOBS }, { "", "", "Resources: 0 of 2 jobs free" }, 3 },
	{ "tasks of an array, two at once", { 0, 4, 1, 0 },
	  { { .array_id = 7, .array_limit = 2, .holds = true },
	    { .array_id = 7, .array_limit = 2 }, { .array_id = 7, .array_limit = 2 },
	    { .array_id = 8, .array_limit = 1 } },
	  { SLOT_TAKEN, SLOT_STARTS, SLOT_ARRAY_LIMIT, SLOT_STARTS },
	  { "", "", "JobArrayTaskLimit", "" }, 4 },
	{ "an array at its limit keeps nothing back", { 1, 4, 1, 0 },
	  { { .array_id = 7, .array_limit = 1, .holds = true },
	    { .wants = { .gpus = 1 }, .array_id = 7, .array_limit = 1 }, { .wants = { .gpus = 1 } } },
	  { SLOT_TAKEN, SLOT_ARRAY_LIMIT, SLOT_STARTS }, { "", "JobArrayTaskLimit", "" }, 3 },
	{ "what can never start keeps nothing back", { 1, 1, 1, 0 },
	  { { .wants = { .gpus = 2 } }, { .wants = { .gpus = 1 } } },
	  { SLOT_NEVER, SLOT_STARTS }, { "BadConstraints", "" }, 2 },
	{ "more is taken than there is", { 1, 1, 1, 0 },
	  { { .wants = { .gpus = 1 }, .holds = true },
	    { .wants = { .gpus = 1 }, .holds = true }, { .wants = { .gpus = 1 } } },
	  { SLOT_TAKEN, SLOT_TAKEN, SLOT_NO_GPUS }, { "", "", "Resources: 0 of 1 GPUs free" }, 3 },
};
/* clang-format on */

static void test_plan(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		size_t count = row->count;
		struct slot_job jobs[MAX_JOBS];

		memcpy(jobs, row->jobs, sizeof(jobs));
		slots_plan(&row->machine, jobs, count);
		for (size_t j = 0; j < count; j++) {
			char reason[SLOT_REASON_BYTES];

			slots_reason(&row->machine, &jobs[j], reason);
			if (jobs[j].verdict != row->want[j])
				fail_msg("%s: job %zu: verdict %d, expected %d", row->name, j,
					 (int)jobs[j].verdict, (int)row->want[j]);
			assert_string_equal(reason, row->reasons[j]);
		}
	}
}

/* Whatever the jobs: never more than there is, and no later job delays an earlier one: taking all
 * later jobs away changes no verdict. */
static void test_promises(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct slots machine = { 4, 8, 100, round % 3 ? 0 : 3 };
		struct slot_job jobs[MAX_JOBS] = { 0 }, fewer[MAX_JOBS];
		int64_t gpus = 0, cpus = 0, mem = 0, count = 0;

		for (size_t j = 0; j < MAX_JOBS; j++) {
			jobs[j].wants.gpus = rand_r(&seed) % 4;
			jobs[j].wants.cpus = rand_r(&seed) % 5;
			jobs[j].wants.mem_mb = rand_r(&seed) % 60;
		}
		jobs[rand_r(&seed) % MAX_JOBS].holds = true;
		memcpy(fewer, jobs, sizeof(jobs));
		slots_plan(&machine, jobs, MAX_JOBS);
		for (size_t j = 0; j < MAX_JOBS; j++) {
			if (jobs[j].verdict != SLOT_STARTS && !jobs[j].holds)
				continue;
			gpus += jobs[j].wants.gpus;
			cpus += jobs[j].wants.cpus;
			mem += jobs[j].wants.mem_mb;
			count++;
		}
		assert_true(gpus <= 4 && cpus <= 8 && mem <= 100);
		assert_true(machine.jobs == 0 || count <= 3);
		for (size_t n = MAX_JOBS; n > 0; n--) {
			if (fewer[n - 1].holds)
				break;
			slots_plan(&machine, fewer, n - 1);
			for (size_t j = 0; j + 1 < n; j++)
				assert_int_equal(fewer[j].verdict, jobs[j].verdict);
		}
	}
}

static void test_check(void **state)
{
	struct slots machine = { 2, 8, 1000, 1 }, fits = { 2, 8, 1000, 0 }, large = { 3, 1, 1, 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(slots_check(&machine, &fits, &err), 0);
	assert_int_equal(slots_check(&machine, &large, &err), -1);
	assert_non_null(strstr(err.text, "slurm.gpus_per_node: the job wants 3 GPUs, this machine "
					 "has 2"));
	machine.gpus = 0;
	large.gpus = 1;
	err_clear(&err);
	assert_int_equal(slots_check(&machine, &large, &err), -1);
	assert_non_null(strstr(err.text, "wants 1 GPU, this machine has 0"));
}

/* Whatever way a script asks in, one machine gives it the same; what means nothing here is
 * named. */
static void test_needs(void **state)
{
	static const struct {
		const char *fields;
		struct slots want;
		const char *unused, *refused;
	} cases[] = {
		{ "{}", { 0 }, NULL, NULL },
		{ "{'gpus_per_node': 'h100:2'}", { .gpus = 2 }, NULL, NULL },
		{ "{'gres': 'gres:gpu:a100:3'}", { .gpus = 3 }, NULL, NULL },
		{ "{'gpus_per_task': '1', 'num_tasks': 4}", { .gpus = 4 }, NULL, NULL },
		{ "{'gres': 'gres:tmp:3'}", { 0 }, "--gres", NULL },
		{ "{'num_tasks': 2, 'cpus_per_task': 3, 'mem_per_cpu': 100}",
		  { .cpus = 6, .mem_mb = 600 },
		  NULL,
		  NULL },
		{ "{'gpus': '2', 'cpus_per_gpu': 4, 'mem_per_gpu': 50}",
		  { .gpus = 2, .cpus = 8, .mem_mb = 100 },
		  NULL,
		  NULL },
		{ "{'num_tasks': 4, 'mem_per_node': 7}", { .mem_mb = 7 }, NULL, NULL },
		{ "{'partition': 'p', 'qos': 'q', 'shared': 0}",
		  { 0 },
		  "--partition, --qos, --exclusive",
		  NULL },
		{ "{'plugin_options': ['--image=b', '--fast']}", { 0 }, "--image=b, --fast", NULL },
		{ "{'dependency': 'singleton'}", { 0 }, NULL, NULL },
		{ "{'dependency': 'afterok:7'}", { 0 }, NULL, "--dependency: " },
		{ "{'begin_time': 7}", { 0 }, NULL, "--begin: " },
		{ "{'gres': 'gres:gpu'}", { .gpus = 1 }, NULL, NULL },
		{ "{'gres': 'gpu:a100,tmp:3'}", { .gpus = 1 }, "--gres", NULL },
		{ "{'gpus_per_node': 'a100:1,h100:2'}", { .gpus = 3 }, NULL, NULL },
		{ "{'gpus_per_node': '2:'}", { 0 }, NULL, "--gpus-per-node: \"2:\" is no number" },
		{ "{'gpus_per_node': 'a:b:2'}", { 0 }, NULL, "--gpus-per-node: \"a:b:2\"" },
		{ "{'gpus_per_node': '-1'}", { 0 }, NULL, "--gpus-per-node: \"-1\"" },
		{ "{'gpus': 'a100'}", { 0 }, NULL, "--gpus: \"a100\"" },
		{ "{'gpus': '1,2x'}", { 0 }, NULL, "--gpus: \"2x\"" },
		{ "{'gpus_per_task': ':2'}", { 0 }, NULL, "--gpus-per-task: \":2\"" },
		{ "{'gres': 'gres:gpu=2'}", { 0 }, NULL, "--gres: \"gres:gpu=2\"" },
		{ "{'gres': 'gpu:2x'}", { 0 }, NULL, "--gres: \"gpu:2x\"" },
		{ "{'warn_time': 7, 'warn_signal': 9}", { 0 }, NULL, "--signal: " },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *fields;
		char *text = xstrdup(cases[i].fields), *unused;
		struct err err = { 0 };
		struct needs needs;

		for (char *at = text; *at; at++)
			*at = *at == '\'' ? '"' : *at;
		fields = json_loads(text, 0, NULL);
		free(text);
		assert_non_null(fields);
		unused = needs_unused(fields);
		if (cases[i].refused) {
			assert_int_equal(needs_read(fields, &needs, &err), -1);
			assert_int_equal(err.code, ERR_REFUSED);
			assert_contains(err.text, cases[i].refused);
		} else {
			assert_int_equal(needs_read(fields, &needs, &err), 0);
			assert_memory_equal(&needs.slots, &cases[i].want, sizeof(needs.slots));
			assert_string_equal(unused ? unused : "",
					    cases[i].unused ? cases[i].unused : "");
		}
		free(unused);
		json_decref(fields);
	}
}

/* As Slurm counts them: what a slip asks for must not pass for less, or for nothing. */
static void test_counts(void **state)
{
	(void)state;
	assert_int_equal(batch_sum_counts("a100:4,2"), 6);
	assert_int_equal(batch_sum_counts("2k"), 2048);
	assert_int_equal(batch_sum_counts("a100:1,h100:3M"), 1 + 3 * 1024 * 1024);
	assert_int_equal(batch_sum_counts("9p"), UINT32_MAX);
	assert_int_equal(batch_sum_counts("a100"), 1);
	assert_int_equal(batch_sum_counts("2:"), 0);
	assert_int_equal(batch_sum_counts(NULL), 0);
	assert_int_equal(batch_gpus_of_gres("gres:gpu:2k,tmp:7,gpu:a100"), 2049);
	assert_int_equal(batch_gpus_of_gres("gpu,gpu:h100:3"), 4);
}

static void test_sets(void **state)
{
	cpu_set_t all, taken, got;
	char *text;

	(void)state;
	assert_int_equal(gpus_pick(0xf, 0x5, 1), 0x2);
	assert_int_equal(gpus_pick(0xf, 0x5, 9), 0xa);
	text = gpus_text(0x8000000000000005u);
	assert_string_equal(text, "0,2,63");
	assert_true(gpus_parse(text) == 0x8000000000000005u);
	free(text);
	assert_true(gpus_parse("1,64,-3,x") == 0x2);
	assert_true(gpus_parse("") == 0);
	CPU_ZERO(&all);
	CPU_ZERO(&taken);
	for (size_t i = 3; i < 8; i++)
		CPU_SET(i, &all);
	CPU_SET(4, &taken);
	cpus_pick(&all, &taken, 3, &got);
	text = cpus_text(&got);
	assert_string_equal(text, "3,5,6");
	cpus_parse(text, &taken);
	assert_true(CPU_EQUAL(&taken, &got));
	free(text);
}

static void test_limits(void **state)
{
	const int64_t ids[] = { 1, 3, 70 };
	struct local_limits limits = {
		.gpus = -1, .gpu_ids = ids, .gpu_id_count = 3, .cpus = 1, .mem_mb = 512, .jobs = 4
	};
	struct machine m;

	(void)state;
	machine_find(&m, &limits);
	assert_true(m.gpus == 0xa);
	assert_int_equal(CPU_COUNT(&m.cpus), 1);
	assert_int_equal(m.mem_mb, 512);
	assert_int_equal(m.jobs, 4);
	limits = (struct local_limits){ .gpus = 64 };
	machine_find(&m, &limits);
	assert_true(m.gpus == UINT64_MAX);
	assert_true(m.mem_mb > 64 && CPU_COUNT(&m.cpus) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),   cmocka_unit_test(test_promises),
		cmocka_unit_test(test_check),  cmocka_unit_test(test_needs),
		cmocka_unit_test(test_counts), cmocka_unit_test(test_sets),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
