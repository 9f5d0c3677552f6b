/* SPDX-License-Identifier: MIT */
/* sbatch_options.c - one row an option. What each asks for is written by its setter
 * (sbatch_setters.c). */
#include "slurm/batch/sbatch_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/config/keys.h"
#include "slurm/batch/sbatch_setters.h"

#define INT32 INT32_MAX

/* Rows by name. The field, or the reason of a refusal, may have CLUSTER behind it. */
#define CLUSTER .of_cluster = true
#define ROW(name_, letter_, arity_, variable_, set_, ...) \
	{ \
		.name = (name_), .letter = (letter_), .arity = (arity_), .variable = (variable_), \
		.set = (set_), __VA_ARGS__ \
	}
#define OTHER(name, letter, arity, variable, set, ...) \
	ROW(name, letter, arity, variable, set, .field = __VA_ARGS__)
#define TEXT(name, letter, variable, ...) \
	OTHER(name, letter, SBATCH_VALUE, variable, sbatch_set_text, __VA_ARGS__)
#define TEXT_OR_NONE(name, letter, variable, field) \
	OTHER(name, letter, SBATCH_VALUE, variable, sbatch_set_text_or_none, field)
#define NUMBER(name, letter, variable, field_, least, most) \
	ROW(name, letter, SBATCH_VALUE, variable, sbatch_set_number, .field = (field_), \
	    .min = (least), .max = (most))
#define FLAG(name, letter, variable, field) \
	OTHER(name, letter, SBATCH_FLAG, variable, sbatch_set_flag, field)
#define MB(name, variable, ...) \
	OTHER(name, 0, SBATCH_VALUE, variable, sbatch_set_megabytes, __VA_ARGS__)
#define NOTHING(name, letter, variable) \
	OTHER(name, letter, SBATCH_FLAG, variable, sbatch_set_nothing, NULL)
#define REFUSED(name, letter, arity, variable, why) \
	OTHER(name, letter, arity, variable, sbatch_refuse, why)

#define U16 (UINT16_MAX - 2)
#define ELSEWHERE "other clusters need an lbd of their own"

const struct sbatch_option sbatch_options[] = {
	TEXT("account", 'A', "SBATCH_ACCOUNT", "account", CLUSTER),
	TEXT("acctg-freq", 0, "SBATCH_ACCTG_FREQ", "acctg_freq"),
	OTHER("array", 'a', SBATCH_VALUE, "SBATCH_ARRAY_INX", sbatch_set_array, "array_inx"),
	REFUSED("autocomplete", 0, SBATCH_VALUE, NULL, "man sbatch"),
	TEXT("batch", 0, "SBATCH_BATCH", "batch_features"),
	TEXT("bb", 0, "SBATCH_BURST_BUFFER", "burst_buffer", CLUSTER),
	REFUSED("bbf", 0, SBATCH_VALUE, NULL, "put the lines of that file into the script"),
	OTHER("begin", 'b', SBATCH_VALUE, NULL, sbatch_set_moment, "begin_time"),
	OTHER("chdir", 'D', SBATCH_VALUE, NULL, sbatch_set_chdir, "work_dir"),
	TEXT("cluster-constraint", 0, "SBATCH_CLUSTER_CONSTRAINT", "cluster_features"),
	REFUSED("clusters", 'M', SBATCH_VALUE, "SBATCH_CLUSTERS", ELSEWHERE),
	REFUSED("cluster", 0, SBATCH_VALUE, "SLURM_CLUSTERS", ELSEWHERE),
	TEXT("comment", 0, NULL, "comment"),
	FLAG("consolidate-segments", 0, "SBATCH_CONSOLIDATE_SEGMENTS",
	     "consolidate_segments"), /* 26.05 */
	TEXT("constraint", 'C', "SBATCH_CONSTRAINT", "features", CLUSTER),
	TEXT("container", 0, "SBATCH_CONTAINER", "container", CLUSTER),
	TEXT("container-id", 0, "SBATCH_CONTAINER_ID", "container_id"),       /* 23.02 */
	TEXT("container-type", 0, "SBATCH_CONTAINER_TYPE", "container_type"), /* 26.05 */
	TEXT("context", 0, NULL, "req_context"),
	FLAG("contiguous", 0, NULL, "contiguous"),
	ROW("core-spec", 'S', SBATCH_VALUE, "SBATCH_CORE_SPEC", sbatch_set_core_spec,
	    .constant = 0),
	NUMBER("cores-per-socket", 0, NULL, "cores_per_socket", 1, U16),
	OTHER("cpu-freq", 0, SBATCH_VALUE, "SBATCH_CPU_FREQ_REQ", sbatch_set_cpu_freq, "cpu_freq",
	      CLUSTER),
	NUMBER("cpus-per-gpu", 0, "SBATCH_CPUS_PER_GPU", "cpus_per_gpu", 1, INT32),
	NUMBER("cpus-per-task", 'c', NULL, "cpus_per_task", 1, U16),
	OTHER("deadline", 0, SBATCH_VALUE, NULL, sbatch_set_moment, "deadline", CLUSTER),
	OTHER("delay-boot", 0, SBATCH_VALUE, "SBATCH_DELAY_BOOT", sbatch_set_seconds, "delay_boot"),
	TEXT("dependency", 'd', NULL, "dependency"),
	OTHER("distribution", 'm', SBATCH_VALUE, "SBATCH_DISTRIBUTION", sbatch_set_distribution,
	      "distribution"),
	OTHER("error", 'e', SBATCH_VALUE, "SBATCH_ERROR", sbatch_set_file, "std_err", CLUSTER),
	OTHER("exclude", 'x', SBATCH_VALUE, NULL, sbatch_set_nodelist, "exc_nodes", CLUSTER),
	OTHER("exclusive", 0, SBATCH_MAY_VALUE, "SBATCH_EXCLUSIVE", sbatch_set_exclusive, "shared"),
	OTHER("export", 0, SBATCH_VALUE, "SBATCH_EXPORT", sbatch_set_export, "export"),
	REFUSED("export-file", 0, SBATCH_VALUE, NULL,
		"put the variables into run.env_file, lines of NAME=value"),
	REFUSED("external", 0, SBATCH_FLAG, NULL, "such a job has no script"), /* 25.05 */
	TEXT("extra", 0, NULL, "extra"), /* 23.02; before, short for the next one */
	OTHER("extra-node-info", 'B', SBATCH_VALUE, NULL, sbatch_set_extra_node_info, NULL),
	OTHER("get-user-env", 0, SBATCH_MAY_VALUE, "SBATCH_GET_USER_ENV", sbatch_set_get_user_env,
	      "get_user_env"),
	REFUSED("gid", 0, SBATCH_VALUE, NULL, "jobs run with the group of lbd"),
	TEXT("gpu-bind", 0, "SBATCH_GPU_BIND", "gpu_bind"),
	TEXT("gpu-freq", 0, "SBATCH_GPU_FREQ", "gpu_freq", CLUSTER),
	TEXT_OR_NONE("gpus", 'G', "SBATCH_GPUS", "gpus"),
	TEXT_OR_NONE("gpus-per-node", 0, "SBATCH_GPUS_PER_NODE", "gpus_per_node"),
	TEXT_OR_NONE("gpus-per-socket", 0, "SBATCH_GPUS_PER_SOCKET", "gpus_per_socket"),
	TEXT_OR_NONE("gpus-per-task", 0, "SBATCH_GPUS_PER_TASK", "gpus_per_task"),
	OTHER("gres", 0, SBATCH_VALUE, "SBATCH_GRES", sbatch_set_gres, "gres"),
	OTHER("gres-flags", 0, SBATCH_VALUE, "SBATCH_GRES_FLAGS", sbatch_set_gres_flags, NULL),
	REFUSED("help", 'h', SBATCH_FLAG, NULL, "man sbatch"),
	OTHER(NULL, 0, SBATCH_VALUE, "SLURM_HINT", sbatch_set_hint, "hint"),
	OTHER("hint", 0, SBATCH_VALUE, "SBATCH_HINT", sbatch_set_hint, "hint"),
	FLAG("hold", 'H', NULL, "hold"),
	FLAG("ignore-pbs", 0, "SBATCH_IGNORE_PBS", "ignore_pbs"),
	OTHER("input", 'i', SBATCH_VALUE, "SBATCH_INPUT", sbatch_set_file, "std_in", CLUSTER),
	TEXT_OR_NONE("job-name", 'J', "SBATCH_JOB_NAME", "name"),
	OTHER("kill-on-invalid-dep", 0, SBATCH_VALUE, NULL, sbatch_set_kill_on_invalid_dep, NULL),
	TEXT("licenses", 'L', NULL, "licenses", CLUSTER),
	OTHER("mail-type", 0, SBATCH_VALUE, NULL, sbatch_set_mail_type, "mail_type", CLUSTER),
	TEXT("mail-user", 0, NULL, "mail_user", CLUSTER),
	TEXT("mcs-label", 0, NULL, "mcs_label"),
	MB("mem", "SBATCH_MEM_PER_NODE", "mem_per_node"),
	TEXT("mem-bind", 0, "SBATCH_MEM_BIND", "mem_bind"),
	MB("mem-per-cpu", "SBATCH_MEM_PER_CPU", "mem_per_cpu"),
	MB("mem-per-gpu", "SBATCH_MEM_PER_GPU", "mem_per_gpu"),
	OTHER("mem-update", 0, SBATCH_VALUE, NULL, sbatch_set_mem_update, NULL), /* 26.05 */
	NUMBER("mincpus", 0, NULL, "pn_min_cpus", 0, U16),
	TEXT("network", 0, "SBATCH_NETWORK", "network", CLUSTER),
	OTHER("nice", 0, SBATCH_MAY_VALUE, NULL, sbatch_set_nice, "nice", CLUSTER),
	OTHER("no-kill", 'k', SBATCH_MAY_VALUE, "SBATCH_NO_KILL", sbatch_set_no_kill,
	      "kill_on_node_fail"),
	ROW("no-requeue", 0, SBATCH_FLAG, "SBATCH_NO_REQUEUE", sbatch_set_requeue, .constant = 0),
	REFUSED("nodefile", 'F', SBATCH_VALUE, NULL, "name the nodes: --nodelist=n[1-3]"),
	OTHER("nodelist", 'w', SBATCH_VALUE, NULL, sbatch_set_nodelist, "req_nodes", CLUSTER),
	OTHER("nodes", 'N', SBATCH_VALUE, NULL, sbatch_set_nodes, NULL),
	NUMBER("ntasks", 'n', NULL, "ntasks", 1, INT32),
	NUMBER("ntasks-per-core", 0, NULL, "ntasks_per_core", 1, U16),
	NUMBER("ntasks-per-gpu", 0, NULL, "ntasks_per_gpu", 1, U16),
	NUMBER("ntasks-per-node", 0, NULL, "ntasks_per_node", 1, U16),
	NUMBER("ntasks-per-socket", 0, NULL, "ntasks_per_socket", 1, U16),
	NUMBER("ntasks-per-tres", 0, NULL, "ntasks_per_tres", 1, U16),
	ROW("oom-kill-step", 0, SBATCH_MAY_VALUE, NULL, sbatch_set_number, .field = "oom_kill_step",
	    .min = 0, .max = 1, .constant = 1), /* 24.11 */
	OTHER("open-mode", 0, SBATCH_VALUE, "SBATCH_OPEN_MODE", sbatch_set_open_mode, "open_mode"),
	OTHER("output", 'o', SBATCH_VALUE, "SBATCH_OUTPUT", sbatch_set_file, "std_out", CLUSTER),
	FLAG("overcommit", 'O', "SBATCH_OVERCOMMIT", "overcommit"),
	FLAG("oversubscribe", 's', NULL, "shared"),
	NOTHING("parsable", 0, NULL),
	TEXT("partition", 'p', "SBATCH_PARTITION", "partition", CLUSTER),
	TEXT("power", 0, "SBATCH_POWER", "power"),
	TEXT("prefer", 0, NULL, "prefer", CLUSTER),
	REFUSED("priority", 0, SBATCH_VALUE, NULL,
		"only administrators may set a priority; --nice=N lowers it"),
	OTHER("profile", 0, SBATCH_VALUE, "SBATCH_PROFILE", sbatch_set_profile, "profile"),
	OTHER("propagate", 0, SBATCH_MAY_VALUE, NULL, sbatch_set_propagate, "propagate"),
	TEXT("qos", 'q', "SBATCH_QOS", "qos", CLUSTER),
	NOTHING("quiet", 'Q', NULL),
	FLAG("reboot", 0, NULL, "reboot"),
	ROW("requeue", 0, SBATCH_MAY_VALUE, "SBATCH_REQUEUE", sbatch_set_requeue, .constant = 1),
	TEXT("reservation", 0, "SBATCH_RESERVATION", "reservation", CLUSTER),
	TEXT("resources", 0, NULL, "resources"), /* 26.05 */
	ROW("resv-ports", 0, SBATCH_MAY_VALUE, NULL, sbatch_set_number, .field = "resv_ports",
	    .min = 0, .max = U16, .constant = 0), /* 24.05 */
	ROW("segment", 0, SBATCH_VALUE, "SBATCH_SEGMENT_SIZE", sbatch_set_number,
	    .field = "segment", .max = U16, CLUSTER), /* 24.05 */
	OTHER("signal", 0, SBATCH_VALUE, "SBATCH_SIGNAL", sbatch_set_signal, "warn_signal"),
	NUMBER("sockets-per-node", 0, NULL, "sockets_per_node", 1, U16),
	OTHER("spread-job", 0, SBATCH_FLAG, "SBATCH_SPREAD_JOB", sbatch_set_job_flag, "spread"),
	FLAG("spread-segments", 0, "SBATCH_SPREAD_SEGMENTS", "spread_segments"), /* 26.05 */
	FLAG("stepmgr", 0, NULL, "stepmgr"),                                     /* 24.05 */
	NUMBER(NULL, 0, "SBATCH_REQ_SWITCH", "req_switch", 1, INT32),
	OTHER(NULL, 0, SBATCH_VALUE, "SBATCH_WAIT4SWITCH", sbatch_set_seconds, "wait4switch"),
	OTHER("switches", 0, SBATCH_VALUE, NULL, sbatch_set_switches, "req_switch", CLUSTER),
	NUMBER("tasks-per-node", 0, NULL, "ntasks_per_node", 1, U16),
	REFUSED("test-only", 0, SBATCH_FLAG, NULL,
		"would submit nothing; lbctl submit --dry-run shows the job"),
	ROW("thread-spec", 0, SBATCH_VALUE, "SBATCH_THREAD_SPEC", sbatch_set_core_spec,
	    .constant = 1),
	NUMBER("threads-per-core", 0, "SBATCH_THREADS_PER_CORE", "threads_per_core", 1, U16),
	OTHER("time", 't', SBATCH_VALUE, "SBATCH_TIMELIMIT", sbatch_set_minutes, "time_limit"),
	OTHER("time-min", 0, SBATCH_VALUE, NULL, sbatch_set_minutes, "time_min"),
	MB("tmp", NULL, "pn_min_tmp_disk", CLUSTER),
	OTHER("tres-bind", 0, SBATCH_VALUE, "SBATCH_TRES_BIND", sbatch_set_tres_bind,
	      "gpu_bind"), /* 23.11 */
	OTHER("tres-per-task", 0, SBATCH_VALUE, "SBATCH_TRES_PER_TASK", sbatch_set_tres_per_task,
	      NULL), /* 23.02 */
	REFUSED("uid", 0, SBATCH_VALUE, NULL, "jobs run as the user of lbd"),
	OTHER("use-min-nodes", 0, SBATCH_FLAG, "SBATCH_USE_MIN_NODES", sbatch_set_job_flag,
	      "use-min-nodes"),
	REFUSED("usage", 0, SBATCH_FLAG, NULL, "man sbatch"),
	NOTHING("verbose", 'v', "SBATCH_DEBUG"),
	REFUSED("version", 'V', SBATCH_FLAG, NULL, "sbatch --version tells it"),
	FLAG("wait", 'W', "SBATCH_WAIT", "wait"), /* for who submitted it: lbctl waits */
	NUMBER("wait-all-nodes", 0, "SBATCH_WAIT_ALL_NODES", "wait_all_nodes", 0, 1),
	TEXT("wckey", 0, "SBATCH_WCKEY", "wckey", CLUSTER),
	REFUSED("wrap", 0, SBATCH_VALUE, NULL,
		"it stands for a script, on a command line only: lbctl submit --wrap=COMMAND"),
};
const size_t sbatch_option_count = sizeof(sbatch_options) / sizeof(sbatch_options[0]);

static void refuse_name(const char *name, size_t len, struct err *err)
{
	const char *names[sizeof(sbatch_options) / sizeof(sbatch_options[0])], *near;
	char *word = xstrndup(name, len);
	size_t count = 0;

	for (size_t i = 0; i < sbatch_option_count; i++)
		if (sbatch_options[i].name && sbatch_options[i].set != sbatch_refuse)
			names[count++] = sbatch_options[i].name;
	near = nearest(word, names, count);
	free(word);
	if (near)
		err_set(err, ERR_USAGE, "there is no such option of sbatch; did you mean --%s?",
			near);
	else
		err_set(err, ERR_USAGE,
			"there is no such option of sbatch (those of the site's plugins: "
			"slurm.plugin_options in lbd.toml)");
}

const struct sbatch_option *sbatch_option_named(const char *name, size_t len)
{
	for (size_t i = 0; i < sbatch_option_count; i++) {
		const char *whole = sbatch_options[i].name;

		if (whole && strlen(whole) == len && strncmp(whole, name, len) == 0)
			return &sbatch_options[i];
	}
	return NULL;
}

const struct sbatch_option *sbatch_option_find(const char *name, size_t len, struct err *err)
{
	const struct sbatch_option *found = sbatch_option_named(name, len);

	if (found)
		return found;
	for (size_t i = 0; i < sbatch_option_count; i++) {
		const struct sbatch_option *o = &sbatch_options[i];

		if (!o->name || strncmp(o->name, name, len) != 0)
			continue;
		if (found) {
			err_set(err, ERR_USAGE, "may be --%s or --%s", found->name, o->name);
			return NULL;
		}
		found = o;
	}
	if (!found)
		refuse_name(name, len, err);
	return found;
}

const struct sbatch_option *sbatch_option_letter(char letter)
{
	for (size_t i = 0; i < sbatch_option_count; i++) {
		if (letter && sbatch_options[i].letter == letter)
			return &sbatch_options[i];
	}
	return NULL;
}
