/* SPDX-License-Identifier: MIT */
/* steps.c - which of several kinds of lines tells the steps, and whether one is new. */
#include "worker/lbrun/steps/steps.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbrun/steps/step_counts.h"

enum {
	SILENT_LINES = 500, /* after so many others may tell steps, too */
	DOUBTS_MAX = 5000,  /* lines of other work between two steps: more are the training */
};

struct steps {
	struct step_reader reader;
	/* of this launch: */
	size_t teller;        /* row of the line that told the last step */
	enum quality quality; /* of its lines */
	int64_t silence;      /* lines since */
	int64_t around;       /* epochs of a bar around them since; -1 = none */
	int64_t doubts;       /* of other work among them */
	json_t *last;         /* the last step told; NULL = none */
	json_t *pending;      /* values of the next one; NULL = none */
	json_t *held;         /* a step whose loss may stand below; NULL = none */
	struct step_counts counts;
	int64_t settings[STEP_ROWS_MAX]; /* of each row's last line that may tell them: its count */
};

/* --- life ------------------------------------------------------------------------------------- */

struct steps *steps_create(void)
{
	struct steps *s = xcalloc(1, sizeof(*s));

	step_reader_init(&s->reader);
	steps_reset(s);
	return s;
}

void steps_reset(struct steps *s)
{
	json_decref(s->last);
	json_decref(s->pending);
	json_decref(s->held);
	s->last = s->pending = s->held = NULL;
	s->quality = QUALITY_NONE;
	s->silence = s->doubts = 0;
	s->around = -1;
	for (size_t i = 0; i < STEP_ROWS_MAX; i++)
		s->settings[i] = -1;
	step_counts_reset(&s->counts);
}

void steps_destroy(struct steps *s)
{
	if (!s)
		return;
	steps_reset(s);
	step_reader_fini(&s->reader);
	free(s);
}

/* --- what is told ----------------------------------------------------------------------------- */

/* May the line tell a step? Words deceive: where nothing else tells steps, what looks like other
 * work is the training. */
static bool is_believed(struct steps *s, const struct step_match *m)
{
	if (m->best == QUALITY_LOSS || m->best == s->quality ||
	    (m->best == QUALITY_PART && s->quality > QUALITY_PART))
		return true;
	return ++s->doubts >= (s->last ? DOUBTS_MAX : SILENT_LINES);
}

/* "step 10: …" and "iter 10: …" count the same. */
static bool is_same_teller(size_t a, size_t b)
{
	return a == b || (step_rows[a].kind == STEP_PLAIN && step_rows[a].needs_more &&
			  step_rows[b].kind == STEP_PLAIN && step_rows[b].needs_more);
}

/* Of several kinds of lines one tells the steps; the others would count something else. */
static bool may_tell(struct steps *s, size_t row, enum quality quality, int64_t step)
{
	bool is_better = quality < s->quality, is_same = is_same_teller(row, s->teller);
	/* a bar of epochs is drawn around those of the batches, unless it goes on alone */
	bool is_around = is_same && quality == QUALITY_EPOCH && s->quality < QUALITY_EPOCH;
	bool is_alone = is_around && s->around >= 0 && step > s->around;

	is_same = is_same && !is_around;
	if (!is_same && !is_better && !is_alone && s->silence < SILENT_LINES) {
		s->around = is_around ? step : s->around;
		return false;
	}
	s->around = -1;
	if (!is_same || is_better || quality == QUALITY_PART || quality == QUALITY_DOUBT)
		s->quality = quality;
	s->teller = row;
	s->silence = s->doubts = 0;
	return true;
}

/* Ranks print the same step once each, bars are drawn again and again. */
static bool is_news(const struct steps *s, json_t *line)
{
	const char *key;
	json_t *value;

	if (js_int(s->last, "step", -1) != js_int(line, "step", -1))
		return true;
	json_object_foreach(line, key, value) {
		if (!json_object_get(s->last, key))
			return true;
	}
	return false;
}

static json_t *tell(struct steps *s, const struct step_match *m, json_t *fields)
{
	json_t *line = json_object();

	js_set_str(line, "type", "step");
	js_set_int(line, "step", m->step);
	if (m->target_step > 0 && m->target_step >= m->step)
		js_set_int(line, "target_step", m->target_step);
	if (s->pending)
		json_object_update(line, s->pending);
	json_object_update(line, fields);
	if (!is_news(s, line)) {
		json_decref(line);
		return NULL;
	}
	json_decref(s->pending);
	s->pending = NULL;
	json_decref(s->last);
	s->last = json_incref(line);
	s->counts.last_step = m->step;
	return line;
}

static bool has_loss(const struct steps *s, const json_t *fields)
{
	return json_object_get(fields, "loss") || json_object_get(s->pending, "loss");
}

/* A value of the training, or a loss like "2,5"; of a plain step the number of all will do, too. */
static bool has_more(const json_t *fields, const struct step_match *m, enum step_kind kind)
{
	bool has_val_loss = json_object_get(fields, "val_loss") != NULL;

	return json_object_size(fields) > (has_val_loss ? 1 : 0) || m->has_loss ||
	       (kind == STEP_PLAIN && (has_val_loss || m->target_step > 0));
}

static enum quality quality_of(const struct steps *s, enum step_kind kind,
			       const struct step_match *m, json_t *fields)
{
	enum quality quality = has_loss(s, fields) ? QUALITY_LOSS : QUALITY_COUNT;

	if (kind == STEP_EPOCH || m->is_epochs)
		quality = QUALITY_EPOCH;
	return quality > m->best ? quality : m->best;
}

static json_t *release(struct steps *s)
{
	json_t *held = s->held;

	s->held = NULL;
	return held;
}

/* The loss ends the wait: what comes behind it is told with the next step, but for a loss, which is
 * another rank's of the step that was told. Takes `fields`. */
static json_t *add_below(struct steps *s, json_t *fields)
{
	json_t **to = s->held ? &s->held : &s->pending;

	if (!s->held)
		json_object_del(fields, "loss");
	if (!*to)
		*to = json_object();
	json_object_update_missing(*to, fields);
	json_decref(fields);
	return json_object_get(s->held, "loss") ? release(s) : NULL;
}

/* "Namespace(steps=1000, lr=0.1)" has nothing that only a step has. */
static bool may_be_settings(const json_t *fields, const struct step_match *m)
{
	static const char *const results[] = { "loss", "val_loss", "tokens_per_s", "mfu" };
	bool has_result = m->has_loss || m->target_step > 0 || m->batches > 0;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		has_result |= json_object_get(fields, results[i]) != NULL;
	return !has_result;
}

/* Settings are printed once, or by each rank; steps go on. */
static bool goes_on(struct steps *s, size_t row, const struct step_match *m)
{
	int64_t count = m->step >= 0 ? m->step : m->batch;
	bool is = s->settings[row] >= 0 && count > s->settings[row];

	s->settings[row] = count;
	return is || (s->last && is_same_teller(row, s->teller));
}

static json_t *read_count(struct steps *s, size_t i, struct step_match *m, json_t *fields)
{
	const struct step_row *row = &step_rows[i];
	const struct step_counts before = s->counts;

	m->is_enough = !row->needs_more || has_more(fields, m, row->kind);
	if (m->is_enough && row->needs_more && may_be_settings(fields, m) && !goes_on(s, i, m))
		return NULL;
	if (!is_believed(s, m) || !step_counts_take(&s->counts, row, m, has_loss(s, fields)))
		return NULL;
	if (may_tell(s, i, quality_of(s, row->kind, m, fields), m->step))
		return tell(s, m, fields);
	s->counts.bar = before.bar;
	s->counts.lines = before.lines;
	return NULL;
}

/* A line that fits row number i. */
static json_t *read_row(struct steps *s, size_t i, const char *line, size_t len)
{
	struct step_match m = step_reader_match(&s->reader, i, line);
	json_t *fields, *told;

	if (step_rows[i].kind == STEP_CONTEXT) {
		s->counts.epoch = m.epoch;
		s->counts.epochs = m.epochs;
		return NULL;
	}
	fields = step_reader_fields(&s->reader, line, len);
	if (step_rows[i].kind == STEP_FIELDS) {
		json_decref(s->pending);
		s->pending = fields;
		return NULL;
	}
	if (step_rows[i].kind == STEP_BELOW)
		return add_below(s, fields);
	step_reader_weigh(&s->reader, i, line, len, &m);
	told = read_count(s, i, &m, fields);
	json_decref(fields);
	return told;
}

json_t *steps_read(struct steps *s, const char *line, size_t len)
{
	json_t *held, *told;
	size_t row;

	if (s->silence < SILENT_LINES)
		s->silence++;
	row = step_reader_row(&s->reader, line, len);
	if (row < step_row_count && step_rows[row].kind == STEP_BELOW)
		return read_row(s, row, line, len);
	if (s->held && row == step_row_count && len > 0 &&
	    (line[0] == ' ' || line[0] == '\t' || line[0] == '|'))
		return NULL; /* another of its values */
	held = release(s);
	told = row < step_row_count ? read_row(s, row, line, len) : NULL;
	if (told && step_rows[row].kind == STEP_HEAD && !json_object_get(told, "loss")) {
		s->held = told;
		return held;
	}
	if (told)
		json_decref(held); /* nobody prints both */
	return told ? told : held;
}

bool steps_wait(const struct steps *s)
{
	return s->held != NULL;
}

json_t *steps_end(struct steps *s)
{
	return release(s);
}
