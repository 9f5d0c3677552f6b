/* SPDX-License-Identifier: MIT */
/* state.h - what the files of the engine share. */
#ifndef DAEMON_ENGINE_STATE_H
#define DAEMON_ENGINE_STATE_H

#include "daemon/engine/engine.h"
#include "daemon/engine/decide/node_memory.h"

struct open_call;

/* one per scheduler */
struct poller {
	struct engine *engine;
	struct scheduler *scheduler; /* NULL: there is none */
	bool is_asking;
	int64_t begun_ms;         /* of the poll that is open */
	int64_t done_begun_ms;    /* begin of the newest complete poll; 0 = none */
	int64_t took_ms;          /* that one */
	int64_t not_before_ms;    /* after a failure */
	int64_t down_since_ms;    /* wall; 0 = fine */
	int64_t heard_since_ms;   /* monotonic; without a gap; 0 = not yet */
	int64_t failures;         /* polls in a row that failed */
	bool is_asking_outages;   /* which nodes are going away */
	int64_t outages_ms;       /* when that is asked next */
	int64_t outages_failures; /* in a row */
	bool has_strays;          /* a job was given up: the next poll will find it */
	char text[160];
};

#define WROTE(kind) (1u << (kind))
#define WROTE_LINES WROTE(DECISION_COUNT)

/* what the schedulers are asked for, polls too */
struct call_count {
	int64_t minute_ms, now,
		before; /* monotonic begin of this minute; so many in it, in the last */
	bool is_whole;  /* `before` is that of a whole minute */
};

struct engine {
	struct ledger *ledger;
	const struct world *world;
	struct poll_times times;
	struct node_rules nodes;
	int64_t absent_ms; /* a run that is absent for so long is told of; 0 = never */
	struct poller slurm, local;
	struct run *runs; /* live ones, newest first; owned */
	int64_t run_count;
	struct call_count calls;
	struct open_call *open_calls; /* calls whose answer is due; owned */
	bool has_final;               /* some run is over: it leaves the list after the commit */
	bool broken;                  /* a write failed in this turn: roll back and load again */
	unsigned written;      /* bits of decision kinds, and WROTE_LINES, not yet committed */
	int64_t load_again_ms; /* monotonic; 0 = the state is good */
	int64_t ledger_down_since_ms; /* wall; 0 = fine */
	char ledger_text[ERR_TEXT_BYTES];
	int64_t turn_bytes;   /* of all spools, that a turn may take; 0: none has been yet */
	int64_t ingest_bytes; /* what is left of them in this one */
	void (*news)(void *arg);
	void *news_arg;
};

static inline int64_t engine_now(const struct engine *e)
{
	return e->world->mono_ms(e->world->self);
}

static inline int64_t engine_wall(const struct engine *e)
{
	return e->world->wall_ms(e->world->self);
}

/* state.c */
void engine_wake(struct engine *e, struct run *run); /* mark dirty and announce news */
struct run *engine_find(struct engine *e, const char *name);
struct run *engine_find_id(struct engine *e, int64_t id);
struct poller *engine_poller(struct engine *e, const struct run *run); /* of its scheduler */
/* Every ledger write goes through here: a failure marks the turn as broken, and is logged. */
void engine_wrote(struct engine *e, int rc, const struct err *err);
void engine_event(struct engine *e, const struct run *run, const char *kind, const char *actor,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* write.c */
/* An attempt that was given up may live on where nobody sees it, or be started again by a
 * controller that came back: without a newer claim to fence it only an order ends it, and a run is
 * not held or over before that order lies there. The attempt's end is committed already, so
 * whatever its lbrun makes of the order changes nothing. False: it could not be left (a full disk);
 * try again. */
bool engine_end_survivors(struct engine *e, struct run *run, enum run_state to);
/* So many nodes fewer than its spec names the attempt has; 0: that is not known, or none. */
int64_t engine_missing_nodes(const struct run *run);
/* True: the decision is an act, to be done after the commit. */
bool engine_write(struct engine *e, struct run *run, const struct decision *d);

/* prepare.c */
/* Writes the files of `a`, the run's attempt or its prequeued one, unless they are there. */
int engine_prepare(struct engine *e, struct run *run, const struct attempt *a, struct err *err);
/* For whoever releases the job behind our back. That they cannot be written is for the release to
 * find out. */
void engine_prepare_early(struct engine *e, struct run *run, const struct attempt *a);

/* prequeued.c; engine_write_prequeued as engine_write */
/* Its attempt has begun: so long it waited. */
void run_waited(struct run *run);
bool engine_prequeues(const struct engine *e, const struct run *run);
bool engine_write_prequeued(struct engine *e, struct run *run, const struct decision *d);
void engine_drop_prequeued(struct engine *e, struct run *run);
/* Makes the prequeued attempt the run's newest attempt; false: there is none that would do. */
bool engine_take_prequeued(struct engine *e, struct run *run);
int engine_load_prequeued(struct engine *e, struct run *run, struct err *err);
/* The run with its prequeued attempt in the attempt's place; everything in it is borrowed. */
struct run run_with_prequeued(const struct run *run);

/* node_scores.c */
/* For a new attempt, comma-separated; "" = none. Owned by the caller. */
char *engine_choose_excluded(struct engine *e, const struct run *run);
/* A launch has ended; lbrun says at which node that began ("" = nobody knows). */
void engine_launch_blames(struct engine *e, struct run *run, enum cause cause, const char *node);
/* failed: those of its nodes that did it; "": nobody knows, or none did. */
void engine_blame_nodes(struct engine *e, struct run *run, const struct decision *end,
			const char *failed);
/* The run's attempt has begun (its trainer is about to), or the run made progress: what that proves
 * of its suspects. */
void engine_run_began(struct engine *e, struct run *run);
void engine_run_got_on(struct engine *e, struct run *run);
/* Which of the attempt's nodes ended its job, as far as the scheduler can tell; "": nobody knows.
 * Owned by the caller. */
char *engine_failed_nodes(const struct run *run);
/* The attempt's first node, where lbrun is; "": not known. Owned by the caller. */
char *engine_host(const struct run *run);
/* lbrun's note, "NODE: LINE". */
void engine_node_error(struct engine *e, struct run *run, const char *text);
/* "NODE: what": so the check before a launch has found it. */
void engine_node_broken(struct engine *e, struct run *run, const char *text);
/* Names of nodes that the cluster does not have any more: nobody need keep away from them. */
void engine_forget_nodes(struct engine *e, const struct run *run, const json_t *names);
/* Decides which nodes the new attempt keeps away from. */
void engine_exclude_nodes(struct engine *e, struct run *run);
/* The attempt's nodes, as soon as somebody knows them. */
void engine_note_nodes(struct engine *e, struct run *run, const char *nodes);

/* dependencies.c */
/* Looks at the runs that must be over before this one begins. */
void engine_look_at_dependencies(struct engine *e, struct run *run);
/* Some run is over: those that wait for one look again. */
void engine_wake_dependents(struct engine *e);

/* warn.c */
void engine_warn_of_limit(struct engine *e, struct run *run);
/* Monotonic time of the next look. */
int64_t engine_warn_of_absence(struct engine *e, struct run *run);

/* facts.c: claim, exit record and spool, and when they are to be looked at again; then all that
 * reconcile is to know. `a`: the run's attempt, or its prequeued one. */
void engine_look_at_files(struct engine *e, struct run *run, int64_t now_ms);
void engine_gather(struct engine *e, const struct run *run, const struct attempt *a,
		   struct facts *f);

/* run_load.c: `is_known`: a run of an earlier day, which stays in our hands without its spec,
 * too */
int engine_load_run(struct engine *e, const struct ledger_run *row, bool is_known, struct err *err);
/* A spec that could not be read is read once more. false: its file system is away, so nothing is to
 * be decided by what stands in its place. */
bool engine_has_rules(struct engine *e, struct run *run);
void run_destroy(struct run *run);

/* calls.c: the acts, and their answers */
void engine_act(struct engine *e, struct run *run, struct attempt *a, const struct decision *d);
void engine_cancel_stray(struct engine *e, struct scheduler *s, const struct job_ref *job);
void engine_drop_calls(struct engine *e);
void engine_count_call(struct engine *e);
double engine_calls_per_minute(struct engine *e);

/* polls.c */
int64_t engine_poll_due(struct engine *e); /* starts due polls; monotonic time of the next */

/* outages.c */
/* Asks which nodes are going away when that is due; monotonic time of the next, INT64_MAX: when
 * something is heard. */
int64_t engine_outages_due(struct engine *e, struct poller *p);

/* ingest.c: spool lines → ledger; true when there was something new. A turn, which begins and ends,
 * takes only so many of all runs, and the next fewer when it took long. */
void engine_ingest_begin(struct engine *e);
void engine_ingest_end(struct engine *e, int64_t took_ms);
bool engine_ingest(struct engine *e, struct run *run);
/* How many tasks of an array are done, where that has changed. */
void engine_count_tasks(struct engine *e, struct run *run);

/* tasks.c: which tasks of an array did not complete, as soon as each has ended */
void engine_tell_failed_tasks(struct engine *e, struct run *run);
/* What a poll says of tasks that were cancelled (slurm/wire.h, "cancelled"). */
void engine_note_cancelled(struct engine *e, struct run *run, const json_t *tasks);
/* The array is over, and of these tasks alone accounting knows anything: others that never began
 * were cancelled as they waited. */
void engine_note_unknown(struct engine *e, struct run *run, const json_t *known);

#endif
