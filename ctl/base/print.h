/* SPDX-License-Identifier: MIT */
/* print.h - what all commands print: tables, JSON, complaints and hints. */
#ifndef CTL_BASE_PRINT_H
#define CTL_BASE_PRINT_H

#include <jansson.h>
#include <stdint.h>

#include "ctl/base/text.h"

struct ctl;

/* A table on stdout with a line for each item of the array; `fill` has the cells of that line. */
void print_rows(const struct ctl *ctl, const struct column *columns, int column_count,
		const json_t *items,
		void (*fill)(struct cell *row, const json_t *item, const struct style *style));
/* The value as one line of JSON on stdout; takes it. */
void print_json(json_t *value);
/* A time of the protocol (seconds) in ms since the epoch; 0 when unknown or no sensible time. */
int64_t time_ms(const json_t *object, const char *key);
/* The text, in which each command of lbctl's is said for the folder that --home named: as it stands
 * it would be for another lbd, and its runs. Owned. */
char *with_home(const struct ctl *ctl, const char *text);
/* "lbctl: text" on stderr, as with_home(). */
void complain(const struct ctl *ctl, const char *text);
/* The same where lbd cannot write its ledger: what it tells of runs is old. Asks lbd. */
void complain_of_ledger(struct ctl *ctl);
/* A next step, as with_home(), on stderr, only for people: nothing when stderr is no terminal. */
void hint(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
