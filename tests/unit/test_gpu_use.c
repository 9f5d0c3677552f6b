/* SPDX-License-Identifier: MIT */
/* test_gpu_use.c - XIDs, the job's control group, minutes, and who is idle. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "worker/lbrun/meter/machine.h"
#include "worker/lbrun/meter/minute.h"
#include "worker/lbrun/meter/usage.h"

static void test_xids(void **state)
{
	(void)state;
	assert_int_equal(xid_find(79)->fault, XID_HARDWARE);
	assert_int_equal(xid_find(31)->fault, XID_APPLICATION);
	assert_int_equal(xid_find(63)->fault, XID_HARMLESS);
	assert_int_equal(xid_find(4711)->fault, XID_UNKNOWN);
}

static void test_job_group(void **state)
{
	char *path = machine_job_group(
		"0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0\n", "/c");

	(void)state;
	assert_string_equal(path, "/c/system.slice/slurmstepd.scope/job_12");
	free(path);
	assert_null(machine_job_group("0::/user.slice/session-1.scope\n", "/c"));
	assert_null(machine_job_group("4:memory:/slurm/job_12\n0::/\n", "/c"));
}

static void test_minute(void **state)
{
	struct gpu_reading unknown = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 }, known = unknown;
	struct minute m = { .gpu_count = 0 };
	json_t *line, *gpu;

	(void)state;
	m.last.cpu_ms = 1000;
	minute_begin(&m, 0);
	minute_machine(&m, &(struct machine_reading){ 31000, 200, true, -1, -1 });
	minute_machine(&m, &(struct machine_reading){ 61000, 100, false, -1, -1 });
	known.use_percent = 90;
	minute_gpu(&m, 0, 3, &known);
	known.use_percent = 81;
	minute_gpu(&m, 0, 3, &known);
	minute_gpu(&m, 1, 4, &unknown);
	line = minute_line(&m, 60000);
	assert_int_equal(js_int(line, "seconds", 0), 60);
	assert_true(js_real(line, "cpu", 0) == 1.0);
	assert_true(js_real(line, "blocked", 0) == 0.5);
	assert_int_equal(js_int(line, "resident_mb", 0), 200);
	assert_null(json_object_get(line, "io_stall"));
	gpu = json_array_get(json_object_get(line, "gpus"), 0);
	assert_int_equal(js_int(gpu, "gpu", 0), 3);
	assert_int_equal(js_int(gpu, "use", 0), 86);
	assert_int_equal(json_object_size(json_array_get(json_object_get(line, "gpus"), 1)), 1);
	json_decref(line);
}

static int minutes, xids;
static char idle[256];

static void on_minute(void *arg, json_t *line)
{
	(void)arg;
	assert_string_equal(js_str(line, "type", ""), "usage");
	minutes++;
}

static void on_xid(void *arg, const char *node, int64_t gpu, int64_t xid)
{
	(void)arg;
	assert_string_equal(node, "n1");
	xids += gpu == 2 && xid == 48;
}

static void on_idle(void *arg, const char *text)
{
	(void)arg;
	snprintf(idle, sizeof(idle), "%s", text);
}

static void take(struct usage *u, int seq, int use)
{
	char text[512];
	json_t *file;

	snprintf(
		text, sizeof(text),
		"{\"seq\":%d,\"node\":\"n1\",\"rank\":8,\"usage\":{\"seconds\":60,\"gpus\":[{\"use\":%d},"
		"{\"use\":99}]},\"xids\":[{\"gpu\":2,\"xid\":48}],\"xid_count\":1}",
		seq, use);
	file = js_parse(text, strlen(text), NULL);
	usage_take(u, file);
	usage_judge_idle(u);
	json_decref(file);
}

static void test_idle(void **state)
{
	struct usage u = { .idle_after_ms = 120000,
			   .on_minute = on_minute,
			   .on_xid = on_xid,
			   .on_idle = on_idle };

	(void)state;
	take(&u, 1, 0);
	take(&u, 1, 0); /* the same minute again */
	assert_string_equal(idle, "");
	take(&u, 2, 2);
	assert_string_equal(idle, "1 of 2 GPUs idle for 2 min or longer: of rank 8");
	idle[0] = '\0';
	take(&u, 3, 0);
	assert_string_equal(idle, ""); /* told once */
	take(&u, 4, 50);
	take(&u, 5, 0);
	assert_string_equal(idle, ""); /* it counts anew */
	take(&u, 6, 0);
	assert_true(idle[0]);
	assert_int_equal(minutes, 6);
	assert_int_equal(xids, 1);
	usage_close(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xids),
		cmocka_unit_test(test_job_group),
		cmocka_unit_test(test_minute),
		cmocka_unit_test(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
