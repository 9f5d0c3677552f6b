/* SPDX-License-Identifier: MIT */
#include "daemon/peer.h"

#include <grp.h>
#include <pwd.h>
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
	const struct group *group = name ? getgrnam(name) : NULL;
	gid_t groups[MAX_GROUPS];
	socklen_t bytes = sizeof(groups);

	if (group == NULL)
		return false;
	if (primary == group->gr_gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(gid_t); i++)
		if (groups[i] == group->gr_gid)
			return true;
	return false;
}

int peer_of(int fd, const char *team_group, bool may_submit, struct peer *out, struct err *err)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);
	const struct passwd *pw;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return err_errno(err, "cannot tell who is asking");
	pw = getpwuid(cred.uid);
	out->uid = cred.uid;
	if (pw)
		snprintf(out->user, sizeof(out->user), "%s", pw->pw_name);
	else
		snprintf(out->user, sizeof(out->user), "%u", cred.uid);
	if (cred.uid == geteuid() || cred.uid == 0)
		out->role = ROLE_OWNER;
	else if (is_in_group(fd, cred.gid, team_group))
		out->role = may_submit ? ROLE_SUBMITTER : ROLE_MEMBER;
	else
		out->role = ROLE_NONE;
	return 0;
}
