/* SPDX-License-Identifier: MIT */
/* step_counts.c - epochs and bars become one count. */
#include "worker/lbrun/steps/step_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LATE_LINES = 64 }; /* of a slow rank, of the epoch before */

void step_counts_reset(struct step_counts *c)
{
	c->bar = c->lines = (struct count){ .epoch = -1 };
	c->epoch = c->epochs = c->last_step = -1;
}

static void see_batch(struct count *c, const struct step_match *m, int64_t epoch, bool is_next)
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

/* Ranks may tell of the same batches out of order: those do not fall far behind. A bar may be drawn
 * at 0 again and again. */
static bool begins_again(const struct count *c, const struct step_match *m)
{
	return m->batch < c->batch && 2 * m->batch <= c->batch &&
	       (c->batches > 0 ? is_nearly_over(c) : m->batch <= c->first);
}

/* Batches that do not tell which epoch it is, or how many it has: it is as many as were seen. */
static void count_on(struct count *c, struct step_match *m, int64_t epoch)
{
	bool is_next = begins_again(c, m);

	if (epoch >= 0 && c->epoch >= 0)
		is_next = epoch > c->epoch;
	see_batch(c, m, epoch, is_next);
	m->step = c->before + m->batch;
	m->target_step = m->batches > 0 && c->before == 0 && epoch < 0 ? m->batches : -1;
}

/* Steps of an epoch to steps of the training. */
static void count_epochs(struct step_counts *s, int first, struct step_match *m)
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
static bool is_late(struct count *c, const struct step_match *m)
{
	return m->epoch == c->epoch - 1 && (m->step <= c->batch || c->batch < c->end) &&
	       c->end > 0 && 2 * m->step > c->end && c->late++ < LATE_LINES;
}

/* "Epoch 2, step 5 of 10" does not tell whose steps these are: of the epoch, once they begin again
 * with another one, which has a lower number where a stage, a fold or a phase begins. */
static bool count_restarts(struct count *c, struct step_match *m)
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

/* "Epoch 2/3" stood above. The steps below may be of the training, or of the epoch: once they begin
 * again in a later one. Where the epochs begin again, too, all does. */
static void count_under_heading(struct step_counts *s, struct step_match *m)
{
	struct count *c = &s->lines;
	bool is_next, is_last_again;

	if (s->epoch < c->epoch)
		*c = (struct count){ .epoch = -1 };
	m->batch = m->step;
	m->batches = m->target_step;
	is_last_again = m->batches > 0 && m->batch == m->batches && c->batch == c->batches;
	/* "warmup step 5/10" is no next epoch of "step 100" */
	is_next = c->epoch >= 0 && s->epoch > c->epoch && (m->batches > 0) == (c->batches > 0) &&
		  (begins_again(c, m) || is_last_again);
	see_batch(c, m, is_next || c->epoch < 0 ? s->epoch : c->epoch, is_next);
	m->step = c->before + m->batch;
	m->target_step = c->before > 0 ? -1 : m->batches;
}

static bool ends_with(const struct step_match *m, const char *word)
{
	size_t n = strlen(word);

	return m->label && m->label_len >= n &&
	       strncasecmp(m->label + m->label_len - n, word, n) == 0;
}

/* "Epoch 2" of a bar's label, or "Epoch 2/3", which counts from 1. */
static bool is_epoch_bar(struct step_counts *s, struct step_match *m)
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
	if (n >= 1 && m->batch == 0 && s->last_step >= 0) {
		m->step = s->last_step;
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
static bool is_training_bar(struct step_counts *s, struct step_match *m, bool has_loss)
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
static bool is_bar_of_epochs(struct step_match *m)
{
	m->is_epochs = ends_with(m, "epochs") || ends_with(m, "epoch");
	m->step = m->batch;
	m->target_step = m->batches;
	return m->is_epochs;
}

static bool count_bar(struct step_counts *s, struct step_match *m, bool has_loss)
{
	if (!m->is_training_bar)
		return false;
	if (is_epoch_bar(s, m) || is_bar_of_epochs(m))
		return true;
	if (m->batches >= 0)
		return is_training_bar(s, m, has_loss);
	m->step = m->batch;
	return true;
}

bool step_counts_take(struct step_counts *s, const struct step_row *row, struct step_match *m,
		      bool has_loss)
{
	if (row->kind == STEP_BAR)
		return count_bar(s, m, has_loss);
	if (row->kind == STEP_IN_EPOCH)
		count_epochs(s, row->first_epoch, m);
	if (row->kind == STEP_EPOCH && m->step < 0) {
		m->step = s->epoch; /* that of the heading */
		m->target_step = s->epochs;
	}
	if (row->kind == STEP_PLAIN && m->is_enough && m->epoch < 0 && s->epoch >= 0 &&
	    m->step >= 0)
		count_under_heading(s, m);
	return m->step >= 0 && m->is_enough &&
	       (row->kind != STEP_PLAIN || m->epoch < 0 || count_restarts(&s->lines, m));
}
