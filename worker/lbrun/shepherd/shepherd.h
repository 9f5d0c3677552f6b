/* SPDX-License-Identifier: MIT */
/* shepherd/ - the phases of one attempt, and who may change their course.
 *
 * shepherd.h - one attempt, from its claim to its exit record, as the shell around decide/decide.h:
 * what it hears goes into the facts, and what is decided it does. Steps and their order are
 * there. */
#ifndef LBRUN_SHEPHERD_SHEPHERD_H
#define LBRUN_SHEPHERD_SHEPHERD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/run/order.h"
#include "worker/lbrun/rank/rank_term.h"
#include "worker/lbrun/trainer/cache.h"
#include "worker/lbrun/complaints/complaints.h"
#include "worker/lbrun/decide/decide.h"
#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/handed.h"
#include "worker/lbrun/trainer/allocation.h"
#include "worker/lbrun/trainer/trainer_server.h"
#include "worker/lbrun/trainer/journal.h"
#include "worker/lbrun/trainer/output.h"
#include "worker/lbrun/trainer/output_parser.h"
#include "worker/lbrun/heartbeat/beater.h"
#include "worker/lbrun/heartbeat/listener.h"
#include "worker/lbrun/checkpoint/asking.h"
#include "worker/lbrun/checkpoint/pruning.h"
#include "worker/lbrun/watch/edits.h"
#include "worker/lbrun/watch/slow_ranks.h"
#include "worker/lbrun/watch/starting.h"
#include "worker/lbrun/checkpoint/search.h"
#include "worker/lbrun/checkpoint/stage.h"
#include "worker/lbrun/meter/usage.h"
#include "worker/lbrun/watch/stacks.h"
#include "worker/lbrun/watch/watch.h"

struct seen {
	char *path;
	uint64_t stamp;
	bool is_recorded;
};

struct preflight {
	pid_t pid;    /* of the check; 0 = none runs */
	char *folder; /* of its reports; owned */
	bool is_srun; /* it is srun that runs: not only on this node */
	int number;   /* of this check; the first is 1 */
	int kills;    /* so often it was told to end */
	int64_t begin_ms;
	char text[320]; /* what is broken */
};

struct shepherd {
	const char *folder;
	const char *orders_folder; /* of the attempt; for a task of an array `folder` is below it */
	struct attempt_params params;
	struct attempt_claim claim;
	const char *node; /* as Slurm calls it, else the host's name */
	int signal_fd;
	bool has_errors; /* a script's stderr goes elsewhere than its stdout: */
	struct output errors;

	struct shepherd_facts facts;
	struct shepherd_policy policy;
	int64_t step_ms; /* when the next step may be due */
	bool is_left;    /* nothing is left to be done */
	int status;      /* of the program */
	int64_t look_ms; /* next look at claims and orders */

	struct journal journal;
	struct trainer_server server;
	struct allocation allocation; /* where there are spare nodes */
	struct listener listener;     /* of heartbeats, where the trainer is on several nodes */
	struct output output;
	struct search search;
	struct preflight preflight;
	struct checkpoint_rules *rules; /* how its checkpoints are called */
	struct handed handed;
	char *seals;       /* folder */
	struct seen *seen; /* the checkpoints told of already */
	size_t seen_count;
	pid_t seal_pid;                   /* reads for a seal; 0 = nobody does */
	struct checkpoint_list seal_next; /* the newest that waits to be read for its seal */
	struct pruning pruning;
	struct stage stage;
	struct cache cache;
	bool is_cache_told;         /* that there is none */
	bool is_risk_told;          /* what would be lost, to those who end the job */
	int64_t checkpoint_look_ms; /* next look for new ones */
	struct output_parser parser;
	struct complaints complaints;    /* what it printed on its way to its end */
	int64_t step_room, step_room_ms; /* so many printed steps may be written now */
	json_t *step_left;               /* the newest that was not; NULL = none */
	struct ranks ranks;
	bool is_space_reported; /* that there is none */
	bool is_out_of_room;    /* nothing could be written where the checkpoints go */
	int64_t room_look_ms;   /* next look whether that is over */
	struct watch watch;
	struct starting starting;
	struct stacks stacks;
	struct edits edits;
	struct usage usage;
	int64_t usage_look_ms; /* next look at what the meters wrote */
	int64_t hang_sign_ms;  /* stacks were written for a silence since then */

	struct rank_term rank_term; /* by SIGTERM */
	int64_t rank_term_ms;       /* next look whether they are gone */
	/* for people: of the order that was seen, of the hang; of the reason that counts */
	char order_text[320], hang_text[200], stop_text[320];
	char trouble
		[ERR_TEXT_BYTES]; /* why the search or the trainer cannot be started, or nothing be
					   recorded */
	char save_by[65];         /* who wants a checkpoint */
	struct asking asking;     /* when nobody does */
	bool is_own_wish;         /* the next is asked for by that */
	bool is_asking_told;

	int switch_fd;            /* tells that the switches changed; -1 = nobody does */
	int64_t switch_ms;        /* next look at them */
	bool is_told_of_switches; /* by the kernel, whoever makes one */
	struct switch_reading *switch_reading; /* under way; NULL = none */
	int64_t switch_pause_ms;               /* none is begun before */
	enum run_order switch_order;           /* the strongest seen there */
	uint64_t save_inode;                   /* the save switch that was seen last */
	int64_t save_changed_ns, save_due_ms;

	int64_t turn_ms; /* when the last turn began */

	int64_t bad_lines;     /* since the last note about them */
	int64_t bad_note_ms;   /* next note at the earliest */
	int64_t error_note_ms; /* the same of errors of the node */
};

/* Returns the exit status of the program. */
int shepherd_main(const char *folder);

/* acts.c: takes a step that was decided and noted. */
void act(struct shepherd *s, const struct next *next, int64_t now_ms);

/* opening.c: the claim, and with it all parts; the end of all of them. */
void opening_claim(struct shepherd *s);
void opening_undo(struct shepherd *s);
/* Reads attempt.json and begins the facts; 0, else the exit status. */
int opening_read(struct shepherd *s, const char *folder);

/* launch.c: the trainer's start and end. */
void launch_begin(struct shepherd *s);
/* Opens the socket at which trainers report; where that fails it is told. */
void launch_listen(struct shepherd *s);
/* SIGTERM to the whole trainer. */
void launch_term(struct shepherd *s);
/* Ends the whole trainer. */
void launch_kill(struct shepherd *s);
/* Its last words, after the last descendant is dead. */
void launch_drain(struct shepherd *s);
void launch_finish(struct shepherd *s, const struct next *end);

/* script.c: a batch script; its output as it is, signals of Slurm to it. Of whatever else, too,
 * out.log is a link to where the output goes. */
void script_output_open(struct shepherd *s, int rank);
void script_signal(struct shepherd *s, int signo);
/* What its words tell of how its launches end. */
void script_judge(struct shepherd *s);
/* A task of an array has folders of its own, attempts/N/task-K and checkpoints/task-K. True: an
 * earlier attempt has completed it, or this one is over: nothing is to be done. */
bool script_task_enter(struct shepherd *s);
/* A task that completed is remembered, for later attempts, before anybody can see that it ended: 0,
 * also of what is no task, or -1 with err. */
int script_task_end(const struct shepherd *s, struct err *err);
/* The last to end says how the attempt did. */
void script_task_leave(const struct shepherd *s);

/* preflight.c: are the nodes fit to train on? Their own attempt's reports lie in its folder
 * preflight/. */
/* Attempts in a row before this one that ended by it. */
int64_t preflight_failed_before(const char *run_dir, int64_t number);
void preflight_begin(struct shepherd *s);
void preflight_skip(struct shepherd *s);
/* Ends it, at first so that srun ends its ranks. */
void preflight_kill(struct shepherd *s);
/* Its process was reaped. */
void preflight_ended(struct shepherd *s, int wait_status);

/* saves.c: the checkpoints that a trainer writes, and what that says of the one it came from. */
void saves_open(struct shepherd *s);
void saves_close(struct shepherd *s);
/* Before a launch: what was found is what it has to get beyond; written down first. */
void saves_begin(struct shepherd *s);
/* Tells of new checkpoints; a trainer need not do so itself. `is_last`: it has ended. */
void saves_look(struct shepherd *s, bool is_last);
/* The trainer calls one complete. */
void saves_told(struct shepherd *s, const char *path, int64_t step);
/* The reader for a seal has ended: the next one's turn. */
void saves_sealed(struct shepherd *s);
void saves_step(struct shepherd *s, int64_t rank, const json_t *line);
void saves_try_room(struct shepherd *s);
/* The checkpoint that the launch came from is good. */
void saves_trust(struct shepherd *s);
/* After a launch: what it says of the one that it came from, and of the newest ones. */
void saves_judge(struct shepherd *s, const struct next *end);

/* A checkpoint that came from the stage into place. */
void saves_drained(struct shepherd *s, const char *path);
/* Where the trainer saves to. */
const char *saves_folder(const struct shepherd *s);

/* The task of an array that this is; NULL = none. */
const char *saves_task(const struct shepherd *s);

/* staging.c: checkpoints by way of a folder of the node, where the run wants that. Behind
 * saves_open. */
void staging_open(struct shepherd *s);
void staging_before_launch(struct shepherd *s);
void staging_turn(struct shepherd *s, int64_t now_ms);
/* Until then no launch begins, unless what is staged is drained before; INT64_MIN = nothing is
 * awaited. */
int64_t staging_held_until_ms(const struct shepherd *s);
void staging_reaped(struct shepherd *s);
void staging_tell_lost(struct shepherd *s);

/* records.c: lbrun's own records. */
void record_attempt_start(struct shepherd *s);
void record_launch_start(struct shepherd *s);
void record_launch_end(struct shepherd *s, const struct next *end);
/* The start is over, by the first step or by the launch's end: what it took. */
void record_start(struct shepherd *s);
struct told_checkpoint {
	const char *path, *layout; /* layout "" = not known */
	int64_t step, bytes;       /* -1 = not known */
	bool is_valid, is_progress;
	const char *text; /* what is wrong with it */
};
void record_checkpoint(struct shepherd *s, const struct told_checkpoint *c);
void record_attempt_end(struct shepherd *s);

/* trainer_protocol.c: what trainers say. */
void trainer_protocol_init(struct shepherd *s);
/* What it prints, where attempt.json says how to read it. */
int trainer_protocol_read_output(struct shepherd *s, struct err *err);
/* Something told of a broken node. */
void trainer_protocol_node_error(struct shepherd *s, const char *node, const char *text);
/* A node is gone. */
void trainer_protocol_node_lost(struct shepherd *s, const char *node, const char *text);
void trainer_protocol_no_cache(struct shepherd *s, const char *node, const char *why);
/* The newest step that had to wait for its turn. */
void trainer_protocol_write_left_step(struct shepherd *s);

/* hang.c: what is done about a trainer that hangs. */
void hang_turn(struct shepherd *s, int64_t now_ms);
/* Where it is, into a file: because it hangs, or on a person's wish. */
void hang_write_stacks(struct shepherd *s, bool is_hang, int64_t now_ms);
bool hang_is_watched(const struct shepherd *s);

/* meters.c: what the machines do. */
void meters_start(struct shepherd *s); /* before we are a subreaper */
void meters_look(struct shepherd *s, int64_t now_ms);

/* heartbeats.c: is each node of the launch still heard? */
void heartbeats_start(struct shepherd *s); /* before we are a subreaper */
void heartbeats_news(struct shepherd *s);
/* A launch has ended: a spare takes the place of a node that was to blame, where there is one. */
void heartbeats_replace(struct shepherd *s);

/* --- spare.c ---------------------------------------------------------------------------------- */
/* A spare node takes the place of that one, and is to be checked; false: none does, and it is said
 * why where the job has spares. */
bool spare_take_place(struct shepherd *s, const char *node);
/* torn.c: before a launch behind one that lost a node, or behind several that got nowhere. */
void torn_set_aside(struct shepherd *s);

/* stop.c: that this attempt shall end. */
void stop_heed(struct shepherd *s, const struct next *next, int64_t now_ms);
/* A person's order was seen; what is weaker than an earlier one changes nothing. */
void stop_ordered(struct shepherd *s, enum run_order order, bool goes_on, const char *text);

/* orders.c: who may end this attempt, and how they say so. */
void orders_look(struct shepherd *s, int64_t now_ms);
void orders_signal(struct shepherd *s, int signo);
/* A checkpoint is wanted; once for each word of it. */
void orders_want_save(struct shepherd *s, const char *by);
void orders_save(struct shepherd *s);

/* switch_watch.c: the same by switch files, without lbd. */
void switch_watch_open(struct shepherd *s);
/* The folder has changed: look in a moment, when what is being written there has its text. */
void switch_watch_news(struct shepherd *s, int64_t now_ms);
int switch_watch_fd(const struct shepherd *s, int64_t now_ms); /* to be polled; -1 = not now */
void switch_watch_look(struct shepherd *s, int64_t now_ms);
/* However many there are: before a trainer is started, and once it has ended. */
void switch_watch_look_at_all(struct shepherd *s, int64_t now_ms);
void switch_watch_close(struct shepherd *s);
/* The last act of a job that a switch ended. */
void switch_watch_cancel_job(const struct shepherd *s);

#endif
