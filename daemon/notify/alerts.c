/* SPDX-License-Identifier: MIT */
/* alerts.c - takes event after event to the hook and the web address, and notes how far it came. */
#include "daemon/notify/alerts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "daemon/base/event_kinds.h"
#include "daemon/notify/webhook.h"

enum {
	LOOK_MS = 1000,
	BATCH = 200,
	MAX_TRIES = 5, /* with pauses of 1, 2, 4 and 8 s */
	HOOK_DEADLINE_MS = 30 * 1000,
	REPEAT_MS = 10 * 60 * 1000, /* the same news of a run is told once in this time */
	REMEMBERED = 64,
	SAID_BYTES = 1000,
};

static const char cursor_key[] = "alerted_event";

enum stage { STAGE_HOOK, STAGE_WEB, STAGE_COUNT };

struct alerts {
	struct lbd *lbd;
	uv_timer_t timer;    /* the next look, or the next try */
	uv_timer_t deadline; /* of the hook */
	uv_process_t process;
	uv_pipe_t input;
	uv_write_t write;
	int open_hooks; /* handles of the hook that is under way */
	int said_fd;    /* what it complains of; -1: there is no place for it */
	int64_t exit_status;
	struct webhook *web; /* under way; NULL = none */
	bool closing;
	int open_timers;

	int64_t cursor; /* id of the last event that was told or passed over */
	int64_t run_id;
	char *text; /* what is being told; NULL = nothing */
	enum stage stage;
	int tries;
	bool is_test, has_failed; /* what is being told; one of its ways did */
	struct {
		uint64_t hash;
		int64_t told_ms;
	} told[REMEMBERED];
	size_t told_next;
};

static void next_stage(struct alerts *a);

/* --- what is told ----------------------------------------------------------------------------- */

static bool is_wanted(const struct config *config, const char *kind)
{
	char **kinds = config->notify_on.items;

	if (kinds == NULL || strcmp(kind, KIND_TEST) == 0)
		return event_is_usual(kind);
	while (*kinds && strcmp(*kinds, kind) != 0)
		kinds++;
	return *kinds != NULL;
}

static uint64_t hash_of(int64_t run_id, const char *kind, const char *text)
{
	return fnv_add_text(fnv_add_text(fnv_add(FNV_START, (uint64_t)run_id), kind), text);
}

static bool is_repetition(struct alerts *a, uint64_t hash)
{
	int64_t now_ms = clock_mono_ms();

	for (size_t i = 0; i < REMEMBERED; i++)
		if (a->told[i].hash == hash && now_ms < a->told[i].told_ms + REPEAT_MS)
			return true;
	a->told[a->told_next].hash = hash;
	a->told[a->told_next].told_ms = now_ms;
	a->told_next = (a->told_next + 1) % REMEMBERED;
	return false;
}

struct finding {
	struct alerts *alerts;
	json_t *event; /* of the first one that is wanted */
	int64_t seen, attempt;
};

static int see_event(const struct ledger_event *e, void *arg)
{
	struct finding *f = arg;

	f->seen = e->id;
	if (!is_wanted(&f->alerts->lbd->config, e->kind) ||
	    (strcmp(e->kind, KIND_TEST) != 0 &&
	     is_repetition(f->alerts, hash_of(e->run_id, e->kind, e->text))))
		return 0;
	f->alerts->run_id = e->run_id;
	f->alerts->is_test = strcmp(e->kind, KIND_TEST) == 0;
	f->alerts->has_failed = false;
	f->attempt = e->attempt;
	f->event = json_object();
	js_set_int(f->event, "id", e->id);
	js_set_time(f->event, "time", e->time_ms);
	js_set_str(f->event, "kind", e->kind);
	js_set_str(f->event, "actor", e->actor);
	js_set_str(f->event, "what", e->text);
	js_set_int(f->event, "attempt", e->attempt ? e->attempt : JS_NONE);
	js_set_str(f->event, "next", event_next(e->kind));
	return 1;
}

/* What concerns no run says so by itself. */
static void set_text(json_t *event, const char *run)
{
	char text[1000];

	snprintf(text, sizeof(text), "%s%s%s: %s", run ? run : "", run ? ": " : "",
		 js_str(event, "kind", ""), js_str(event, "what", ""));
	js_set_str(event, "text", text);
}

static int add_run(const struct ledger_run *run, void *arg)
{
	struct finding *f = arg;

	if (run->id != f->alerts->run_id)
		return 0;
	js_set_str(f->event, "run", run->name);
	js_set_str(f->event, "owner", run->owner);
	js_set_str(f->event, "state", run_state_name(run->state));
	js_set_str(f->event, "cause", run->cause == CAUSE_NONE ? NULL : cause_name(run->cause));
	js_set_int(f->event, "step", run->step < 0 ? JS_NONE : run->step);
	js_set_real(f->event, "loss", run->loss);
	set_text(f->event, run->name);
	return 1;
}

/* Of the attempt that the event is about; later ones may have begun since. */
static int add_attempt(const struct ledger_attempt *attempt, void *arg)
{
	struct finding *f = arg;

	if (attempt->number != f->attempt)
		return 0;
	js_set_str(f->event, "node", attempt->nodes[0] ? attempt->nodes : NULL);
	js_set_int(f->event, "job", attempt->job_id ? attempt->job_id : JS_NONE);
	if (attempt->cause != CAUSE_NONE)
		js_set_str(f->event, "cause", cause_name(attempt->cause));
	return 1;
}

/* The text of the next event that is wanted, NULL when there is none. Moves the cursor. */
static char *find_next(struct alerts *a)
{
	struct ledger *ledger = a->lbd->ledger;
	struct finding f = { .alerts = a, .seen = a->cursor };
	char *text;

	ledger_event_each(ledger, 0, a->cursor, BATCH, see_event, &f, NULL);
	a->cursor = f.seen;
	if (f.event == NULL)
		return NULL;
	set_text(f.event, NULL);
	ledger_run_each(ledger, false, add_run, &f, NULL);
	js_set_str(f.event, "node", NULL);
	ledger_attempt_each(ledger, a->run_id, add_attempt, &f, NULL);
	text = js_line(f.event);
	json_decref(f.event);
	return text;
}

/* --- success and failure ---------------------------------------------------------------------- */

static void keep_cursor(struct alerts *a)
{
	struct err err = { 0 };

	failpoint(FP_ALERT_TOLD, NULL);
	if (ledger_meta_put(a->lbd->ledger, cursor_key, a->cursor, &err) < 0 ||
	    ledger_commit(a->lbd->ledger, &err) < 0)
		log_warn("notify: how far people were told cannot be kept: %s", err.text);
	failpoint(FP_ALERT_COMMITTED, NULL);
}

static void give_up(struct alerts *a, const char *problem)
{
	char text[560];
	struct ledger_event e = {
		.run_id = a->run_id,
		.time_ms = clock_wall_ms(),
		.kind = "notify_failed",
		.actor = "lbd",
		.text = text,
	};

	a->has_failed = true;
	snprintf(text, sizeof(text), "the %s could not be told: %s",
		 a->stage == STAGE_HOOK ? "hook" : "webhook", problem);
	log_warn("notify: %s", text);
	ledger_event_put(a->lbd->ledger, &e, NULL);
}

static void put_told(struct alerts *a)
{
	const struct config *config = &a->lbd->config;
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = KIND_TOLD,
		.actor = "lbd",
		.text = !config->notify_webhook          ? "the hook was told"
			: config->notify_hook.count == 0 ? "the webhook was told"
							 : "the hook and the webhook were told",
	};

	ledger_event_put(a->lbd->ledger, &e, NULL);
}

static void on_timer(uv_timer_t *timer);

/* One way is through with this event, well or not. */
static void on_told(struct alerts *a, const char *problem)
{
	if (a->closing)
		return;
	if (problem[0] && ++a->tries < MAX_TRIES) {
		uv_timer_start(&a->timer, on_timer, (uint64_t)LOOK_MS << (a->tries - 1), 0);
		return;
	}
	if (problem[0])
		give_up(a, problem);
	a->tries = 0;
	a->stage++;
	next_stage(a);
}

/* Nothing of the loop points here any more. */
static void free_if_closed(struct alerts *a)
{
	if (a->closing && a->open_timers == 0 && a->open_hooks == 0 && a->web == NULL) {
		free(a->text);
		free(a);
	}
}

/* --- the hook --------------------------------------------------------------------------------- */

/* The beginning of them: a hook may say megabytes, of each event, and the log has no end. */
static void log_complaints(struct alerts *a)
{
	char text[SAID_BYTES + 1], *save = NULL;
	ssize_t len = pread(a->said_fd, text, SAID_BYTES, 0);

	text[len > 0 ? len : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_warn("notify: the hook says: %s", line);
	close(a->said_fd);
}

static void on_hook_closed(uv_handle_t *handle)
{
	struct alerts *a = handle->data;
	char problem[64] = "";

	if (--a->open_hooks > 0)
		return;
	log_complaints(a);
	if (a->exit_status != 0)
		snprintf(problem, sizeof(problem), "it ended with status %lld",
			 (long long)a->exit_status);
	on_told(a, problem);
	free_if_closed(a);
}

static void close_hook(struct alerts *a)
{
	if (!a->closing)
		uv_timer_stop(&a->deadline);
	uv_close((uv_handle_t *)&a->process, on_hook_closed);
	if (!uv_is_closing((uv_handle_t *)&a->input))
		uv_close((uv_handle_t *)&a->input, on_hook_closed);
}

static void on_hook_exit(uv_process_t *process, int64_t status, int signo)
{
	struct alerts *a = process->data;

	a->exit_status = signo ? 128 + signo : status;
	close_hook(a);
}

/* With what it has started: the curl of a script hangs, not the shell that waits for it. */
static void kill_hook(struct alerts *a)
{
	kill(-a->process.pid, SIGKILL);
}

static void on_deadline(uv_timer_t *timer)
{
	kill_hook(timer->data);
}

/* The pipe is closed behind the text, so that a hook which reads to the end gets there. */
static void on_written(uv_write_t *write, int status)
{
	struct alerts *a = write->data;

	(void)status; /* a hook that does not read is fine: its exit status counts */
	if (!uv_is_closing((uv_handle_t *)&a->input))
		uv_close((uv_handle_t *)&a->input, on_hook_closed);
}

static void tell_hook(struct alerts *a)
{
	char **argv = a->lbd->config.notify_hook.items;
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		  .data.stream = (uv_stream_t *)&a->input },
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
	};
	uv_process_options_t options = {
		.file = argv[0],
		.args = argv,
		.exit_cb = on_hook_exit,
		.stdio = stdio,
		.stdio_count = 3,
		.flags = UV_PROCESS_DETACHED, /* a group of its own */
		.cwd = a->lbd->config.home,
	};
	uv_buf_t text = uv_buf_init(a->text, (unsigned)strlen(a->text));
	struct err err = { 0 };
	int rc;

	if (config_check_hook(&a->lbd->config, &err) < 0) {
		on_told(a, err.text);
		return;
	}
	uv_pipe_init(a->lbd->loop, &a->input, 0);
	a->process.data = a->input.data = a->write.data = a;
	a->open_hooks = 2;
	a->said_fd = file_in_memory("complaints");
	if (a->said_fd >= 0)
		stdio[2] = (uv_stdio_container_t){ UV_INHERIT_FD, { .fd = a->said_fd } };
	rc = uv_spawn(a->lbd->loop, &a->process, &options);
	if (rc < 0) {
		log_warn("notify: hook %s: %s", argv[0], uv_strerror(rc));
		a->exit_status = 127;
		close_hook(a);
		return;
	}
	uv_timer_start(&a->deadline, on_deadline, HOOK_DEADLINE_MS, 0);
	uv_write(&a->write, (uv_stream_t *)&a->input, &text, 1, on_written);
}

/* --- the web address -------------------------------------------------------------------------- */

static void on_posted(void *arg, const char *problem)
{
	struct alerts *a = arg;

	a->web = NULL;
	on_told(a, problem);
	free_if_closed(a);
}

/* --- one after the other ---------------------------------------------------------------------- */

static void next_stage(struct alerts *a)
{
	const struct config *config = &a->lbd->config;

	if (a->stage == STAGE_HOOK && config->notify_hook.count == 0)
		a->stage = STAGE_WEB;
	if (a->stage == STAGE_WEB && config->notify_webhook == NULL)
		a->stage = STAGE_COUNT;
	if (a->stage == STAGE_COUNT) {
		free(a->text);
		a->text = NULL;
		if (a->is_test && !a->has_failed)
			put_told(a);
		keep_cursor(a);
		uv_timer_start(&a->timer, on_timer, 0, 0);
		return;
	}
	if (a->stage == STAGE_HOOK)
		tell_hook(a);
	else
		a->web = webhook_post(a->lbd->loop, config->notify_webhook, a->text, on_posted, a);
}

static void on_timer(uv_timer_t *timer)
{
	struct alerts *a = timer->data;
	int64_t before = a->cursor;

	if (a->text) { /* another try */
		next_stage(a);
		return;
	}
	a->text = find_next(a);
	if (a->text) {
		a->stage = STAGE_HOOK;
		next_stage(a);
		return;
	}
	uv_timer_start(timer, on_timer, a->cursor - before >= BATCH ? 1 : LOOK_MS, 0);
}

struct alerts *alerts_open(struct lbd *lbd, struct err *err)
{
	const struct config *config = &lbd->config;
	struct alerts *a;
	int64_t last;

	if (config->notify_hook.count == 0 && config->notify_webhook == NULL)
		return NULL;
	a = xcalloc(1, sizeof(*a));
	a->lbd = lbd;
	if (ledger_event_last(lbd->ledger, &last, err) < 0 ||
	    ledger_meta_get(lbd->ledger, cursor_key, last, &a->cursor, err) < 0) {
		free(a);
		return NULL;
	}
	keep_cursor(a);
	uv_timer_init(lbd->loop, &a->timer);
	uv_timer_init(lbd->loop, &a->deadline);
	a->timer.data = a->deadline.data = a;
	a->open_timers = 2;
	uv_timer_start(&a->timer, on_timer, 0, 0);
	return a;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct alerts *a = handle->data;

	a->open_timers--;
	free_if_closed(a);
}

void alerts_close(struct alerts *a)
{
	if (a == NULL)
		return;
	a->closing = true;
	if (a->web)
		webhook_abort(a->web);
	if (uv_is_active((uv_handle_t *)&a->process))
		kill_hook(a);
	uv_close((uv_handle_t *)&a->timer, on_timer_closed);
	uv_close((uv_handle_t *)&a->deadline, on_timer_closed);
}

json_t *alerts_test(struct request *r, struct err *err)
{
	const struct config *config = &r->lbd->config;
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = KIND_TEST,
		.actor = r->peer.user,
		.text = "news of runs come this way",
	};
	int64_t last = 0;

	if (config->notify_hook.count == 0 && config->notify_webhook == NULL) {
		err_set(err, ERR_USAGE,
			"%s/lbd.toml: neither notify.hook nor notify.webhook is given, or "
			"lbd was not started again since",
			config->home);
		return NULL;
	}
	if (ledger_event_last(r->lbd->ledger, &last, err) < 0 ||
	    ledger_event_put(r->lbd->ledger, &e, err) < 0 || ledger_commit(r->lbd->ledger, err) < 0)
		return NULL;
	return json_pack("{s:I}", "after", (json_int_t)last);
}
