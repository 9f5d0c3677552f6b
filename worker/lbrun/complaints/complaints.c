/* SPDX-License-Identifier: MIT */
/* complaints.c - which of many lines explains an end: the first of the heaviest kind. */
#include "worker/lbrun/complaints/complaints.h"

#include <stdio.h>
#include <string.h>

#include "common/base/regexp.h"
#include "common/base/text.h"
#include "worker/lbrun/complaints/complaint_rows.h"

enum { FRAME_LINES = 12, KNOWN_LINE_BYTES = 2000, LATE_STEP_MS = 5000 };
enum { OLD_MS = 30 * 60 * 1000 }; /* where no steps are known */

void complaints_init(struct complaints *c)
{
	for (size_t i = 0; i < complaint_row_count; i++)
		c->rows[i] = regexp_built_in(complaint_rows[i].pattern);
	c->sign = regexp_built_in(complaint_sign);
	c->harmless = regexp_built_in(complaint_harmless);
	c->noise = regexp_built_in(complaint_noise);
	c->frame = regexp_built_in(complaint_frame);
	c->step = regexp_built_in(complaint_step);
	rank_ends_init(&c->ends);
	complaints_reset(c);
}

void complaints_fini(struct complaints *c)
{
	for (size_t i = 0; i < complaint_row_count; i++)
		regexp_destroy(c->rows[i]);
	regexp_destroy(c->sign);
	regexp_destroy(c->harmless);
	regexp_destroy(c->noise);
	regexp_destroy(c->frame);
	regexp_destroy(c->step);
	rank_ends_fini(&c->ends);
	memset(c, 0, sizeof(*c));
}

void complaints_reset(struct complaints *c)
{
	c->best = c->last = (struct complaint){ .rank = -1 };
	c->raised_ms = c->step_ms = INT64_MIN;
	c->frame_lines = 0;
	c->goes_on = false;
	rank_ends_reset(&c->ends);
	traceback_reset(&c->traceback);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Without blanks, and the right side of a box. */
static int length_of(const char *text)
{
	static const char side[] = "│";
	size_t len = strlen(text), n = sizeof(side) - 1;

	for (;;) {
		if (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		else if (len >= n && memcmp(text + len - n, side, n) == 0)
			len -= n;
		else
			return (int)len;
	}
}

static void take(struct complaint *to, const struct heard *line, enum weight weight,
		 const char *advice)
{
	const char *text = line->text + strspn(line->text, " \t");

	*to = (struct complaint){
		.weight = weight, .advice = advice, .rank = line->rank, .at_ms = line->now_ms
	};
	snprintf(to->node, sizeof(to->node), "%s", line->node);
	snprintf(to->text, sizeof(to->text), "%.*s", length_of(text), text);
	text_clean(to->text);
}

/* Of one rank the heavier one, and of exceptions the last: that is the one that ended it. What
 * other ranks say after the first may only follow from it. */
static bool is_better(const struct complaint *best, const struct heard *line, enum weight weight)
{
	bool is_same = best->rank == line->rank;

	if (line->now_ms - best->at_ms > OLD_MS)
		return true;
	if (best->weight < WEIGHT_EXCEPTION || weight < WEIGHT_EXCEPTION)
		return weight > best->weight;
	return is_same &&
	       (weight > best->weight || (weight == best->weight && weight == WEIGHT_EXCEPTION));
}

/* Where both mean the same the first says more: the warning before NCCL's error, or that before
 * what it is called. */
static bool says_the_same(const struct complaint *best, const struct heard *line,
			  const struct complaint_row *row)
{
	bool is_everyday = best->weight == WEIGHT_EVERYDAY ||
			   (row && row->weight == WEIGHT_EVERYDAY && best->weight != WEIGHT_HINT);

	return row && !is_everyday && row->advice && best->advice &&
	       strcmp(row->advice, best->advice) == 0 && line->now_ms - best->at_ms <= OLD_MS;
}

/* What is wrong stands in the next line that is not empty: Keras has a sentence in front. */
static bool is_heading(const char *text)
{
	return text_ends_with(text, ":") || strstr(text, "Exception encountered when calling ");
}

static void offer(struct complaints *c, const struct heard *line, enum weight weight,
		  const struct complaint_row *row)
{
	if (says_the_same(&c->best, line, row)) {
		if (weight > c->best.weight)
			c->best.weight = weight;
		return;
	}
	if (row && row->advice == complaint_not_met && c->ends.first.is_known)
		weight = WEIGHT_FOLLOWS;
	if (!is_better(&c->best, line, weight))
		return;
	take(&c->best, line, weight, row ? row->advice : NULL);
	c->best.is_outside = row && row->kind == COMPLAINT_OUTSIDE;
	c->frame_lines = row && row->kind == COMPLAINT_FRAMED ? FRAME_LINES : 0;
	c->goes_on = is_heading(line->text);
	c->place = -1;
}

static void append(struct complaint *to, const struct heard *line)
{
	const char *text = line->text + strspn(line->text, " \t");
	size_t len = strlen(to->text);

	snprintf(to->text + len, sizeof(to->text) - len, "; %s", text);
	text_clean(to->text);
}

static void add_frame(struct complaints *c, const struct heard *line)
{
	c->frame_lines--;
	if (!regexp_match(c->frame, line->text, line->len))
		return;
	append(&c->best, line);
	c->frame_lines = 0;
}

static bool is_harmless(struct complaints *c, const struct heard *line,
			const struct complaint_row *row)
{
	bool may_be = !row || row->weight == WEIGHT_ERROR || row->weight == WEIGHT_FOLLOWS ||
		      row->weight == WEIGHT_EVERYDAY;

	return may_be && regexp_match(c->harmless, line->text, line->len);
}

/* --- all together ----------------------------------------------------------------------------- */

/* Its row, NULL = it is no complaint. */
static const struct complaint_row *row_of(struct complaints *c, const struct heard *line)
{
	/* of a very long line the beginning says what it is */
	size_t len = line->len < KNOWN_LINE_BYTES ? line->len : KNOWN_LINE_BYTES;

	if (!regexp_match(c->sign, line->text, len))
		return NULL;
	rank_ends_hear(&c->ends, line);
	for (size_t i = 0; i < complaint_row_count; i++) {
		if (!regexp_match(c->rows[i], line->text, len))
			continue;
		if (complaint_rows[i].weight == WEIGHT_FOLLOWS &&
		    !is_harmless(c, line, &complaint_rows[i]))
			rank_ends_note_follower(&c->ends, line->rank, line->now_ms);
		return &complaint_rows[i];
	}
	return NULL;
}

/* A bar that was being drawn tells nothing of the end. */
static bool is_bar(const char *text)
{
	return strstr(text, "%|") || strstr(text, "it/s") || strstr(text, "s/it");
}

/* What a launcher prints of itself is never why a trainer died, though it may tell who died. */
static bool is_noise(struct complaints *c, const struct heard *line)
{
	size_t len = line->len < KNOWN_LINE_BYTES ? line->len : KNOWN_LINE_BYTES;

	return text_begins_with(line->text, "lbrun: ") || regexp_match(c->noise, line->text, len);
}

/* Behind it comes what was made of an exception that says why itself. */
static void hear_of_cause(struct complaints *c, const struct heard *line)
{
	if (c->best.weight == WEIGHT_EXCEPTION && c->best.advice && c->best.rank == line->rank &&
	    c->traceback.says_cause)
		c->best.weight = WEIGHT_KNOWN;
}

/* What was raised ended it, whatever it says. */
static enum weight weigh(enum traceback_part part, const struct complaint_row *row)
{
	enum weight said = row ? row->weight : WEIGHT_NONE;
	bool is_plain = said == WEIGHT_NONE || said == WEIGHT_ERROR || said == WEIGHT_EVERYDAY;

	return part == TRACEBACK_END && is_plain ? WEIGHT_EXCEPTION : said;
}

/* Below an error, programs in Rust (uv), Julia and R say what it comes from. */
static bool says_cause(const char *text)
{
	text += strspn(text, " \t");
	return text_begins_with(text, "cause: ") || text_begins_with(text, "Caused by") ||
	       text_begins_with(text, "nested task error: ");
}

/* "    1: no such file": of several causes. */
static bool is_numbered(const char *text)
{
	size_t indent = strspn(text, " ");
	size_t digits = text_digits(text + indent);

	return indent > 0 && digits > 0 && text_begins_with(text + indent + digits, ": ");
}

/* Between a heading and what is wrong TensorFlow says where: frames, and the lines of program below
 * them. */
static bool is_place(struct complaints *c, const struct heard *line)
{
	int indent = (int)strspn(line->text, " \t");
	const char *text = line->text + indent;

	if (text_begins_with(text, "File \"") && strstr(text, "\", line "))
		c->place = indent;
	else if (c->place >= 0 && indent <= c->place)
		c->place = -1;
	return c->place >= 0 || text_ends_with(text, "(most recent call last):") ||
	       strcmp(text, "<stack traces unavailable>") == 0;
}

/* With what stands below the heading it may be known. */
static void know_both(struct complaint *best, struct regexp *const *rows)
{
	size_t len = strlen(best->text);

	for (size_t i = 0; i < complaint_row_count; i++) {
		const struct complaint_row *row = &complaint_rows[i];

		if (row->weight != WEIGHT_KNOWN || !row->advice ||
		    !regexp_match(rows[i], best->text, len))
			continue;
		best->advice = row->advice;
		best->is_outside = row->kind == COMPLAINT_OUTSIDE;
		best->weight = best->weight > row->weight ? best->weight : row->weight;
		return;
	}
}

/* Is the line a part of `best`? */
static bool go_on(struct complaints *c, const struct heard *line)
{
	bool is_cause = c->best.weight >= WEIGHT_ERROR && says_cause(line->text), is_next;

	if (line->rank != c->best.rank || (!c->goes_on && !is_cause))
		return false;
	if (c->goes_on && is_place(c, line))
		return true;
	is_next = c->goes_on && is_numbered(line->text);
	c->goes_on = is_next || (is_cause && text_ends_with(line->text, ":"));
	if (regexp_match(c->step, line->text, line->len))
		return false;
	append(&c->best, line);
	if (!c->best.advice)
		know_both(&c->best, c->rows);
	return is_cause || is_next;
}

/* Who raises something else, which was not made of that, went on behind what it had said before. */
static bool has_survived(const struct complaints *c, const struct heard *line,
			 const struct complaint_row *row)
{
	bool follows = row && (row->weight == WEIGHT_FOLLOWS || row->kind == COMPLAINT_OUTSIDE);
	bool may_be_same = line->rank == c->best.rank || line->rank < 0 || c->best.rank < 0;

	return may_be_same && !follows && !c->traceback.has_cause;
}

void complaints_hear(struct complaints *c, const struct heard *heard)
{
	struct heard line = *heard;
	const struct complaint_row *row;
	enum traceback_part part;

	if (line.len == 0)
		return;
	rank_ends_hear_of_all(&c->ends, &line, c->best.weight == WEIGHT_KNOWN);
	if (c->frame_lines > 0 && line.rank == c->best.rank)
		add_frame(c, &line);
	part = traceback_hear(&c->traceback, &line);
	hear_of_cause(c, &line);
	if (part == TRACEBACK_INSIDE)
		return;
	row = row_of(c, &line);
	if (((row || line.is_stderr) && is_noise(c, &line)) ||
	    (part == TRACEBACK_NONE && is_harmless(c, &line, row)))
		return;
	if (go_on(c, &line))
		return;
	if (part == TRACEBACK_END && c->traceback.aside == ASIDE_NOT) {
		c->raised_ms = line.now_ms;
		if (has_survived(c, &line, row))
			c->best.is_outside = false;
	}
	if (!c->traceback.is_ignored && (row || part == TRACEBACK_END))
		offer(c, &line, weigh(part, row), row);
	/* what is indented quotes a program, or goes on: below a warning, say */
	if (line.is_stderr && !is_bar(line.text) && !strchr(" \t", line.text[0]))
		take(&c->last, &line, WEIGHT_LAST, NULL);
}

void complaints_step(struct complaints *c, int64_t now_ms)
{
	c->step_ms = now_ms;
	if (c->best.weight && now_ms - c->best.at_ms > SURVIVED_MS)
		c->best = (struct complaint){ .rank = -1 };
	rank_ends_step(&c->ends, now_ms);
}

/* Other ranks, and another pipe, may still tell a step of before. */
static bool is_last(const struct complaints *c, int64_t at_ms, int64_t now_ms)
{
	return at_ms != INT64_MIN && now_ms - at_ms <= SURVIVED_MS &&
	       (c->step_ms == INT64_MIN || c->step_ms - at_ms <= LATE_STEP_MS);
}

bool complaints_end_is_last(const struct complaints *c, int64_t now_ms)
{
	return c->ends.first.is_known && is_last(c, c->ends.last_ms, now_ms);
}

bool complaints_raised_last(const struct complaints *c, int64_t now_ms)
{
	return is_last(c, c->raised_ms, now_ms);
}

bool complaints_lost_node_last(const struct complaints *c, int64_t now_ms)
{
	return is_last(c, c->ends.lost_node_ms, now_ms);
}

const struct complaint *complaints_best(const struct complaints *c, int64_t now_ms)
{
	if (c->best.weight && now_ms - c->best.at_ms <= OLD_MS)
		return &c->best;
	if (c->last.weight && now_ms - c->last.at_ms <= SURVIVED_MS)
		return &c->last;
	return NULL;
}
