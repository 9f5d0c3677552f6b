/* SPDX-License-Identifier: MIT */
/* resume.h - where a training begins: at its newest checkpoint, at weights that it was given, or at
 * random ones. */
#ifndef LBWORKER_RESUME_H
#define LBWORKER_RESUME_H

#include "common/base/err.h"
#include "worker/lbworker/checkpoint/checkpoint.h"
#include "worker/lbworker/config/config.h"

/* Fills weights, moments and state. LB_RESUME_FROM names the checkpoint to go on from; without it,
 * that is the newest valid one of config->checkpoint_path, unless checkpoint.enable = false. A bad
 * one is passed over and said; when all are bad that is an error, never a silent step 0. What
 * killed writers left in that folder is removed. *path: the checkpoint, owned by the caller, or
 * NULL when there was none. */
int resume(const struct checkpoint_parts *parts, const struct config *config,
	   const char *data_digest, char **path, struct err *err);

#endif
