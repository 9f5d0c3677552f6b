/* SPDX-License-Identifier: MIT */
/* train_config.h - a config as the command line of `lbworker train` means it. */
#ifndef LBWORKER_TRAIN_CONFIG_H
#define LBWORKER_TRAIN_CONFIG_H

#include "worker/lbworker/config/config.h"

/* argv[0] is "train", the rest as people type it. An exit status; what is wrong was said on stderr.
 * Clear *config in any case. */
int train_config(struct config *config, int argc, char **argv);

#endif
