/* SPDX-License-Identifier: MIT */
/* nics.h - network interfaces and InfiniBand ports, as the kernel tells of them. */
#ifndef LBWORKER_CHECK_NICS_H
#define LBWORKER_CHECK_NICS_H

#include "common/check/node_report.h"

/* Those with hardware behind them, from sys/class/net and sys/class/infiniband; errors: counted
 * since the machine came up. Returns how many of nic[CHECK_NICS_MAX]. */
int nics_read(const char *sys, struct check_nic *nic);

#endif
