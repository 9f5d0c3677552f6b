/* SPDX-License-Identifier: MIT */
/* sql/ - what lbd must not forget: tables, queries, and the C above them.
 *
 * ledger.h - the SQLite database of runs: the only door to it, and the only user of sqlite3.h.
 *
 * One writer (lbd), one connection, write-ahead log, synchronous=FULL, exclusive lock: safe on
 * network file systems. The first write after a commit opens a transaction; the daemon calls
 * ledger_commit before it acts on what it wrote. When a commit fails (disk full) the transaction is
 * rolled back and the caller must read its state anew. So it does after a write that failed with
 * ERR_IO: the rest of its group is refused until ledger_commit has failed too, or ledger_rollback
 * was called. After damage or a failed fsync every call fails ("restart lbd"): close, start anew.
 *
 * One function per query, each query a file in sql/queries/. Strings in the structs below are
 * borrowed: they live for the callback, or until the next call on the ledger (which may be given
 * them). A callback may call anything but the function that called it, and ledger_close.
 * Functions return 0, or -1 with err; *_find functions give ERR_NOT_FOUND. Times are wall-clock
 * milliseconds, 0 = not yet. */
#ifndef SQL_LEDGER_H
#define SQL_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/run/run_state.h"

struct ledger;
struct ledger_copy;

enum { LEDGER_SCHEMA_VERSION = 12 };

/* "SQLite 3.40.1": what is below. */
const char *ledger_library(void);
/* Opens or creates the file, takes the exclusive lock, runs the migrations up to
 * LEDGER_SCHEMA_VERSION (each in one transaction with its user_version). A newer schema, a corrupt
 * file or a file somebody else holds (ERR_LOCKED) is refused with what to do. It is checked when it
 * is small or its last user died while writing. Programs must ignore SIGXFSZ. */
int ledger_open(const char *path, struct ledger **out, struct err *err);
/* What is not committed is gone; all else is in the one file, unless the ledger is broken, or the
 * guard refuses, or the disk is full: then it is in the log beside it. Where another file has been
 * put in its place, the log is put aside: it belongs to the old one. */
void ledger_close(struct ledger *ledger);
/* All that is committed into the one file, synced, and no log beside it: for who closes it next and
 * then needs that file alone. -1 where that cannot be, as on a full disk. */
int ledger_settle(struct ledger *ledger, struct err *err);

/* 16 hex digits drawn when the ledger was created: jobs carry it, so that an lbd never touches the
 * jobs of another one of the same user. */
const char *ledger_id(const struct ledger *ledger);
/* Of a ledger that is made anew from files: the id that its jobs carry. */
int ledger_set_id(struct ledger *ledger, const char *id, struct err *err);
/* Events in the order of their times. Takes over from the ledger at `path` (of our own schema, only
 * read; NULL: there is none) what no run's files tell: nodes, periodic jobs, and events up to its
 * time. Nothing may be open. */
int ledger_take_over(struct ledger *ledger, const char *path, struct err *err);

int ledger_commit(struct ledger *ledger, struct err *err); /* nothing open: fine */
/* The same for who has to act on it at once: what it changed is told (ledger_on_change) by the next
 * call of ledger_tell_changes, or with the next commit. */
int ledger_commit_first(struct ledger *ledger, struct err *err);
void ledger_tell_changes(struct ledger *ledger);
/* The file's name leads to another file, or to none: -1 with ERR_IO, and the ledger is broken;
 * where that cannot be seen, -1 alone. Cheap, and looked at before each commit. */
int ledger_check_place(struct ledger *ledger, struct err *err);
/* Asked before each commit: may this process still write? -1 with ERR_LOCKED: never again, the
 * ledger is broken to it; with another error: not now, this commit fails. NULL: always. */
void ledger_guard(struct ledger *ledger, int (*may)(void *arg, struct err *err), void *arg);
/* Its answer, for who writes elsewhere. */
bool ledger_may_be_written(const struct ledger *ledger);
void ledger_rollback(struct ledger *ledger);
/* Called after each commit for every run that it changed: its row, or what its attempts are. The
 * callback may read, not write. */
void ledger_on_change(struct ledger *ledger, void (*changed)(void *arg, int64_t run_id), void *arg);
/* Goes up with each row that is written. */
int64_t ledger_changes(const struct ledger *ledger);
/* The file can no longer be trusted to this process (a failed fsync, damage): every call fails from
 * now on, and only a new process may look again. It may find what the failed commit wrote: what
 * that needs outside the ledger must not be taken back. */
bool ledger_is_broken(const struct ledger *ledger);
/* Every page, every index, every reference: reads the whole file. -1 with what is wrong. */
int ledger_check(struct ledger *ledger, struct err *err);
/* The same of a file that nobody has open; for any thread. */
int ledger_check_file(const char *path, struct err *err);
/* Nothing may be open. Replaces `path` in one step, synced. */
int ledger_backup(struct ledger *ledger, const char *path, struct err *err);
/* A copy in pieces, between which the ledger goes on; NULL with err. It ends before the ledger is
 * closed. */
struct ledger_copy *ledger_copy_begin(struct ledger *ledger, const char *path, struct err *err);
/* So many pages more (-1: all). 1: there are others, or something is not committed yet; 0: all that
 * is committed by now is in the file, which is not synced; -1 with err. */
int ledger_copy_step(struct ledger_copy *copy, int pages, struct err *err);
/* NULL is fine. A file that is not whole is removed. */
void ledger_copy_end(struct ledger_copy *copy);

/* --- runs ----------------------------------------------------------------------------------- */
struct ledger_run {
	int64_t id;
	const char *name, *owner; /* owner: user name of who submitted */
	int64_t owner_uid;
	enum run_state state;
	enum cause cause;      /* why it ended, or why its last attempt did */
	const char *text;      /* one line for people about the last change; "" */
	const char *scheduler; /* "slurm" | "local" */
	const char *dir;       /* absolute: runs/NAME */
	enum run_order wanted;
	const char *wanted_by, *wanted_reason;
	int64_t wanted_ms;
	int64_t created_ms, ended_ms;
	int64_t backoff_until_ms;
	int64_t failures;               /* launches without progress since the last progress */
	int64_t step, target_step;      /* newest reported; -1 = none */
	double loss, tokens_per_s, mfu; /* NaN = none */
	/* for the next launch of a new attempt: "" = the newest valid checkpoint, "scratch" =
	 * none, else the path of one */
	const char *resume_from;
	const char *run_group; /* run.group of the spec; "" = none */
	const char
		*wanted_switch; /* the file in switches/ that `wanted` came from; "" = a command */
};

/* *id is set. ERR_LOCKED when the name is taken. */
int ledger_run_insert(struct ledger *l, const struct ledger_run *run, int64_t *id, struct err *err);
int ledger_run_find(struct ledger *l, const char *name, struct ledger_run *out, struct err *err);
int ledger_run_by_id(struct ledger *l, int64_t id, struct ledger_run *out, struct err *err);
/* Newest first; only the live ones (not completed, failed, killed) if live_only. Stops early with
 * -1 when the callback returns non-zero (err untouched). */
int ledger_run_each(struct ledger *l, bool live_only,
		    int (*each)(const struct ledger_run *run, void *arg), void *arg,
		    struct err *err);
/* The same of all but those that ended before since_ms: few, whatever the ledger has seen. */
int ledger_run_each_since(struct ledger *l, int64_t since_ms,
			  int (*each)(const struct ledger_run *run, void *arg), void *arg,
			  struct err *err);
/* The run that ended first after (after_ms, after_id), until_ms at the latest. ERR_NOT_FOUND:
 * none. */
struct ledger_ended {
	int64_t id;
	const char *name, *dir;
	int64_t ended_ms;
	bool is_periodic; /* cron started it */
};
int ledger_run_next_ended(struct ledger *l, int64_t after_ms, int64_t after_id, int64_t until_ms,
			  struct ledger_ended *out, struct err *err);
/* Guarded: the row must be in state `from`, else ERR_INTERNAL. A move that run_state_may_follow
 * does not allow is refused. Sets ended_ms when `to` is final, clears it otherwise. */
int ledger_run_move(struct ledger *l, int64_t id, enum run_state from, enum run_state to,
		    enum cause cause, const char *text, int64_t now_ms, struct err *err);
int ledger_run_set_wanted(struct ledger *l, int64_t id, enum run_order wanted, const char *by,
			  const char *reason, int64_t now_ms, struct err *err);
/* After ledger_run_set_wanted, which says that the order came from a command: it came from a
 * file. */
int ledger_run_set_switch(struct ledger *l, int64_t id, const char *file, struct err *err);
int ledger_run_set_failures(struct ledger *l, int64_t id, int64_t failures,
			    int64_t backoff_until_ms, struct err *err);
int ledger_run_set_resume(struct ledger *l, int64_t id, const char *resume_from, struct err *err);
/* What `ls` shows of the newest step; NaN, or < 0 for all but the loss, leaves a column alone. */
int ledger_run_set_progress(struct ledger *l, int64_t id, int64_t step, int64_t target_step,
			    double loss, double tokens_per_s, double mfu, struct err *err);

/* --- runs that are removed for good ----------------------------------------------------------- */
struct ledger_removal {
	int64_t id;
	const char *name, *dir; /* of the run */
	int64_t time_ms;
};

/* Everything about a run that is over ends, and the removal of its folder is noted; *id is the
 * note's. */
int ledger_run_remove(struct ledger *l, int64_t run_id, const struct ledger_removal *removal,
		      int64_t *id, struct err *err);
/* The oldest note after after_id. ERR_NOT_FOUND: none. */
int ledger_removal_next(struct ledger *l, int64_t after_id, struct ledger_removal *out,
			struct err *err);
int ledger_removal_done(struct ledger *l, int64_t id, struct err *err);

/* --- attempts ------------------------------------------------------------------------------- */
struct ledger_attempt {
	int64_t id, run_id, number;
	const char *token;
	enum attempt_state state;
	int64_t job_id;      /* 0 = not known */
	int64_t submit_time; /* seconds, as the scheduler tells it */
	enum cause cause;
	int exit_code; /* -1 = none */
	int signal;    /* 0 = none */
	const char *text;
	const char *nodes; /* comma-separated names; "" = not known */
	int64_t created_ms, released_ms, started_ms, ended_ms;
	int64_t resumed_from_step;       /* -1 = from scratch or not known */
	int64_t spool_offset, spool_seq; /* ingested so far */
	const char *excluded;            /* nodes it was told to keep away from, comma-separated */
	bool is_walled_in;               /* the scheduler had no other for it */
	bool is_short;                   /* too few nodes were free: the next asks for fewer */
	bool was_waiting;                /* it was seen to be released, for good */
};

int ledger_attempt_insert(struct ledger *l, int64_t run_id, int64_t number, const char *token,
			  int64_t now_ms, int64_t *id, struct err *err);
/* Everything of the row with this id but its run, number, token and spool: as files tell it. */
int ledger_attempt_restore(struct ledger *l, const struct ledger_attempt *attempt, struct err *err);
/* Oldest first. */
int ledger_attempt_each(struct ledger *l, int64_t run_id,
			int (*each)(const struct ledger_attempt *attempt, void *arg), void *arg,
			struct err *err);
int ledger_attempt_newest(struct ledger *l, int64_t run_id, struct ledger_attempt *out,
			  struct err *err);
int ledger_attempt_by_token(struct ledger *l, const char *token, struct ledger_attempt *out,
			    struct err *err);
/* intent → held */
int ledger_attempt_set_job(struct ledger *l, int64_t id, int64_t job_id, int64_t submit_time,
			   struct err *err);
/* held → queued */
int ledger_attempt_released(struct ledger *l, int64_t id, int64_t now_ms, struct err *err);
/* any live state → running */
int ledger_attempt_started(struct ledger *l, int64_t id, const char *nodes, int64_t now_ms,
			   struct err *err);
/* any live state → ended */
int ledger_attempt_end(struct ledger *l, int64_t id, enum cause cause, int exit_code, int signal,
		       const char *text, int64_t now_ms, struct err *err);
int ledger_attempt_set_excluded(struct ledger *l, int64_t id, const char *excluded,
				struct err *err);
int ledger_attempt_walled_in(struct ledger *l, int64_t id, struct err *err);
int ledger_attempt_short(struct ledger *l, int64_t id, struct err *err);
int ledger_attempt_waited(struct ledger *l, int64_t id, struct err *err);
int ledger_attempt_set_spool(struct ledger *l, int64_t id, int64_t offset, int64_t seq,
			     struct err *err);

/* A prequeued attempt: the row of one to be (restart.prequeue), at most one a run. The functions
 * above that list attempts pass it over; those that take an id serve it, too. */
int ledger_prequeued_insert(struct ledger *l, int64_t run_id, int64_t number, const char *token,
			    const char *excluded, int64_t now_ms, int64_t *id, struct err *err);
/* ERR_NOT_FOUND: the run has none. */
int ledger_prequeued_find(struct ledger *l, int64_t run_id, struct ledger_attempt *out,
			  struct err *err);
/* It becomes the run's newest attempt. */
int ledger_prequeued_take(struct ledger *l, int64_t id, int64_t now_ms, struct err *err);
int ledger_prequeued_drop(struct ledger *l, int64_t id, struct err *err);

/* --- launches ------------------------------------------------------------------------------- */
struct ledger_launch {
	int64_t attempt_id, number;
	enum cause cause;
	int exit_code, signal;
	const char *text;
	int64_t pid;
	int64_t started_ms, ended_ms;
	int64_t resumed_from_step, first_step, last_step; /* -1 = none */
	int64_t first_step_ms, last_step_ms;              /* when these two were reported */
	int64_t saved_step, saved_ms; /* its newest valid checkpoint; -1 and 0 = none */
	const char *start; /* what its start took, JSON (docs/PROTOCOL.md); "" = not told */
};

/* Also sets the attempt's resumed_from_step when number is 1. Starting it twice is fine. */
int ledger_launch_start(struct ledger *l, int64_t attempt_id, int64_t number, int64_t pid,
			int64_t resumed_from_step, int64_t now_ms, struct err *err);
/* The four below pass over a launch that is not known: a full disk or a damaged spool may have cost
 * the line that told of its begin. */
int ledger_launch_end(struct ledger *l, int64_t attempt_id, int64_t number, enum cause cause,
		      int exit_code, int signal, const char *text, int64_t now_ms, struct err *err);
/* a batch of steps, in order of arrival */
struct ledger_steps {
	int64_t first, last;
	int64_t first_ms, last_ms;
};

/* `last` as it is now; `first` counts in the first call for this launch only. */
int ledger_launch_steps(struct ledger *l, int64_t attempt_id, int64_t number,
			const struct ledger_steps *steps, struct err *err);
int ledger_launch_saved(struct ledger *l, int64_t attempt_id, int64_t number, int64_t step,
			int64_t now_ms, struct err *err);
int ledger_launch_set_start(struct ledger *l, int64_t attempt_id, int64_t number, const char *start,
			    struct err *err);
/* Ends every launch of the attempt that has no end yet. */
int ledger_launch_end_open(struct ledger *l, int64_t attempt_id, enum cause cause, int64_t now_ms,
			   struct err *err);
int ledger_launch_each(struct ledger *l, int64_t attempt_id,
		       int (*each)(const struct ledger_launch *launch, void *arg), void *arg,
		       struct err *err);

struct ledger_past_launch {
	enum cause cause; /* of its attempt, where nobody on the nodes lived to tell */
	int64_t started_ms, ended_ms;
	const char *nodes; /* short, as hosts_expand takes it */
};
/* Of all runs, those that ended since. */
int ledger_launch_each_since(struct ledger *l, int64_t since_ms,
			     int (*each)(const struct ledger_past_launch *launch, void *arg),
			     void *arg, struct err *err);

/* --- checkpoints ---------------------------------------------------------------------------- */
struct ledger_checkpoint {
	int64_t run_id, step, attempt;
	const char *path, *text;
	bool valid;
	int64_t time_ms;
};

/* Inserts, or updates the row of (run, path). */
int ledger_checkpoint_put(struct ledger *l, const struct ledger_checkpoint *c, struct err *err);
/* The newest valid one if there is any, else the newest. */
int ledger_checkpoint_newest(struct ledger *l, int64_t run_id, struct ledger_checkpoint *out,
			     struct err *err);

/* The one of this step, a valid one if there is any. */
int ledger_checkpoint_of_step(struct ledger *l, int64_t run_id, int64_t step,
			      struct ledger_checkpoint *out, struct err *err);

/* Those after `step` are none of the run any more: a restart went back before them. */
int ledger_checkpoint_set_aside(struct ledger *l, int64_t run_id, int64_t step, struct err *err);

/* --- metrics: one row per step line, keyed by (attempt, seq) so that none is stored twice ----- */
struct ledger_metric {
	int64_t id; /* grows; the cursor of ledger_metric_each */
	int64_t run_id, attempt_id, seq, launch, step;
	int64_t time_ms;
	double loss;        /* NaN = none */
	const char *fields; /* JSON object of the line's numeric fields; may hold "type", too */
};

int ledger_metric_put(struct ledger *l, const struct ledger_metric *m, struct err *err);
enum {
	LEDGER_METRICS_MAX = 10000,  /* of one run, once it was thinned */
	LEDGER_METRICS_DENSE = 5000, /* of these, the newest, of which none is left out */
};

/* Leaves out points of a run that has nearly LEDGER_METRICS_MAX or more: of the older ones some
 * remain, evenly spread over the steps. The spool keeps them all. */
int ledger_metric_thin(struct ledger *l, int64_t run_id, struct err *err);
/* The logarithm of how many steps one of those stands for, in a run that has come to last_step. */
int ledger_metric_shift(int64_t last_step);
/* In order of arrival, id > after_id, at most `limit`. */
int ledger_metric_each(struct ledger *l, int64_t run_id, int64_t after_id, int64_t limit,
		       int (*each)(const struct ledger_metric *m, void *arg), void *arg,
		       struct err *err);
/* The newest ones, newest first. */
int ledger_metric_tail(struct ledger *l, int64_t run_id, int64_t limit,
		       int (*each)(const struct ledger_metric *m, void *arg), void *arg,
		       struct err *err);
/* The least loss that is kept; NaN: none. */
int ledger_metric_least_loss(struct ledger *l, int64_t run_id, double *out, struct err *err);
/* The newest id of the run, 0 if none. */
int ledger_metric_last(struct ledger *l, int64_t run_id, int64_t *id, struct err *err);

/* --- events ----------------------------------------------------------------------------------- */
struct ledger_event {
	int64_t id, run_id; /* run_id 0: about lbd itself */
	int64_t time_ms;
	const char *kind;  /* "submitted", "queued", "running", "launch_end", "killed", … */
	const char *actor; /* user name, "lbd", "lbrun" or "slurm" */
	const char *text;
	int64_t attempt; /* number; 0 = none */
	const char *run; /* the name of run_id when read, "" without; not written */
};

int ledger_event_put(struct ledger *l, const struct ledger_event *e, struct err *err);
/* Oldest first, id > after_id; run_id 0 = of all runs. */
int ledger_event_each(struct ledger *l, int64_t run_id, int64_t after_id, int64_t limit,
		      int (*each)(const struct ledger_event *e, void *arg), void *arg,
		      struct err *err);

/* When the newest event of this kind happened; 0 = there is none. */
int ledger_event_newest_ms(struct ledger *l, int64_t run_id, const char *kind, int64_t *time_ms,
			   struct err *err);
/* The newest id of all events, 0 if none. */
int ledger_event_last(struct ledger *l, int64_t *id, struct err *err);

/* --- nodes ------------------------------------------------------------------------------------ */
struct ledger_node {
	const char *name;
	int64_t attempts; /* that ended there */
	int64_t suspect;  /* of those, the ones whose cause may be the node's fault */
	enum cause last_cause;
	int64_t last_ms, suspect_ms;
	double score; /* of mistrust, as of score_ms; daemon/engine/decide/node_memory.h */
	int64_t score_ms;
	double record; /* the same for a long time, as of score_ms, too */
};

/* An attempt ended on this node; counts attempts and those whose cause may be the node's fault
 * (node_fail, launch_fail, crash, hang). */
int ledger_node_attempt_ended(struct ledger *l, const char *node, enum cause cause, int64_t now_ms,
			      struct err *err);
/* Makes a row for a node of which nothing is known yet. */
int ledger_node_know(struct ledger *l, const char *node, int64_t now_ms, struct err *err);
/* ERR_NOT_FOUND where nothing is known of the node. */
int ledger_node_set_score(struct ledger *l, const char *node, double score, double record,
			  int64_t now_ms, struct err *err);
/* By name. */
int ledger_node_each(struct ledger *l, int (*each)(const struct ledger_node *node, void *arg),
		     void *arg, struct err *err);

/* --- periodic jobs ---------------------------------------------------------------------------- */
struct ledger_cron_entry {
	const char *name;
	int64_t seen_s;          /* what was due up to then has been dealt with */
	const char *disabled_by; /* who; "" = enabled */
};

/* A moment at which an entry was due: once, whatever crashes. */
struct ledger_cron_tick {
	const char *entry;
	int64_t scheduled_s; /* UTC */
	const char *state;   /* "waiting", "submitted", "skipped", "refused" */
	const char *run;     /* name; "" = none */
	const char *text;    /* why it is not submitted; "" */
	int64_t time_ms;
};

/* Makes the entry or changes it. */
int ledger_cron_entry_put(struct ledger *l, const struct ledger_cron_entry *entry, struct err *err);
/* By name. */
int ledger_cron_entry_each(struct ledger *l,
			   int (*each)(const struct ledger_cron_entry *entry, void *arg), void *arg,
			   struct err *err);
/* ERR_LOCKED when there is this tick already, unless it was waiting. Ticks of long ago are
 * forgotten. */
int ledger_cron_tick_put(struct ledger *l, const struct ledger_cron_tick *tick, struct err *err);
/* The newest one in this state ("" = any). */
int ledger_cron_tick_newest(struct ledger *l, const char *entry, const char *state,
			    struct ledger_cron_tick *out, struct err *err);
/* Every one that became a run, in no order. */
int ledger_cron_tick_runs(struct ledger *l,
			  int (*each)(const struct ledger_cron_tick *tick, void *arg), void *arg,
			  struct err *err);
/* The newest one whose run completed. */
int ledger_cron_tick_succeeded(struct ledger *l, const char *entry, struct ledger_cron_tick *out,
			       struct err *err);
/* The oldest that waits. */
int ledger_cron_tick_waiting(struct ledger *l, const char *entry, struct ledger_cron_tick *out,
			     struct err *err);

/* --- small facts about lbd itself ------------------------------------------------------------- */
/* `fallback` when there is none. */
int ledger_meta_get(struct ledger *l, const char *key, int64_t fallback, int64_t *out,
		    struct err *err);
int ledger_meta_put(struct ledger *l, const char *key, int64_t value, struct err *err);

#endif
