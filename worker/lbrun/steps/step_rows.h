/* SPDX-License-Identifier: MIT */
/* step_rows.h - how trainers print their steps, as tables: a new framework is one row. */
#ifndef LBRUN_STEPS_STEP_ROWS_H
#define LBRUN_STEPS_STEP_ROWS_H

#include <stdbool.h>
#include <stddef.h>

enum step_kind {
	STEP_PLAIN,    /* group "step", perhaps "target_step"; "epoch" where it may be of one */
	STEP_HEAD,     /* the same, with its values on the lines below */
	STEP_IN_EPOCH, /* "batch" of "batches", perhaps in "epoch" of "epochs" */
	STEP_BAR,      /* the same as a bar, behind a "label" */
	STEP_EPOCH,    /* "step", or the heading, is an epoch: counts where nothing finer does */
	STEP_CONTEXT,  /* "epoch" of "epochs" for the lines that follow; no step itself */
	STEP_FIELDS,   /* values of the step that the next line tells */
	STEP_BELOW,    /* values of the head above, or of the step that comes next */
};

/* for who keeps something for each row */
enum { STEP_ROWS_MAX = 80, STEP_FIELDS_MAX = 16 };

/* Rows are tried in this order; the first whose pattern fits has the line. */
struct step_row {
	const char *framework; /* who prints so; for readers */
	const char *needle;    /* bytes that each such line has: a cheap look before the pattern */
	const char *pattern;   /* PCRE2 with the groups of its kind */
	enum step_kind kind;
	bool needs_more; /* a loss, or the number of steps in all: else it is some other line */
	int first_epoch; /* number of the first epoch: 0 or 1 */
};
extern const struct step_row step_rows[];
extern const size_t step_row_count;

/* Values that any of these lines may hold; of several rows with one name the first that fits. */
struct step_field {
	const char *name; /* as in a trainer's own line of type "step" */
	const char *needle;
	const char *pattern; /* group "v" is the number */
	double scale;
	double least; /* smaller ones stand for "not known yet" */
};
extern const struct step_field step_fields[];
extern const size_t step_field_count;

/* Words that say what a line tells of. */
enum step_word {
	/* Right in front of a count: it is none of the training's, as of "eval step 3/10". */
	STEP_WORD_OTHER,
	/* The same of steps inside a step, which are the training where there are no others: "inner
	 * step 3". */
	STEP_WORD_INNER,
	/* Anywhere in a line: it is none of the training's: "split": "val". */
	STEP_WORD_OTHER_LINE,
	/* A loss of the training, also one that cannot be read: "loss 2,5". */
	STEP_WORD_LOSS,
	/* In front of a bar that is the training's: "", "Epoch 3", "train loss 2.1"; not
	 * "Tokenizing train dataset". */
	STEP_WORD_BAR,
	/* It is not, whatever else it is called: "Epoch 3 [val]", "Calculating loss"; not "Epoch 3, train
	 * loss 2.1, val loss 2.3". */
	STEP_WORD_OTHER_BAR,
	STEP_WORD_COUNT
};
extern const char *const step_words[STEP_WORD_COUNT];

#endif
