/* SPDX-License-Identifier: MIT */
/* health.h - what the machine itself tells of its parts: GPUs' errors and clocks by NVIDIA's driver, network
 * interfaces by the kernel. */
#ifndef LBWORKER_CHECK_HEALTH_H
#define LBWORKER_CHECK_HEALTH_H

#include "common/check/node_report.h"

struct health;

/* Before the node is made to work. sys: "/sys". Never NULL. */
struct health *health_begin(const char *sys);
/* How many GPUs we see; 0: none, or no driver. */
int health_gpus(const struct health *health);
/* Behind the work: errors of GPUs since the driver was loaded, XIDs that came meanwhile and clocks that heat or
 * the hardware hold down are faults; out->nic gets the interfaces, and the errors that they counted
 * meanwhile. */
void health_end(struct health *health, struct check_result *out);

#endif
