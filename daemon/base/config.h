/* SPDX-License-Identifier: MIT */
/* config.h - lbd.toml: one table of keys, read once at the start. */
#ifndef DAEMON_BASE_CONFIG_H
#define DAEMON_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/config/keys.h"
#include "daemon/calendar/cron_load.h"
#include "daemon/engine/decide/node_memory.h"
#include "slurm/backends.h"

enum submit_with { SUBMIT_WITH_LIBSLURM, SUBMIT_WITH_SBATCH };

struct config {
	char *home;        /* $LB_HOME, absolute */
	char *team_group;  /* NULL: nobody but the owner */
	bool may_submit;   /* members of the team may start runs, as the owner */
	char *team_folder; /* absolute; NULL: the team is not told */
	char *ledger_path; /* NULL: HOME/ledger.db */
	char *runs_folder; /* NULL: HOME/runs */
	char *lbrun;       /* NULL: beside lbd; must be a path that the nodes see */
	char *interpreter; /* lbrun, or where its path fits no first line of a script, HOME/lbrun */
	int64_t compress_logs_ms, retain_logs_ms; /* after a run's end; 0 = never */
	int64_t poll_ms, idle_poll_ms; /* asking the scheduler: while something changes, at rest */
	int64_t spool_ms;              /* looking at the spools of running attempts */
	int64_t deadline_ms;           /* for one call to Slurm */
	int64_t lease_ms;              /* an lbd elsewhere that is silent for so long is gone */
	/* lbd as a job of its own (in_slurm.h) */
	struct in_slurm {
		char *partition, *account, *qos, *mem; /* NULL: as the site has it */
		int64_t time_ms;                       /* limit of each job */
		int64_t hand_over_ms;                  /* it ends by itself so long before that */
	} in_slurm;
	struct node_rules nodes;
	char *slurm_account, *slurm_partition, *slurm_network; /* NULL: none */
	char *cache_folder;                /* of runs that name none; NULL: none */
	int slurm_through;                 /* enum slurm_through (slurm/pipe/helper_choice.h) */
	int submit_with;                   /* enum submit_with */
	struct key_strings plugin_options; /* of sbatch, "image=": slurm/batch/directives.h */
	int64_t local_gpus;                /* -1: all that are found */
	struct key_ints local_gpu_ids;     /* unset: whichever there are */
	int64_t local_cpus, local_jobs;    /* 0: all; any number */
	char *local_mem;                   /* as written; NULL: all */
	struct cron_config cron;
	struct key_strings notify_hook; /* argv; gets JSON on stdin */
	char *notify_webhook;           /* may hold a secret: never logged, never printed */
	int64_t not_running_ms;         /* 0 = never */
	char *heartbeat_file;           /* absolute; NULL: none */
	char *heartbeat_url;            /* may hold a secret */
	int64_t heartbeat_interval_ms;
	struct key_strings sync_to;       /* trackers as lbctl sync --to has them */
	char *sync_project, *sync_python; /* NULL: as lbctl sync has them */
	int64_t sync_every_ms;
	struct key_strings notify_on; /* kinds of events; unset: the usual ones */
};

extern const struct key config_keys[];
extern const size_t config_key_count;

/* Reads HOME/lbd.toml (a missing file means defaults) and fills in the paths. `home` is copied.
 * Clear with config_clear. */
int config_load(struct config *out, const char *home, struct err *err);
/* ERR_REFUSED when others could change the program that is told the news (guarded.h). */
int config_check_hook(const struct config *config, struct err *err);
/* Borrows from config. */
struct local_limits config_local(const struct config *config);
void config_clear(struct config *config);

#endif
