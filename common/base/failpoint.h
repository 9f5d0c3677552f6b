/* SPDX-License-Identifier: MIT */
/* failpoint.h - named points at which tests crash, delay or fail the real programs.
 *
 *   LB_FAILPOINT=NAME:ACTION[@NTH][,…]    ACTION: kill | error | delay:DURATION (500ms, 2s)
 *   LB_FAILPOINT_ONCE=FOLDER
 *
 * A point acts when it is reached the NTH time (the first) by this process: `kill` is SIGKILL to
 * itself, `delay` sleeps, `error` fails the step as a full disk would, where the step can fail at
 * all. With LB_FAILPOINT_ONCE it acts only if it can make the file FOLDER/NAME: once, however many
 * processes come by, and the folder tells afterwards which points were reached. Unset, a point
 * costs one test of a variable. What a person submits does not carry these variables into a job.
 * An unknown name, or an `error` where none is possible, is refused at the start.
 * `lbd --failpoints` lists them all. */
#ifndef COMMON_BASE_FAILPOINT_H
#define COMMON_BASE_FAILPOINT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"

/*  id, name, program, whether `error` is possible */
#define FAILPOINTS(X) \
	/* the steps of an attempt: written, and not yet committed; committed */ \
	X(INTENT_WRITTEN, "intent.written", "lbd", true) \
	X(INTENT_COMMITTED, "intent.committed", "lbd", false) \
	X(JOB_WRITTEN, "job.written", "lbd", true) \
	X(JOB_COMMITTED, "job.committed", "lbd", false) \
	X(RELEASED_WRITTEN, "released.written", "lbd", true) \
	X(RELEASED_COMMITTED, "released.committed", "lbd", false) \
	X(START_WRITTEN, "start.written", "lbd", true) \
	X(START_COMMITTED, "start.committed", "lbd", false) \
	X(END_WRITTEN, "end.written", "lbd", true) \
	X(END_COMMITTED, "end.committed", "lbd", false) \
	X(MOVE_WRITTEN, "move.written", "lbd", true) \
	X(MOVE_COMMITTED, "move.committed", "lbd", false) \
	X(INGEST_WRITTEN, "ingest.written", "lbd", true) \
	X(INGEST_COMMITTED, "ingest.committed", "lbd", false) \
	/* a run is removed: written; committed; its folder out of the way, and still there */ \
	X(REMOVAL_WRITTEN, "removal.written", "lbd", true) \
	X(REMOVAL_COMMITTED, "removal.committed", "lbd", false) \
	X(REMOVAL_HIDDEN, "removal.hidden", "lbd", false) \
	/* calls to the scheduler: about to be made; answered, and nothing noted of it yet */ \
	X(SUBMIT_CALL, "submit.call", "lbd", false) \
	X(SUBMIT_ANSWER, "submit.answer", "lbd", false) \
	/* Slurm has given the job a number, and the person has not heard it */ \
	X(JOB_TOLD, "job.told", "lbd", false) \
	/* the attempt's files, half written */ \
	X(ATTEMPT_FILES, "attempt.files", "lbd", true) \
	X(RELEASE_CALL, "release.call", "lbd", false) \
	X(RELEASE_ANSWER, "release.answer", "lbd", false) \
	X(SIGNAL_CALL, "signal.call", "lbd", false) \
	X(SIGNAL_ANSWER, "signal.answer", "lbd", false) \
	X(CANCEL_CALL, "cancel.call", "lbd", false) \
	X(CANCEL_ANSWER, "cancel.answer", "lbd", false) \
	X(STRAY_CALL, "stray.call", "lbd", false) \
	/* what a person asks for */ \
	X(RUN_FOLDER, "run.folder", "lbd", true) \
	X(RUN_WRITTEN, "run.written", "lbd", true) \
	X(RUN_COMMITTED, "run.committed", "lbd", false) \
	X(ORDER_WRITTEN, "order.written", "lbd", true) \
	X(ORDER_COMMITTED, "order.committed", "lbd", false) \
	X(SWITCH_WRITTEN, "switch.written", "lbd", true) \
	X(SWITCH_COMMITTED, "switch.committed", "lbd", false) \
	X(RESTART_SPEC, "restart.spec", "lbd", true) \
	X(RESTART_WRITTEN, "restart.written", "lbd", true) \
	X(RESTART_COMMITTED, "restart.committed", "lbd", false) \
	X(REQUEST_LEFT, "request.left", "lbd", true) \
	X(ALERT_TOLD, "alert.told", "lbd", false) \
	X(ALERT_COMMITTED, "alert.committed", "lbd", false) \
	/* the ledger itself: every commit, and the copy of it */ \
	X(LEDGER_COMMIT, "ledger.commit", "lbd", true) \
	X(LEDGER_COMMITTED, "ledger.committed", "lbd", true) \
	X(BACKUP_COPIED, "backup.copied", "lbd", true) \
	X(BACKUP_PLACED, "backup.placed", "lbd", false) \
	/* an attempt on its node */ \
	X(CLAIM_BEFORE, "claim.before", "lbrun", true) \
	X(CLAIM_TAKEN, "claim.taken", "lbrun", false) \
	X(SEARCH_LOOK, "search.look", "lbrun", true) \
	X(TRAINER_BEFORE, "trainer.before", "lbrun", false) \
	X(TRAINER_STARTED, "trainer.started", "lbrun", false) \
	X(TRAINER_RECORDED, "trainer.recorded", "lbrun", false) \
	X(TRAINER_ENDED, "trainer.ended", "lbrun", false) \
	X(END_RECORDED, "end.recorded", "lbrun", false) \
	X(CACHE_OPEN, "cache.open", "lbrun", true) \
	X(SPOOL_BEFORE, "spool.before", "lbrun", true) \
	X(SPOOL_APPENDED, "spool.appended", "lbrun", false) \
	X(SPOOL_SYNC, "spool.sync", "lbrun", true) \
	X(STOP_SEEN, "stop.seen", "lbrun", false) \
	X(PRUNE_BEFORE, "prune.before", "lbrun", false) \
	X(PRUNE_RENAMED, "prune.renamed", "lbrun", false) \
	/* a checkpoint on its way from the node's stage to where it is shared */ \
	X(STAGE_CHUNK, "stage.chunk", "lbrun", true) \
	X(STAGE_COPIED, "stage.copied", "lbrun", true) \
	X(STAGE_PART, "stage.part", "lbrun", true) \
	X(STAGE_GATHERED, "stage.gathered", "lbrun", true) \
	X(STAGE_SEALED, "stage.sealed", "lbrun", false) \
	X(STAGE_ASIDE, "stage.aside", "lbrun", false) \
	X(STAGE_PLACED, "stage.placed", "lbrun", false) \
	X(STAGE_CLEARED, "stage.cleared", "lbrun", false) \
	X(STAGE_DROP, "stage.drop", "lbrun", false) \
	X(EXIT_BEFORE, "exit.before", "lbrun", true) \
	X(EXIT_WRITTEN, "exit.written", "lbrun", false) \
	/* a checkpoint on its way into place */ \
	X(CHECKPOINT_WEIGHTS, "checkpoint.weights", "lbworker", true) \
	X(CHECKPOINT_OPTIMIZER, "checkpoint.optimizer", "lbworker", true) \
	X(CHECKPOINT_SHAPE, "checkpoint.shape", "lbworker", true) \
	X(CHECKPOINT_STATE, "checkpoint.state", "lbworker", true) \
	X(MANIFEST_BEFORE, "manifest.before", "lbworker", true) \
	X(MANIFEST_WRITTEN, "manifest.written", "lbworker", true) \
	X(MANIFEST_RENAMED, "manifest.renamed", "lbworker", false) \
	X(CHECKPOINT_SEALED, "checkpoint.sealed", "lbworker", true) \
	X(CHECKPOINT_PLACED, "checkpoint.placed", "lbworker", false) \
	X(RETENTION_BEFORE, "retention.before", "lbworker", false) \
	X(RETENTION_RENAMED, "retention.renamed", "lbworker", false)

enum failpoint {
#define FAILPOINT_ID(id, name, program, may_fail) FP_##id,
	FAILPOINTS(FAILPOINT_ID)
#undef FAILPOINT_ID
		FP_COUNT
};

/* Reads LB_FAILPOINT for `program`; the points of other programs stay quiet. -1 with err
 * (ERR_USAGE) for a mistake in it. Without this call all points are quiet. */
int failpoint_init(const char *program, struct err *err);

/* One line each: program, name, the actions it takes. */
void failpoint_list(FILE *out);

extern bool failpoint_armed; /* some point of this process may act */
int failpoint_hit(enum failpoint point, struct err *err);

/* 0, or -1 with err (may be NULL) when this point is to fail. */
static inline int failpoint(enum failpoint point, struct err *err)
{
	return failpoint_armed ? failpoint_hit(point, err) : 0;
}

#endif
