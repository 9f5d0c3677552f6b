/* SPDX-License-Identifier: MIT */
/* exporter.c - writes the export when something has changed, and a sign of life each minute. */
#include "daemon/notify/exporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/team/team.h"
#include "daemon/notify/team_goodput.h"

enum {
	LEAST_MS = 1000,
	/* writing takes one part in so many of the time, at most; but one look that took long (a
	 * slow disk, a process that was stopped in it) must not silence the next minutes */
	SHARE = 100,
	MOST_MS = TEAM_REFRESH_MS / 6,
	END_BYTES = 64, /* for what follows the runs */
};

struct exporter {
	struct lbd *lbd;
	struct team_goodput *goodput;
	bool is_behind; /* there was no time to count the goodput of some */
	char user[TEAM_USER_BYTES + 1];
	char *switches;
	uv_timer_t timer;
	int64_t written_ms;           /* monotonic; 0 = never */
	int64_t changes;              /* of the ledger, when it was last written */
	char trouble[ERR_TEXT_BYTES]; /* what was told last; "" = all is well */
};

/* --- the text --------------------------------------------------------------------------------- */

static json_t *view(const struct ledger_run *run)
{
	json_t *o = json_object();

	js_set_str(o, "name", run->name);
	js_set_str(o, "state", run_state_name(run->state));
	js_set_str(o, "owner", run->owner);
	js_set_str(o, "group", run->run_group[0] ? run->run_group : NULL);
	js_set_str(o, "cause", run->cause == CAUSE_NONE ? NULL : cause_name(run->cause));
	js_set_str(o, "wanted", run_order_name(run->wanted));
	js_set_int(o, "step", run->step < 0 ? JS_NONE : run->step);
	js_set_int(o, "target_step", run->target_step < 0 ? JS_NONE : run->target_step);
	js_set_real(o, "loss", run->loss);
	js_set_real(o, "tokens_per_s", run->tokens_per_s);
	js_set_real(o, "mfu", run->mfu);
	js_set_time(o, "created", run->created_ms);
	js_set_time(o, "ended", run->ended_ms);
	return o;
}

struct listing {
	struct buf buf;
	struct team_goodput *goodput;
	int64_t now_ms;
	bool live; /* this pass is for live runs, the other for ended ones */
	int count;
	int64_t left_out;
};

static int add_run(const struct ledger_run *run, void *arg)
{
	struct listing *l = arg;
	json_t *object, *goodput;
	char *text;

	if (run_state_is_final(run->state) == l->live)
		return 0;
	object = view(run);
	/* where there are very many, it is more important that all are listed */
	goodput = l->buf.len < l->buf.max / 2 ? team_goodput_of(l->goodput, run, l->now_ms) : NULL;
	if (goodput)
		json_object_set(object, "goodput", goodput);
	text = js_line(object);
	json_decref(object);
	if (l->count >= TEAM_RUNS_MAX || l->buf.len + strlen(text) + END_BYTES > l->buf.max) {
		l->left_out++;
	} else {
		buf_addf(&l->buf, "%s%s", l->count > 0 ? ",\n" : "\n", text);
		l->count++;
	}
	free(text);
	return 0;
}

/* Live runs first: they are what is stopped. Owned by the caller; NULL with err. */
static char *make_text(struct exporter *e, int64_t now_ms, struct err *err)
{
	struct listing l = { .live = true, .goodput = e->goodput, .now_ms = now_ms };
	json_t *head = json_object();
	char *text;
	int rc;

	js_set_int(head, "format", TEAM_FORMAT);
	js_set_str(head, "user", e->user);
	js_set_str(head, "switches", e->switches);
	js_set_time(head, "written", now_ms);
	text = js_line(head);
	json_decref(head);
	buf_init(&l.buf, TEAM_EXPORT_BYTES);
	buf_addf(&l.buf, "%.*s,\"runs\":[", (int)strlen(text) - 1, text);
	free(text);
	team_goodput_begin(e->goodput);
	rc = ledger_run_each(e->lbd->ledger, true, add_run, &l, err);
	l.live = false;
	if (rc == 0)
		rc = ledger_run_each_since(e->lbd->ledger, now_ms - TEAM_RECENT_MS, add_run, &l,
					   err);
	e->is_behind = !team_goodput_end(e->goodput);
	buf_addf(&l.buf, "],\n\"left_out\":%lld}\n", (long long)l.left_out);
	if (rc == 0)
		return buf_take(&l.buf);
	buf_fini(&l.buf);
	return NULL;
}

/* --- writing it ------------------------------------------------------------------------------- */

static int write_export(struct exporter *e, struct err *err)
{
	const struct config *config = &e->lbd->config;
	int folder = team_open(config->team_folder, config->team_group, err), rc = -1;
	char *text = folder < 0 ? NULL : make_text(e, clock_wall_ms(), err);

	if (text)
		rc = team_write(folder, config->team_folder, e->user, text, strlen(text), err);
	free(text);
	if (folder >= 0)
		close(folder);
	return rc;
}

static void tell(struct exporter *e, const char *trouble)
{
	struct ledger_event event = {
		.time_ms = clock_wall_ms(),
		.kind = "team_refused",
		.actor = "lbd",
		.text = trouble,
	};

	if (strcmp(trouble, e->trouble) == 0)
		return;
	snprintf(e->trouble, sizeof(e->trouble), "%s", trouble);
	if (trouble[0] == '\0')
		return;
	log_warn("the team is not told of these runs: %s", trouble);
	if (ledger_event_put(e->lbd->ledger, &event, NULL) == 0)
		ledger_commit(e->lbd->ledger, NULL);
}

static int64_t pause_ms(int64_t took_ms)
{
	int64_t ms = took_ms * SHARE;

	return ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : ms;
}

static void on_timer(uv_timer_t *timer)
{
	struct exporter *e = timer->data;
	int64_t begin_ms = clock_mono_ms(), changes = ledger_changes(e->lbd->ledger);
	struct err err = { 0 };

	if (changes != e->changes || begin_ms - e->written_ms >= TEAM_REFRESH_MS || e->is_behind ||
	    e->written_ms == 0) {
		write_export(e, &err);
		tell(e, err.text);
		e->written_ms = begin_ms;
		e->changes = changes;
	}
	uv_timer_start(timer, on_timer, (uint64_t)pause_ms(clock_mono_ms() - begin_ms), 0);
}

/* --- life ------------------------------------------------------------------------------------- */

static void name_user(char *out, size_t size)
{
	struct account me;

	team_user_of(account_of(geteuid(), &me) ? me.name : NULL, geteuid(), out, size);
	account_clear(&me);
}

/* lbctl reads no lbd.toml: a link in our folder tells it, with lbd dead, too. */
static void make_link(const struct config *config)
{
	char *path = path_join("%s/team", config->home),
	     *fresh = path_join("%s/.team.new", config->home);

	struct stat st;

	unlink(fresh);
	if (config->team_folder == NULL && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		unlink(path);
	else if (config->team_folder == NULL)
		log_debug("the team is not told of these runs");
	else if (symlink(config->team_folder, fresh) < 0 || rename(fresh, path) < 0)
		log_warn("%s: cannot make it", path);
	free(fresh);
	free(path);
}

struct exporter *exporter_open(struct lbd *lbd)
{
	struct exporter *e;

	make_link(&lbd->config);
	if (lbd->config.team_folder == NULL)
		return NULL;
	e = xcalloc(1, sizeof(*e));
	e->lbd = lbd;
	e->switches = path_join("%s/switches", lbd->config.home);
	e->goodput = team_goodput_open(lbd);
	name_user(e->user, sizeof(e->user));
	uv_timer_init(lbd->loop, &e->timer);
	e->timer.data = e;
	uv_timer_start(&e->timer, on_timer, 0, 0);
	return e;
}

static void on_closed(uv_handle_t *handle)
{
	struct exporter *e = handle->data;

	team_goodput_close(e->goodput);
	free(e->switches);
	free(e);
}

/* What it tells last is how things stood: jobs run on, and switches still count. */
void exporter_close(struct exporter *exporter)
{
	struct err err = { 0 };

	if (exporter == NULL)
		return;
	if (ledger_changes(exporter->lbd->ledger) != exporter->changes &&
	    write_export(exporter, &err) < 0)
		log_warn("%s", err.text);
	uv_close((uv_handle_t *)&exporter->timer, on_closed);
}
