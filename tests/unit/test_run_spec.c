/* SPDX-License-Identifier: MIT */
/* test_run_spec.c - run specs: defaults, limits, what must hold between keys. */
#include "tests/unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/config/amounts.h"
#include "common/config/run_spec.h"
#include "common/base/strv.h"

static int read_spec(const char *text, struct run_spec *spec, struct err *err)
{
	struct toml toml;
	int rc;

	if (toml_parse(&toml, text, strlen(text), "t.toml", err) < 0)
		return -1;
	rc = run_spec_read(&toml, spec, err);
	toml_clear(&toml);
	return rc;
}

static void test_defaults(void **state)
{
	struct run_spec s;
	struct err err = { 0 };

	(void)state;
	if (read_spec("[run]\ncommand = ['true', 'a b']\n", &s, &err) < 0)
		fail_msg("%s", err.text);
	assert_null(s.name);
	assert_int_equal(s.command.count, 2);
	assert_string_equal(s.command.items[1], "a b");
	assert_int_equal(s.scheduler, SPEC_SCHEDULER_AUTO);
	assert_int_equal(s.launcher, SPEC_LAUNCHER_AUTO);
	assert_int_equal(s.nodes, 1);
	assert_int_equal(s.ntasks_per_node, 1);
	assert_int_equal(s.cpus_per_task, 0);
	assert_int_equal(s.gpus_per_node, 0);
	assert_int_equal(s.time_ms, 0);
	assert_int_equal(s.max_without_progress, 3);
	assert_int_equal(s.in_place, 3);
	assert_int_equal(s.backoff_first_ms, 60000);
	assert_int_equal(s.backoff_max_ms, 1800000);
	assert_int_equal(s.kill_grace_ms, 30000);
	assert_int_equal(s.stop_grace_ms, 300000);
	assert_int_equal(s.rules[CAUSE_CRASH], SPEC_RULE_AUTO);
	assert_int_equal(run_spec_warn_ms(&s), 120000);
	s.time_ms = 240000;
	assert_int_equal(run_spec_warn_ms(&s), 120000);
	s.time_ms--;
	assert_int_equal(run_spec_warn_ms(&s), 0);
	assert_int_equal(s.watch.setup_ms, 1800000);
	assert_int_equal(s.watch.step_ms, WATCH_AUTO);
	assert_int_equal(s.watch.checkpoint_ms, 1800000);
	assert_int_equal(s.watch.eval_ms, 1800000);
	assert_int_equal(s.watch.output_ms, 0);
	assert_null(s.checkpoint_folder);
	run_spec_clear(&s);
}

static void test_everything(void **state)
{
	struct run_spec s;
	struct err err = { 0 };

	(void)state;
	if (read_spec("[run]\nname='x-1'\ncommand=['t']\nworkdir='/w'\nenv_file='/e'\n"
		      "scheduler='local'\nlauncher='srun'\n"
		      "[slurm]\npartition='gpu'\nmem=16000\ntime='1-02:03:04'\nnodes=2\nqos=''\n"
		      "[restart]\nnever_on_exit_codes=[3,7]\nbackoff_first=1\n"
		      "[watch]\nkill_grace='1h'\nstep_timeout=90\neval_timeout='2m'\n"
		      "setup_timeout=0\noutput_timeout='1h'\n[checkpoint]\nfolder='/c'\n",
		      &s, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(s.name, "x-1");
	assert_int_equal(s.scheduler, SPEC_SCHEDULER_LOCAL);
	assert_int_equal(s.launcher, SPEC_LAUNCHER_SRUN);
	assert_string_equal(s.mem, "16000");
	assert_null(s.qos);
	assert_int_equal(s.time_ms, (((26 * 60 + 3) * 60) + 4) * 1000);
	assert_int_equal(s.never_on_exit_codes.count, 2);
	assert_int_equal(s.kill_grace_ms, 3600000);
	assert_int_equal(s.watch.setup_ms, 0);
	assert_int_equal(s.watch.step_ms, 90000);
	assert_int_equal(s.watch.eval_ms, 120000);
	assert_int_equal(s.watch.output_ms, 3600000);
	assert_string_equal(s.checkpoint_folder, "/c");
	run_spec_clear(&s);
	run_spec_clear(&s);
}

#define RUN "[run]\ncommand=['t']\n"

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "",
		  "t.toml: nothing to run: needs run.command = [\"program\", \"argument\", ...], or "
		  "a [model] section (a training config for lbworker)" },
		{ "# x\n[RUN]\ncommand=['t']",
		  "t.toml:2: RUN: unknown section; did you mean [run]?" },
		{ "[training]\nsteps=1\n[Model]\nname='gpt2'",
		  "t.toml:3: Model: unknown section; did you mean [model]?" },
		{ "# x\ncommand=['t']\n[slurm]\nnodes=1",
		  "t.toml:2: command: unknown key; it belongs into section [run]" },
		{ RUN "[restart]\nbackof_first=1",
		  "t.toml:4: restart.backof_first: unknown key; did you mean \"backoff_first\"?" },
		{ RUN "[model]", "t.toml:3: model: unknown section" },
		{ RUN "[checkpoint]\nperiod=5", "t.toml:4: checkpoint.period: unknown key in "
						"section [checkpoint]" },
		{ RUN "[checkpoint]\ninterval=5", "t.toml:4: checkpoint.interval: unknown key; "
						  "here it is checkpoint.save_every" },
		{ RUN "[slurm]\ngpus=8",
		  "t.toml:4: slurm.gpus: unknown key; here it is slurm.gpus_per_node" },
		{ RUN "[slurm]\narray='0-3'", "t.toml:4: slurm.array: unknown key; here it is "
					      "slurm.extra = [\"--array=...\"]" },
		{ RUN "env={A='1'}", "t.toml:3: run.env: unknown key; here it is run.env_file" },
		{ "run=5", "t.toml:1: run: must be a section" },
		{ "[run]\ncommand=[]", "t.toml:2: run.command: must name a program" },
		{ "[run]\ncommand=['']", "t.toml:2: run.command: must name a program" },
		{ RUN "name='../x'", "t.toml:3: run.name: bad name \"../x\": it must start with a "
				     "letter (a to z, A to Z) or a digit" },
		{ RUN "[watch]\nstep_timeout='soon'", "t.toml:4: watch.step_timeout: must be "
						      "\"auto\" or a duration up to 7 days, "
						      "like \"90s\"" },
		{ RUN "name=''", "t.toml:3: run.name: bad name \"\": it is empty" },
		{ RUN "workdir='w'", "t.toml:3: run.workdir: must be an absolute path" },
		{ RUN "workdir=''", "t.toml:3: run.workdir: must be an absolute path" },
		{ RUN "env_file='e'", "t.toml:3: run.env_file: must be an absolute path" },
		{ RUN "[slurm]\nmem='lots'",
		  "t.toml:4: slurm.mem: \"lots\" is no amount of memory; write it like \"16G\", "
		  "\"512M\" or \"1024\" (megabytes)" },
		{ RUN "[slurm]\ntime='soon'",
		  "t.toml:4: slurm.time: \"soon\" is no time limit; write it like \"20h\", \"2d\" or "
		  "\"D-HH:MM:SS\"" },
		{ RUN "[slurm]\npartition=\"a\\nb\"",
		  "t.toml:4: slurm.partition: must not contain control characters" },
		{ RUN "[slurm]\nnodes=0",
		  "t.toml:4: slurm.nodes: must be an integer from 1 to 100000" },
		{ RUN "launcher='torchrun'\n[slurm]\nntasks_per_node=2",
		  "t.toml:5: slurm.ntasks_per_node: torchrun is started once on each node: "
		  "torchrun.nproc_per_node says how many ranks it starts there" },
		{ "[run]\nlauncher='torchrun'\n[model]",
		  "t.toml:2: run.launcher: torchrun needs run.command: lbworker has a rank for each "
		  "task of srun" },
		{ "[run]\nscript='/s'\n[nsys]\nenabled=true",
		  "t.toml:4: nsys.enabled: is not for batch scripts: they start their ranks themselves" },
		{ RUN "[slurm]\ncontainer_image='i'\ncontainer_workdir='w'",
		  "t.toml:5: slurm.container_workdir: must be an absolute path" },
		{ RUN "[slurm]\ncontainer_name='n'",
		  "t.toml:4: slurm.container_name: needs slurm.container_image" },
		{ RUN "[torchrun]\ncommand=[]", "t.toml:4: torchrun.command: must name a program" },
		{ RUN "[nsys]\noutput='o'", "t.toml:4: nsys.output: must be an absolute path" },
		{ RUN "[restart]\nspare_nodes=1",
		  "t.toml:4: restart.spare_nodes: needs slurm.nodes of at least 2: the only node has lbrun itself" },
		{ RUN "[restart]\nspare_nodes=1\nmin_nodes=1\n[slurm]\nnodes=2",
		  "t.toml:4: restart.spare_nodes: does not go with restart.min_nodes: of fewer nodes none is spare" },
		{ RUN "[restart]\nspare_nodes=1\n[slurm]\nnodes=2\nnodelist='n[1-3]'",
		  "t.toml:4: restart.spare_nodes: does not go with slurm.nodelist: the job takes more nodes than are named" },
		{ RUN "[restart]\nbackoff_max='1s'",
		  "t.toml:4: restart.backoff_max: backoff_first must not be longer than backoff_max" },
		{ RUN "[restart]\nbackoff_first='1h'",
		  "t.toml:4: restart.backoff_first: backoff_first must not be longer than "
		  "backoff_max" },
		{ RUN "[restart]\nnever_on_exit_codes=[0]",
		  "t.toml:4: restart.never_on_exit_codes: must be a list of integers, each from 1 to "
		  "255" },
		{ RUN "[restart.policy]\ncrash='never'",
		  "t.toml:4: restart.policy.crash: must be one of \"auto\", \"relaunch\", \"count\", \"stop\"" },
		{ RUN "[restart.policy]\nkilled='stop'",
		  "t.toml:4: restart.policy.killed: unknown key in section [restart.policy]" },
		{ RUN "[watch]\nkill_grace='2h'",
		  "t.toml:4: watch.kill_grace: must be a duration from 0s to 1h" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		struct run_spec s;

		assert_int_equal(read_spec(cases[i].text, &s, &err), -1);
		assert_string_equal(err.text, cases[i].message);
		assert_null(s.command.items);
	}
}

static void test_training_config(void **state)
{
	struct run_spec s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(read_spec("extra=1\n[job]\nx=1\n[model]\nname='llama'\n"
				   "[checkpoint]\nfolder='c'\ninterval=5\n[restart]\nin_place=1\n",
				   &s, &err),
			 0);
	assert_null(s.command.items);
	assert_int_equal(s.in_place, 1);
	assert_string_equal(s.checkpoint_folder, "c");
	assert_int_equal(s.never_on_exit_codes.count, 1);
	assert_int_equal(s.never_on_exit_codes.items[0], 2); /* lbworker's: bad input */
	run_spec_clear(&s);
	assert_int_equal(read_spec("[model]\n[restart]\nnever_on_exit_codes=[]\n", &s, &err), 0);
	assert_int_equal(s.never_on_exit_codes.count, 0);
	run_spec_clear(&s);
	assert_int_equal(read_spec("[model]\n[watch]\nkil_grace=1\n", &s, &err), -1);
	assert_contains(err.text, "did you mean \"kill_grace\"?");
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds; /* -1: refused */
	} cases[] = {
		{ "30", 1800 },       { "30:15", 1815 },   { "1:02:03", 3723 },
		{ "2-0", 172800 },    { "1-2:30", 95400 }, { "1-02:03:04", 93784 },
		{ "20h", 72000 },     { "2d", 172800 },    { "90s", 90 },
		{ "1:2:3:4", -1 },    { "1-", -1 },        { "-1", -1 },
		{ "1:", -1 },         { ":1", -1 },        { "0", -1 },
		{ "9999999999", -1 }, { "1-1-1", -1 },     { "400d", -1 },
		{ "UNLIMITED", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct run_spec s;
		struct err err = { 0 };
		char text[200];
		int rc;

		snprintf(text, sizeof(text), RUN "[slurm]\ntime='%s'\n", cases[i].text);
		rc = read_spec(text, &s, &err);
		if (rc != (cases[i].seconds < 0 ? -1 : 0) ||
		    (rc == 0 && s.time_ms != cases[i].seconds * 1000))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (rc == 0)
			run_spec_clear(&s);
	}
}

static void test_mem(void **state)
{
	static const struct {
		const char *text;
		int64_t mb;
	} cases[] = {
		{ "1024", 1024 },     { "512M", 512 }, { "16G", 16384 }, { "2t", 2097152 },
		{ "1K", 1 },          { "0", 0 },      { "", -1 },       { "G", -1 },
		{ "1.5G", -1 },       { "16GB", -1 },  { "-1", -1 },     { "1 G", -1 },
		{ "9999999999", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(mem_parse_mb(cases[i].text, NULL), cases[i].mb);
}

/* A bare number is bytes, also of as many as disks have; what no 64 bits hold is no size. */
static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "1k", 1024 },
		{ "500G", 500LL << 30 },
		{ "8191P", 8191LL << 50 },
		{ "8192P", -1 },
		{ "9000000T", -1 },
		{ "500000000000", 500000000000 },
		{ "9999999999999999999", -1 },
		{ "1.5G", -1 },
		{ "5GB", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(bytes_parse(cases[i].text, NULL), cases[i].bytes);
}

static void test_table_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < run_spec_key_count; i++) {
		const struct key *key = &run_spec_keys[i];

		assert_true(key->help && key->help[0]);
		assert_true(key->offset < sizeof(struct run_spec));
		assert_true((key->type == KEY_ENUM) == (key->choices != NULL));
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(run_spec_keys[j].offset, key->offset);
	}
}

static void test_env_file(void **state)
{
	struct err err = { 0 };
	char **list;

	(void)state;
	write_text("env", "# comment\nA=1\n\nTOKEN_2=x = y\n_E=\nLAST=no newline");
	chmod("env", 0600);
	list = env_file_read("env", getuid(), &err);
	assert_non_null(list);
	assert_string_equal(list[0], "A=1");
	assert_string_equal(list[1], "TOKEN_2=x = y");
	assert_string_equal(list[2], "_E=");
	assert_string_equal(list[3], "LAST=no newline");
	assert_null(list[4]);
	strv_free(list);
	strv_free(NULL);
	write_text("env", "# of Windows\r\n\r\nA=1\r\nB=\r\nC=a\rb\r");
	list = env_file_read("env", getuid(), &err);
	assert_non_null(list);
	assert_string_equal(list[0], "A=1");
	assert_string_equal(list[1], "B=");
	assert_string_equal(list[2], "C=a\rb");
	assert_null(list[3]);
	strv_free(list);
}

static void refused(const char *path, unsigned uid, enum err_code code, const char *part)
{
	struct err err = { 0 };

	assert_null(env_file_read(path, uid, &err));
	assert_int_equal(err.code, code);
	assert_contains(err.text, part);
	assert_null(strstr(err.text, "s3cret"));
}

static void test_bad_env_files(void **state)
{
	static const char *const texts[] = { "A=1\ns3cret\n", "A=1\n=s3cret\n", "A=1\n1A=s3cret\n",
					     "A=1\nexport B=s3cret\n" };
	FILE *f;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		write_text("bad", texts[i]);
		chmod("bad", 0600);
		refused("bad", getuid(), ERR_USAGE, "bad:2: must be KEY=VALUE");
	}
	chmod("bad", 0640);
	refused("bad", getuid(), ERR_REFUSED, "mode 0640");
	chmod("bad", 0600);
	refused("bad", getuid() + 1, ERR_REFUSED, "owned by uid");
	symlink("bad", "link");
	refused("link", getuid(), ERR_REFUSED, "is a link");
	mkfifo("fifo", 0600);
	refused("fifo", getuid(), ERR_REFUSED, "not a regular file");
	refused("none", getuid(), ERR_NOT_FOUND, "no such file");
	f = fopen("bad", "w");
	fwrite("A=s3cret\0x\n", 1, 11, f);
	fclose(f);
	refused("bad", getuid(), ERR_USAGE, "bad:1: must be");
	assert_int_equal(truncate("bad", 1 << 21), 0);
	refused("bad", getuid(), ERR_USAGE, "1 MiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_everything),
		cmocka_unit_test(test_mistakes), cmocka_unit_test(test_training_config),
		cmocka_unit_test(test_times),    cmocka_unit_test(test_mem),
		cmocka_unit_test(test_bytes),    cmocka_unit_test(test_table_is_whole),
		cmocka_unit_test(test_env_file), cmocka_unit_test(test_bad_env_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
