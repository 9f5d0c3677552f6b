/* SPDX-License-Identifier: MIT */
/* daemon/ - lbd. Here the rooms are tied together: verbs to handlers, parts to one another.
 *
 * handlers.h - what lbd does for each verb: one row, one function. */
#ifndef DAEMON_HANDLERS_H
#define DAEMON_HANDLERS_H

struct request;

/* Answers the request, now or later. The peer's role has been checked. */
void handle(struct request *request);

#endif
