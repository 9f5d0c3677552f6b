/* SPDX-License-Identifier: MIT */
/* step_reader.h - what stands in one line, by the tables of step_rows.h: which row has it, the
 * numbers of its count, its values, and what the words around it say. Pure. */
#ifndef LBRUN_STEPS_STEP_READER_H
#define LBRUN_STEPS_STEP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "worker/lbrun/steps/step_rows.h"

struct regexp;

struct step_reader {
	struct regexp *rows[STEP_ROWS_MAX], *fields[STEP_FIELDS_MAX];
	struct regexp *words[STEP_WORD_COUNT];
};

/* _DOUBT: by its words it is other work; _PART: it may be a part of a step. */
enum quality {
	QUALITY_LOSS,
	QUALITY_COUNT,
	QUALITY_PART,
	QUALITY_EPOCH,
	QUALITY_DOUBT,
	QUALITY_NONE
};

/* The groups of a row; -1 = not there. */
struct step_match {
	int64_t step, target_step, epoch, epochs, batch, batches;
	const char *count; /* where the first of these begins */
	const char *label;
	size_t label_len;
	bool is_training_bar; /* by its label, or its loss */
	bool is_epochs;       /* the bar's steps are epochs */
	bool has_loss;        /* that may be written so that nobody can read it */
	bool is_enough;       /* beside the count, for a row that needs more */
	enum quality best;    /* that it may have, by the words around it */
};

void step_reader_init(struct step_reader *r);
void step_reader_fini(struct step_reader *r);
/* The row that has the line; step_row_count: none. `line` ends in NUL. */
size_t step_reader_row(const struct step_reader *r, const char *line, size_t len);
/* Its groups. */
struct step_match step_reader_match(const struct step_reader *r, size_t row, const char *line);
/* What the words around a count say: has_loss, is_training_bar, best. */
void step_reader_weigh(const struct step_reader *r, size_t row, const char *line, size_t len,
		       struct step_match *m);
/* Its values, by name: a new reference; empty when there is none. */
json_t *step_reader_fields(const struct step_reader *r, const char *line, size_t len);

#endif
