/* SPDX-License-Identifier: MIT */
/* peer.h - who is at the other end of a Unix socket, by the kernel's word. */
#ifndef DAEMON_CONTROL_PEER_H
#define DAEMON_CONTROL_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/run/verbs.h"

struct peer {
	uid_t uid;
	char user[64]; /* name, or the number where there is none */
	enum role role;
};

/* Owner: the user of this process, and root. Member, or submitter where members may submit: whose
 * groups, as the kernel had them at connect, include team_group (NULL: nobody). */
int peer_of(int fd, const char *team_group, bool may_submit, struct peer *out, struct err *err);

#endif
