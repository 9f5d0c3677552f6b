/* SPDX-License-Identifier: MIT */
/* differences.h - where a file of torchtitan means something else here, though it is taken. */
#ifndef LBWORKER_DIFFERENCES_H
#define LBWORKER_DIFFERENCES_H

#include <stdio.h>

#include "common/config/toml.h"
#include "worker/lbworker/config/config.h"

/* One line for each that this file does not settle itself, `file:line: key: there …, here …`, with
 * what makes both the same. `notes` may be NULL. */
void differences_tell(const struct config *config, const struct toml *toml, FILE *notes);

/* The same for a model of Hugging Face that training goes on from, whoever's the file is. */
void differences_of_loaded(const struct config *c, const struct toml *toml, FILE *notes);

#endif
