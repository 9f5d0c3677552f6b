/* SPDX-License-Identifier: MIT */
/* recover/ - the ledger lost and found: copies, records beside the runs, and the way back.
 *
 * recover.h - a ledger that is missing, empty or damaged, made anew from the folders of its
 * runs. */
#ifndef DAEMON_RECOVER_RECOVER_H
#define DAEMON_RECOVER_RECOVER_H

#include "common/base/err.h"
#include "daemon/base/lbd.h"

/* -1: there are runs, or a backup, and no ledger that knows of them; err names the way out. */
int recover_check(const struct config *config, struct err *err);

/* Reads specs, records, claims, spools, exit records and orders below runs/, and of the newest
 * backup what they do not tell; makes a new ledger of that, and puts it in place of the old one,
 * which is kept beside it. Jobs that live are found by their tokens when lbd starts. *text is what
 * was done, a line for people; owned by the caller. Nobody else may work here (lock.h). A sound
 * ledger is left alone. */
int recover_ledger(struct lbd *lbd, char **text, struct err *err);

#endif
