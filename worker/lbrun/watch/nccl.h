/* SPDX-License-Identifier: MIT */
/* nccl.h - what NCCL and PyTorch can say of a hang themselves: NCCL's RAS service, and the flight
 * recorder that each rank of PyTorch keeps of its collectives. May block for some seconds: for a
 * child. */
#ifndef LBRUN_WATCH_NCCL_H
#define LBRUN_WATCH_NCCL_H

#include "common/base/strv.h"

/* Below the attempt's folder: what the ranks' recorders write, and the pipes on which they are
 * asked. */
#define NCCL_RECORDER_FOLDER "flight"

/* Settings by which PyTorch keeps a recorder for each rank and hears us; what a person set
 * stays. */
void nccl_recorder_env(struct strv *env, const char *attempt_folder);

/* Asks the ranks on this node to write what they recorded, and waits a little. */
void nccl_ask_recorders(const char *attempt_folder);

/* The answer of NCCL's RAS service on this node (JSON since NCCL 2.28, text since 2.24), to `path`.
 * Without one nothing is written. */
void nccl_ask_ras(const char *path);

#endif
