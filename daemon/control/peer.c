/* SPDX-License-Identifier: MIT */
/* peer.c - SO_PEERCRED, and the groups of whoever is there. */
#include "daemon/control/peer.h"
#include "common/base/accounts.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

enum { MAX_GROUPS = 1024 };

static bool is_in_group(int fd, gid_t primary, const char *name)
{
	gid_t groups[MAX_GROUPS], group;
	socklen_t bytes = sizeof(groups);

	if (!group_id(name, &group))
		return false;
	if (primary == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(gid_t); i++)
		if (groups[i] == group)
			return true;
	return false;
}

int peer_of(int fd, const char *team_group, bool may_submit, struct peer *out, struct err *err)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);
	struct account account;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return err_errno(err, "cannot tell who is asking");
	out->uid = cred.uid;
	if (account_of(cred.uid, &account))
		snprintf(out->user, sizeof(out->user), "%s", account.name);
	else
		snprintf(out->user, sizeof(out->user), "%u", cred.uid);
	account_clear(&account);
	if (cred.uid == geteuid() || cred.uid == 0)
		out->role = ROLE_OWNER;
	else if (is_in_group(fd, cred.gid, team_group))
		out->role = may_submit ? ROLE_SUBMITTER : ROLE_MEMBER;
	else
		out->role = ROLE_NONE;
	return 0;
}
