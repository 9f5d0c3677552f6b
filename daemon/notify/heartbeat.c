/* SPDX-License-Identifier: MIT */
/* heartbeat.c - touches the file and asks the address as long as polls succeed. */
#include "daemon/notify/heartbeat.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "daemon/notify/webhook.h"

struct heartbeat {
	struct lbd *lbd;
	uv_timer_t timer;
	int64_t told_poll_ms; /* begin of the poll behind the last sign */
	struct webhook *web;  /* under way; NULL = none */
	bool closing, is_timer_open;
	bool file_failed, web_failed; /* said once, until it works again */
};

static void say(bool *has_failed, const char *way, const char *problem)
{
	if (problem[0] && !*has_failed)
		log_warn("notify: the %s cannot be reached: %s", way, problem);
	if (!problem[0] && *has_failed)
		log_info("notify: the %s can be reached again", way);
	*has_failed = problem[0] != '\0';
}

static void write_file(struct heartbeat *d)
{
	char text[CLOCK_TEXT_MAX + 1], time[CLOCK_TEXT_MAX];
	struct err err = { 0 };
	int len = snprintf(text, sizeof(text), "%s\n", clock_text_zoned(clock_wall_ms(), time));

	file_write_visible(d->lbd->config.heartbeat_file, text, (size_t)len, 0644, &err);
	say(&d->file_failed, "dead-man file", err.text);
}

static void free_if_closed(struct heartbeat *d)
{
	if (d->closing && !d->is_timer_open && d->web == NULL)
		free(d);
}

static void on_asked(void *arg, const char *problem)
{
	struct heartbeat *d = arg;

	d->web = NULL;
	if (!d->closing)
		say(&d->web_failed, "dead-man address", problem);
	free_if_closed(d);
}

/* Once for each time that the scheduler has answered since. */
static void on_timer(uv_timer_t *timer)
{
	struct heartbeat *d = timer->data;
	struct engine_health health;

	engine_health(d->lbd->engine, &health);
	if (health.good_poll_ms == 0 || health.good_poll_ms == d->told_poll_ms)
		return;
	d->told_poll_ms = health.good_poll_ms;
	if (d->lbd->config.heartbeat_file)
		write_file(d);
	if (d->lbd->config.heartbeat_url && d->web == NULL)
		d->web = webhook_post(d->lbd->loop, d->lbd->config.heartbeat_url, NULL, on_asked,
				      d);
}

struct heartbeat *heartbeat_open(struct lbd *lbd)
{
	uint64_t interval_ms = (uint64_t)lbd->config.heartbeat_interval_ms;
	struct heartbeat *d;

	if (lbd->config.heartbeat_file == NULL && lbd->config.heartbeat_url == NULL)
		return NULL;
	d = xcalloc(1, sizeof(*d));
	d->lbd = lbd;
	d->is_timer_open = true;
	uv_timer_init(lbd->loop, &d->timer);
	d->timer.data = d;
	uv_timer_start(&d->timer, on_timer, 0, interval_ms);
	return d;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct heartbeat *d = handle->data;

	d->is_timer_open = false;
	free_if_closed(d);
}

void heartbeat_close(struct heartbeat *d)
{
	if (d == NULL)
		return;
	d->closing = true;
	if (d->web)
		webhook_abort(d->web);
	uv_close((uv_handle_t *)&d->timer, on_timer_closed);
}
