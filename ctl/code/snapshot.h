/* SPDX-License-Identifier: MIT */
/* snapshot.h - a copy of the code that a run is to be made of. */
#ifndef CTL_CODE_SNAPSHOT_H
#define CTL_CODE_SNAPSHOT_H

#include "common/base/err.h"

/* Copies into `to`, a new folder, what git knows of the repository around `folder`, as it is now,
 * and the small files that it neither knows nor ignores. All else of the repository (data,
 * environments, submodules) is a link to where it lies, so that every path below it leads on. -1
 * with err: ERR_NOT_FOUND when there is no repository. What was made until then stays. */
int snapshot_make(const char *folder, const char *to, struct err *err);

#endif
