/* SPDX-License-Identifier: MIT */
/* complaint_rows.h - what trainers and launchers print when they die, as tables: a new failure is
 * one row. */
#ifndef LBRUN_COMPLAINTS_COMPLAINT_ROWS_H
#define LBRUN_COMPLAINTS_COMPLAINT_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* the heavier explains more */
enum weight {
	WEIGHT_NONE,
	WEIGHT_LAST,      /* merely the last line of stderr */
	WEIGHT_FOLLOWS,   /* what others say because one has died */
	WEIGHT_ERROR,     /* it calls itself an error */
	WEIGHT_HINT,      /* a warning: says why, if an error of the same advice follows */
	WEIGHT_EVERYDAY,  /* we can say what it means, though much goes on behind such a line */
	WEIGHT_EXCEPTION, /* the last line of a traceback */
	WEIGHT_KNOWN,     /* we can say what it means */
};

enum complaint_kind {
	COMPLAINT_PLAIN,
	COMPLAINT_FRAMED,  /* a line soon after it says where */
	COMPLAINT_OUTSIDE, /* what the trainer finds around it, whatever checkpoint it is given */
};

/* for who keeps something for each row */
enum { COMPLAINT_ROWS_MAX = 96, RANK_END_PATTERNS_MAX = 32 };

/* The first row that fits has the line. */
struct complaint_row {
	const char *pattern; /* PCRE2 */
	enum weight weight;
	enum complaint_kind kind;
	const char *advice; /* what to do about it; NULL = it says so itself */
};
/* As our own trainer says that a rank never came: nothing of the training was touched before
 * that. */
#define COMPLAINT_NOT_BEGUN "did not begin within"
/* As srun begins to say that it could launch nothing on a node: it then ends the ranks that did
 * begin. */
#define COMPLAINT_NOT_LAUNCHED "srun: error: Task launch for "
/* The advice of those who wait for others: behind the end of one that only follows from it. */
extern const char complaint_not_met[];
extern const struct complaint_row complaint_rows[];
extern const size_t complaint_row_count;

/* A line without any of this is no complaint: one look instead of many. */
extern const char complaint_sign[];
/* Looks like one, and is none: "0 errors", warnings. */
extern const char complaint_harmless[];
/* What launchers print of themselves when a rank has ended: never the cause. */
extern const char complaint_noise[];
/* Where it happened: 'File "train.py", line 12 in forward', "#0 0x… in f", "what(): …",
 * "[ 1] ./train(forward+0xc)". */
extern const char complaint_frame[];
/* It begins like a step: below a heading, it is of a log that is shown once more. */
extern const char complaint_step[];

/* How launchers tell of the rank whose end ended them all. Groups: "code" (negative: a signal, as
 * Python has it), "signal", "word" (of a signal), "oom" (the kernel killed it for memory),
 * "missing" (it is not there), "rank", "node". A rank without the others is that of the next. */
extern const char *const rank_end_patterns[];
extern const size_t rank_end_pattern_count;
/* A launcher has lost a node, or what it had started there, and ends all ranks: with status 0, as
 * Open MPI 5 does. */
extern const char complaint_lost_node[];

#endif
