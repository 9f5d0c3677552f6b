/* SPDX-License-Identifier: MIT */
/* attempt.c - writes and reads the files in an attempt's folder.
 *
 * lbd and lbrun may be of different releases (an upgrade never touches running jobs) and on
 * different hosts: what they tell each other goes through these files, whole or not at all. */
#include "common/run/attempt.h"

#include <stdlib.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/run/attempt_file.h"
#include "common/run/attempt_folders.h"

/* --- claim ----------------------------------------------------------------------------------- */

int attempt_claim_take(const char *folder, const struct attempt_claim *claim, struct err *err)
{
	json_t *o = attempt_file_new(claim->token);

	js_set_str(o, "job_id", claim->job_id);
	js_set_int(o, "restart_count", claim->restart_count);
	js_set_str(o, "host", claim->host);
	js_set_str(o, "boot_id", claim->boot_id);
	js_set_int(o, "pid", claim->pid);
	js_set_int(o, "time_ms", claim->time_ms);
	return attempt_file_write(o, folder, "claim", file_write_once, err);
}

static int fill_claim(const json_t *o, void *out, struct err *err)
{
	struct attempt_claim *c = out;

	c->restart_count = js_int(o, "restart_count", 0);
	c->pid = js_int(o, "pid", 0);
	c->time_ms = js_int(o, "time_ms", 0);
	if (attempt_file_token(o, c->token, err) < 0 ||
	    attempt_file_text(o, "job_id", c->job_id, sizeof(c->job_id), err) < 0 ||
	    attempt_file_text(o, "host", c->host, sizeof(c->host), err) < 0 ||
	    attempt_file_text(o, "boot_id", c->boot_id, sizeof(c->boot_id), err) < 0)
		return -1;
	return 0;
}

int attempt_claim_read(const char *folder, struct attempt_claim *out, struct err *err)
{
	*out = (struct attempt_claim){ 0 };
	return attempt_file_read(folder, "claim", fill_claim, out, err);
}

/* --- exit.json ------------------------------------------------------------------------------- */

int attempt_exit_write(const char *folder, const struct attempt_exit *e, struct err *err)
{
	json_t *o = attempt_file_new(e->token);

	js_set_str(o, "cause", cause_name(e->cause));
	js_set_int(o, "exit_code", e->exit_code < 0 ? JS_NONE : e->exit_code);
	js_set_bool(o, "final", e->is_final);
	js_set_bool(o, "node", e->is_node);
	js_set_bool(o, "left_ranks", e->left_ranks);
	js_set_bool(o, "unclear", e->is_unclear);
	js_set_int(o, "signal", e->signal == 0 ? JS_NONE : e->signal);
	js_set_str(o, "switched", e->switched == ORDER_RUN ? NULL : run_order_name(e->switched));
	js_set_int(o, "launches", e->launches);
	js_set_int(o, "last_seq", e->last_seq);
	js_set_int(o, "time_ms", e->time_ms);
	js_set_str(o, "text", e->text);
	return attempt_file_write(o, folder, "exit.json", file_write_atomic, err);
}

static int fill_exit(const json_t *o, void *out, struct err *err)
{
	struct attempt_exit *e = out;

	e->exit_code = (int)js_int(o, "exit_code", -1);
	e->is_final = js_bool(o, "final", false);
	e->is_node = js_bool(o, "node", false);
	e->left_ranks = js_bool(o, "left_ranks", false);
	e->is_unclear = js_bool(o, "unclear", false);
	e->signal = (int)js_int(o, "signal", 0);
	e->switched = run_order_from_name(js_str(o, "switched", run_order_name(ORDER_RUN)));
	e->launches = js_int(o, "launches", 0);
	e->last_seq = js_int(o, "last_seq", 0);
	e->time_ms = js_int(o, "time_ms", 0);
	e->cause = cause_from_name(js_str(o, "cause", ""));
	if (e->cause == CAUSE_COUNT || e->cause == CAUSE_NONE)
		return err_set(err, ERR_USAGE, "\"cause\" is unknown");
	if (attempt_file_token(o, e->token, err) < 0 ||
	    attempt_file_text(o, "text", e->text, sizeof(e->text), err) < 0)
		return -1;
	return 0;
}

int attempt_exit_read(const char *folder, struct attempt_exit *out, struct err *err)
{
	*out = (struct attempt_exit){ .exit_code = -1 };
	return attempt_file_read(folder, "exit.json", fill_exit, out, err);
}

/* --- unheard/NODE ---------------------------------------------------------------------------- */

int attempt_unheard_write(const char *folder, const char *node, const struct attempt_unheard *u,
			  struct err *err)
{
	char *notes = path_join("%s/unheard", folder);
	int rc = folder_make(notes, 0750, err);

	if (rc == 0) {
		json_t *o = attempt_file_new(u->token);

		js_set_int(o, "launch", u->launch);
		js_set_int(o, "nodes", u->nodes);
		js_set_int(o, "silent_ms", u->silent_ms);
		rc = attempt_file_write(o, notes, node, file_write_visible, err);
	}
	free(notes);
	return rc;
}

static int fill_unheard(const json_t *o, void *out, struct err *err)
{
	struct attempt_unheard *u = out;

	u->launch = js_int(o, "launch", 0);
	u->nodes = js_int(o, "nodes", 0);
	u->silent_ms = js_int(o, "silent_ms", 0);
	return attempt_file_token(o, u->token, err);
}

int attempt_unheard_read(const char *folder, const char *node, struct attempt_unheard *out,
			 struct err *err)
{
	char *name = path_join("unheard/%s", node);
	int rc;

	*out = (struct attempt_unheard){ 0 };
	rc = attempt_file_read(folder, name, fill_unheard, out, err);
	free(name);
	return rc;
}

/* --- fencing --------------------------------------------------------------------------------- */

int64_t attempt_newest_claim(const char *run_dir)
{
	size_t count;
	int64_t newest = 0, *numbers = attempt_folders(run_dir, &count);

	for (size_t i = count; i-- > 0 && newest == 0;) {
		char *folder = path_join("%s/attempts/%lld", run_dir, (long long)numbers[i]);

		folder_look_anew(folder);
		if (folder_holds(folder, "claim"))
			newest = numbers[i];
		free(folder);
	}
	free(numbers);
	return newest;
}
