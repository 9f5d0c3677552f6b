/* SPDX-License-Identifier: MIT */
/* trainer_protocol.c - what trainers say, on its way into the spool. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/run/message.h"
#include "common/base/paths.h"
#include "worker/lbrun/complaints/srun_words.h"
#include "worker/lbrun/trainer/launcher.h"
#include "worker/lbrun/trainer/requeue.h"
#include "worker/lbrun/shepherd/shepherd.h"

enum {
	BAD_NOTE_EVERY_MS = 10 * 1000,
	ERROR_NOTE_EVERY_MS = 10 * 1000,
	STEPS_PER_S = 100,
	STEPS_AT_ONCE = 1000, /* that are printed, and taken down */
};

/* --- the trainer's lines ---------------------------------------------------------------------- */

static void answer_error(struct trainer_conn *conn, const char *text, bool is_kept)
{
	json_t *line = json_object();
	char *answer;

	js_set_str(line, "type", "error");
	js_set_str(line, "text", text);
	if (is_kept)
		js_set_bool(line, "kept", true);
	answer = js_line(line);
	trainer_server_answer(conn, "%s", answer);
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
	journal_note(&s->journal, s->facts.launch.number, "bad_line",
		     "%s (%lld since the last note)", text, (long long)s->bad_lines);
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
	json_object_foreach(value, key, item) {
		if (is_deeper(item, levels - 1))
			return true;
	}
	json_array_foreach(value, i, item) {
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

static void handle_checkpoint(struct shepherd *s, const json_t *line)
{
	const char *told = js_str(line, "path", "");
	char *path = told[0] == '/' ? path_join("%s", told)
				    : path_join("%s/%s", s->params.workdir, told);

	saves_told(s, path, js_int(line, "step", -1));
	journal_sync(&s->journal);
	free(path);
}

static void handle_pace(struct shepherd *s, int64_t rank, const json_t *line)
{
	double usual_ms = 0;
	double ms = js_real(line, "own_ms", js_real(line, "step_ms", 0));
	int64_t slow = ranks_step(&s->ranks, rank, ms, js_real(line, "data_ms", 0), &usual_ms);
	char text[160];

	if (slow < 0)
		return;
	const struct rank_pace *pace = &s->ranks.items[slow];
	int len = snprintf(text, sizeof(text), "%.0f ms for a step", pace->mean_ms);
	if (pace->mean_data_ms >= 0.5)
		snprintf(text + len, sizeof(text) - (size_t)len, " (%.0f of them for samples)",
			 pace->mean_data_ms);
	journal_note(&s->journal, s->facts.launch.number, "slow_rank",
		     "rank %lld takes %s, the others %.0f ms", (long long)slow, text, usual_ms);
	output_say(&s->output, "rank %lld is slow: %s, the others %.0f ms", (long long)slow, text,
		   usual_ms);
}

static void handle_step(struct shepherd *s, int64_t rank, const json_t *line)
{
	watch_step(&s->watch, rank, clock_mono_ms());
	handle_pace(s, rank, line);
}

/* What was said long before a step did not end the launch. */
static void survive(struct shepherd *s, int64_t now_ms)
{
	complaints_step(&s->complaints, now_ms);
	launch_survives(&s->facts.launch, now_ms);
}

/* What a start takes is told by rank 0, its first step by whoever makes one. */
static void handle_start(struct shepherd *s, const struct trainer_conn *conn,
			 enum message_type type, const json_t *line)
{
	int64_t now_ms = clock_mono_ms();
	const char *name = js_str(line, "name", "");

	starting_sign(&s->starting, now_ms);
	if (type == MESSAGE_STEP)
		record_start(s);
	if (type == MESSAGE_PHASE && conn->rank == 0)
		starting_enter(&s->starting,
			       js_str(line, "what",
				      strcmp(name, "train") == 0 ? STARTING_STEP : name),
			       now_ms);
}

static void handle_life(struct shepherd *s, struct trainer_conn *conn, enum message_type type,
			const json_t *line)
{
	int64_t now_ms = clock_mono_ms();

	if (type == MESSAGE_HELLO)
		conn->rank = js_int(line, "rank", 0);
	if (type == MESSAGE_STEP)
		saves_step(s, js_int(line, "rank", conn->rank), line);
	if ((type == MESSAGE_PHASE || type == MESSAGE_STEP) && conn->rank == 0)
		asking_phase(&s->asking,
			     type == MESSAGE_PHASE &&
				     strcmp(js_str(line, "name", ""), "checkpoint") == 0,
			     now_ms);
	if (type == MESSAGE_PHASE)
		watch_phase(&s->watch, conn->rank, js_str(line, "name", ""), now_ms);
	else if (type == MESSAGE_STEP) {
		handle_step(s, js_int(line, "rank", conn->rank), line);
		survive(s, now_ms);
	} else if (type == MESSAGE_BYE)
		watch_bye(&s->watch, now_ms);
	else
		watch_sign(&s->watch, now_ms);
}

static void handle(struct shepherd *s, struct trainer_conn *conn, enum message_type type,
		   const json_t *line)
{
	handle_life(s, conn, type, line);
	handle_start(s, conn, type, line);
	if (type == MESSAGE_CHECKPOINT)
		handle_checkpoint(s, line);
	if (type == MESSAGE_BYE)
		s->facts.launch.said_stopped = strcmp(js_str(line, "status", ""), "stopped") == 0;
	if (type == MESSAGE_BYE)
		s->facts.launch.said_diverged = strcmp(js_str(line, "status", ""), "diverged") == 0;
	if (conn->is_trainer)
		return;
	conn->is_trainer = true;
	s->facts.launch.reports = true;
	/* It came too late to hear what the others were told. */
	if (s->facts.stop.done[STEP_ASK])
		trainer_server_answer(conn, "{\"type\":\"stop\"}");
}

static void on_line(void *arg, struct trainer_conn *conn, const char *text, size_t len)
{
	struct shepherd *s = arg;
	enum message_type type = MESSAGE_COUNT;
	struct err why = { 0 };
	json_t *line = parse(text, len, &type, &why);
	int64_t seq;

	if (!line) {
		answer_error(conn, why.text, false);
		on_trouble(s, why.text);
		return;
	}
	seq = journal_trainer(&s->journal, s->facts.launch.number, line, &why);
	if (seq <= 0)
		answer_error(conn, why.text, seq == 0);
	else
		trainer_server_answer(conn, "{\"type\":\"ack\",\"seq\":%lld}", (long long)seq);
	handle(s, conn, type, line);
	json_decref(line);
}

/* --- what it prints --------------------------------------------------------------------------- */

/* Nobody asked for these steps: a trainer that prints thousands in a second fills no disk with
 * them. The newest one waits for its turn. */
static bool may_write_step(struct shepherd *s, const json_t *line)
{
	int64_t now_ms = clock_mono_ms();
	int64_t earned = (now_ms - s->step_room_ms) * STEPS_PER_S / 1000;

	if (earned > 0) {
		s->step_room += earned;
		s->step_room_ms = now_ms;
	}
	if (s->step_room > STEPS_AT_ONCE)
		s->step_room = STEPS_AT_ONCE;
	json_decref(s->step_left);
	s->step_left = s->step_room > 0 ? NULL : json_deep_copy(line);
	return s->step_room > 0 && s->step_room-- > 0;
}

void trainer_protocol_write_left_step(struct shepherd *s)
{
	if (s->step_left)
		journal_trainer(&s->journal, s->facts.launch.number, s->step_left, NULL);
	json_decref(s->step_left);
	s->step_left = NULL;
}

static void on_output_step(void *arg, json_t *line, int64_t rank)
{
	struct shepherd *s = arg;

	survive(s, clock_mono_ms());
	saves_step(s, rank, line);
	record_start(s);
	if (s->parser.steps && !may_write_step(s, line))
		return;
	journal_trainer(&s->journal, s->facts.launch.number, line, NULL);
	/* A line that we only took for a step must not end a trainer, where nobody asked for
	 * that. */
	if (!s->parser.steps || s->params.watch.step_ms != WATCH_AUTO)
		handle_step(s, rank < 0 ? 0 : rank, line);
}

/* Who reports by itself would be counted twice. */
static bool on_is_told(void *arg)
{
	const struct shepherd *s = arg;

	return s->facts.launch.reports;
}

/* The first error line names it, or else the first rank that a signal killed: the others mostly
 * follow because of that one. */
static void suspect(struct shepherd *s, const char *node, bool is_broken)
{
	if (s->facts.lost_node[0] || s->facts.cut_off)
		return; /* what follows is of that */
	if (s->facts.launch.node[0] && (s->facts.launch.is_node_broken || !is_broken))
		return;
	snprintf(s->facts.launch.node, sizeof(s->facts.launch.node), "%s", node);
	s->facts.launch.is_node_broken = is_broken;
}

static void on_rank_end(void *arg, const char *node, int64_t rank, int signo, int status, bool oom)
{
	struct shepherd *s = arg;
	struct rank_end end = {
		.exit_code = signo ? -1 : status,
		.signal = signo,
		.rank = rank,
		.oom = oom,
		.is_first_hand = true,
	};

	snprintf(end.node, sizeof(end.node), "%s", node);
	rank_ends_add(&s->complaints.ends, &end, clock_mono_ms());
	if (signo == SIGABRT && rank_ends_follows(&s->complaints.ends, rank))
		return; /* another's node, perhaps */
	/* what people and a kernel without memory send says nothing of the node */
	if (signo && signo != SIGKILL && signo != SIGTERM && signo != SIGINT && signo != SIGHUP)
		suspect(s, node, false);
}

/* Once: the same holds for all nodes, mostly, and for the next launch. */
void trainer_protocol_no_cache(struct shepherd *s, const char *node, const char *why)
{
	if (!s->is_cache_told)
		journal_note(&s->journal, s->facts.launch.number, "cache_off",
			     "%s: %s: compiled code is not kept on the node", node, why);
	s->is_cache_told = true;
}

static void on_no_cache(void *arg, const char *node, const char *why)
{
	trainer_protocol_no_cache(arg, node, why);
}

/* "srun: error: Task launch for StepId=7.0 failed on node n2: Communication connection failure":
 * what srun says of a node with a word of its own, a slurmd that refuses, is no failure of the
 * node; nor is what the srun of a script or a rank says. */
static void hear_unreached(struct shepherd *s, const struct heard *line)
{
	const char *at = s->policy.is_srun ? srun_words_unreached(line) : NULL;
	char node[65];

	if (!at || s->facts.launch.unreached_ms > 0)
		return;
	snprintf(node, sizeof(node), "%.*s", (int)strcspn(at, ":"), at);
	s->facts.launch.unreached_ms = line->now_ms;
	trainer_protocol_node_lost(s, node, "srun cannot reach it");
}

static void hear_srun_end(struct shepherd *s, const struct heard *line)
{
	if (s->policy.is_srun && s->facts.launch.srun_ends_ms == 0 && srun_words_end_step(line))
		s->facts.launch.srun_ends_ms = line->now_ms;
}

static void on_output_line(void *arg, int stream, const char *node, int64_t rank, const char *text,
			   size_t len)
{
	struct shepherd *s = arg;
	struct heard line = { text, len, node, rank, stream == 1, clock_mono_ms() };

	starting_sign(&s->starting, line.now_ms);
	s->facts.launch.is_requeue_asked |= requeue_is_refusal(text, len);
	complaints_hear(&s->complaints, &line);
	hear_unreached(s, &line);
	hear_srun_end(s, &line);
}

void trainer_protocol_node_error(struct shepherd *s, const char *node, const char *line)
{
	int64_t now_ms = clock_mono_ms();

	suspect(s, node[0] ? node : s->node, true);
	if (now_ms < s->error_note_ms)
		return;
	s->error_note_ms = now_ms + ERROR_NOTE_EVERY_MS;
	journal_note(&s->journal, s->facts.launch.number, "node_error", "%s: %.400s",
		     node[0] ? node : s->node, line);
}

void trainer_protocol_node_lost(struct shepherd *s, const char *node, const char *text)
{
	suspect(s, node, true);
	journal_note(&s->journal, s->facts.launch.number, "node_lost", "%s: %s", node, text);
}

static void on_output_error(void *arg, const char *node, const char *line)
{
	trainer_protocol_node_error(arg, node, line);
}

static void on_bytes(void *arg, int stream, const char *data, size_t len)
{
	output_parser_bytes(&((struct shepherd *)arg)->parser, stream, data, len);
}

int trainer_protocol_read_output(struct shepherd *s, struct err *err)
{
	s->parser.is_told = on_is_told;
	s->parser.on_step = on_output_step;
	s->parser.on_error = on_output_error;
	s->parser.on_rank_end = on_rank_end;
	s->parser.on_no_cache = on_no_cache;
	s->parser.on_line = on_output_line;
	complaints_init(&s->complaints);
	s->parser.arg = s;
	if (output_parser_init(&s->parser, &s->params.watch, launcher_has_shepherds(&s->params),
			       launcher_most_ranks(), err) < 0)
		return -1;
	s->output.on_bytes = on_bytes;
	s->output.arg = s;
	return 0;
}

void trainer_protocol_init(struct shepherd *s)
{
	s->server.on_line = on_line;
	s->server.on_trouble = on_trouble;
	s->server.arg = s;
}
