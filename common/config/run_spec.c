/* SPDX-License-Identifier: MIT */
/* run_spec.c - the keys of a run spec, and how a document becomes one. */
#include "common/config/run_spec.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"

#define KEYS_OF struct run_spec

#define WEEK_MS (7 * 86400e3)
#define HOUR_MS 3600e3
#define DAY_MS (24 * HOUR_MS)

/* "relaunch" is without end, "count" within restart.max_without_progress; what "auto" means for
 * each cause is lbd's to know (daemon/engine/decide/relaunch.c). */
#define RULE(name, cause, help) \
	KEY_CHOICE("restart.policy", name, rules[cause], "auto|relaunch|count|stop", "auto", help)

const struct key run_spec_keys[] = {
	KEY_TEXT("run", "name", name, NULL, "name of the run; drawn if not given"),
	KEY_TEXT("run", "group", group, NULL,
		 "runs of one group can be listed and ended together: lbctl kill GROUP@group"),
	KEY_LIST("run", "sweep", sweep, NULL,
		 "what lbctl submit --sweep filled in, as KEY=VALUE; lbctl compare shows it"),
	KEY_LIST("run", "after", after, NULL,
		 "names of runs that must have ended, however, before this one begins"),
	KEY_LIST("run", "after_ok", after_ok, NULL,
		 "names of runs that must have completed before this one begins"),
	KEY_LIST("run", "command", command, NULL,
		 "program and arguments; without it the file is a training config for lbworker"),
	KEY_TEXT("run", "script", script, NULL,
		 "absolute path of a batch script; lbctl submit FILE sets it"),
	KEY_LIST("run", "arguments", arguments, NULL, "arguments of the batch script"),
	KEY_TEXT("run", "workdir", workdir, NULL,
		 "absolute folder to run in; the submitter's if not given"),
	KEY_TEXT("run", "env_file", env_file, NULL,
		 "absolute path of a private file (mode 0600) of KEY=VALUE lines for the "
		 "environment"),
	KEY_CHOICE("run", "scheduler", scheduler, "auto|slurm|local", "auto",
		   "where to run: auto takes Slurm where it is configured, else this machine"),
	KEY_CHOICE("run", "launcher", launcher, "auto|none|srun|torchrun", "auto",
		   "how ranks are started: auto takes srun when there is more than one task, or a "
		   "container"),

	KEY_TEXT("slurm", "partition", partition, NULL, "partition"),
	KEY_TEXT("slurm", "account", account, NULL, "account to charge"),
	KEY_TEXT("slurm", "qos", qos, NULL, "quality of service"),
	KEY_INT("slurm", "nodes", nodes, 1, 100000, "1", "number of nodes"),
	KEY_INT("slurm", "ntasks_per_node", ntasks_per_node, 1, 4096, "1",
		"tasks (ranks) on each node"),
	KEY_INT("slurm", "cpus_per_task", cpus_per_task, 1, 4096, NULL,
		"processors for each task; 1 if not given, without Slurm: shared with others"),
	KEY_INT("slurm", "gpus_per_node", gpus_per_node, 0, 1024, "0", "GPUs on each node"),
	KEY_TEXT("slurm", "mem", mem, NULL,
		 "memory on each node, like \"16G\"; a bare number is megabytes"),
	KEY_TEXT("slurm", "time", time_text, NULL,
		 "time limit, like \"20h\" or Slurm's \"D-HH:MM:SS\"; a bare number is minutes"),
	KEY_DURATION("slurm", "signal_before", signal_before_ms, 0, 65534e3, "2m",
		     "how long before the time limit the trainer is asked to save and end; 0 = "
		     "never"),
	KEY_TEXT("slurm", "constraint", constraint, NULL, "required features"),
	KEY_TEXT("slurm", "exclude", exclude, NULL, "nodes not to use"),
	KEY_TEXT("slurm", "nodelist", nodelist, NULL, "nodes to use"),
	KEY_TEXT("slurm", "reservation", reservation, NULL, "reservation"),
	KEY_TEXT("slurm", "licenses", licenses, NULL, "licenses"),
	KEY_TEXT("slurm", "comment", comment, NULL, "words to add to the job's comment"),
	KEY_LIST("slurm", "extra", extra, NULL,
		 "more options of sbatch, like [\"--exclusive\", \"--gres=gpu:a100:4\"]"),
	KEY_TEXT("slurm", "network", network, NULL,
		 "what the nodes are connected by: efa, infiniband, slingshot, socket, tcpx, or "
		 "your own"),
	KEY_TEXT("slurm", "mpi", mpi, NULL,
		 "how srun sets up MPI, like \"pmix\"; srun --mpi=list shows what there is"),
	KEY_LIST("slurm", "srun", srun, NULL, "more options of srun, like [\"--cpu-bind=cores\"]"),
	KEY_TEXT("slurm", "container_image", container_image, NULL,
		 "image that the ranks run in, by pyxis"),
	KEY_LIST("slurm", "container_mounts", container_mounts, NULL,
		 "folders to see in there, like [\"/data:/data:ro\"]"),
	KEY_TEXT("slurm", "container_workdir", container_workdir, NULL,
		 "folder to run in there; run.workdir if not given"),
	KEY_TEXT("slurm", "container_name", container_name, NULL,
		 "name under which the container stays on the nodes, for the next launch"),

	KEY_LIST("torchrun", "command", torchrun, "[\"torchrun\"]", "torchrun, and options for it"),
	KEY_INT("torchrun", "nproc_per_node", nproc_per_node, 0, 4096, "0",
		"ranks on each node; 0: one for each GPU, without GPUs one"),

	KEY_FLAG("nsys", "enabled", nsys, "false", "run the ranks under NVIDIA's profiler, nsys"),
	KEY_DURATION("nsys", "delay", nsys_delay_ms, 0, WEEK_MS, "0",
		     "how long after the launch it begins to record"),
	KEY_DURATION("nsys", "duration", nsys_duration_ms, 0, WEEK_MS, "0",
		     "for how long; 0: to the end"),
	KEY_TEXT("nsys", "output", nsys_output, NULL,
		 "report of a rank; %q{LB_RANK} is its number; in the attempt's folder if not "
		 "given"),
	KEY_LIST("nsys", "options", nsys_options, NULL,
		 "more options of nsys profile, like [\"--trace=cuda,nvtx\"]"),

	KEY_INT("restart", "max_without_progress", max_without_progress, 0, 1000000, "3",
		"launches in a row without a new checkpoint before the run fails"),
	KEY_INT("restart", "in_place", in_place, 0, 1000000, "3",
		"relaunches within one job without progress in between"),
	KEY_DURATION("restart", "backoff_first", backoff_first_ms, 0, WEEK_MS, "60s",
		     "pause before the first relaunch; doubled each time"),
	KEY_DURATION("restart", "backoff_max", backoff_max_ms, 0, WEEK_MS, "30m",
		     "longest pause before a relaunch"),
	KEY_NUMBERS("restart", "never_on_exit_codes", never_on_exit_codes, 1, 255, NULL,
		    "exit codes after which the run is not started again; [2], bad input, for "
		    "lbworker's configs"),
	KEY_INT("restart", "rollback", rollback, 0, 1000, "0",
		"checkpoints to go back, once, when training diverged; 0: the run fails then"),
	KEY_INT("restart", "spare_nodes", spare_nodes, 0, 1000, "0",
		"nodes that the job holds beside slurm.nodes, to take the place of lost ones"),
	KEY_INT("restart", "min_nodes", min_nodes, 0, 100000, "0",
		"a relaunch may do with so many nodes; 0: it waits for slurm.nodes"),
	KEY_DURATION("restart", "fewer_after", fewer_after_ms, 0, WEEK_MS, "10m",
		     "how long a relaunch waits for all nodes before it asks for fewer"),
	KEY_FLAG(
		"restart", "grow_back", grow_back, "true",
		"on fewer nodes, begin anew with all behind a checkpoint when the others are free"),
	KEY_FLAG("restart", "leave", leave, "true",
		 "save and go on elsewhere when nodes are set to drain or maintenance is to begin; "
		 "false: only save"),
	KEY_CHOICE(
		"restart", "prequeue", prequeue, "false|true|auto", "auto",
		"queue the next attempt's job, held, behind the running one, so that it gains age; "
		"auto: where that gains any, and the run has waited long"),

	RULE("error", CAUSE_ERROR, "what to do when the trainer ended with an error"),
	RULE("crash", CAUSE_CRASH, "what to do when a signal ended the trainer"),
	RULE("oom", CAUSE_OOM, "what to do when it ran out of memory"),
	RULE("hang", CAUSE_HANG, "what to do when it hung"),
	RULE("timeout", CAUSE_TIMEOUT, "what to do when the time limit came"),
	RULE("preempted", CAUSE_PREEMPTED, "what to do when the job was preempted"),
	RULE("node_fail", CAUSE_NODE_FAIL, "what to do when a node failed"),
	RULE("launch_fail", CAUSE_LAUNCH_FAIL, "what to do when the job did not start"),
	RULE("diverged", CAUSE_DIVERGED, "what to do when training diverged"),
	RULE("lost", CAUSE_LOST, "what to do when nobody knows what became of the job"),

	KEY_FLAG("preflight", "enabled", preflight, "false",
		 "check the nodes before an attempt's trainer starts: lbworker check"),
	KEY_DURATION("preflight", "timeout", preflight_ms, 1e3, HOUR_MS, "3m",
		     "longest time for that"),
	KEY_INT("preflight", "tries", preflight_tries, 1, 1000, "3",
		"attempts in a row that a broken node may end; the next one trains all the same"),
	KEY_LIST("preflight", "options", preflight_options, NULL,
		 "options of lbworker check, like [\"--slow\", \"0.7\"]"),

	KEY_DURATION("watch", "kill_grace", kill_grace_ms, 0, HOUR_MS, "30s",
		     "time between SIGTERM and SIGKILL"),
	KEY_DURATION("watch", "stop_grace", stop_grace_ms, 0, DAY_MS, "5m",
		     "time to write a checkpoint and end when the run is put on hold"),
	KEY_DURATION("watch", "setup_timeout", watch.setup_ms, 0, WEEK_MS, "30m",
		     "longest start-up, and end, of a trainer that reports; 0 = no limit"),
	KEY_TEXT("watch", "step_timeout", step_timeout_text, "auto",
		 "longest time between two steps; auto learns it: 5 times the median, at least 60 "
		 "s"),
	KEY_DURATION("watch", "checkpoint_timeout", watch.checkpoint_ms, 0, WEEK_MS, "30m",
		     "longest time for a checkpoint; 0 = no limit"),
	KEY_DURATION("watch", "eval_timeout", watch.eval_ms, 0, WEEK_MS, "30m",
		     "longest time for an evaluation; 0 = no limit"),
	KEY_DURATION("watch", "output_timeout", watch.output_ms, 0, WEEK_MS, "0",
		     "longest silence of a trainer that only prints; 0 = no limit"),
	KEY_DURATION(
		"watch", "node_timeout", watch.node_ms, 0, HOUR_MS, "30s",
		"longest silence of a node of several, by heartbeats between lbruns; 0 = no limit"),
	KEY_DURATION("watch", "usage_every", watch.usage_ms, 0, HOUR_MS, "1m",
		     "how often use of GPUs, CPU and memory is told; 0 = never"),
	KEY_DURATION("watch", "idle_gpu", watch.idle_gpu_ms, 0, DAY_MS, "15m",
		     "how long a GPU may do nothing before that is an event; 0 = never"),
	KEY_TEXT("watch", "progress_regex", progress_regex, PROGRESS_AUTO,
		 "regular expression for lines of output that tell a step, with groups step, loss, "
		 "...; "
		 "auto, none"),
	KEY_LIST("watch", "node_error_regex", node_errors, NULL,
		 "regular expressions for lines of output that tell of a broken node"),

	KEY_TEXT("cache", "folder", cache_folder, NULL,
		 "a folder of the node's own disk, like \"/local/nvme\", in which compiled code is "
		 "kept between starts; none"),
	KEY_TEXT("cache", "max_bytes", cache_bytes_text, "20G",
		 "what is kept there may take so much: the oldest goes"),
	KEY_LIST("cache", "variables", cache_variables, NULL,
		 "more variables that point to a folder there, where they have no value"),

	KEY_TEXT("checkpoint", "folder", checkpoint_folder, NULL,
		 "where checkpoints are; runs/NAME/checkpoints if not given"),
	KEY_TEXT("checkpoint", "stage", checkpoint_stage, NULL,
		 "a folder of the node, like \"/dev/shm\", that the trainer saves to; lbrun copies "
		 "from there to the folder"),
	KEY_TEXT("checkpoint", "stage_rate", stage_rate_text, NULL,
		 "so many bytes a second are copied at most, like \"500M\"; no limit if not given"),
	KEY_TEXT("checkpoint", "save_every", save_every_text, NULL,
		 "a trainer that reads orders is asked for a checkpoint so often, like \"15m\"; "
		 "auto: as loses least"),
	KEY_TEXT("checkpoint", "layout", checkpoint_layout, "auto",
		 "whose checkpoints they are: auto looks; own, for a trainer that finds them "
		 "itself; or a row's name"),
	KEY_DURATION("checkpoint", "check_time", checkpoint_check_ms, 0, DAY_MS, "10m",
		     "so long every byte of checkpoints is read before a launch; then sizes and "
		     "directories must do"),
	KEY_TEXT("checkpoint", "pattern", checkpoint_pattern, NULL,
		 "names of another trainer's checkpoints, like \"step-{step}\", or a regular "
		 "expression"),
	KEY_TEXT("checkpoint", "complete_when", checkpoint_complete_when, NULL,
		 "a file in such a checkpoint that is there once it is complete, or \"manifest\""),
	KEY_INT("checkpoint", "keep_latest_k", retention.keep_latest_k, 0, 1e12, "0",
		"newest valid ones kept, at least 2; 0: all"),
	KEY_INT("checkpoint", "keep_every", retention.keep_every, 0, 1e12, "0",
		"those of steps that are multiples of it are kept, too; 0: none"),
	KEY_TEXT("checkpoint", "max_bytes", max_bytes_text, NULL,
		 "what all of them may take, like \"500G\": the oldest go, the newest two valid "
		 "ones stay"),
	KEY_TEXT("checkpoint", "note_bytes", note_bytes_text, "200G",
		 "where none of them ever go: an event when they take so much, and each time it "
		 "has doubled"),
};
const size_t run_spec_key_count = sizeof(run_spec_keys) / sizeof(run_spec_keys[0]);

/* --- the whole document ---------------------------------------------------------------------- */

static const char *const our_sections[] = { "run",       "slurm",   "torchrun", "nsys",
					    "preflight", "restart", "watch",    "cache" };

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof(our_sections) / sizeof(our_sections[0]); i++) {
		if (strcmp(our_sections[i], name) == 0)
			return true;
	}
	return false;
}

/* What people of Slurm, submitit, Hydra and trainers write, and what they mean here. */
/* clang-format off */
static const struct {
	const char *section, *name, *ours;
} other_keys[] = {
	{ "slurm", "gpus", "slurm.gpus_per_node" },
	{ "slurm", "num_gpus", "slurm.gpus_per_node" },
	{ "slurm", "gres", "slurm.gpus_per_node, or slurm.extra = [\"--gres=...\"]" },
	{ "slurm", "gpus_per_task", "slurm.extra = [\"--gpus-per-task=...\"]" },
	{ "slurm", "num_nodes", "slurm.nodes" }, { "slurm", "nnodes", "slurm.nodes" },
	{ "slurm", "ntasks", "slurm.ntasks_per_node" }, { "slurm", "tasks", "slurm.ntasks_per_node" },
	{ "slurm", "tasks_per_node", "slurm.ntasks_per_node" },
	{ "slurm", "cpus", "slurm.cpus_per_task" }, { "slurm", "cpus_per_node", "slurm.cpus_per_task" },
	{ "slurm", "memory", "slurm.mem" }, { "slurm", "mem_gb", "slurm.mem" },
	{ "slurm", "mem_per_cpu", "slurm.extra = [\"--mem-per-cpu=...\"]" },
	{ "slurm", "mem_per_gpu", "slurm.extra = [\"--mem-per-gpu=...\"]" },
	{ "slurm", "timeout", "slurm.time" }, { "slurm", "timeout_min", "slurm.time" },
	{ "slurm", "time_limit", "slurm.time" }, { "slurm", "walltime", "slurm.time" },
	{ "slurm", "queue", "slurm.partition" }, { "slurm", "project", "slurm.account" },
	{ "slurm", "name", "run.name" }, { "slurm", "job_name", "run.name" },
	{ "slurm", "chdir", "run.workdir" }, { "slurm", "workdir", "run.workdir" },
	{ "slurm", "dependency", "run.after_ok, or slurm.extra = [\"--dependency=...\"]" },
	{ "slurm", "array", "slurm.extra = [\"--array=...\"]" },
	{ "slurm", "exclusive", "slurm.extra = [\"--exclusive\"]" },
	{ "slurm", "output", "slurm.extra = [\"--output=...\"]" },
	{ "slurm", "error", "slurm.extra = [\"--error=...\"]" },
	{ "slurm", "mail_type", "slurm.extra = [\"--mail-type=...\"]" },
	{ "slurm", "mail_user", "slurm.extra = [\"--mail-user=...\"]" },
	{ "slurm", "begin", "slurm.extra = [\"--begin=...\"]" },
	{ "slurm", "additional_parameters", "slurm.extra" },
	{ "slurm", "srun_args", "slurm.srun" },
	{ "run", "env", "run.env_file" }, { "run", "environment", "run.env_file" },
	{ "run", "cmd", "run.command" }, { "run", "args", "run.command" },
	{ "run", "cwd", "run.workdir" }, { "run", "dir", "run.workdir" },
	{ "run", "chdir", "run.workdir" }, { "run", "job_name", "run.name" },
	{ "run", "dependency", "run.after_ok" }, { "run", "depends_on", "run.after_ok" },
	{ "run", "time", "slurm.time" }, { "run", "nodes", "slurm.nodes" },
	{ "run", "gpus", "slurm.gpus_per_node" }, { "run", "partition", "slurm.partition" },
	{ "restart", "retries", "restart.max_without_progress" },
	{ "restart", "max_retries", "restart.max_without_progress" },
	{ "restart", "max_restarts", "restart.max_without_progress" },
	{ "torchrun", "nnodes", "slurm.nodes" }, { "torchrun", "args", "torchrun.command" },
	{ "checkpoint", "dir", "checkpoint.folder" }, { "checkpoint", "path", "checkpoint.folder" },
	{ "checkpoint", "every", "checkpoint.save_every" },
	{ "checkpoint", "interval", "checkpoint.save_every" },
	{ "checkpoint", "save_total_limit", "checkpoint.keep_latest_k" },
};
/* clang-format on */

static int refuse_others(const struct toml *toml, bool is_command, struct err *err)
{
	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++) {
		const char *section = other_keys[i].section, *name = other_keys[i].name;
		char path[128], what[256];

		if ((!is_command && !is_ours(section)) ||
		    !json_object_get(json_object_get(toml->root, section), name))
			continue;
		snprintf(path, sizeof(path), "%s.%s", section, name);
		snprintf(what, sizeof(what), "unknown key; here it is %s", other_keys[i].ours);
		return keys_refuse(toml, path, what, err);
	}
	return 0;
}

/* In a training config all but our sections is lbworker's to judge. */
static int check_unknown(const struct toml *toml, bool is_command, struct err *err)
{
	const char **ignored = xcalloc(json_object_size(toml->root) + 1, sizeof(ignored[0]));
	const char *name;
	const json_t *value;
	size_t n = 0;
	int rc;

	json_object_foreach(toml->root, name, value) {
		if (!is_command && !is_ours(name))
			ignored[n++] = name;
	}
	rc = refuse_others(toml, is_command, err);
	if (rc == 0)
		rc = keys_unknown(run_spec_keys, run_spec_key_count, toml, ignored, err);
	free(ignored);
	return rc;
}

/* What is to be run may stand there by another name, or in no section. */
static int refuse_misplaced(const struct toml *toml, struct err *err)
{
	static const char *const sections[] = { "run", "model" };
	const char *name, *near;
	json_t *value;
	char what[80];

	json_object_foreach(toml->root, name, value) {
		near = json_is_object(value) ? nearest(name, sections, 2) : NULL;
		if (near)
			snprintf(what, sizeof(what), "unknown section; did you mean [%s]?", near);
		else if (strcmp(name, "command") == 0 || strcmp(name, "script") == 0)
			snprintf(what, sizeof(what), "unknown key; it belongs into section [run]");
		else
			continue;
		return keys_refuse(toml, name, what, err);
	}
	return 0;
}

static int check_kind(const struct toml *toml, bool is_command, struct err *err)
{
	if (is_command || json_is_object(json_object_get(toml->root, "model")))
		return 0;
	if (refuse_misplaced(toml, err) < 0)
		return -1;
	return err_set(
		err, ERR_USAGE,
		"%s: nothing to run: needs run.command = [\"program\", \"argument\", ...], or "
		"a [model] section (a training config for lbworker)",
		toml->file);
}

/* A script says itself what it needs; our defaults must not overrule it. */
static void forget_defaults(const struct toml *toml, struct run_spec *spec)
{
	const struct {
		const char *name;
		int64_t *value;
	} numbers[] = {
		{ "nodes", &spec->nodes },
		{ "ntasks_per_node", &spec->ntasks_per_node },
		{ "cpus_per_task", &spec->cpus_per_task },
		{ "gpus_per_node", &spec->gpus_per_node },
		{ "signal_before", &spec->signal_before_ms },
	};
	const json_t *given = json_object_get(toml->root, "slurm");

	for (size_t i = 0; spec->script && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!json_object_get(given, numbers[i].name))
			*numbers[i].value = 0;
	}
}

/* Control characters have no business in any of our strings; an empty one means "not given". */
static int tidy_strings(const struct toml *toml, struct run_spec *spec, struct err *err)
{
	for (size_t i = 0; i < run_spec_key_count; i++) {
		const struct key *key = &run_spec_keys[i];
		char **text = (char **)((char *)spec + key->offset);
		char path[128];

		if (key->type != KEY_STRING || !*text)
			continue;
		snprintf(path, sizeof(path), "%s.%s", key->section, key->name);
		for (const char *c = *text; *c; c++) {
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return keys_refuse(toml, path,
						   "must not contain control characters", err);
		}
		if (**text || text == &spec->name)
			continue;
		free(*text);
		*text = NULL;
	}
	return 0;
}

/* lbworker ends with 2 over bad input: a dataset that is missing is missing the next time, too. */
static void never_on_bad_input(const struct toml *toml, struct run_spec *spec)
{
	enum { BAD_INPUT = 2 };
	struct key_ints *codes = &spec->never_on_exit_codes;
	const json_t *given = json_object_get(toml->root, "restart");

	if (run_spec_is_command(spec) || json_object_get(given, "never_on_exit_codes"))
		return;
	codes->items = xcalloc(1, sizeof(codes->items[0]));
	codes->items[codes->count++] = BAD_INPUT;
}

int run_spec_read(const struct toml *toml, struct run_spec *out, struct err *err)
{
	const json_t *run = json_object_get(toml->root, "run");
	bool is_command = json_object_get(run, "command") || json_object_get(run, "script");

	*out = (struct run_spec){ 0 };
	if (check_unknown(toml, is_command, err) < 0 || check_kind(toml, is_command, err) < 0 ||
	    keys_read(run_spec_keys, run_spec_key_count, toml, out, err) < 0)
		return -1;
	if (run_spec_check_run(toml, out, is_command, err) < 0 ||
	    tidy_strings(toml, out, err) < 0 || run_spec_check(toml, out, err) < 0 ||
	    run_spec_check_launch(toml, out, err) < 0) {
		run_spec_clear(out);
		return -1;
	}
	forget_defaults(toml, out);
	never_on_bad_input(toml, out);
	return 0;
}

void run_spec_defaults(struct run_spec *out)
{
	struct toml nothing = { .root = json_object() };

	*out = (struct run_spec){ 0 };
	keys_read(run_spec_keys, run_spec_key_count, &nothing, out, NULL);
	toml_clear(&nothing);
}

bool run_spec_is_command(const struct run_spec *spec)
{
	return spec->command.count > 0 || spec->script;
}

int64_t run_spec_warn_ms(const struct run_spec *spec)
{
	bool is_too_much = spec->time_ms > 0 && spec->signal_before_ms > spec->time_ms / 2;

	return is_too_much ? 0 : spec->signal_before_ms;
}

void run_spec_clear(struct run_spec *spec)
{
	keys_clear(run_spec_keys, run_spec_key_count, spec);
	*spec = (struct run_spec){ 0 };
}
