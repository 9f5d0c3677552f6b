/* SPDX-License-Identifier: MIT */
/* members.c - asks the directory of users who is in a group. */
#include "common/team/members.h"

#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { MEMORIES = 16, MEMORY_MS = 10 * 1000, MAX_GROUPS = 4096 };

static bool is_member(const struct account *user, const char *team)
{
	int count = MAX_GROUPS;
	bool found = false;
	gid_t *groups;
	gid_t gid;

	if (!group_id(team, &gid))
		return false;
	groups = xcalloc(MAX_GROUPS, sizeof(*groups));
	if (getgrouplist(user->name, user->gid, groups, &count) < 0)
		count = MAX_GROUPS;
	for (int i = 0; i < count && !found; i++)
		found = groups[i] == gid;
	free(groups);
	return found;
}

/* The directory service may be far away: what it said holds for a moment. One team a program. */
const struct member *member_of(uid_t uid, const char *team)
{
	static struct {
		struct member member;
		int64_t until_ms;
	} memory[MEMORIES];
	static size_t next;
	int64_t now_ms = clock_mono_ms();
	struct account user;
	bool is_known;
	struct member *u;

	for (size_t i = 0; i < MEMORIES; i++)
		if (memory[i].member.uid == uid && now_ms < memory[i].until_ms)
			return &memory[i].member;
	memory[next % MEMORIES].until_ms = now_ms + MEMORY_MS;
	u = &memory[next++ % MEMORIES].member;
	*u = (struct member){ .uid = uid };
	is_known = account_of(uid, &user);
	if (is_known)
		snprintf(u->name, sizeof(u->name), "%s", user.name);
	else
		snprintf(u->name, sizeof(u->name), "%u", uid);
	text_clean(u->name);
	u->is_member = is_known && team && is_member(&user, team);
	account_clear(&user);
	return u;
}
