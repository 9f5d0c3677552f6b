/* SPDX-License-Identifier: MIT */
/* members.h - who is in the team, as the directory of users says. */
#ifndef COMMON_TEAM_MEMBERS_H
#define COMMON_TEAM_MEMBERS_H

#include <stdbool.h>
#include <sys/types.h>

struct member {
	uid_t uid;
	bool is_member;
	char name[65]; /* cleaned; the number where there is no such user */
};

/* Whether this user is in the group `team` (NULL: nobody is). A program asks about one team only:
 * answers are kept for 10 s. Borrowed until the next call. */
const struct member *member_of(uid_t uid, const char *team);

#endif
