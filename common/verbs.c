/* SPDX-License-Identifier: MIT */
#include "common/verbs.h"

#include <string.h>

const struct verb_info verb_info[VERB_COUNT] = {
#define X(id, name, role, help) [VERB_##id] = { name, role, help },
	VERBS(X)
#undef X
};

enum verb verb_from_name(const char *name)
{
	int v = 0;

	while (v < VERB_COUNT && strcmp(verb_info[v].name, name) != 0)
		v++;
	return (enum verb)v;
}

const char *role_name(enum role role)
{
	static const char *const names[ROLE_COUNT] = {
		[ROLE_NONE] = "outsider", [ROLE_MEMBER] = "team member",
		[ROLE_SUBMITTER] = "owner", [ROLE_OWNER] = "owner",
	};

	return names[role];
}
