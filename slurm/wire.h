/* SPDX-License-Identifier: MIT */
/* wire.h - what lbd and its helper lbd-slurm say to each other.
 *
 * One JSON object a line, in both directions; one request at a time. Both are of one build, so
 * there is no version. Texts travel as in common/base/bytes.h: an environment may hold any bytes.
 *
 *   → {"id":N,"op":"submit","name","comment","script","env":[…],"argv":[…],"fields":{…}}
 *        by sbatch with "sbatch":[options…],"script_path","submit_dir" as well
 *     {"id":N,"op":"release"|"signal"|"cancel","token":T,"job_id":J,"submit_time":S[,"signo":K]}
 *     {"id":N,"op":"poll","ledger":L,"have":S}
 *        L: whose jobs, "": of all ledgers; S: "last" of the poll reply that lbd still holds, or 0
 *     {"id":N,"op":"known","ledger":L,"jobs":[[T,J,S],…]}
 *        first of all: the jobs that lbd waits for; the comment of one may have been replaced
 *     {"id":N,"op":"info"}
 *     {"id":N,"op":"outages"}                  which nodes are going away?
 *     {"id":N,"op":"check", …as submit}        would Slurm take it? Nothing is submitted
 *     {"id":N,"op":"why", …as submit, "job_id":J,"avoided":NODES}
 *     {"id":N,"op":"room", …as submit}         would it begin at once? Nothing is submitted
 *   ← {"id":N,"acting":true}             written just before Slurm is asked to change something: a
 *                                        helper that dies before this line has done nothing
 *     {"id":N,"acting":true,"job_id":J}    submit: Slurm has taken the job; it will be read back
 *     {"id":N,"result":W,"text":T, …}    W: ok refused gone down unclear
 *        down:   "unreachable":true when no controller answers anybody
 *        any:    "unfit":true when the controller does not speak this helper's version
 *        submit: "job_id", "submit_time"
 *        release: "held":true when it was held until then, or tasks of it were
 *        poll:   "last", and "same":true or "rows":N, for so many rows (wire_row_add), each a line
 *                of its own before this one: the only lines that are no JSON;
 *                "cancelled": {T: [[task, had nodes, start, end, controller's start], …]}, tasks of
 *                arrays, of one that was cancelled as it waited only its number
 *        why:    "pending", "reason", "detail" (Slurm's own), "partition", "priority", "nodes",
 *                "time_minutes" (-1: no end), "ahead" (jobs), "start" (Slurm's plan, seconds),
 *                "earliest" (if none were ahead), "limits": [{"limit","text"[,"allowed","asked"]}],
 *                "reservations": [{"name","start","end","nodes"}], "sooner": [{"start" and one of
 *                "time_minutes", "partition" with "waiting", "forgive", "gpus", "cpus", "mem_mb"}]
 *        outages: "outages": [{"nodes","text"[,"begins","name"]}]   of a maintenance reservation
 *                with when it begins (seconds) and its name, of nodes that are set to drain without
 *        info:   "version", "cluster", "min_job_age", "message_timeout", "kill_wait", "slurmd_uid",
 *                "ages_held": does the age of held jobs count?
 *
 * The fields (slurm/batch/batch.h) are the one description of a job; options of sbatch say the
 * same.
 *
 * A job carries its token in the comment, "lbd1:<ledger id>:<token>[ <user's comment>]", and in its
 * name, unless it was given one, the first 12 digits of it, "lb-<run>-<digits>", for the eyes of
 * people. */
#ifndef SLURM_WIRE_H
#define SLURM_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/mem.h"
#include "slurm/scheduler.h"

enum {
	WIRE_MAX_REQUEST = 16 << 20,
	WIRE_MAX_REPLY = 64 << 20,
	WIRE_NAME_DIGITS = 12,
	WIRE_FAILED_BYTES = 4096
};

/* One job of a poll reply, as Slurm tells it. It travels as a line, its members in this order with
 * blanks between them: ten thousand of those take a millisecond or two, as JSON they took ten. */
struct wire_row {
	char token[TOKEN_HEX + 1], ledger_id[LEDGER_ID_HEX + 1];
	int64_t job_id, submit_time, state, reason, exit_code, is_held, start_time, end_time,
		limit_time, restarts, idle_excluded, controller_start;
	/* borrowed, without blanks; "": none. failed: struct job_status. */
	const char *failed, *nodes;
};

const char *wire_result_name(enum scheduler_result result);
/* SCHEDULER_UNCLEAR when there is no such word. */
enum scheduler_result wire_result_from_name(const char *name);

/* Owned strings; of the fields they take "comment" and "name". */
char *wire_comment(const struct job_request *job);
char *wire_comment_with(const char *ledger_id, const char *token, const char *more);
char *wire_job_name(const struct job_request *job);
/* Is this comment ours? Then its ids are in the outputs; else they are "". */
bool wire_comment_parse(const char *comment, char ledger_id[LEDGER_ID_HEX + 1],
			char token[TOKEN_HEX + 1]);

/* Does a poll for this ledger ("": for all) tell of such a job? */
bool wire_is_asked(const struct wire_row *row, const char *ledger_id);

/* Adds a node that is down to what will be a row's `failed`, in a buffer of WIRE_FAILED_BYTES.
 * False: they do not fit, and none is told, as some say nothing of the others. */
bool wire_failed_add(struct buf *failed, const char *node);
/* Adds the row and a newline. */
void wire_row_add(struct buf *out, const struct wire_row *row);
/* What such a row, without its newline, amounts to; names of nodes lie in `row`, which is cut for
 * that. False when it is malformed: then it is as it was, and *out is of no use. */
bool wire_row_parse(char *row, struct job_status *out);

#endif
