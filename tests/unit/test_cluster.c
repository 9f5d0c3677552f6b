/* SPDX-License-Identifier: MIT */
/* test_cluster.c - what nodes and partitions could give a job, whether it would have room at once,
 * and values in what scontrol prints. */
#include "tests/unit/unit.h"

#include <time.h>

#include "common/base/json.h"
#include "slurm/pipe/absent.h"
#include "slurm/pipe/cluster.h"
#include "slurm/pipe/inquiry.h"
#include "slurm/pipe/record.h"

static struct cluster_node nodes[] = {
	{ .name = "n1",
	  .partitions = "debug,big",
	  .cpus = 8,
	  .mem_mb = 1000,
	  .gres = "gpu:h100:4(S:0-1),nvme:2",
	  .gres_used = "gpu:h100:3(IDX:0-2)",
	  .features = "ib,fast" },
	{ .name = "n2",
	  .partitions = "big",
	  .cpus = 4,
	  .cpus_used = 2,
	  .mem_mb = 4000,
	  .gres = "gpu:2",
	  .gres_used = "gpu:(null):1(IDX:0)" },
	{ .name = "n3",
	  .partitions = "biggest,big",
	  .cpus = 4,
	  .mem_mb = 4000,
	  .away = "down",
	  .reason = "fan" },
};

static struct cluster_partition partitions[] = {
	{ .name = "big",
	  .is_default = true,
	  .is_up = true,
	  .max_minutes = 60,
	  .max_nodes = CLUSTER_NO_LIMIT,
	  .total_nodes = 3,
	  .nodes = "n[1-3]" },
	{ .name = "debug",
	  .is_up = true,
	  .max_minutes = CLUSTER_NO_LIMIT,
	  .max_nodes = 1,
	  .total_nodes = 2, /* of which one is not told */
	  .nodes = "n1,cloud[7-8]" },
};

static const struct cluster cluster = { nodes, partitions, 3, 2, { 0 } };

static void take_first(const struct cluster_partition *p, void *arg)
{
	*(const struct cluster_partition **)arg = p;
}

static void test_exceeded(void **state)
{
	static const struct {
		const char *fields, *text; /* NULL: nothing is in its way */
	} rows[] = {
		{ "{}", NULL },
		{ "{\"time_limit\":60,\"min_nodes\":3,\"cpus_per_task\":4}", NULL },
		{ "{\"time_limit\":61}",
		  "partition big lets a job run for 1h00m, this one asks for 1h01m" },
		{ "{\"time_limit\":-1}",
		  "partition big lets a job run for 1h00m, this one asks for time without end" },
		{ "{\"time_limit\":600,\"time_min\":60}", NULL },
		{ "{\"time_limit\":600,\"time_min\":61}",
		  "partition big lets a job run for 1h00m, this one asks for 1h01m" },
		{ "{\"min_nodes\":4}", "partition big has 3 nodes, the job asks for 4" },
		{ "{\"min_nodes\":2,\"partition\":\"debug\"}",
		  "partition debug gives a job 1 node at most, this one asks for 2" },
		/* a node is missing in what was told: no number of nodes can be held against the
		 * job */
		{ "{\"cpus_per_task\":9,\"partition\":\"debug\"}", NULL },
		{ "{\"cpus_per_task\":9}",
		  "nodes of partition big have 8 CPUs at most, the job asks for 9 on each" },
		{ "{\"cpus_per_task\":4,\"ntasks_per_node\":2,\"min_nodes\":2}",
		  "1 nodes of partition big have 8 CPUs, the job asks for 2 of those" },
		{ "{\"cpus_per_task\":9,\"overcommit\":1}", NULL },
		{ "{\"mem_per_cpu\":600,\"cpus_per_task\":8}",
		  "nodes of partition big have 4000 MB of memory at most, the job asks for 4800 on each" },
		{ "{\"mem_per_node\":4001}",
		  "nodes of partition big have 4000 MB of memory at most, the job asks for 4001 on each" },
		{ "{\"gpus_per_node\":\"5\"}",
		  "nodes of partition big have 4 GPUs at most, the job asks for 5 on each" },
		{ "{\"gpus_per_node\":\"2k\"}",
		  "nodes of partition big have 4 GPUs at most, the job asks for 2048 on each" },
		{ "{\"gpus_per_node\":\"h100:2\",\"min_nodes\":2}",
		  "1 nodes of partition big have 2 GPUs of its type, the job asks for 2 of those" },
		{ "{\"gres\":\"nvme:1,gpu:a100:1\"}",
		  "nodes of partition big have 0 GPUs of its type at most, the job asks for 1 on each" },
		{ "{\"gres\":\"nvme:9\"}", NULL },
		{ "{\"features\":\"ib&fast\",\"min_nodes\":2}",
		  "1 nodes of partition big have the features ib&fast, the job asks for 2" },
		{ "{\"features\":\"ib|slow\"}", NULL },
		{ "{\"exc_nodes\":\"n[1-2]\",\"min_nodes\":2}",
		  "1 nodes of partition big are all that the job asks for at once (CPUs, memory, GPUs, features, not "
		  "excluded); it asks for 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *fields = json_loads(rows[i].fields, 0, NULL);
		const struct cluster_partition *p = NULL;
		json_t *limits;

		cluster_each(&cluster, js_str(fields, "partition", NULL), take_first, &p);
		assert_non_null(p);
		limits = cluster_exceeded(&cluster, fields, p);
		assert_string_equal(js_str(json_array_get(limits, 0), "text", "none"),
				    rows[i].text ? rows[i].text : "none");
		json_decref(limits);
		json_decref(fields);
	}
}

static void test_free_nodes(void **state)
{
	static const struct {
		const char *fields;
		unsigned free;
	} rows[] = {
		{ "{}", 2 },
		{ "{\"cpus_per_task\":3}", 1 },
		{ "{\"shared\":0}", 1 },
		{ "{\"shared\":2}", 1 }, /* --exclusive=user: whose jobs are there is not told */
		{ "{\"gpus_per_node\":\"1\"}", 2 },
		{ "{\"gpus_per_node\":\"2\"}", 0 },
		{ "{\"gpus_per_node\":\"h100:1\"}", 1 },
		{ "{\"exc_nodes\":\"n1\"}", 1 },
	};
	json_t *taken = json_pack("[s]", "n2");
	json_t *none = json_object();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *fields = json_loads(rows[i].fields, 0, NULL);

		assert_int_equal(cluster_free_nodes(&cluster, fields, &partitions[0], NULL),
				 rows[i].free);
		json_decref(fields);
	}
	assert_int_equal(cluster_free_nodes(&cluster, none, &partitions[0], taken), 1);
	json_decref(taken);
	json_decref(none);
}

/* A node on which something runs may be closed to the job, whatever is left of it. */
static void test_whole_nodes(void **state)
{
	static struct cluster_node some[] = {
		{ .name = "n1", .partitions = "any,whole", .cpus = 4, .cpus_used = 2 },
		{ .name = "n2", .partitions = "any,lend", .cpus = 4, .cpus_used = 2 },
		{ .name = "n3", .partitions = "any,whole,lend", .cpus = 4 },
	};
	static struct cluster_partition those[] = {
		{ .name = "any", .is_up = true },
		{ .name = "whole", .is_up = true, .gives_whole_nodes = true },
		{ .name = "lend", .is_up = true, .claims_nodes = true },
	};
	const struct cluster c = { some, those, 3, 3, { 0 } };
	json_t *none = json_object();

	(void)state;
	assert_int_equal(cluster_free_nodes(&c, none, &those[0], NULL), 2);
	assert_int_equal(cluster_free_nodes(&c, none, &those[1], NULL), 1);
	assert_int_equal(cluster_free_nodes(&c, none, &those[2], NULL), 1);
	json_decref(none);
}

static void test_absent(void **state)
{
	static const char *const rows[][2] = {
		{ "IDLE", NULL },
		{ "MIXED+PLANNED", NULL },
		{ "IDLE+POWERED_DOWN", NULL },
		{ "IDLE+POWERING_DOWN", NULL },
		{ "DOWN", "down" },
		{ "DOWN*", "down" },
		{ "IDLE+DRAIN", "drained" },
		{ "ALLOCATED+DRAINING", "drained" },
		{ "IDLE*", "does not answer" },
		{ "IDLE+NOT_RESPONDING", "does not answer" },
		{ "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "being started" },
		{ "DOWN+CLOUD+POWERING_UP", "down" },
		{ "IDLE+MAINT", "in maintenance" },
		{ "ALLOCATED+FAILING", "failing" },
	};
	unsigned count, all;
	char *text = cluster_absent_nodes(&cluster, &partitions[0], &count, &all);

	(void)state;
	assert_string_equal(text, "n3 (down: fan)");
	assert_int_equal(count, 1);
	assert_int_equal(all, 3);
	free(text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *how = cluster_absence(rows[i][0]);

		assert_string_equal(how ? how : "-", rows[i][1] ? rows[i][1] : "-");
	}
}

static int64_t plan_as_told(const struct inquiry *q, const char *partition, bool is_forgiven)
{
	(void)partition;
	(void)is_forgiven;
	return *(const int64_t *)q->arg;
}

static void test_room(void **state)
{
	static const struct queued waiting[] = {
		{ .job_id = 1, .partition = "debug,big", .is_in_line = true },
		{ .job_id = 2, .partition = "big,debug", .is_in_line = true },
		{ .job_id = 3, .partition = "other", .is_in_line = true },
		{ .job_id = 4, .partition = "debug" },
	};
	static const struct {
		size_t from;  /* of those that wait */
		int64_t in_s; /* Slurm's plan; -1: it has none */
		const char *text;
	} rows[] = {
		{ 0, 0, "jobs wait in line: 2" },
		{ 1, 0, "jobs wait in line: 1" },
		{ 2, 0, "" },
		{ 2, 3600, "no such nodes are free" },
		{ 2, -1, "Slurm names no time at which such nodes would be free" },
	};
	json_t *request = json_pack("{s:{s:s}}", "fields", "partition", "debug,big");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t start = rows[i].in_s < 0 ? 0 : time(NULL) + rows[i].in_s;
		struct answer a = { .text = "" };
		struct inquiry q = { .a = &a,
				     .request = request,
				     .cluster = &cluster,
				     .jobs = &waiting[rows[i].from],
				     .job_count = 4 - rows[i].from,
				     .plan = plan_as_told,
				     .arg = &start };

		inquire_room(&q);
		assert_string_equal(a.text, rows[i].text);
	}
	json_decref(request);
}

/* What is proposed lets the job in, and begins in its reader's time. */
static void test_sooner(void **state)
{
	static struct cluster_partition offers[] = {
		{ .name = "own", .is_up = true },
		{ .name = "vip", .is_up = true, .allow_accounts = "vip,board" },
		{ .name = "notlab", .is_up = true, .deny_accounts = "small,lab" },
		{ .name = "one", .is_up = true, .allow_qos = "one" },
		{ .name = "slow", .is_up = true, .deny_qos = "normal" },
		{ .name = "ours", .is_up = true, .allow_accounts = "vip,lab", .deny_qos = "one" },
		{ .name = "open", .is_up = true, .allow_accounts = "" },
	};
	static const struct cluster all = { .partitions = offers, .partition_count = 7 };
	json_t *request = json_pack("{s:{s:s}}", "fields", "partition", "own");

	(void)state;
	for (size_t i = 0; i < all.partition_count; i++)
		offers[i].max_minutes = offers[i].max_nodes = offers[i].total_nodes =
			CLUSTER_NO_LIMIT;
	for (int is_far = 0; is_far < 2; is_far++) {
		int64_t start = is_far ? INT64_C(44743183942) : time(NULL); /* the year 3387 */
		struct answer a = { .text = "", .body = json_object() };
		struct inquiry q = { .a = &a,
				     .request = request,
				     .cluster = &all,
				     .is_pending = true,
				     .reason = "AccountNotAllowed",
				     .account = "lab",
				     .qos = "normal",
				     .job = { .priority = 1, .partition = "own" },
				     .plan = plan_as_told,
				     .arg = &start };
		json_t *sooner;

		q.job.start = time(NULL) + 3600;
		inquire(&q);
		sooner = json_object_get(a.body, "sooner");
		assert_int_equal(json_array_size(sooner), is_far ? 0 : 2);
		for (size_t i = 0; i < json_array_size(sooner); i++)
			assert_string_equal(js_str(json_array_get(sooner, i), "partition", ""),
					    i ? "open" : "ours");
		json_decref(a.body);
	}
	json_decref(request);
}

/* Those of licenses alone have no nodes; a cloud's that are powered down are no less held. */
static void test_reservations(void **state)
{
	static const struct reserved all[] = {
		{ .name = "licenses", .start = 1, .end = INT64_MAX },
		{ .name = "elsewhere", .nodes = "n[2-3]", .start = 1, .end = INT64_MAX },
		{ .name = "here", .nodes = "n[1-2]", .start = 1, .end = INT64_MAX },
		{ .name = "cloud", .nodes = "cloud8", .start = 1, .end = INT64_MAX },
		{ .name = "huge", .nodes = "x[1-9000],n1", .start = 1, .end = INT64_MAX },
	};
	json_t *request = json_pack("{s:{s:s}}", "fields", "partition", "debug"), *shown;
	struct answer a = { .text = "", .body = json_object() };
	struct inquiry q = { .a = &a,
			     .request = request,
			     .cluster = &cluster,
			     .job = { .priority = 1, .partition = "debug" },
			     .reservations = all,
			     .reservation_count = sizeof(all) / sizeof(all[0]),
			     .time_minutes = -1 };

	(void)state;
	inquire(&q);
	shown = json_object_get(a.body, "reservations");
	assert_int_equal(json_array_size(shown), 3);
	assert_string_equal(js_str(json_array_get(shown, 0), "name", ""), "here");
	assert_string_equal(js_str(json_array_get(shown, 1), "name", ""), "cloud");
	assert_string_equal(js_str(json_array_get(shown, 2), "name", ""), "huge");
	json_decref(a.body);
	json_decref(request);
}

/* Slurm hides nodes of a cloud that are powered down, but knows them. */
static void test_left(void **state)
{
	json_t *request = json_pack("{s:{s:s}}", "fields", "exc_nodes", "cloud[8-9],n2");
	json_t *names = json_array(), *other = absent_left_out(request, &cluster, names);

	(void)state;
	assert_string_equal(js_str(json_object_get(other, "fields"), "exc_nodes", ""), "cloud8,n2");
	assert_int_equal(json_array_size(names), 1);
	assert_string_equal(json_string_value(json_array_get(names, 0)), "cloud9");
	json_decref(other);
	json_decref(names);
	json_decref(request);
}

static void test_record(void **state)
{
	static const char line[] =
		"NodeName=n1 CPUTot=2 OS=Linux 6.1 CPUAlloc=N/A Gres=(null) State=IDLE+DRAIN "
		"GresUsed= Reason=x CPULoad=9 [root@17]\nNext=1\n";
	static const char *const reasons[][2] = {
		{ line, "x CPULoad=9" },
		{ "Reason=[INC7] bad [a] fan [slurm@17] Comment=x [y@z]\n", "[INC7] bad [a] fan" },
		{ "Reason=[INC7]\nNodeName=n2 Reason=b [root@17]\n", "[INC7]" },
		{ "Reason=gone", "gone" },
	};
	size_t len;

	(void)state;
	assert_int_equal(record_number(line, "CPUTot", -7), 2);
	assert_int_equal(record_number(line, "CPUAlloc", -7), -7);
	assert_int_equal(record_number(line, "Next", -7), -7);
	assert_int_equal(record_number(line, "Name", -7), -7); /* only the end of a word */
	assert_null(record_value(line, "Gres", &len));
	assert_null(record_value(line, "GresUsed", &len));
	assert_memory_equal(record_value(line, "State", &len), "IDLE+DRAIN ", 11);
	assert_int_equal(len, 10);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		const char *reason = record_reason(reasons[i][0], &len);

		assert_int_equal(len, strlen(reasons[i][1]));
		assert_memory_equal(reason, reasons[i][1], len);
	}
	assert_null(record_reason("NodeName=n1 State=IDLE\nNodeName=n2 Reason=x\n", &len));
	assert_memory_equal(record_setting("A_Name = 1\nName    = 2 \n", "Name"), "2 \n", 3);
	assert_null(record_setting("Names = 1\nThe Name = 2\nName", "Name"));
	assert_int_equal(record_minutes("5:00"), 5);
	assert_int_equal(record_minutes("0:30"), 1);
	assert_int_equal(record_minutes("1:00:00"), 60);
	assert_int_equal(record_minutes("2-12:30:00"), 3630);
	assert_int_equal(record_minutes("UNLIMITED"), -1);
	assert_int_equal(record_minutes("NOT_SET"), -1);
	assert_int_equal(record_minutes(""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exceeded),     cmocka_unit_test(test_free_nodes),
		cmocka_unit_test(test_reservations), cmocka_unit_test(test_whole_nodes),
		cmocka_unit_test(test_absent),       cmocka_unit_test(test_room),
		cmocka_unit_test(test_sooner),       cmocka_unit_test(test_record),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
