/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libslurm.h - <slurm/slurm.h>, made to live beside slurm/scheduler.h: both name a JOB_PENDING and
 * a JOB_RUNNING, and those of Slurm step aside. */
#ifndef SLURM_HELPER_LIBSLURM_H
#define SLURM_HELPER_LIBSLURM_H

#define JOB_PENDING SLURM_JOB_PENDING
#define JOB_RUNNING SLURM_JOB_RUNNING
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#undef JOB_PENDING
#undef JOB_RUNNING

/* A list of nodes' names. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef hostlist_t *nodes_t;
#else
typedef hostlist_t nodes_t;
#endif

#endif
