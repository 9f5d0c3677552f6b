/* SPDX-License-Identifier: MIT */
/* checkpointer.c - when a checkpoint is due, the copy that it is written from, and what its writer
 * tells. */
#include "worker/lbworker/checkpoint/checkpointer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/checkpoint/interval.h"
#include "worker/lbworker/checkpoint/saver.h"

enum { FOLDER_MODE = 0755, FIRST_S = 60, WRITING_SHARE = 10 };

struct checkpointer {
	const struct config *config;
	const struct train_state *state;
	struct report *report;
	struct timeline *timeline; /* may be NULL */
	struct checkpoint_parts parts;
	struct saver *saver; /* NULL: none are written here */
	bool gives;          /* another rank writes them */
	int64_t saved_step;  /* of the newest one known to be sound; -1: none */
	char *saved_path;
	double waited_s;
	/* for an interval that is chosen here */
	double mtbf_s;           /* between troubles of this job */
	double spent_s, write_s; /* all that training waited for saves; the newest's writing */
	int64_t saves, saved_ms; /* their number; when the newest began, or the training */
};

/* Where nothing can ever be saved, training need not begin. */
static int try_folder(const char *folder, struct err *err)
{
	if (folder_make(folder, FOLDER_MODE, err))
		return err_wrap(err, "checkpoint.folder");
	if (access(folder, W_OK | X_OK) != 0)
		return err_errno(err, "checkpoint.folder: %s", folder);
	return 0;
}

/* lbrun knows what the ledger has seen; without it the published rate holds. */
static double mtbf_s(void)
{
	const char *told = getenv("LB_MTBF_S"), *nodes = getenv("SLURM_JOB_NUM_NODES");
	double s = told ? strtod(told, NULL) : 0;

	return s > 0 ? s : trouble_mtbf_s(&(struct troubles){ 0 }, nodes ? strtod(nodes, NULL) : 1);
}

struct checkpointer *checkpointer_create(const struct config *config,
					 const struct checkpoint_parts *parts,
					 struct report *report, char *path, struct err *err)
{
	const char *attempt = getenv("LB_ATTEMPT");
	const struct checkpoint_rules rules = {
		.parent = config->checkpoint_path,
		.attempt = attempt ? (int64_t)strtoll(attempt, NULL, 10) : 0,
		.run_dir = getenv("LB_RUN_DIR"),
		.keep_latest_k = config->keep_latest_k,
		.keep_every = config->keep_every,
	};
	struct checkpointer *k = xcalloc(1, sizeof(*k));

	*k = (struct checkpointer){ .config = config,
				    .state = parts->state,
				    .parts = *parts,
				    .gives = config->checkpoint_enable && parts->ranks->rank != 0,
				    .report = report,
				    .saved_step = path ? parts->state->step : -1,
				    .saved_path = path,
				    .mtbf_s = mtbf_s(),
				    .saved_ms = clock_mono_ms() };
	if (config->checkpoint_enable && !k->gives && try_folder(rules.parent, err) == 0)
		k->saver = saver_create(parts, &rules, err);
	if (k->saver || k->gives || !config->checkpoint_enable)
		return k;
	checkpointer_destroy(k);
	return NULL;
}

void checkpointer_show(struct checkpointer *k, struct timeline *timeline)
{
	k->timeline = timeline;
}

void checkpointer_destroy(struct checkpointer *k)
{
	if (!k)
		return;
	saver_destroy(k->saver);
	free(k->saved_path);
	free(k);
}

static int heard(struct checkpointer *k, const struct saver_result *r, struct err *err)
{
	if (!r->path && r->err.code == ERR_REFUSED)
		return err_set(err, ERR_REFUSED, "%s", r->err.text);
	if (!r->path) {
		log_warn("checkpoint of step %" PRId64 ": %s; older ones are as they were", r->step,
			 r->err.text);
		return 0;
	}
	k->write_s = r->write_s;
	free(k->saved_path);
	k->saved_path = r->path;
	k->saved_step = r->step;
	timeline_add(k->timeline, "checkpoint is written of step", r->step);
	printf("checkpoint %s in %.2f s, training waited %.3f s for the copy\n", r->path,
	       r->write_s, r->copy_s);
	report_checkpoint(k->report, k->saved_step, k->saved_path);
	return 0;
}

int checkpointer_collect(struct checkpointer *k, struct err *err)
{
	struct saver_result r;

	return k->saver && saver_collect(k->saver, false, &r) ? heard(k, &r, err) : 0;
}

int checkpointer_wait(struct checkpointer *k, struct err *err)
{
	double start_us = clock_mono_us();
	struct saver_result r;

	if (!k->saver)
		return 0;
	bool was_there = saver_collect(k->saver, true, &r);
	k->waited_s += (clock_mono_us() - start_us) * 1e-6;
	return was_there ? heard(k, &r, err) : 0;
}

/* No rank goes on before the one in flight is written. */
static int wait_together(struct checkpointer *k, struct err *err)
{
	double start_us = clock_mono_us();

	if (ranks_wait_for_first(k->parts.ranks, k->saver ? saver_is_through(k->saver) : NULL, err))
		return -1;
	k->waited_s += k->saver ? (clock_mono_us() - start_us) * 1e-6 : 0;
	return checkpointer_wait(k, err);
}

/* Only one is in flight: the next waits for it, which is said. */
static int make_room(struct checkpointer *k, struct err *err)
{
	double waited_s = k->waited_s;

	if (checkpointer_collect(k, err))
		return -1;
	bool is_busy = k->saver && saver_busy(k->saver);
	if (wait_together(k, err))
		return -1;
	if (is_busy)
		printf("step %" PRId64 " waited %.2f s for the checkpoint before\n", k->state->step,
		       k->waited_s - waited_s);
	return 0;
}

bool checkpointer_due(const struct checkpointer *k)
{
	int64_t interval = k->config->checkpoint_interval;

	return (k->saver || k->gives) && interval > 0 && k->state->step % interval == 0;
}

bool checkpointer_wants(const struct checkpointer *k)
{
	double cost_s = k->saves > 0 ? k->spent_s / (double)k->saves : 0;
	double due_s = k->saves > 0 ? save_interval_s(cost_s, k->mtbf_s) + cost_s
				    : fmin(FIRST_S, k->mtbf_s / 10);

	if (!k->config->interval_auto || !k->saver || saver_busy(k->saver))
		return false;
	/* a copy that costs nothing is no reason to keep disks busy all the time */
	due_s = fmax(due_s, WRITING_SHARE * k->write_s);
	return (double)(clock_mono_ms() - k->saved_ms) >= due_s * 1000;
}

/* Rank 0 knows whether one is wanted: it alone knows what became of the last one. */
static int ask_first(struct checkpointer *k, bool *wanted, struct err *err)
{
	struct ranks *ranks = k->parts.ranks;

	*wanted = k->saver && k->state->step != k->saved_step;
	return ranks->size > 1 ? ranks_from_first(ranks, wanted, sizeof(*wanted), err) : 0;
}

static bool is_waited_for(const struct checkpointer *k)
{
	return k->config->async_mode == ASYNC_DISABLED;
}

int checkpointer_save(struct checkpointer *k, struct err *err)
{
	double copy_s;
	bool wanted;

	if (!k->saver && !k->gives)
		return 0;
	if (make_room(k, err) || ask_first(k, &wanted, err))
		return -1;
	if (k->gives && wanted && checkpoint_copy_give(&k->parts, err))
		return -1;
	if (k->gives)
		return wanted && is_waited_for(k) ? wait_together(k, err) : 0;
	if (!wanted) {
		report_checkpoint(k->report, k->saved_step, k->saved_path);
		return 0;
	}
	report_phase(k->report, "checkpoint");
	k->saved_ms = clock_mono_ms();
	if (saver_start(k->saver, &copy_s, err))
		return -1;
	k->waited_s += copy_s;
	k->spent_s += copy_s;
	k->saves++;
	timeline_copied(k->timeline);
	timeline_add(k->timeline, "checkpoint begins at step", k->state->step);
	if (!is_waited_for(k))
		return 0;
	if (wait_together(k, err))
		return -1;
	k->spent_s += (double)(clock_mono_ms() - k->saved_ms) / 1000 - copy_s;
	return 0;
}

int checkpointer_finish(struct checkpointer *k, struct err *err)
{
	if (checkpointer_save(k, err) || checkpointer_wait(k, err))
		return -1;
	if (k->saver && k->saved_step != k->state->step)
		return err_set(err, ERR_IO,
			       "the checkpoint of step %" PRId64 " could not be written",
			       k->state->step);
	return 0;
}

double checkpointer_waited_s(struct checkpointer *k)
{
	double seconds = k->waited_s;

	k->waited_s = 0;
	return seconds;
}
