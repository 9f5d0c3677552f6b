/* SPDX-License-Identifier: MIT */
/* What trainers say, and lbrun's own records, on their way into the spool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/manifest.h"
#include "common/message.h"
#include "common/paths.h"
#include "common/hosts.h"
#include "worker/lbrun/launcher.h"
#include "worker/lbrun/shepherd.h"
#include "worker/lbrun/space.h"

enum {
	BAD_NOTE_EVERY_MS = 10 * 1000,
	ERROR_NOTE_EVERY_MS = 10 * 1000,
};

/* --- lbrun's own records ---------------------------------------------------------------------- */

static json_t *record(const char *type)
{
	json_t *line = json_object();

	js_set_str(line, "type", type);
	return line;
}

void record_attempt_start(struct shepherd *s)
{
	json_t *line = record("attempt_start");
	const char *nodes = getenv("SLURM_JOB_NODELIST");

	js_set_str(line, "host", s->node);
	json_object_set_new(line, "nodes", hosts_expand(nodes ? nodes : s->node));
	js_set_int(line, "pid", getpid());
	journal_own(&s->journal, 0, line);
}

void record_launch_start(struct shepherd *s)
{
	json_t *line = record("launch_start");
	bool resumed = s->search.found == 1;

	js_set_int(line, "number", s->launch.number);
	js_set_int(line, "pid", s->launch.pid > 0 ? s->launch.pid : JS_NONE);
	js_set_int(line, "resumed_from_step", resumed ? s->search.step : JS_NONE);
	js_set_str(line, "resumed_from", resumed ? s->search.path : NULL);
	journal_own(&s->journal, s->launch.number, line);
}

static void set_ending(json_t *line, const struct ending *end)
{
	js_set_str(line, "cause", cause_name(end->cause));
	js_set_int(line, "exit_code", end->exit_code < 0 ? JS_NONE : end->exit_code);
	js_set_int(line, "signal", end->signal ? end->signal : JS_NONE);
	js_set_str(line, "text", end->text);
}

void record_launch_end(struct shepherd *s, const struct ending *end, bool progress)
{
	json_t *line = record("launch_end");

	js_set_int(line, "number", s->launch.number);
	js_set_bool(line, "progress", progress);
	js_set_str(line, "node", s->launch.node[0] ? s->launch.node : NULL);
	set_ending(line, end);
	journal_own(&s->journal, s->launch.number, line);
}

void record_checkpoint(struct shepherd *s, const char *path, int64_t step, bool is_valid,
		       const char *text)
{
	json_t *line = record("checkpoint_valid");

	js_set_int(line, "step", step < 0 ? JS_NONE : step);
	js_set_str(line, "path", path);
	js_set_bool(line, "valid", is_valid);
	js_set_str(line, "text", text);
	journal_own(&s->journal, s->launch.number, line);
}

void record_attempt_end(struct shepherd *s)
{
	json_t *line = record("attempt_end");

	set_ending(line, &s->ending);
	journal_own(&s->journal, s->launch.number, line);
}

/* --- the trainer's lines ---------------------------------------------------------------------- */

static void answer_error(struct hub_conn *conn, const char *text)
{
	json_t *line = record("error");
	char *answer;

	js_set_str(line, "text", text);
	answer = js_line(line);
	hub_answer(conn, "%s", answer);
	free(answer);
	json_decref(line);
}

/* Something that sends garbage sends a lot of it: a note now and then, with the number. */
static void on_trouble(void *arg, const char *text)
{
	struct shepherd *s = arg;
	int64_t now_ms = clock_mono_ms();

	s->bad_lines++;
	if (now_ms < s->bad_note_ms)
		return;
	s->bad_note_ms = now_ms + BAD_NOTE_EVERY_MS;
	journal_note(&s->journal, s->launch.number, "bad_line", "%s (%lld since the last note)",
		     text, (long long)s->bad_lines);
	s->bad_lines = 0;
}

/* The spool puts an envelope around the line, one level more, and readers have a limit. */
static bool is_deeper(json_t *value, int levels)
{
	const char *key;
	json_t *item;
	size_t i;

	if (!json_is_object(value) && !json_is_array(value))
		return false;
	if (levels == 0)
		return true;
	json_object_foreach(value, key, item)
	{
		if (is_deeper(item, levels - 1))
			return true;
	}
	json_array_foreach(value, i, item)
	{
		if (is_deeper(item, levels - 1))
			return true;
	}
	return false;
}

static json_t *parse(const char *text, size_t len, enum message_type *type, struct err *err)
{
	json_t *line = message_parse(text, len, type, err);

	if (line && is_deeper(line, JS_MAX_DEPTH - 1)) {
		err_set(err, ERR_USAGE, "nested deeper than %d", JS_MAX_DEPTH - 1);
		json_decref(line);
		line = NULL;
	}
	return line;
}

static int verify(const struct shepherd *s, const char *path, struct err *err)
{
	const char *name = strrchr(path, '/');
	char *parent;
	int rc;

	if (!s->foreign)
		return manifest_verify(path, MANIFEST_SIZES, NULL, err);
	parent = path_join("%.*s", (int)(name - path), path);
	rc = foreign_verify(s->foreign, parent, name + 1, false, err);
	free(parent);
	return rc;
}

void lines_check_space(struct shepherd *s, const char *checkpoint)
{
	struct space need = space_used(checkpoint);
	struct space have = space_free(checkpoint);
	char text[120];
	bool is_short = space_is_short(&need, &have, text, sizeof(text));

	if (is_short && !s->is_space_told) {
		journal_note(&s->journal, s->launch.number, "no_space", "%s: %s",
			     s->params.checkpoint_dir, text);
		output_say(&s->output, "the next checkpoint may not fit: %s", text);
	}
	s->is_space_told = is_short;
}

/* Digests are checked before a launch starts from it; sizes say whether it is worth telling. */
static void heed_checkpoint(struct shepherd *s, const json_t *line)
{
	const char *told = js_str(line, "path", "");
	char *path = told[0] == '/' ? path_join("%s", told)
				    : path_join("%s/%s", s->params.workdir, told);
	struct err why = {0};
	bool is_valid = verify(s, path, &why) == 0;

	record_checkpoint(s, path, js_int(line, "step", -1), is_valid, is_valid ? "" : why.text);
	if (is_valid && js_int(line, "step", -1) > s->launch.step_told)
		s->launch.step_told = js_int(line, "step", -1);
	if (is_valid)
		lines_check_space(s, path);
	journal_sync(&s->journal);
	free(path);
}

static void heed_pace(struct shepherd *s, int64_t rank, const json_t *line)
{
	double usual_ms = 0;
	double ms = js_real(line, "step_ms", 0);
	int64_t slow = ranks_step(&s->ranks, rank, ms, &usual_ms);

	if (slow < 0)
		return;
	journal_note(&s->journal, s->launch.number, "slow_rank",
		     "rank %lld takes %.0f ms for a step, the others %.0f ms", (long long)slow,
		     s->ranks.items[slow].mean_ms, usual_ms);
	output_say(&s->output, "rank %lld is slow: %.0f ms for a step, the others %.0f ms",
		   (long long)slow, s->ranks.items[slow].mean_ms, usual_ms);
}

static void heed_step(struct shepherd *s, int64_t rank, const json_t *line)
{
	watch_step(&s->watch, rank, clock_mono_ms());
	heed_pace(s, rank, line);
}

static void heed_life(struct shepherd *s, struct hub_conn *conn, enum message_type type,
		      const json_t *line)
{
	int64_t now_ms = clock_mono_ms();

	if (type == MESSAGE_HELLO)
		conn->rank = js_int(line, "rank", 0);
	if (type == MESSAGE_PHASE)
		watch_phase(&s->watch, conn->rank, js_str(line, "name", ""), now_ms);
	else if (type == MESSAGE_STEP)
		heed_step(s, js_int(line, "rank", conn->rank), line);
	else if (type == MESSAGE_BYE)
		watch_bye(&s->watch, now_ms);
	else
		watch_sign(&s->watch, now_ms);
}

static void heed(struct shepherd *s, struct hub_conn *conn, enum message_type type,
		 const json_t *line)
{
	heed_life(s, conn, type, line);
	if (type == MESSAGE_CHECKPOINT)
		heed_checkpoint(s, line);
	if (type == MESSAGE_BYE)
		s->launch.said_stopped = strcmp(js_str(line, "status", ""), "stopped") == 0;
	if (conn->is_trainer)
		return;
	conn->is_trainer = true;
	/* It came too late to hear what the others were told. */
	if (s->stop.done[STEP_ASK])
		hub_answer(conn, "{\"type\":\"stop\"}");
}

static void on_line(void *arg, struct hub_conn *conn, const char *text, size_t len)
{
	struct shepherd *s = arg;
	enum message_type type = MESSAGE_COUNT;
	struct err why = {0};
	json_t *line = parse(text, len, &type, &why);
	int64_t seq;

	if (!line) {
		answer_error(conn, why.text);
		on_trouble(s, why.text);
		return;
	}
	seq = journal_trainer(&s->journal, s->launch.number, line, &why);
	if (seq < 0)
		answer_error(conn, why.text);
	else
		hub_answer(conn, "{\"type\":\"ack\",\"seq\":%lld}", (long long)seq);
	heed(s, conn, type, line);
	json_decref(line);
}

/* --- what it prints --------------------------------------------------------------------------- */

static void on_printed_step(void *arg, const json_t *line, int64_t rank)
{
	struct shepherd *s = arg;

	/* Who reports by itself would be counted twice. */
	if (hub_has_trainer(&s->hub))
		return;
	journal_trainer(&s->journal, s->launch.number, line, NULL);
	heed_step(s, rank < 0 ? 0 : rank, line);
}

/* The first error line names it, or else the first rank that a signal killed: the others mostly
 * follow because of that one. */
static void suspect(struct shepherd *s, const char *node, bool is_broken)
{
	if (s->launch.node[0] && (s->launch.is_node_broken || !is_broken))
		return;
	snprintf(s->launch.node, sizeof(s->launch.node), "%s", node);
	s->launch.is_node_broken = is_broken;
}

static void on_rank_killed(void *arg, const char *node)
{
	suspect(arg, node, false);
}

static void on_printed_error(void *arg, const char *node, const char *line)
{
	struct shepherd *s = arg;
	int64_t now_ms = clock_mono_ms();

	suspect(s, node[0] ? node : s->node, true);
	if (now_ms < s->error_note_ms)
		return;
	s->error_note_ms = now_ms + ERROR_NOTE_EVERY_MS;
	journal_note(&s->journal, s->launch.number, "node_error", "%s: %.400s",
		     node[0] ? node : s->node, line);
}

static void on_bytes(void *arg, int stream, const char *data, size_t len)
{
	printed_bytes(&((struct shepherd *)arg)->printed, stream, data, len);
}

int lines_read_output(struct shepherd *s, struct err *err)
{
	s->printed.on_step = on_printed_step;
	s->printed.on_error = on_printed_error;
	s->printed.on_rank_killed = launcher_has_ranks(&s->params) ? on_rank_killed : NULL;
	s->printed.arg = s;
	if (printed_init(&s->printed, &s->params.watch, err) < 0)
		return -1;
	s->output.on_bytes = on_bytes;
	s->output.arg = s;
	return 0;
}

void lines_init(struct shepherd *s)
{
	s->hub.on_line = on_line;
	s->hub.on_trouble = on_trouble;
	s->hub.arg = s;
}
