/* SPDX-License-Identifier: MIT */
/* engine/ - asks decide/ what happens to each run next, and does it. Includes no other room of
 * daemon/.
 *
 * engine.h - the shell around reconcile: gather facts → decide → write → commit → act.
 *
 * The engine touches the outside only through the ledger, the schedulers and `struct world` (clock,
 * randomness, files of attempts), so that a test can run it in an invented world. It owns its runs;
 * the ledger, the schedulers and the world are borrowed and must outlive it. */
#ifndef DAEMON_ENGINE_ENGINE_H
#define DAEMON_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/run/spool.h"
#include "daemon/engine/decide/node_memory.h"
#include "daemon/engine/run.h"
#include "slurm/scheduler.h"
#include "sql/ledger.h"

/* What the switch files want of a run (common/team/switches.h). */
struct switched {
	bool is_known;                /* false: whether a switch holds the run cannot be told */
	enum run_order order;         /* of the strongest one; ORDER_RUN = none is there */
	const char *file, *by, *text; /* valid until the next turn; NULL without one */
};

/* What nodes of the attempt's launch, or a newer one, say: nobody answers their heartbeats. */
struct unheard {
	int64_t nodes, of; /* so many, of so many others than lbrun's */
	int64_t silent_ms; /* for so long; the longest */
};

struct world {
	void *self;
	int64_t (*wall_ms)(void *self);
	int64_t (*mono_ms)(void *self);
	void (*token)(void *self, char out[TOKEN_HEX + 1]);
	/* Reads runs/NAME/spec.toml. */
	int (*spec)(void *self, const char *run_dir, struct run_spec *out, struct err *err);
	/* Hands its job to the scheduler, held. -1: it cannot even be prepared (done is not called
	 * then). */
	int (*submit)(void *self, const struct run *run, const char *ledger_id, scheduler_done done,
		      void *arg, struct err *err);
	/* Makes the attempt's folder, unless it is made with its token: before its job is released,
	 * and behind the submission unless the scheduler reads the files, for whoever waits for the
	 * job's number. NULL: `submit` has done it. */
	int (*prepare)(void *self, const struct run *run, struct err *err);
	/* The run has gone on since its newest attempt was submitted, which is still held: tells
	 * it. */
	int (*retell)(void *self, const struct run *run, struct err *err);
	/* Asks the scheduler whether such a job would begin at once (scheduler.h, room). As
	 * submit. */
	int (*room)(void *self, const struct run *run, scheduler_done done, void *arg,
		    struct err *err);
	/* Leaves the wish for a checkpoint where lbrun finds it. */
	int (*save)(void *self, const struct run *run, struct err *err);
	/* Leaves the order where lbrun finds it before it is signalled; that of one that goes on is
	 * for this attempt alone. */
	int (*order)(void *self, const struct run *run, struct err *err);
	/* The run is over: what may still live of its newest attempts finds the order to end. */
	int (*end_all)(void *self, const struct run *run, struct err *err);
	void (*switched)(void *self, const struct run *run, struct switched *out);
	bool (*claimed)(void *self, const struct run *run);
	bool (*exited)(void *self, const struct run *run, struct attempt_exit *out);
	/* `host`: lbrun's node. NULL: nodes tell nothing in this world. */
	void (*unheard)(void *self, const struct run *run, const char *host, struct unheard *out);
	/* Was the newest attempt's job to wait for how others end (--dependency)? NULL: none does
	 * here. */
	bool (*depends)(void *self, const struct run *run);
	/* What the job of the newest attempt asked for: names of reservations, comma-separated
	 * (owned by the caller; NULL: none), and its time limit (0: none, or nobody said). Its
	 * files are read. NULL: there is neither in this world. */
	void (*bounds)(void *self, const struct run *run, char **reservations, int64_t *limit_ms);
	/* As array_tasks_count, of this run; NULL: there are no arrays in this world. */
	bool (*tasks)(void *self, const struct run *run, int64_t *changed_ns, int64_t *done,
		      int64_t *all);
	/* As array_tasks_any_done, of its newest attempt; together with `tasks`. */
	bool (*any_task_done)(void *self, const struct run *run);
	/* As array_tasks_failed, and how one of them ended; together with `tasks`. */
	int64_t *(*failed_tasks)(void *self, const struct run *run, int64_t *changed_ns,
				 size_t *count);
	bool (*task_ended)(void *self, const struct run *run, int64_t task,
			   struct attempt_exit *out);
	/* Somebody cancelled these tasks of its newest attempt: which of them is news comes first;
	 * so many. Its exit record is made where nothing else is to come; together with `tasks`. */
	size_t (*tasks_cancelled)(void *self, const struct run *run, int64_t *tasks, size_t count);
	/* The tasks of its newest attempt, ascending, of which no file tells that they began; owned
	 * by the caller, NULL: none is known. */
	int64_t *(*tasks_unbegun)(void *self, const struct run *run, size_t *count);
	/* As spool_read or spool_read_plain, on the spool of the run's newest attempt. */
	int64_t (*spool)(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			 int (*on_line)(const struct spool_line *line, void *arg),
			 void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			 void *arg, struct err *err);
};

struct poll_times {
	int64_t busy_ms, idle_ms, spool_ms;
};

struct engine;

/* `slurm` may be NULL: then runs that want it wait. */
struct engine *engine_create(struct ledger *ledger, struct scheduler *slurm,
			     struct scheduler *local, const struct world *world,
			     const struct poll_times *times);
void engine_destroy(struct engine *engine);
/* Without this call no node is ever avoided. */
void engine_remember_nodes(struct engine *engine, const struct node_rules *rules);

/* Without this call nobody is told of runs that should run and do not; after so long. */
void engine_warn_after(struct engine *engine, int64_t absent_ms);

/* Reads every live run from the ledger; also what heals the engine after a failed commit. */
int engine_load(struct engine *engine, struct err *err);

/* One turn for every run that has news or is due. Returns the monotonic time of the next one. */
int64_t engine_turn(struct engine *engine);

/* The same turn for what must be committed before a person is answered: -1 with err when it could
 * not be; everything uncommitted is then undone, here and in the ledger. */
int engine_settle(struct engine *engine, struct err *err);

/* Called once, when something happened that asks for a turn soon. */
void engine_on_news(struct engine *engine, void (*news)(void *arg), void *arg);

/* A run that the ledger has as live, but the engine not yet (new, or restarted). */
int engine_adopt(struct engine *engine, const char *name, struct err *err);
/* The same for a run whose row or spec may have changed under a live one (a held run,
 * restarted). */
int engine_adopt_anew(struct engine *engine, const char *name, struct err *err);
/* A person's order, already in the ledger; or the release of a run that is not on hold: then of
 * what somebody holds in the scheduler. */
void engine_order(struct engine *engine, const char *name, enum run_order wanted, const char *by,
		  const char *reason);
/* Was its job released, by lbd or somebody else, and nobody has put the run on hold? Whether
 * somebody holds it, or tasks of its array, since, the scheduler knows. */
bool engine_is_released(const struct run *run);
/* And does somebody hold it, as far as polls tell? */
bool engine_is_held(const struct run *run);
/* The switches may have changed: look at them for every run. */
void engine_on_switches(struct engine *engine);
/* lbrun's hint that the spool of this run has grown. */
void engine_poke(struct engine *engine, const char *name);

/* Is it one of the live runs, or has it ended in this very turn? */
bool engine_has(struct engine *engine, const char *name);
/* The name of a live run that waits for the end of this one; NULL: none does. Borrowed. */
const char *engine_follower(const struct engine *engine, const char *name);

struct engine_health {
	int64_t live_runs;
	int64_t slurm_down_since_ms; /* wall clock; 0 = it answers, or nobody asked */
	char slurm_text[160];
	int64_t ledger_down_since_ms; /* wall clock; 0 = what there was to write is written */
	char ledger_text[ERR_TEXT_BYTES];
	/* monotonic begin of the newest poll that Slurm answered (without Slurm: the local
	 * scheduler); 0 = none yet */
	int64_t good_poll_ms;
	double calls_per_minute; /* to the schedulers, in the last whole minute; NaN = none yet */
};
void engine_health(struct engine *engine, struct engine_health *out);

/* The live run of this name, as it is now; NULL when there is none. Borrowed until the next
 * turn. */
const struct run *engine_live(struct engine *engine, const char *name);
/* The jobs that its runs in Slurm wait for, as struct scheduler's `known`; `engine` is one. */
json_t *engine_known_jobs(void *engine);
/* All of them, in no order; for who asks about thousands. */
void engine_each_live(struct engine *engine, void (*each)(struct run *run, void *arg), void *arg);

/* Why the run has not begun: whom it follows, or the scheduler's own words ("Resources"); "" when
 * it has, or nobody has said. Borrowed until the next turn. */
const char *engine_waits_for(struct engine *engine, const char *name);
const char *engine_run_waits_for(struct engine *engine, struct run *run);

#endif
