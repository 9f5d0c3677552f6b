/* SPDX-License-Identifier: MIT */
/* shepherd/ - the phases of one attempt, and who may change their course.
 *
 * shepherd.h - one attempt, from its claim to its exit record.
 *
 *   WAIT ──▶ SEARCH ──▶ RUN ──▶ CLEAR ──▶ OVER
 *             ▲                   │
 *             └───── PAUSE ◀──────┘  relaunch in place
 *
 *   WAIT    an older attempt may still be alive: give it a moment
 *   SEARCH  which checkpoint to start from
 *   RUN     the trainer runs
 *   CLEAR   it ended: SIGKILL to whatever it left, until nothing is left; what was just sent
 *           SIGTERM has the rest of its grace first
 *   PAUSE   before it is started again
 * A request to stop leads from every phase to CLEAR and OVER. */
#ifndef LBRUN_SHEPHERD_SHEPHERD_H
#define LBRUN_SHEPHERD_SHEPHERD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/run/attempt.h"
#include "common/run/order.h"
#include "worker/lbrun/rank/rank_term.h"
#include "worker/lbrun/trainer/complaints.h"
#include "worker/lbrun/end/ending.h"
#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/handed.h"
#include "worker/lbrun/trainer/trainer_server.h"
#include "worker/lbrun/trainer/journal.h"
#include "worker/lbrun/trainer/output.h"
#include "worker/lbrun/trainer/output_parser.h"
#include "worker/lbrun/checkpoint/pruning.h"
#include "worker/lbrun/watch/slow_ranks.h"
#include "worker/lbrun/checkpoint/search.h"
#include "worker/lbrun/watch/stacks.h"
#include "worker/lbrun/end/stopping.h"
#include "worker/lbrun/watch/watch.h"

enum phase { PHASE_WAIT, PHASE_SEARCH, PHASE_RUN, PHASE_CLEAR, PHASE_PAUSE, PHASE_OVER };

struct launch {
	int64_t number;          /* 0 = none yet */
	bool is_requeue_refused; /* Slurm said no to the script's own requeue */
	bool is_open;            /* started, its end not recorded yet */
	pid_t pid;
	bool has_ended;             /* its first process */
	int64_t begun_ms, ended_ms; /* monotonic */
	int wait_status;
	bool said_stopped;
	bool reports; /* it, or a launch before it, spoke through LB_SOCKET */
	/* newest valid checkpoint at its start, suspects too: what is beyond is progress; -1 =
	 * none */
	int64_t step_to_beat;
	int64_t step_saved; /* newest valid checkpoint since; -1 = none */
	bool has_saved;     /* one beyond step_to_beat, or a new one that tells no step */
	int64_t first_told,
		step_told;  /* steps that the trainer told: the first, the newest; -1 = none */
	bool is_first;      /* of the whole run */
	bool is_good;       /* it got to a new step, or a new checkpoint */
	bool said_diverged; /* its bye was "diverged" */
	int64_t ooms_at_start;
	char node[65];       /* where its end began, as far as we know; "" = nobody knows */
	bool is_node_broken; /* a line told of errors of that node */
	int64_t peak_kb;     /* of the largest process that has ended, or of one it waited for */
};

struct seen {
	char *path;
	uint64_t stamp;
	bool is_recorded;
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

	enum phase phase;
	int64_t phase_ms;      /* when the phase is due; INT64_MAX = on news */
	int64_t wait_until_ms; /* end of WAIT, or of a PAUSE for a full disk, at the latest */
	int64_t look_ms;       /* next look at claims and orders */

	struct journal journal;
	struct trainer_server server;
	struct output output;
	struct search search;
	int searches_lost;              /* in a row: their child died, or could not look */
	struct checkpoint_rules *rules; /* how its checkpoints are called */
	struct handed handed;
	char *seals;       /* folder */
	struct seen *seen; /* the checkpoints told of already */
	size_t seen_count;
	pid_t seal_pid;                   /* reads for a seal; 0 = nobody does */
	struct checkpoint_list seal_next; /* the newest that waits to be read for its seal */
	struct pruning pruning;
	int64_t checkpoint_look_ms; /* next look for new ones */
	struct output_parser parser;
	struct complaints complaints;    /* what it printed on its way to its end */
	int64_t step_room, step_room_ms; /* so many printed steps may be written now */
	json_t *step_left;               /* the newest that was not; NULL = none */
	struct ranks ranks;
	bool is_space_reported; /* that there is none */
	struct watch watch;
	struct stacks stacks;
	int64_t hang_sign_ms; /* stacks were written for a silence since then */

	struct stopping stop;
	struct rank_term rank_term; /* by SIGTERM */
	int64_t rank_term_ms;       /* next look whether they are gone */
	enum run_order ordered; /* by a person: ORDER_RUN = nothing; a stop has the longer grace */
	char stop_text[320];

	int switch_fd;     /* tells that the switches changed; -1 = nobody does */
	int64_t switch_ms; /* next look at them */
	struct switch_reading *switch_reading; /* under way; NULL = none */
	int64_t switch_pause_ms;               /* none is begun before */
	enum run_order switch_order;           /* the strongest seen there */
	uint64_t save_inode;                   /* the save switch that was seen last */
	int64_t save_changed_ns, save_due_ms;

	struct launch launch;
	char node_before[65]; /* launch.node of the launch before; "" = none */
	int64_t failures;     /* launches in a row without progress */
	bool has_progressed;  /* some launch of this attempt did */
	int64_t turn_ms;      /* when the last turn began */
	bool had_checkpoint;  /* some launch here was started from one */
	struct ending ending;

	int64_t bad_lines;     /* since the last note about them */
	int64_t bad_note_ms;   /* next note at the earliest */
	int64_t error_note_ms; /* the same of errors of the node */
};

/* Returns the exit status of the program. */
int shepherd_main(const char *folder);

/* launch.c: the trainer's start and end. */
void launch_begin(struct shepherd *s);
/* SIGTERM to the whole trainer. */
void launch_term(struct shepherd *s);
/* Ends the whole trainer; in so many ms SIGKILL to the descendants is to follow. */
int64_t launch_kill(const struct shepherd *s);
/* After the last descendant is dead: records the end; true when it shall be started again. */
bool launch_finish(struct shepherd *s, bool *made_progress);

/* script.c: a batch script; its output as it is, out.log as a link to it; signals of Slurm to
 * it. */
void script_output_open(struct shepherd *s, int rank);
void script_signal(struct shepherd *s, int signo);
/* A task of an array has a folder of its own, attempts/N/task-K. True: an earlier attempt has
 * completed it, nothing is to be done. */
bool script_task_enter(struct shepherd *s);
/* Remembers a completed task, for later attempts. */
void script_task_leave(const struct shepherd *s);

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
void saves_step(struct shepherd *s, int64_t step);
bool saves_made_progress(const struct shepherd *s);
/* After a launch: was it the checkpoint's fault? Not where the failure counts for nothing. */
void saves_judge(struct shepherd *s, bool made_progress, bool counts);

/* records.c: lbrun's own records. */
void record_attempt_start(struct shepherd *s);
void record_launch_start(struct shepherd *s);
/* `counts`: against restart.max_without_progress. */
void record_launch_end(struct shepherd *s, const struct ending *end, bool progress, bool counts);
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
/* The newest step that had to wait for its turn. */
void trainer_protocol_write_left_step(struct shepherd *s);

/* hang.c: what is done about a trainer that hangs. */
void hang_turn(struct shepherd *s, int64_t now_ms);
/* On a user's request. */
bool hang_write_stacks(struct shepherd *s, int64_t now_ms);
int64_t hang_next_ms(const struct shepherd *s);

/* stop.c: that this attempt shall end. */
void ask_to_stop(struct shepherd *s, enum stop_why why, bool now, int64_t now_ms, const char *text);
/* A person's order; what is weaker than an earlier one changes nothing. */
void orders_obey(struct shepherd *s, enum run_order order, int64_t now_ms, const char *text);

/* orders.c: who may end this attempt, and how they say so. */
void orders_look(struct shepherd *s, int64_t now_ms);
void orders_signal(struct shepherd *s, int signo, int64_t now_ms);
void orders_save(struct shepherd *s, const char *by);

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
