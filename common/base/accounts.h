/* SPDX-License-Identifier: MIT */
/* accounts.h - users and groups of this machine, by name and number.
 *
 * libc's own functions (getpwnam and the like, which are banned) answer in one buffer that the next
 * question overwrites, also one that some function deep below asks. These answers are the
 * caller's. */
#ifndef COMMON_BASE_ACCOUNTS_H
#define COMMON_BASE_ACCOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/* of a user; account_clear is due after a true answer */
struct account {
	char *name, *home, *shell; /* owned, never NULL; "" when the directory says nothing */
	uid_t uid;
	gid_t gid;
};

/* False: there is no such user, or the directory does not answer; *out is empty then. */
bool account_of(uid_t uid, struct account *out);
void account_clear(struct account *account);

/* False: there is no such group; name NULL: neither. */
bool group_id(const char *name, gid_t *out);
/* Owned; NULL: there is no such group. */
char *group_name(gid_t gid);

/* Is this the group that was made for this user alone: their primary one, of their name, with
 * nobody else in it? As Debian's sshd asks, and the name, too: not every directory lists all its
 * users. */
bool group_is_private(gid_t gid, uid_t uid);

#endif
