/* SPDX-License-Identifier: MIT */
/* folders.h - lbd's folder, and that of the runs. -1 with err. */
#ifndef DAEMON_FOLDERS_H
#define DAEMON_FOLDERS_H

#include "common/base/err.h"
#include "daemon/base/config.h"

/* Whoever could change what lies there would act as its owner. A missing one is fine. */
int check_home(const char *home, struct err *err);
int open_home(const struct config *config, struct err *err);
/* One that lies elsewhere is as its owner made it, below folders that may be a project's; but what
 * it holds, jobs' scripts above all, is for nobody else to change. */
int open_runs(const struct config *config, struct err *err);
/* Where lbrun's own path fits no first line of a script, this one stands for it. */
int link_lbrun(const struct config *config, struct err *err);

#endif
