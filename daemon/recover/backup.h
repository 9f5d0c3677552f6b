/* SPDX-License-Identifier: MIT */
/* backup.h - ledger.db.bak: a copy of the ledger every hour, and soon after the start, that takes
 * the place of the one before only when it is sound.
 *
 * Every page, index and reference of the copy is looked at in another thread: what is wrong there
 * is wrong in the ledger, for its pages are copied as they are. A damaged ledger is told in an
 * event (ledger_damaged), by `lbctl doctor` and in the log, and the last good backup stays. */
#ifndef DAEMON_RECOVER_BACKUP_H
#define DAEMON_RECOVER_BACKUP_H

#include "daemon/base/lbd.h"

struct backup;

struct backup *backup_open(struct lbd *lbd);
/* No more turns from now on. */
void backup_stop(struct backup *backup);
/* The last one, at the end, when the loop is over; frees it. `is_good`: the ledger may be read. */
void backup_close(struct backup *backup, bool is_good);

/* When the newest look was made, wall clock; 0 = none yet. */
int64_t backup_checked_ms(const struct backup *backup);
/* What is wrong with the ledger; NULL: nothing is known to be. Borrowed. */
const char *backup_damage(const struct backup *backup);

#endif
