/* SPDX-License-Identifier: MIT */
/* steps.c - which row has a line, what step that is of all, and whether anybody knew it already. */
#include "worker/lbrun/trainer/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/regexp.h"
#include "common/base/text.h"
#include "worker/lbrun/trainer/step_rows.h"

enum {
	ROWS_MAX = 40,
	FIELDS_MAX = 16,
	HEAD_BYTES = 80,    /* of what stands in front of a count */
	SILENT_LINES = 500, /* after so many others may tell steps, too */
	DOUBTS_MAX = 5000,  /* lines of other work between two steps: more are the training */
	LATE_LINES = 64,    /* of a slow rank, of the epoch before */
};

/* _DOUBT: by its words it is other work; _PART: it may be a part of a step. */
enum quality {
	QUALITY_LOSS,
	QUALITY_COUNT,
	QUALITY_PART,
	QUALITY_EPOCH,
	QUALITY_DOUBT,
	QUALITY_NONE
};

/* Batches of one epoch after the other. */
struct count {
	int64_t batches, batch; /* of the epoch, and seen last; 0 = none yet */
	int64_t stride;         /* from the one seen before */
	int64_t first;          /* that an epoch began with */
	int64_t epoch;          /* as it was told; -1 = it was not */
	int64_t before;         /* of the epochs that are over */
	int64_t end;            /* of the last of these */
	int64_t late;           /* lines that a slow rank told of it since the last that counted */
	bool are_all;           /* of the training: they went on though the epochs began anew */
};

struct steps {
	struct regexp *rows[ROWS_MAX], *fields[FIELDS_MAX];
	struct regexp *words[STEP_WORD_COUNT];
	/* of this launch: */
	size_t teller;         /* row of the line that told the last step */
	enum quality quality;  /* of its lines */
	int64_t silence;       /* lines since */
	int64_t doubts;        /* of other work among them */
	json_t *last;          /* the last step told; NULL = none */
	json_t *pending;       /* values of the next one; NULL = none */
	json_t *held;          /* a step whose loss may stand below; NULL = none */
	int64_t epoch, epochs; /* told by a line of their own; -1 = not told */
	bool counts_from_0;    /* an epoch 0 was seen where 1 was expected; so do later launches */
	struct count bar, lines;
};

/* groups of a row; -1 = not there */
struct match {
	int64_t step, target_step, epoch, epochs, batch, batches;
	const char *count; /* where the first of these begins */
	const char *label;
	size_t label_len;
	bool is_epochs;    /* the bar's steps are epochs */
	bool has_loss;     /* that may be written so that nobody can read it */
	enum quality best; /* that it may have, by the words around it */
};

/* --- life ------------------------------------------------------------------------------------- */

struct steps *steps_create(void)
{
	struct steps *s = xcalloc(1, sizeof(*s));

	for (size_t i = 0; i < step_row_count; i++)
		s->rows[i] = regexp_built_in(step_rows[i].pattern);
	for (size_t i = 0; i < step_field_count; i++)
		s->fields[i] = regexp_built_in(step_fields[i].pattern);
	for (size_t i = 0; i < STEP_WORD_COUNT; i++)
		s->words[i] = regexp_built_in(step_words[i]);
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
	s->epoch = s->epochs = -1;
	s->bar = s->lines = (struct count){ .epoch = -1 };
}

void steps_destroy(struct steps *s)
{
	if (!s)
		return;
	steps_reset(s);
	for (size_t i = 0; i < step_row_count; i++)
		regexp_destroy(s->rows[i]);
	for (size_t i = 0; i < step_field_count; i++)
		regexp_destroy(s->fields[i]);
	for (size_t i = 0; i < STEP_WORD_COUNT; i++)
		regexp_destroy(s->words[i]);
	free(s);
}

/* --- what stands in a line -------------------------------------------------------------------- */

struct value {
	double number;
	bool is_there;
};

static void take_value(void *arg, const char *name, const char *text, size_t len)
{
	struct value *value = arg;

	(void)name;
	value->is_there = text_number(text, len, &value->number);
}

/* A new reference; empty when there is none. */
static json_t *read_fields(struct steps *s, const char *line, size_t len)
{
	json_t *out = json_object();

	for (size_t i = 0; i < step_field_count; i++) {
		const struct step_field *field = &step_fields[i];
		struct value value = { 0 };

		if (json_object_get(out, field->name) || !strcasestr(line, field->needle) ||
		    !regexp_match(s->fields[i], line, len))
			continue;
		regexp_each_group(s->fields[i], line, take_value, &value);
		if (value.is_there && !(value.number < field->least))
			js_set_real(out, field->name, value.number * field->scale);
	}
	return out;
}

static void take_group(void *arg, const char *name, const char *text, size_t len)
{
	struct match *m = arg;
	const struct {
		const char *name;
		int64_t *to;
	} numbers[] = {
		{ "step", &m->step },   { "target_step", &m->target_step },
		{ "epoch", &m->epoch }, { "epochs", &m->epochs },
		{ "batch", &m->batch }, { "batches", &m->batches },
	};
	char last = len > 0 ? text[len - 1] : '0';
	double number, scale = last == 'k' ? 1e3 : last == 'M' ? 1e6 : 1;

	if (strcmp(name, "label") == 0) {
		m->label = text;
		m->label_len = len;
		return;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(name, numbers[i].name) == 0 &&
		    text_number(text, len - (scale > 1), &number) && number >= 0 &&
		    number * scale < 1e15)
			*numbers[i].to = llround(number * scale);
	}
	if (!m->count || text < m->count)
		m->count = text;
}

/* Do such words stand in front of the count? */
static bool is_behind(struct regexp *words, const char *line, const struct match *m)
{
	size_t len = m->count ? (size_t)(m->count - line) : 0;
	size_t shown = len < HEAD_BYTES ? len : HEAD_BYTES;

	return len > 0 && regexp_match(words, line + len - shown, shown);
}

/* May the line tell a step? Words deceive: where nothing else tells steps, what looks like other
 * work is the training. */
static bool is_believed(struct steps *s, const char *line, size_t len, struct match *m)
{
	if (is_behind(s->words[STEP_WORD_INNER], line, m))
		m->best = QUALITY_PART;
	else if (is_behind(s->words[STEP_WORD_OTHER], line, m) ||
		 regexp_match(s->words[STEP_WORD_OTHER_LINE], line, len))
		m->best = QUALITY_DOUBT;
	if (m->best == QUALITY_LOSS || m->best == s->quality ||
	    (m->best == QUALITY_PART && s->quality > QUALITY_PART))
		return true;
	return ++s->doubts >= (s->last ? DOUBTS_MAX : SILENT_LINES);
}

/* --- counting --------------------------------------------------------------------------------- */

static void see_batch(struct count *c, const struct match *m, int64_t epoch, bool is_next)
{
	c->before += is_next ? (c->batches > 0 ? c->batches : c->batch) : 0;
	c->end = epoch != c->epoch ? c->batch : c->end;
	c->late = 0;
	c->stride = m->batch > c->batch ? m->batch - c->batch : c->stride;
	if (is_next || c->batch == 0)
		c->first = m->batch;
	c->batches = m->batches > 0 ? m->batches : 0;
	c->batch = m->batch;
	c->epoch = epoch;
}

/* Who prints every n-th batch, or a bar that is wiped out, may never show the last one. */
static bool is_nearly_over(const struct count *c)
{
	return c->batches > 0 && c->batch + c->stride >= c->batches;
}

/* Ranks may tell of the same batches out of order: those do not fall far behind. */
static bool begins_again(const struct count *c, const struct match *m)
{
	return 2 * m->batch <= c->batch &&
	       (c->batches > 0 ? is_nearly_over(c) : m->batch <= c->first);
}

/* Batches that do not tell which epoch it is, or how many it has: it is as many as were seen. */
static void count_on(struct count *c, struct match *m, int64_t epoch)
{
	bool is_next = begins_again(c, m);

	if (epoch >= 0 && c->epoch >= 0)
		is_next = epoch > c->epoch;
	see_batch(c, m, epoch, is_next);
	m->step = c->before + m->batch;
	m->target_step = m->batches > 0 && c->before == 0 && epoch < 0 ? m->batches : -1;
}

/* Steps of an epoch to steps of the training. */
static void count_epochs(struct steps *s, int first, struct match *m)
{
	int64_t epoch = m->epoch >= 0 ? m->epoch : s->epoch;
	int64_t epochs = m->epochs >= 0 ? m->epochs : s->epochs;

	if (epoch < 0 || m->batches <= 0) {
		count_on(&s->lines, m, epoch);
		return;
	}
	if (epoch == 0)
		s->counts_from_0 = true;
	if (!s->counts_from_0)
		epoch -= first;
	m->step = epoch * m->batches + m->batch;
	m->target_step = epochs > 0 ? epochs * m->batches : -1;
}

/* What a slower rank still tells of the end of the epoch before, not steps that begin anew or go
 * on. */
static bool is_late(struct count *c, const struct match *m)
{
	return m->epoch == c->epoch - 1 && (m->step <= c->batch || c->batch < c->end) &&
	       c->end > 0 && 2 * m->step > c->end && c->late++ < LATE_LINES;
}

/* "Epoch 2, step 5 of 10" does not tell whose steps these are: of the epoch, once they begin again
 * with another one, which has a lower number where a stage, a fold or a phase begins. */
static bool count_restarts(struct count *c, struct match *m)
{
	if (is_late(c, m))
		return false;
	if (m->epoch < c->epoch && m->step > c->batch) {
		c->are_all = true;
		c->before = 0;
	} else if (m->epoch != c->epoch && m->step < c->batch) {
		c->are_all = false;
	}
	m->batch = m->step;
	m->batches = m->target_step;
	see_batch(c, m, m->epoch,
		  !c->are_all && c->epoch >= 0 && m->epoch != c->epoch && m->step <= c->batch);
	m->step = c->before + m->batch;
	m->target_step = c->before > 0 ? -1 : m->batches;
	return true;
}

static bool ends_with(const struct match *m, const char *word)
{
	size_t n = strlen(word);

	return m->label && m->label_len >= n &&
	       strncasecmp(m->label + m->label_len - n, word, n) == 0;
}

/* "Epoch 2" of a bar's label, or "Epoch 2/3", which counts from 1. */
static bool is_epoch_bar(struct steps *s, struct match *m)
{
	char label[64];
	const char *at;
	int n;

	snprintf(label, sizeof(label), "%.*s", (int)(m->label_len < 60 ? m->label_len : 60),
		 m->label ? m->label : "");
	at = strcasestr(label, "epoch");
	if (!at)
		return false;
	at += strlen("epoch") + strspn(at + strlen("epoch"), " :=#[(");
	/* NOLINTNEXTLINE(cert-err34-c): the label is short, and any number will do */
	n = sscanf(at, "%9" SCNd64 "/%9" SCNd64, &m->epoch, &m->epochs);
	/* Lightning draws it anew while it is still called the epoch that is over. */
	if (n >= 1 && m->batch == 0 && s->last) {
		m->step = js_int(s->last, "step", -1);
		return true;
	}
	if (n >= 1 && ends_with(m, "steps")) {
		m->step = m->batch;
		m->target_step = m->batches;
		return count_restarts(&s->lines, m);
	}
	if (n >= 1)
		count_epochs(s, n == 2 ? 1 : 0, m);
	return n >= 1;
}

/* The first bar is the training's, and those that come after it was full and are as long: the next
 * epochs. Shorter ones are evaluations. */
static bool is_training_bar(struct steps *s, struct match *m, bool has_loss)
{
	bool is_over = is_nearly_over(&s->bar), is_next = false;

	if (m->batches == s->bar.batches)
		is_next = begins_again(&s->bar, m);
	else if (s->bar.batches == 0 || has_loss || (is_over && m->batches > s->bar.batches))
		s->bar = (struct count){ .epoch = -1 };
	else
		return false;
	see_batch(&s->bar, m, -1, is_next);
	m->step = s->bar.before + m->batch;
	m->target_step = s->bar.before + m->batches;
	return true;
}

/* "Epochs:  30%|...": the bar around those of the batches. */
static bool is_bar_of_epochs(struct match *m)
{
	m->is_epochs = ends_with(m, "epochs") || ends_with(m, "epoch");
	m->step = m->batch;
	m->target_step = m->batches;
	return m->is_epochs;
}

static bool count_bar(struct steps *s, struct match *m, bool has_loss)
{
	if (!regexp_match(s->words[STEP_WORD_BAR], m->label ? m->label : "", m->label_len))
		return false;
	if (is_epoch_bar(s, m) || is_bar_of_epochs(m))
		return true;
	if (m->batches >= 0)
		return is_training_bar(s, m, has_loss);
	m->step = m->batch;
	return true;
}

/* --- what is told ----------------------------------------------------------------------------- */

/* "step 10: …" and "iter 10: …" count the same. */
static bool is_same_teller(size_t a, size_t b)
{
	return a == b || (step_rows[a].kind == STEP_PLAIN && step_rows[a].needs_more &&
			  step_rows[b].kind == STEP_PLAIN && step_rows[b].needs_more);
}

/* Of several kinds of lines one tells the steps; the others would count something else. */
static bool may_tell(struct steps *s, size_t row, enum quality quality)
{
	bool is_better = quality < s->quality, is_same = is_same_teller(row, s->teller);

	if (!is_same && !is_better && s->silence < SILENT_LINES)
		return false;
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

static json_t *tell(struct steps *s, const struct match *m, json_t *fields)
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
	return line;
}

static bool has_loss(const struct steps *s, const json_t *fields)
{
	return json_object_get(fields, "loss") || json_object_get(s->pending, "loss");
}

/* A value of the training; of a plain step the number of all will do, too, or a loss like "2,5". */
static bool has_more(const json_t *fields, const struct match *m, enum step_kind kind)
{
	bool has_val_loss = json_object_get(fields, "val_loss") != NULL;

	return json_object_size(fields) > (has_val_loss ? 1 : 0) ||
	       (kind == STEP_PLAIN && (has_val_loss || m->target_step > 0 || m->has_loss));
}

/* Sets m->step; false: this line counts something else. */
static bool count(struct steps *s, const struct step_row *row, const json_t *fields,
		  struct match *m)
{
	if (row->kind == STEP_IN_EPOCH)
		count_epochs(s, row->first_epoch, m);
	if (row->kind == STEP_BAR)
		return count_bar(s, m, has_loss(s, fields));
	return m->step >= 0 && (!row->needs_more || has_more(fields, m, row->kind)) &&
	       (row->kind != STEP_PLAIN || m->epoch < 0 || count_restarts(&s->lines, m));
}

static enum quality quality_of(const struct steps *s, enum step_kind kind, const struct match *m,
			       const json_t *fields)
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

/* A line that fits row number i. */
static json_t *read_row(struct steps *s, size_t i, const char *line, size_t len)
{
	const struct step_row *row = &step_rows[i];
	struct match m = {
		.step = -1, .target_step = -1, .epoch = -1, .epochs = -1, .batch = -1, .batches = -1
	};
	const struct count bar = s->bar, lines = s->lines;
	json_t *fields, *told = NULL;

	regexp_each_group(s->rows[i], line, take_group, &m);
	if (row->kind == STEP_CONTEXT) {
		s->epoch = m.epoch;
		s->epochs = m.epochs;
		return NULL;
	}
	fields = read_fields(s, line, len);
	if (row->kind == STEP_FIELDS) {
		json_decref(s->pending);
		s->pending = fields;
		return NULL;
	}
	if (row->kind == STEP_BELOW)
		return add_below(s, fields);
	m.has_loss = regexp_match(s->words[STEP_WORD_LOSS], line, len);
	if (is_believed(s, line, len, &m) && count(s, row, fields, &m)) {
		if (may_tell(s, i, quality_of(s, row->kind, &m, fields))) {
			told = tell(s, &m, fields);
		} else {
			s->bar = bar;
			s->lines = lines;
		}
	}
	json_decref(fields);
	return told;
}

/* step_row_count: none. */
static size_t find_row(const struct steps *s, const char *line, size_t len)
{
	size_t i = 0;

	if (!strpbrk(line, "0123456789") && !strcasestr(line, "nan") && !strcasestr(line, "inf"))
		return step_row_count;
	while (i < step_row_count &&
	       !(strcasestr(line, step_rows[i].needle) && regexp_match(s->rows[i], line, len)))
		i++;
	return i;
}

json_t *steps_read(struct steps *s, const char *line, size_t len)
{
	json_t *held, *told;
	size_t row;

	if (s->silence < SILENT_LINES)
		s->silence++;
	row = find_row(s, line, len);
	if (row < step_row_count && step_rows[row].kind == STEP_BELOW)
		return read_row(s, row, line, len);
	if (s->held && row == step_row_count && (line[0] == ' ' || line[0] == '\t'))
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
