/* SPDX-License-Identifier: MIT */
/* spool.h - the attempt's append-only file of JSON lines: the one road of progress across nodes.
 *
 * lbrun writes, lbd tails. Every line is an envelope
 *   {"v":1,"seq":12,"time_ms":1795…,"launch":1,"from":"trainer"|"lbrun","line":{…}}
 * seq counts from 1 within the attempt without gaps; `line` is a trainer line (message.h) or one of
 * lbrun's own records:
 *   {"type":"attempt_start","host":H,"nodes":[…],"pid":N}
 *   {"type":"launch_start","number":K,"pid":N,"resumed_from_step":S|null,"resumed_from":PATH|null}
 *   {"type":"start","number":K,"phases":{NAME:seconds,…}}, as in docs/PROTOCOL.md
 *   {"type":"launch_end","number":K,"cause":C,"exit_code":N|null,"signal":N|null,"progress":bool,
 *    "node":the one at which it began|null,"counts":false if lbrun could not write then,
 *    "text":why}
 *   {"type":"checkpoint_valid","step":N,"path":P,"valid":bool,"text":why}
 *   {"type":"note","kind":WORD,"text":T}
 *   {"type":"usage","node":N,"rank":R,"seconds":S,…}, as in docs/PROTOCOL.md
 *   {"type":"attempt_end","cause":C,"exit_code":N|null,"signal":N|null,"text":why}
 * A reader takes only what ends in a newline and remembers the byte offset after it. */
#ifndef COMMON_RUN_SPOOL_H
#define COMMON_RUN_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/base/err.h"
#include "common/run/message.h"

enum { SPOOL_VERSION = 1, SPOOL_MAX_LINE_BYTES = 80 * 1024 };

struct spool_writer {
	int fd;
	int64_t seq; /* of the last line written */
};

/* Opens or creates `path` for appending and continues after its last complete line (a torn tail,
 * left by a crash, is cut off). */
int spool_writer_open(struct spool_writer *spool, const char *path, struct err *err);
/* Appends one envelope around `line` (borrowed) with the next seq. The line is in the file when
 * this returns; spool_sync makes it durable. */
int spool_append(struct spool_writer *spool, int64_t launch, bool from_trainer, const json_t *line,
		 struct err *err);
/* The same for a line that was said at `time_ms` (wall clock) and could not be written then. */
int spool_append_at(struct spool_writer *spool, int64_t time_ms, int64_t launch, bool from_trainer,
		    const json_t *line, struct err *err);
/* Where the launch of a launch_start begins, for people: "from step 30", "from model.pt" (its step is
 * not known), "from scratch"; owned by the caller. */
char *spool_launch_from(const json_t *line);
int spool_sync(struct spool_writer *spool, struct err *err);
void spool_writer_close(struct spool_writer *spool);

struct spool_line {
	int64_t seq, time_ms, launch;
	bool from_trainer;
	json_t *line;                 /* borrowed for the call; NULL: `step` holds it all */
	const struct step_line *step; /* borrowed; NULL but from spool_read_plain */
	/* the same as it stands in the file, text_len bytes; borrowed; NULL when the envelope is
	 * not in the order that spool_append writes */
	const char *text;
	size_t text_len;
};

/* Reads complete lines from *offset on, at most max_bytes of them (but never less than one line),
 * calls on_line for each and advances *offset. A line that cannot be read (garbage, a newer
 * version) goes to on_bad (may be NULL) and is passed over. A missing file counts as empty. Returns
 * the number of bytes consumed, or -1 with err when the file cannot be read or on_line returned
 * non-zero (then *offset stands before that line). */
int64_t spool_read(const char *path, int64_t *offset, int64_t max_bytes,
		   int (*on_line)(const struct spool_line *line, void *arg),
		   void (*on_bad)(int64_t offset, const struct err *why, void *arg), void *arg,
		   struct err *err);

/* The same, several times as fast where most lines are plain steps (step_line_read): of those no
 * tree is made, and on_line gets `step` in the place of `line`. */
int64_t spool_read_plain(const char *path, int64_t *offset, int64_t max_bytes,
			 int (*on_line)(const struct spool_line *line, void *arg),
			 void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			 void *arg, struct err *err);

#endif
