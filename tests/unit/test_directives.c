/* SPDX-License-Identifier: MIT */
/* test_directives.c - options as sbatch reads them; what is wrong is said with its place, whatever
 * the line holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/directives.h"
#include "slurm/batch/sbatch_values.h"
#include "tests/unit/unit.h"

/* 2026-03-04 05:06:40 UTC, a Wednesday */
enum { NOW = 1772600800 };

static json_t *resolve(const char *text, char *const *env, char *const *extra, struct err *err)
{
	struct batch_request r = {
		.script = text,
		.script_len = strlen(text),
		.file = "/home/ada/train.slurm",
		.env = env,
		.extra = extra,
		.workdir = "/home/ada",
		.now = NOW,
	};

	return batch_resolve(&r, NULL, err);
}

/* The fields that the lines below "#!" give, in one line of JSON, sorted. */
static void check(const char *lines, const char *want)
{
	char text[1024];
	struct err err = { 0 };
	json_t *fields, *wanted = js_parse(want, strlen(want), &err);
	const char *key;
	json_t *value;

	assert_non_null(wanted);
	snprintf(text, sizeof(text), "#!/bin/sh\n%s\ntrue\n", lines);
	fields = resolve(text, NULL, NULL, &err);
	if (!fields)
		fail_msg("%s: %s", lines, err.text);
	json_object_foreach(wanted, key, value) {
		if (!json_equal(json_object_get(fields, key), value)) {
			char *all = js_line(fields);

			fail_msg("%s: %s differs: %s", lines, key, all);
		}
	}
	json_decref(fields);
	json_decref(wanted);
}

static void test_lines(void **state)
{
	static const struct {
		const char *lines, *want;
	} cases[] = {
		{ "", "{\"name\":\"train.slurm\",\"work_dir\":\"/home/ada\",\"min_cpus\":1}" },
		{ "#SBATCH -N2 -n 4",
		  "{\"min_nodes\":2,\"max_nodes\":2,\"num_tasks\":4,\"min_cpus\":4}" },
		{ "#SBATCH --nodes\n#SBATCH 2", "{\"min_nodes\":2}" },
		{ "#SBATCH --nodes=2 # --ntasks=9", "{\"min_nodes\":2,\"min_cpus\":2}" },
		/* more than any cluster has: Slurm's largest number, not an overflow */
		{ "#SBATCH -G a:9223372036854775807,b:2 --ntasks-per-gpu=4",
		  "{\"implied_tasks\":4294967295}" },
		{ "#SBATCH -w n[1-200]x[1-300]", "{\"min_nodes\":60000}" },
		{ "#SBATCH -N2000000000 --ntasks-per-node=65533", "{\"min_cpus\":4294967295}" },
		{ "#SBATCH -J \"a b\"", "{\"name\":\"a b\"}" },
		{ "#SBATCH -J a\\#c", "{\"name\":\"a#c\"}" },
		{ "#SBATCH -J a#b", "{\"name\":\"a\"}" },
		{ "#SBATCH -J 'a # b'", "{\"name\":\"a # b\"}" },
		{ "#SBATCH --job-n=x", "{\"name\":\"x\"}" },
		{ "#SBATCH -J x\ntrue\n#SBATCH -J y", "{\"name\":\"x\"}" },
		{ "#SBATCH -J x\n   # fine\n\n#SBATCH -J y", "{\"name\":\"y\"}" },
		{ "##SBATCH -J x\n# SBATCH -J y", "{\"name\":\"train.slurm\"}" },
		{ "#SBATCH --time=1-12:00", "{\"time_limit\":2160}" },
		{ "#SBATCH --time=90:30", "{\"time_limit\":91}" },
		{ "#SBATCH --time=0", "{\"time_limit\":-1}" },
		{ "#SBATCH --mem=16G", "{\"mem_per_node\":16384}" },
		{ "#SBATCH --mem=1025K", "{\"mem_per_node\":2}" },
		{ "#SBATCH --signal=B:USR1@600", "{\"warn_signal\":10,\"warn_time\":600,"
						 "\"warn_flags\":[\"batch\"]}" },
		{ "#SBATCH -o %x-%j.out -D /scratch", "{\"std_out\":\"/scratch/%x-%j.out\"}" },
		{ "#SBATCH -w n[1-3,7],m1 --ntasks-per-node=2",
		  "{\"min_nodes\":5,\"num_tasks\":10}" },
		{ "#SBATCH -N1-4 -n2", "{\"min_nodes\":1,\"max_nodes\":2}" },
		/* as sbatch has it: with fewer tasks than nodes that are named, the first of
		 * these */
		{ "#SBATCH -w n[1-3,7],m1 -n2", "{\"max_nodes\":2,\"req_nodes\":\"m1,n1\"}" },
		{ "#SBATCH -w n10,n7,n7 -N2 -n1", "{\"max_nodes\":1,\"req_nodes\":\"n7\"}" },
		{ "#SBATCH --gpus=4 --gpus-per-node=1 --gres=gpu:2", "{\"min_nodes\":2}" },
		{ "#SBATCH -N2 -n4 -m plane=3", "{\"num_tasks\":4}" },
		{ "#SBATCH --gpus=8 --gpus-per-task=4 --cpus-per-gpu=2",
		  "{\"implied_tasks\":2,\"implied_cpus_per_task\":8,\"min_cpus\":1}" },
		{ "#SBATCH -c4 -n2", "{\"min_cpus\":8,\"pn_min_cpus\":4}" },
		{ "#SBATCH -n2 --tres-per-task=cpu=4,gres/gpu:a100=2 --tres-bind=gres/gpu:closest",
		  "{\"min_cpus\":8,\"pn_min_cpus\":4,\"cpus_per_task\":4,"
		  "\"gpus_per_task\":\"a100:2\",\"gpu_bind\":\"closest\"}" },
		{ "#SBATCH -n2 --tres-per-task=gres:gpu,cpu:1 --segment=18 --stepmgr --resv-ports",
		  "{\"gpus_per_task\":\"1\",\"cpus_per_task\":1,\"segment\":18,\"stepmgr\":1,"
		  "\"resv_ports\":0}" },
		{ "#SBATCH --mem-update=20@1:30:00 --spread-segments --resources=a:1",
		  "{\"mem_update\":20,\"mem_update_minutes\":90,\"spread_segments\":1,"
		  "\"resources\":\"a:1\"}" },
		{ "#SBATCH --requeue=expedite --exclusive=topo --signal=SIGCHLD",
		  "{\"requeue\":1,\"shared\":4,\"exclusive=topo\":1,\"warn_signal\":17}" },
		{ "#SBATCH --exclusive=topo\n#SBATCH --exclusive=allocation --requeue",
		  "{\"requeue\":1,\"shared\":0}" },
		{ "#SBATCH --gres-flags=disable-binding\n"
		  "#SBATCH --gres-flags=enforce-binding,one-task-per-sharing",
		  "{\"flags\":[\"gres-enforce-binding\",\"gres-one-task-per-sharing\"]}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(cases[i].lines, cases[i].want);
}

static void test_precedence(void **state)
{
	char account[] = "SBATCH_ACCOUNT=env", name[] = "SBATCH_JOB_NAME=env";
	char off[] = "SBATCH_OVERCOMMIT=0", on[] = "SBATCH_SPREAD_JOB=yes",
	     line[] = "--account=line";
	char *env[] = { account, name, off, on, NULL }, *extra[] = { line, NULL };
	struct err err = { 0 };
	json_t *fields = resolve("#!/bin/sh\n#SBATCH -A script -J script -p script\n", env, extra,
				 &err);

	(void)state;
	assert_non_null(fields);
	assert_string_equal(js_str(fields, "account", ""), "line");
	assert_string_equal(js_str(fields, "name", ""), "env");
	assert_string_equal(js_str(fields, "partition", ""), "script");
	assert_null(json_object_get(fields, "overcommit"));
	assert_int_equal(json_array_size(json_object_get(fields, "flags")), 1);
	json_decref(fields);
}

/* As an unset variable leaves them on a command line. */
static void test_empty(void **state)
{
	char name[] = "--job-name=", gpus[] = "-G", none[] = "";
	char *extra[] = { name, gpus, none, NULL };
	struct err err = { 0 };
	json_t *fields = resolve("#!/bin/sh\n#SBATCH -J script -G 2 --gpus-per-node=\n", NULL,
				 extra, &err);

	(void)state;
	assert_non_null(fields);
	assert_string_equal(js_str(fields, "name", ""), "train.slurm");
	assert_null(json_object_get(fields, "gpus"));
	assert_null(json_object_get(fields, "gpus_per_node"));
	json_decref(fields);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *lines, *want;
	} cases[] = {
		{ "#SBATCH --bogus", "train.slurm:2: --bogus: " },
		{ "#SBATCH --tiem=5",
		  "train.slurm:2: --tiem: there is no such option of sbatch; did you mean --time?" },
		{ "#SBATCH\n#SBATCH -Y", "train.slurm:3: -Y: " },
		{ "#SBATCH word", "train.slurm:2: \"word\"" },
		{ "#SBATCH --", "train.slurm:2: \"--\"" },
		{ "#SBATCH -", "train.slurm:2: \"-\"" },
		{ "#SBATCH --=x", "train.slurm:2: --: " },
		{ "#SBATCH --nodes", "train.slurm:2: --nodes: needs a value" },
		{ "#SBATCH -N", "train.slurm:2: -N: needs a value" },
		{ "#SBATCH --hold=1", "train.slurm:2: --hold: takes no value" },
		{ "#SBATCH --comment='x", "train.slurm:2: a quote (') is not closed" },
		{ "#SBATCH --nodes=99999999999999999999", "train.slurm:2: --nodes: " },
		{ "#SBATCH --array=0-99999999999", "train.slurm:2: --array: " },
		{ "#SBATCH --array=0-9:0", "train.slurm:2: --array: " },
		{ "#SBATCH --array=5-1", "train.slurm:2: --array: " },
		{ "#SBATCH --array=,", "train.slurm:2: --array: " },
		{ "#SBATCH --array='1 ,2'", "train.slurm:2: --array: " },
		{ "#SBATCH -N1-2 --gpus-per-task=1 --ntasks-per-node=3",
		  "--gpus-per-task: needs --ntasks or --gpus where --nodes is a range" },
		{ "#SBATCH -N2 -m plane=2",
		  "--distribution=plane=2: 2 tasks are too few for 2 nodes" },
		{ "#SBATCH --nodelist=n[1-", "train.slurm:2: --nodelist: " },
		{ "#SBATCH --nodelist=n[1-999999999]", "train.slurm:2: --nodelist: " },
		{ "#SBATCH --nodelist=,,", "train.slurm:2: --nodelist: " },
		{ "#SBATCH --time=1:2:3:4", "train.slurm:2: --time: " },
		{ "#SBATCH --time=", "train.slurm:2: --time: " },
		{ "#SBATCH --begin=", "train.slurm:2: --begin: " },
		{ "#SBATCH --begin=now+", "train.slurm:2: --begin: " },
		{ "#SBATCH --begin=2035-13-01", "train.slurm:2: --begin: " },
		{ "#SBATCH --mem=-1", "train.slurm:2: --mem: " },
		{ "#SBATCH --mem=16GG", "train.slurm:2: --mem: " },
		{ "#SBATCH --tres-per-task=cpu=4,license/x=1",
		  "train.slurm:2: --tres-per-task: \"license/x=1\": must be cpu=N or gres/gpu" },
		{ "#SBATCH --tres-per-task=cpu=", "train.slurm:2: --tres-per-task: " },
		{ "#SBATCH --tres-per-task=", "train.slurm:2: --tres-per-task: " },
		{ "#SBATCH --tres-bind=gres/nic:closest", "train.slurm:2: --tres-bind: " },
		{ "#SBATCH --mem-update=20", "train.slurm:2: --mem-update: " },
		{ "#SBATCH --segment=none", "train.slurm:2: --segment: " },
		{ "#SBATCH --external", "train.slurm:2: --external: such a job has no script" },
		{ "#SBATCH --signal=@60", "train.slurm:2: --signal: " },
		{ "#SBATCH hetjob", "train.slurm:2: hetjob: " },
		{ "#SBATCH -n1 :", "train.slurm:2: heterogeneous" },
		{ "#BSUB -n 4", "train.slurm:2: #BSUB: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct err err = { 0 };

		snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", cases[i].lines);
		if (resolve(text, NULL, NULL, &err))
			fail_msg("%s was taken", cases[i].lines);
		if (!strstr(err.text, cases[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].lines, err.text,
				 cases[i].want);
	}
}

static void test_unread(void **state)
{
	static const struct {
		const char *text;
		int line;
	} cases[] = {
		{ "#!/bin/sh\n#SBATCH -N1\ntrue\n", 0 },
		{ "#!/bin/sh\nset -eu\n#SBATCH -N1\n#SBATCH -n1", 3 },
		{ "#!/bin/sh\ntrue\n##SBATCH -N1\n #SBATCH -N1\n# SBATCH -N1\n", 0 },
		{ "#!/bin/sh\nsbatch <<EOF\n#!/bin/sh\n#SBATCH -N1\nEOF\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(directives_first_unread(cases[i].text, strlen(cases[i].text)),
				 cases[i].line);
}

/* A relaunch means the moment that was meant at first, and so does sbatch that reads it later. */
static void test_moments_stay(void **state)
{
	static const char text[] = "#!/bin/sh\n#SBATCH --deadline=now+1hour --begin now+60\n";
	char **words = NULL;
	struct batch_request r = { .script = text,
				   .script_len = sizeof(text) - 1,
				   .file = "train.slurm",
				   .workdir = "/",
				   .now = 1700000000 };
	struct err err = { 0 };
	json_t *fields = batch_resolve(&r, &words, &err);

	(void)state;
	assert_non_null(fields);
	assert_int_equal(js_int(fields, "deadline", 0), 1700003600);
	assert_string_equal(words[0], "--deadline=uts1700003600");
	assert_string_equal(words[1], "--begin=uts1700000060");
	json_decref(fields);
	strv_free(words);
}

/* Options of plugins are passed on behind sbatch's own, with their values. */
static void test_plugin_options(void **state)
{
	static const char text[] = "#!/bin/sh\n#SBATCH --image docker:a -N2 --fast\n"
				   "#SBATCH --image=b\n";
	char image[] = "image=", fast[] = "fast";
	char *plugins[] = { image, fast, NULL }, **words = NULL;
	struct batch_request r = { .script = text,
				   .script_len = sizeof(text) - 1,
				   .file = "train.slurm",
				   .plugin_options = plugins,
				   .workdir = "/" };
	struct err err = { 0 };
	json_t *fields = batch_resolve(&r, &words, &err);

	(void)state;
	assert_non_null(fields);
	assert_int_equal(js_int(fields, "min_nodes", 0), 2);
	assert_int_equal(json_array_size(json_object_get(fields, "plugin_options")), 3);
	assert_string_equal(words[0], "--nodes=2");
	assert_string_equal(words[1], "--image=docker:a");
	assert_string_equal(words[2], "--fast");
	assert_string_equal(words[3], "--image=b");
	assert_null(words[4]);
	json_decref(fields);
	strv_free(words);
	r.script = "#!/bin/sh\n#SBATCH --fast=1\n";
	r.script_len = strlen(r.script);
	assert_null(batch_resolve(&r, NULL, &err));
	assert_string_equal(err.text, "train.slurm:2: --fast: takes no value");
	err = (struct err){ 0 };
	r.no_plugins = "only by sbatch";
	assert_null(batch_resolve(&r, NULL, &err));
	assert_string_equal(err.text, "train.slurm:2: --fast: only by sbatch");
	err = (struct err){ 0 };
	r.plugin_options = NULL;
	assert_null(batch_resolve(&r, NULL, &err));
	assert_non_null(
		strstr(err.text, "train.slurm:2: --fast: there is no such option of sbatch"));
}

static void test_plugin_option_names(void **state)
{
	static const char *const good[] = { "image=", "fast", "container-image=", "mem_kind=" };
	static const char *const bad[] = { "",        "=",    "--image=",   "ima ge=",
					   "image=x", "mem=", "overcommit", "uid" };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(directives_check_plugin_option(good[i], NULL), 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (directives_check_plugin_option(bad[i], NULL) == 0)
			fail_msg("\"%s\" is taken", bad[i]);
}

static void test_moments(void **state)
{
	static const struct {
		const char *text;
		time_t want;
	} cases[] = {
		{ "now", NOW },
		{ "now+60", NOW + 60 },
		{ "now+1hour", NOW + 3600 },
		{ "now + 2 days", NOW + 172800 },
		{ "16:00", NOW - 18400 + 57600 },
		{ "4:00", NOW - 18400 + 86400 + 14400 },
		{ "noon", NOW - 18400 + 43200 },
		{ "4pm", -1 },
		{ "4:00 pm", NOW - 18400 + 57600 },
		{ "tomorrow", NOW - 18400 + 86400 },
		{ "2030-01-20T12:34:00", 1895142840 },
		{ "012030", 1895097600 },
		{ "uts1895097600", 1895097600 },
	};

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		time_t when = -1;

		sbatch_moment(cases[i].text, NOW, &when, NULL);
		if (when != cases[i].want)
			fail_msg("%s: %lld, not %lld", cases[i].text, (long long)when,
				 (long long)cases[i].want);
	}
}

/* What Slurm 22.05 makes of each. */
static void test_array_limits(void **state)
{
	static const struct {
		const char *text;
		int count, limit; /* -1: refused; Slurm takes more, but nobody means that */
	} cases[] = {
		{ "1-3%2", 3, 2 },   { "[1-3]%2", 3, 2 }, { "1-3%2,5", 4, 2 },
		{ "1-3%", 3, 0 },    { "1-3%,5", 4, 0 },  { "1-3%2,5%1", 0, -1 },
		{ "%3", 0, -1 },     { "1-3%a", 0, -1 },  { "1-3%2%4", 0, -1 },
		{ "1-3%-1", 0, -1 }, { "1-3 %2", 0, -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sbatch_indices all = { 0 };
		int rc = sbatch_array(cases[i].text, SBATCH_ARRAY_MAX, &all, NULL);

		if ((rc < 0) != (cases[i].limit < 0) ||
		    (rc == 0 && ((int)all.count != cases[i].count || all.limit != cases[i].limit)))
			fail_msg("%s: %d, %zu tasks, %d at once", cases[i].text, rc, all.count,
				 (int)all.limit);
		free(all.items);
	}
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sbatch_option_count; i++) {
		const struct sbatch_option *o = &sbatch_options[i];

		assert_non_null(o->set);
		assert_true(o->name || o->variable);
		if (o->name)
			assert_ptr_equal(sbatch_option_find(o->name, strlen(o->name), NULL), o);
		if (o->letter)
			assert_ptr_equal(sbatch_option_letter(o->letter), o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_plugin_options),
		cmocka_unit_test(test_moments_stay),
		cmocka_unit_test(test_plugin_option_names),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_array_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
