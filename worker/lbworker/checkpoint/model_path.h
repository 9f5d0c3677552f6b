/* SPDX-License-Identifier: MIT */
/* model_path.h - what a person calls a model, or a folder of checkpoints: a run, where a training
 * wrote, or the thing itself. */
#ifndef LBWORKER_MODEL_PATH_H
#define LBWORKER_MODEL_PATH_H

#include "common/base/err.h"

/* The folder with config.json and the weights that `named` means; owned; NULL with err.
 *   such a folder                      itself: a checkpoint, or a model of Hugging Face
 *   a folder of checkpoints, a run's   its newest valid checkpoint
 *   folder, or a dump_folder
 *   no path, but the name of a run     that of $LB_HOME/runs/NAME
 *   no path, but OWNER/RUN             a colleague's, where the team's files say it is
 * A checkpoint that does not hold is passed over and said. */
char *model_path(const char *named, struct err *err);

/* Says that; for checkpoint_newest_valid. */
void model_path_passed_over(const char *path, const struct err *why, void *arg);

/* The folder of checkpoints that it means; `named` itself where there are none. Owned. */
char *model_path_checkpoints(const char *named);

#endif
