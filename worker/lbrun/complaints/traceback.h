/* SPDX-License-Identifier: MIT */
/* traceback.h - which lines belong to a traceback of Python, which one says what was raised, and
 * whether that ended the program. Knows those of several exceptions at once, those that a logger
 * puts marks in front of, and the boxes that rich, typer and tyro draw. Pure. */
#ifndef LBRUN_COMPLAINTS_TRACEBACK_H
#define LBRUN_COMPLAINTS_TRACEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/lbrun/complaints/heard.h"

enum { MARK_BYTES = 80 };

enum traceback_part {
	TRACEBACK_NONE,
	TRACEBACK_INSIDE, /* quotes the program, which has words of all kinds; the rest of a box */
	TRACEBACK_END,    /* says what was raised */
};

/* what was raised did not end the program, or perhaps not */
enum aside { ASIDE_NOT, ASIDE_THREAD, ASIDE_IGNORED };
/* drawn around a message; its first line has been heard */
enum box { BOX_NONE, BOX_BEGUN, BOX_TOLD };

struct traceback {
	bool is_open;
	int64_t rank;
	char mark[MARK_BYTES]; /* stood in front of its first line */
	bool is_code;          /* without a margin, the next line quotes the program */
	/* exceptions that were raised together; behind the first of them */
	bool in_group, is_later;
	int64_t group_rank;
	enum aside said, aside; /* by the line before; of the traceback */
	/* what was raised before is the cause of what the next one tells; of what this one does */
	bool says_cause, has_cause;
	enum box box;
	bool is_ignored; /* what the last line says went by, and ended nothing */
};

void traceback_reset(struct traceback *t);
/* What the next line is. Margins and marks are taken off it. */
enum traceback_part traceback_hear(struct traceback *t, struct heard *line);

#endif
