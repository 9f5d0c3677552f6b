/* SPDX-License-Identifier: MIT */
/* accounts.c - asks getpwnam_r and its like with a buffer that grows. */
#include "common/base/accounts.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum {
	FIRST_BYTES = 1024,
	MOST_BYTES = 16 * 1024 * 1024, /* a group may have thousands of members */
	MOST_OF_USER = 16 * 1024,
};

bool account_of(uid_t uid, struct account *out)
{
	struct passwd entry, *found = NULL;
	char *buffer = NULL;
	int rc = ERANGE;

	*out = (struct account){ 0 };
	for (size_t size = FIRST_BYTES; rc == ERANGE && size <= MOST_BYTES; size *= 2) {
		buffer = xrealloc(buffer, size);
		rc = getpwuid_r(uid, &entry, buffer, size, &found);
	}
	if (rc == 0 && found)
		*out = (struct account){
			.name = xstrdup(entry.pw_name),
			.home = xstrdup(entry.pw_dir ? entry.pw_dir : ""),
			.shell = xstrdup(entry.pw_shell ? entry.pw_shell : ""),
			.uid = entry.pw_uid,
			.gid = entry.pw_gid,
		};
	free(buffer);
	return out->name != NULL;
}

void account_clear(struct account *account)
{
	free(account->name);
	free(account->home);
	free(account->shell);
	*account = (struct account){ 0 };
}

/* By name, or where that is NULL by number; its words lie in *buffer. */
static bool look_up(const char *name, gid_t gid, struct group *out, char **buffer)
{
	struct group *found = NULL;
	int rc = ERANGE;

	*buffer = NULL;
	for (size_t size = FIRST_BYTES; rc == ERANGE && size <= MOST_BYTES; size *= 2) {
		*buffer = xrealloc(*buffer, size);
		rc = name ? getgrnam_r(name, out, *buffer, size, &found)
			  : getgrgid_r(gid, out, *buffer, size, &found);
	}
	return rc == 0 && found;
}

static char *find_group(const char *name, gid_t *gid)
{
	char *buffer, *copy = NULL;
	struct group entry;

	if (look_up(name, name ? 0 : *gid, &entry, &buffer)) {
		*gid = entry.gr_gid;
		copy = xstrdup(entry.gr_name);
	}
	free(buffer);
	return copy;
}

/* Has another user than this one the group as primary? */
static bool is_shared(gid_t gid, uid_t uid)
{
	struct passwd entry, *found;
	char buffer[MOST_OF_USER];
	bool shared = false;

	setpwent();
	while (!shared && getpwent_r(&entry, buffer, sizeof(buffer), &found) == 0)
		shared = entry.pw_gid == gid && entry.pw_uid != uid;
	endpwent();
	return shared;
}

bool group_is_private(gid_t gid, uid_t uid)
{
	struct account user;
	struct group group;
	char *buffer = NULL;
	bool is_private = account_of(uid, &user) && user.gid == gid &&
			  look_up(NULL, gid, &group, &buffer) &&
			  strcmp(group.gr_name, user.name) == 0;

	for (char **member = is_private ? group.gr_mem : NULL; member && *member; member++)
		is_private = is_private && strcmp(*member, user.name) == 0;
	free(buffer);
	account_clear(&user);
	return is_private && !is_shared(gid, uid);
}

bool group_id(const char *name, gid_t *out)
{
	char *found = name ? find_group(name, out) : NULL;
	bool is_there = found != NULL;

	free(found);
	return is_there;
}

char *group_name(gid_t gid)
{
	return find_group(NULL, &gid);
}
