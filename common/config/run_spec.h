/* SPDX-License-Identifier: MIT */
/* run_spec.h - what a person asks for: `lbctl submit FILE.toml` or `lbctl submit -- COMMAND`.
 *
 * run_spec_keys is the one table behind parsing, messages and the man page lbd-run(5). */
#ifndef COMMON_CONFIG_RUN_SPEC_H
#define COMMON_CONFIG_RUN_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/attempt_watch.h"
#include "common/base/err.h"
#include "common/config/keys.h"
#include "common/run/retention_rule.h"
#include "common/run/run_state.h"
#include "common/config/toml.h"

enum spec_scheduler { SPEC_SCHEDULER_AUTO, SPEC_SCHEDULER_SLURM, SPEC_SCHEDULER_LOCAL };
enum spec_rule { SPEC_RULE_AUTO, SPEC_RELAUNCH, SPEC_COUNT, SPEC_STOP };
enum spec_launcher {
	SPEC_LAUNCHER_AUTO,
	SPEC_LAUNCHER_NONE,
	SPEC_LAUNCHER_SRUN,
	SPEC_LAUNCHER_TORCHRUN
};

enum spec_prequeue { SPEC_PREQUEUE_NEVER, SPEC_PREQUEUE_ALWAYS, SPEC_PREQUEUE_AUTO };

struct run_spec {
	/* [run] */
	char *name;               /* NULL: drawn */
	char *group;              /* NULL: none */
	struct key_strings sweep; /* "KEY=VALUE" of the sweep that made this run */
	struct key_strings after,
		after_ok;           /* names of runs that end, or complete, before this begins */
	struct key_strings command; /* argv; unset: the file is an lbworker training config */
	/* absolute path a batch script had when it was submitted; its text is
	 * runs/NAME/slurm_script; then [slurm] holds only what was given, 0 and NULL else, and
	 * the script's own options say the rest */
	char *script;
	struct key_strings arguments; /* of the script */
	char *workdir;                /* absolute; the submitter's folder when unset */
	char *env_file;               /* KEY=VALUE lines, owned by the submitter, mode 0600 */
	int scheduler;                /* enum spec_scheduler */
	int launcher;                 /* enum spec_launcher */
	/* [slurm] */
	char *partition, *account, *qos, *mem, *constraint, *exclude, *nodelist, *reservation;
	char *licenses, *comment;
	struct key_strings extra; /* options of sbatch, as on its command line */
	int64_t nodes, ntasks_per_node, cpus_per_task, gpus_per_node;
	char *time_text;          /* as written; time_ms is what counts */
	int64_t time_ms;          /* 0: the partition's limit */
	int64_t signal_before_ms; /* as written; run_spec_warn_ms is what counts */
	char *network;            /* name of a profile: daemon/job/network.h */
	char *mpi;                /* srun --mpi */
	struct key_strings srun;  /* more options of srun */
	char *container_image, *container_workdir, *container_name; /* pyxis; NULL: none */
	struct key_strings container_mounts;
	/* [torchrun] */
	struct key_strings torchrun; /* program, with options of its own */
	int64_t nproc_per_node;      /* 0: as many as GPUs */
	/* [nsys] */
	bool nsys;                               /* ranks run under the profiler */
	int64_t nsys_delay_ms, nsys_duration_ms; /* 0: from the start; to the end */
	char *nsys_output;                       /* NULL: in the attempt's folder */
	struct key_strings nsys_options;
	/* [preflight] */
	bool preflight;
	int64_t preflight_ms, preflight_tries; /* longest time; attempts in a row that it may end */
	struct key_strings preflight_options;
	/* [restart] */
	int64_t max_without_progress, in_place, backoff_first_ms, backoff_max_ms;
	struct key_ints never_on_exit_codes;
	int64_t rollback;
	int64_t spare_nodes;    /* of the job, beside slurm.nodes */
	int64_t min_nodes;      /* 0: as many as slurm.nodes */
	int64_t fewer_after_ms; /* of waiting for slurm.nodes */
	bool grow_back;         /* to slurm.nodes, once they are free again */
	bool leave;             /* nodes that are going away, in time */
	int prequeue;           /* enum spec_prequeue */
	int rules[CAUSE_COUNT]; /* [restart.policy]: enum spec_rule by cause */
	/* [watch] */
	int64_t kill_grace_ms, stop_grace_ms;
	char *step_timeout_text;    /* as written; watch.step_ms is what counts */
	struct attempt_watch watch; /* its limits; the rest is here: */
	char *progress_regex;
	struct key_strings node_errors;
	/* [cache] */
	char *cache_folder;                 /* of the node; NULL: as lbd.toml has it */
	char *cache_bytes_text;             /* as written; cache_bytes counts: */
	int64_t cache_bytes;                /* that it may take */
	struct key_strings cache_variables; /* that point there, too */
	/* [checkpoint] - the rest of that section is the trainer's */
	char *checkpoint_folder; /* NULL: runs/NAME/checkpoints */
	char *checkpoint_layout, *checkpoint_pattern, *checkpoint_complete_when; /* checkpoints.h */
	char *checkpoint_stage; /* folder of the node; NULL = none */
	char *save_every_text;  /* as written; save_every_ms counts (attempt.h) */
	int64_t save_every_ms;
	char *stage_rate_text; /* as written; stage_rate counts: */
	int64_t stage_rate;    /* bytes/s at most from there; 0 = no limit */
	int64_t checkpoint_check_ms;
	struct retention
		retention; /* of our own trainer max_bytes alone: it keeps to the rest itself */
	char *max_bytes_text,
		*note_bytes_text; /* as written; retention.max_bytes and note_bytes count */
	int64_t note_bytes;
};

extern const struct key run_spec_keys[];
extern const size_t run_spec_key_count;

/* Reads and checks the whole document. A document without run.command is a training config: its
 * sections that are not ours are left to lbworker; with run.command every unknown section or key is
 * an error. All values are checked here (name, durations, "mem", workdir is absolute, …): a spec
 * that this function accepts can be submitted. Clear with run_spec_clear. */
int run_spec_read(const struct toml *toml, struct run_spec *out, struct err *err);
/* run_spec_check.c, for run_spec_read: is [run] as it was written possible; is, once its empty
 * strings count as not given, each other value, and beside the others? */
int run_spec_check_run(const struct toml *toml, const struct run_spec *spec, bool is_command,
		       struct err *err);
int run_spec_check(const struct toml *toml, struct run_spec *spec, struct err *err);
/* run_spec_launch.c, for run_spec_read: do launcher, container and profiler fit together? */
int run_spec_check_launch(const struct toml *toml, const struct run_spec *spec, struct err *err);

/* What holds where a spec says nothing: of a run whose spec can no longer be read. */
void run_spec_defaults(struct run_spec *out);
void run_spec_clear(struct run_spec *spec);

/* Not a training config: a command, or a batch script. */
bool run_spec_is_command(const struct run_spec *spec);

/* How long before the time limit the trainer is asked to save and end; 0 = not at all, also where
 * it would take more than half of the time. */
int64_t run_spec_warn_ms(const struct run_spec *spec);

/* run_spec_options.c: what [slurm] asks of the scheduler, as an object by the keys' names: an
 * integer (0: not given) or a string (null: not given), in the words of sbatch's option of that
 * name. Owned. */
json_t *run_spec_options(const struct run_spec *spec);

/* KEY=VALUE lines of an env_file: owner must be `uid`, mode without group and other bits, a regular
 * file. Returns a NULL-terminated list of "KEY=VALUE", owned by the caller (strv_free wipes
 * the memory); NULL with err. Values never appear in err. */
char **env_file_read(const char *path, unsigned uid, struct err *err);

#endif
