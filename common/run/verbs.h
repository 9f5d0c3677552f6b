/* SPDX-License-Identifier: MIT */
/* verbs.h - what can be asked of lbd over its socket, and who may ask: one list for both ends.
 *
 * docs/PROTOCOL.md describes each verb's arguments and answer. lbd keeps one handler per row
 * (daemon/handlers.c); a row without a handler does not link. */
#ifndef COMMON_RUN_VERBS_H
#define COMMON_RUN_VERBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* Of a folder below runs.folder that a submission may name, to become its code. */
#define SNAPSHOT_PREFIX ".snapshot-"

/* How an lbd answers that does not have the verb, being older than who asks; its name follows. */
#define VERB_UNKNOWN "no such verb: "

enum { CONTROL_VERSION = 1, CONTROL_MAX_BYTES = 1024 * 1024 };

/* Strongest last. OWNER is the user lbd runs as (and root); MEMBER is in [team] group, and
 * SUBMITTER where the owner says so ([team] may_submit): who submits chooses what runs with the
 * owner's rights. */
enum role { ROLE_NONE, ROLE_MEMBER, ROLE_SUBMITTER, ROLE_OWNER, ROLE_COUNT };

/*      id        name        least role    what it does */
#define VERBS(X) \
	X(VERSION, "version", ROLE_MEMBER, "version, process id and folder of lbd") \
	X(SUBMIT, "submit", ROLE_SUBMITTER, "start a new run") \
	X(LS, "ls", ROLE_MEMBER, "list runs, newest first") \
	X(TOP, "top", ROLE_MEMBER, "all runs as a live view wants them: how each goes just now") \
	X(STATUS, "status", ROLE_MEMBER, "one run with its attempts and launches") \
	X(WHY, "why", ROLE_MEMBER, "why a run does not run, and what would start it sooner") \
	X(PROGRESS, "progress", ROLE_MEMBER, "steps that arrived since a cursor") \
	X(EVENTS, "events", ROLE_MEMBER, "what happened to a run, who did it, and why") \
	X(LOGS, "logs", ROLE_MEMBER, "where the output of a run lies") \
	X(KILL, "kill", ROLE_MEMBER, "end runs for good") \
	X(STOP, "stop", ROLE_MEMBER, "end runs with a checkpoint") \
	X(HOLD, "hold", ROLE_MEMBER, "end the attempt with a checkpoint; start no other") \
	X(RELEASE, "release", ROLE_MEMBER, "let a held run go on") \
	X(RESTART, "restart", ROLE_SUBMITTER, "start a finished or held run again") \
	X(RM, "rm", ROLE_SUBMITTER, "remove a run that is over, for good") \
	X(NODES, "nodes", ROLE_MEMBER, "what is known of the nodes") \
	X(FORGIVE, "forgive", ROLE_MEMBER, "trust nodes again") \
	X(SAVE, "save", ROLE_MEMBER, "ask a running trainer for a checkpoint") \
	X(STACKS, "stacks", ROLE_MEMBER, "write down where its processes are") \
	X(GOODPUT, "goodput", ROLE_MEMBER, "where the time of a run went") \
	X(COMPARE, "compare", ROLE_MEMBER, "the runs of a group side by side") \
	X(CRON, "cron", ROLE_MEMBER, "list the periodic jobs: last result, next time") \
	X(CRON_RUN, "cron_run", ROLE_OWNER, "start a periodic job now") \
	X(CRON_SET, "cron_set", ROLE_OWNER, "disable a periodic job, or enable it again") \
	X(NOTIFY_TEST, "notify_test", ROLE_OWNER, "tell a test by the ways of [notify]") \
	X(POKE, "poke", ROLE_MEMBER, "look at a run's spool now (lbrun's hint)")

enum verb {
#define X(id, name, role, help) VERB_##id,
	VERBS(X)
#undef X
		VERB_COUNT
};

struct verb_info {
	const char *name;
	enum role least;
	const char *help;
};
extern const struct verb_info verb_info[VERB_COUNT];

/* For people: "team member"; who may submit is "owner" to those who may not. */
const char *role_name(enum role role);

/* One line of the socket, {"v":1,"verb":NAME,"args":{…}}: the arguments (an object, owned; an empty
 * one where there are none) and *verb. NULL with ERR_USAGE. */
json_t *verb_request_parse(const char *line, size_t len, enum verb *verb, struct err *err);

#endif
