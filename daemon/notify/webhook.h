/* SPDX-License-Identifier: MIT */
/* webhook.h - one POST of a JSON text, or one GET, in a thread of libuv's pool. */
#ifndef DAEMON_NOTIFY_WEBHOOK_H
#define DAEMON_NOTIFY_WEBHOOK_H

#include <uv.h>

struct webhook;

/* `done` is called once, on the loop, with "" or what went wrong: never the URL, which may hold a
 * secret. Strings are copied; without `json` it is a GET. */
struct webhook *webhook_post(uv_loop_t *loop, const char *url, const char *json,
			     void (*done)(void *arg, const char *problem), void *arg);
/* Gives up within a second; `done` is still called. */
void webhook_abort(struct webhook *webhook);

#endif
