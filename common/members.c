/* SPDX-License-Identifier: MIT */
#include "common/members.h"

#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text.h"

enum { MEMORIES = 16, MEMORY_MS = 10 * 1000, MAX_GROUPS = 4096 };

static bool is_member(const struct passwd *pw, const char *team)
{
	const struct group *group = getgrnam(team);
	int count = MAX_GROUPS;
	bool found = false;
	gid_t *groups;
	gid_t gid;

	if (!group)
		return false;
	gid = group->gr_gid;
	groups = xcalloc(MAX_GROUPS, sizeof(*groups));
	if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &count) < 0)
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
	const struct passwd *pw;
	struct member *u;

	for (size_t i = 0; i < MEMORIES; i++)
		if (memory[i].member.uid == uid && now_ms < memory[i].until_ms)
			return &memory[i].member;
	memory[next % MEMORIES].until_ms = now_ms + MEMORY_MS;
	u = &memory[next++ % MEMORIES].member;
	*u = (struct member){.uid = uid};
	pw = getpwuid(uid);
	if (pw)
		snprintf(u->name, sizeof(u->name), "%s", pw->pw_name);
	else
		snprintf(u->name, sizeof(u->name), "%u", uid);
	text_clean(u->name);
	u->is_member = pw && team && is_member(pw, team);
	return u;
}
