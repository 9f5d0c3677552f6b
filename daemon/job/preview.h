/* SPDX-License-Identifier: MIT */
/* preview.h - what `lbctl submit --dry-run` shows: the job, from the same parts that submit it. */
#ifndef DAEMON_JOB_PREVIEW_H
#define DAEMON_JOB_PREVIEW_H

#include <jansson.h>

#include "common/base/err.h"
#include "daemon/base/config.h"
#include "daemon/engine/run.h"

/* The first job of this run as docs/PROTOCOL.md tells it; NULL with err. Secrets are named, their
 * values are null. The run's folder must be there. */
json_t *preview_job(const struct config *config, const struct run *run, const char *scheduler,
		    struct err *err);

#endif
