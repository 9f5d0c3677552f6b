/* SPDX-License-Identifier: MIT */
/* parts.c - the parts of lbd, put together in order. */
#include "daemon/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "daemon/control/control.h"
#include "daemon/cron/cron.h"
#include "daemon/folders.h"
#include "daemon/handlers.h"
#include "daemon/notify/alerts.h"
#include "daemon/notify/exporter.h"
#include "daemon/notify/heartbeat.h"
#include "daemon/notify/log_keeper.h"
#include "daemon/notify/sync.h"
#include "daemon/process/lock.h"
#include "daemon/recover/record.h"
#include "daemon/recover/recover.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/remover.h"
#include "daemon/runs/switchboard.h"
#include "daemon/runs/world.h"
#include "slurm/backends.h"
#include "slurm/pipe/helper_choice.h"

/* Of stderr, where that is a file; owned, NULL = it is not. */
static char *log_path(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	return realpath("/proc/self/fd/2", NULL);
}

int open_ledger(struct daemon *d, struct err *err)
{
	const struct config *config = &d->lbd.config;
	char *log = log_path();

	if (open_home(config, err) == 0)
		d->lbd.lock = lock_take(config->home, config->lease_ms, log, err);
	free(log);
	if (d->lbd.lock == NULL || link_lbrun(config, err) < 0 || recover_check(config, err) < 0 ||
	    ledger_open(config->ledger_path, &d->lbd.ledger, err) < 0)
		return -1;
	ledger_guard(d->lbd.ledger, lock_check, d->lbd.lock);
	return record_keep(d->lbd.ledger, err);
}

/* Slurm is exchanged under a lbd that runs: its library is gone, or its controller speaks no more
 * what this helper speaks. */
static char *find_helper(void *arg, const char *unfit)
{
	struct daemon *d = arg;
	const struct config *config = &d->lbd.config;
	struct slurm_helper helper;
	struct err err = { 0 };

	if (unfit)
		strv_add(&d->unfit_helpers, xstrdup(unfit));
	if (helper_choose((enum slurm_through)config->slurm_through, d->unfit_helpers.items,
			  &helper, &err) < 0) {
		log_error("no helper for this Slurm: %s", err.text);
		strv_free(d->unfit_helpers.items); /* from the beginning, the next time */
		d->unfit_helpers = (struct strv){ 0 };
		return NULL;
	}
	if (strcmp(helper.path, d->lbd.slurm_helper) != 0)
		log_warn("%s does not serve any more: Slurm is spoken to through %s",
			 d->lbd.slurm_helper, helper.path);
	free(d->lbd.slurm_helper);
	free(d->lbd.slurm_note);
	d->lbd.slurm_helper = xstrdup(helper.path);
	d->lbd.slurm_note = helper.note;
	if (d->lbd.slurm)
		d->lbd.slurm->by_sbatch = helper.by_commands ||
					  config->submit_with == SUBMIT_WITH_SBATCH;
	return helper.path;
}

/* NULL: there is no Slurm, or nothing to speak to it with. */
static struct scheduler *open_slurm(struct daemon *d)
{
	const struct config *config = &d->lbd.config;
	struct slurm_helper helper;
	struct scheduler *slurm;
	struct err err = { 0 };

	if (helper_choose((enum slurm_through)config->slurm_through, NULL, &helper, &err) < 0) {
		log_info("%s: runs go to the local scheduler", err.text);
		return NULL;
	}
	log_info("Slurm is spoken to through %s", helper.path);
	slurm = scheduler_slurm_create(&d->loop, helper.path, config->deadline_ms,
				       helper.by_commands ||
					       config->submit_with == SUBMIT_WITH_SBATCH);
	d->lbd.slurm_helper = helper.path;
	d->lbd.slurm_note = helper.note;
	scheduler_slurm_on_doubt(slurm, find_helper, d);
	return slurm;
}

static int open_schedulers(struct daemon *d, struct err *err)
{
	char *folder = path_join("%s/local", d->lbd.config.home);
	struct local_limits limits = config_local(&d->lbd.config);
	int rc = -1;

	if (folder_make(folder, 0700, err) == 0 && open_runs(&d->lbd.config, err) == 0) {
		d->lbd.slurm = open_slurm(d);
		d->lbd.local = scheduler_local_create(&d->loop, folder, &limits);
		rc = d->lbd.local ? 0 : err_set(err, ERR_IO, "%s: cannot use it", folder);
	}
	free(folder);
	return rc;
}

static int open_engine(struct daemon *d, struct err *err)
{
	struct poll_times times = {
		.busy_ms = d->lbd.config.poll_ms,
		.idle_ms = d->lbd.config.idle_poll_ms,
		.spool_ms = d->lbd.config.spool_ms,
	};

	if (d->lbd.slurm) {
		d->lbd.slurm->on_job = probe_on_job;
		d->lbd.slurm->on_job_arg = &d->lbd;
		snprintf(d->lbd.slurm->ledger_id, sizeof(d->lbd.slurm->ledger_id), "%s",
			 ledger_id(d->lbd.ledger));
	}
	world_init(&d->lbd.world, &d->lbd);
	d->lbd.engine = engine_create(d->lbd.ledger, d->lbd.slurm, d->lbd.local, &d->lbd.world,
				      &times);
	if (d->lbd.slurm) {
		d->lbd.slurm->known = engine_known_jobs;
		d->lbd.slurm->known_arg = d->lbd.engine;
	}
	engine_remember_nodes(d->lbd.engine, &d->lbd.config.nodes);
	engine_warn_after(d->lbd.engine, d->lbd.config.not_running_ms);
	engine_on_news(d->lbd.engine, loop_turn_soon, d);
	return engine_load(d->lbd.engine, err);
}

int open_parts(struct daemon *d, struct err *err)
{
	if (loop_open(d, err) < 0 || open_schedulers(d, err) < 0 || open_engine(d, err) < 0)
		return -1;
	d->lbd.switchboard = switchboard_open(&d->lbd);
	d->lbd.remover = remover_open(&d->lbd);
	if ((d->lbd.cron = cron_open(&d->lbd, err)) == NULL ||
	    (d->lbd.control = control_open(&d->lbd, handle, err)) == NULL)
		return -1;
	d->lbd.alerts = alerts_open(&d->lbd, err);
	if (err->code != ERR_NONE)
		return -1;
	d->lbd.heartbeat = heartbeat_open(&d->lbd);
	d->lbd.sync = sync_open(&d->lbd);
	d->lbd.log_keeper = log_keeper_open(&d->lbd);
	d->lbd.exporter = exporter_open(&d->lbd);
	return 0;
}
