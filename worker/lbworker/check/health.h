/* SPDX-License-Identifier: MIT */
/* health.h - what the machine itself tells of its parts: GPUs' errors and clocks by NVIDIA's
 * driver, network interfaces by the kernel. */
#ifndef LBWORKER_CHECK_HEALTH_H
#define LBWORKER_CHECK_HEALTH_H

#include "common/check/node_report.h"

struct health;

struct health_options {
	const char *sys;        /* "/sys" */
	const char *kernel_log; /* past_xids.h; NULL: where this machine has it */
	double xid_hours; /* an XID that means hardware is a fault for so long; 0: nobody looks */
};

/* Before the node is made to work. The texts are borrowed. Never NULL. */
struct health *health_begin(const struct health_options *options);
/* How many GPUs we see; 0: none, or no driver. */
int health_gpus(const struct health *health);
/* Behind the work: errors of GPUs since the driver was loaded, XIDs that came meanwhile or before,
 * a GPU whose driver asks for a reset, and clocks that heat or the hardware hold down are faults;
 * out->past says what was known of XIDs before, where there is NVIDIA's driver or a log is named;
 * out->nic gets the interfaces, and the errors that they counted meanwhile. */
void health_end(struct health *health, struct check_result *out);

#endif
