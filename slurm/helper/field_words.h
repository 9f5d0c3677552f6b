/* SPDX-License-Identifier: GPL-2.0-or-later */
/* field_words.h - fields whose values are words: flags, mail, profiles, distribution, processor
 * frequencies, memory binding. */
#ifndef SLURM_HELPER_FIELD_WORDS_H
#define SLURM_HELPER_FIELD_WORDS_H

#include <jansson.h>

#include "common/base/err.h"
#include "slurm/helper/kept.h"
#include "slurm/helper/libslurm.h"

/* Writes them into `desc`, which has its nodes and tasks. -1 with err for a word that Slurm would
 * not take: "--distribution: …". */
int field_words_apply(const json_t *fields, job_desc_msg_t *desc, struct kept *kept,
		      struct err *err);

#endif
