/* SPDX-License-Identifier: MIT */
/* metric_batch.h - the points of a run that one commit brings: of very many only those are kept
 * that ledger_metric_thin would leave. */
#ifndef SQL_METRIC_BATCH_H
#define SQL_METRIC_BATCH_H

#include <stddef.h>

#include "sql/ledger.h"

struct metric_batch {
	struct ledger_metric
		*rows; /* .fields is NULL: their text lies in `text`, one behind the other */
	size_t count, cap;
	char *text;
	size_t text_len, text_cap;
};

/* {0} is an empty one. m->fields is not read: it is text[0..len), copied. */
void metric_batch_add(struct metric_batch *b, const struct ledger_metric *m, const char *text,
		      size_t len);
/* Puts all of them into the ledger, in order, and empties the batch; its memory is released. */
int metric_batch_write(struct metric_batch *b, struct ledger *l, struct err *err);

#endif
