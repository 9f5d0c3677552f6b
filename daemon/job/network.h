/* SPDX-License-Identifier: MIT */
/* network.h - profiles of networks: the environment that a fabric needs, in one file each.
 *
 * NAME.toml has one section, [env], of variables. The owner's own files, $LB_HOME/network, come
 * before those that were installed with lbd (share/lowbits/network). */
#ifndef DAEMON_JOB_NETWORK_H
#define DAEMON_JOB_NETWORK_H

#include "common/base/err.h"
#include "daemon/base/config.h"
#include "daemon/job/job_env.h"

/* The profile that a run gets: its own, else lbd.toml's for runs that are no batch script; NULL:
 * none. Borrowed. */
const char *network_of(const struct config *config, const struct run_spec *spec);

/* ERR_REFUSED when others could change one of the owner's own. */
int network_check(const struct config *config, struct err *err);

/* Adds what the environment has not got yet. ERR_USAGE names what is wrong with the profile, or
 * those that there are. */
int network_add(struct strv *env, const struct config *config, const char *name, struct err *err);

#endif
