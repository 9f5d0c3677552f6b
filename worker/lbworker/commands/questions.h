/* SPDX-License-Identifier: MIT */
/* questions.h - multiple choice as files of JSON lines have it, made to text as
 * lm-evaluation-harness does. */
#ifndef LBWORKER_QUESTIONS_H
#define LBWORKER_QUESTIONS_H

#include <stddef.h>

#include "common/base/err.h"
#include "worker/lbworker/text/documents.h"

#define QUESTION_FORMS \
	"hellaswag's (activity_label, ctx_a, ctx_b, endings, label), arc's (question, choices.text, " \
	"choices.label, answerKey), or query, choices, gold"

enum { QUESTION_CHOICES_MAX = 64 };

struct question {
	char *context;
	char *choice[QUESTION_CHOICES_MAX]; /* to be said after the context and a space */
	size_t choices, gold;               /* the right one, from 0 */
};

/* A line of one of QUESTION_FORMS; -1 with "PATH:LINE: …" and nothing to release. */
int question_read(struct question *out, const struct document *line, struct err *err);
void question_fini(struct question *question);

#endif
