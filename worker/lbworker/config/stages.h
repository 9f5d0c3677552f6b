/* SPDX-License-Identifier: MIT */
/* stages.h - which layers each stage of a pipeline has, by torchtitan's keys. */
#ifndef LBWORKER_STAGES_H
#define LBWORKER_STAGES_H

#include "worker/lbworker/config/config.h"

/* The last layer of each stage, as torchtitan shares them out: tables and head count for some
 * layers, what is left over goes to the first stages. All zero with one stage. */
struct model_pipeline stages_of(const struct config *config);
/* Micro-batches that are under way at most in the config's stage, of so many ranks. */
int stages_under_way(const struct config *config, const struct config_mesh *mesh);
/* ERR_USAGE with the key and what it may be; key: as in keys_refuse. */
int stages_check(const struct config *config, const char **key, struct err *err);

#endif
