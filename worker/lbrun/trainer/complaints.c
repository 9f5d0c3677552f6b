/* SPDX-License-Identifier: MIT */
/* complaints.c - which of many lines explains an end: the first of the heaviest kind. */
#include "worker/lbrun/trainer/complaints.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/regexp.h"
#include "common/base/text.h"

enum { FRAME_LINES = 12, KNOWN_LINE_BYTES = 2000, FOLLOWED_MS = 5000, NOT_FOUND = 127 };

void complaints_init(struct complaints *c)
{
	for (size_t i = 0; i < complaint_row_count; i++)
		c->rows[i] = regexp_built_in(complaint_rows[i].pattern);
	for (size_t i = 0; i < rank_end_pattern_count; i++)
		c->ends[i] = regexp_built_in(rank_end_patterns[i]);
	c->sign = regexp_built_in(complaint_sign);
	c->harmless = regexp_built_in(complaint_harmless);
	c->noise = regexp_built_in(complaint_noise);
	c->frame = regexp_built_in(complaint_frame);
	complaints_reset(c);
}

void complaints_fini(struct complaints *c)
{
	for (size_t i = 0; i < complaint_row_count; i++)
		regexp_destroy(c->rows[i]);
	for (size_t i = 0; i < rank_end_pattern_count; i++)
		regexp_destroy(c->ends[i]);
	regexp_destroy(c->sign);
	regexp_destroy(c->harmless);
	regexp_destroy(c->noise);
	regexp_destroy(c->frame);
	memset(c, 0, sizeof(*c));
}

void complaints_reset(struct complaints *c)
{
	c->best = c->last = (struct complaint){ .rank = -1 };
	c->end = (struct rank_end){ .exit_code = -1, .rank = -1 };
	c->last_end_ms = c->raised_ms = c->step_ms = INT64_MIN;
	c->named_rank = c->named_local = -1;
	c->follower_count = 0;
	c->launcher_ends = c->has_reason = false;
	c->frame_lines = 0;
	c->goes_on = c->in_traceback = c->in_group = false;
	c->said = c->aside = ASIDE_NOT;
	c->box = BOX_NONE;
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

static bool begins_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* Of one rank the heavier one, and of exceptions the last: that is the one that ended it. What
 * other ranks say after the first may only follow from it. */
static bool is_better(const struct complaint *best, const struct heard *line, enum weight weight)
{
	bool is_same = best->rank == line->rank;

	if (line->now_ms - best->at_ms > COMPLAINT_OLD_MS)
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
	       strcmp(row->advice, best->advice) == 0 &&
	       line->now_ms - best->at_ms <= COMPLAINT_OLD_MS;
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
	if (row && row->advice == complaint_not_met && c->end.is_known)
		weight = WEIGHT_FOLLOWS;
	if (!is_better(&c->best, line, weight))
		return;
	take(&c->best, line, weight, row ? row->advice : NULL);
	c->frame_lines = row && row->has_frame ? FRAME_LINES : 0;
	c->goes_on = is_heading(line->text);
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

enum traceback { TRACEBACK_NONE, TRACEBACK_INSIDE, TRACEBACK_END };

/* Exceptions that were raised together are drawn with a margin, which is taken off. Of them the
 * first counts: it mostly ended the others. */
static enum traceback follow_group(struct complaints *c, struct heard *line)
{
	static const char begins[] = "Exception Group Traceback";
	const char *text = line->text + strspn(line->text, " ");
	bool is_drawn = text > line->text && (*text == '+' || *text == '|');

	if (is_drawn && strncmp(text + 1 + (text[1] == ' '), begins, sizeof(begins) - 1) == 0) {
		c->is_later &= *text == '|';
		c->in_group = c->in_traceback = true;
		c->aside = c->said;
		c->group_rank = c->traceback_rank = line->rank;
		c->traceback_mark[0] = '\0';
		return TRACEBACK_INSIDE;
	}
	if (!c->in_group || line->rank != c->group_rank)
		return TRACEBACK_NONE;
	c->in_group = is_drawn;
	if (!is_drawn)
		return TRACEBACK_NONE;
	if (*text == '+') /* "+---------------- 2 ----------------" */
		c->is_later |= strtol(text + strspn(text, "+-"), NULL, 10) > 1;
	line->text = text + 1 + (text[1] == ' ');
	line->len = strlen(line->text);
	return *text == '+' || c->is_later || strstr(text, " sub-exception") ? TRACEBACK_INSIDE
									     : TRACEBACK_NONE;
}

/* Loggers and launchers that we do not know put marks in front, the same for each line of it; rich
 * draws it into a box. */
static bool begins_traceback(struct complaints *c, const struct heard *line)
{
	const char *title = strstr(line->text, "Traceback (most recent call last");
	const char *box = strstr(line->text, "╭─");
	const char *at = title && box && box < title ? box : title;

	if (!at || at - line->text >= MARK_BYTES)
		return false;
	if (c->in_traceback && line->rank != c->traceback_rank)
		return true;
	c->aside = c->said;
	snprintf(c->traceback_mark, sizeof(c->traceback_mark), "%.*s", (int)(at - line->text),
		 line->text);
	c->in_traceback = true;
	c->traceback_rank = line->rank;
	return true;
}

/* The first line that is not indented ends it, and says what was raised; those before quote the
 * program, which has words of all kinds. Of several at once the first one counts. */
static enum traceback follow_traceback(struct complaints *c, struct heard *line)
{
	size_t mark = strlen(c->traceback_mark);

	if (follow_group(c, line) == TRACEBACK_INSIDE || begins_traceback(c, line))
		return TRACEBACK_INSIDE;
	/* it stood behind text without a newline, which is no mark */
	if (strncmp(line->text, "  File \"", 8) == 0)
		c->traceback_mark[0] = mark = 0;
	if (!c->in_traceback || line->rank != c->traceback_rank ||
	    strncmp(line->text, c->traceback_mark, mark) != 0)
		return TRACEBACK_NONE;
	line->text += mark;
	line->len -= mark;
	if (strchr(" \t+|", line->text[0]) || begins_with(line->text, "│") ||
	    begins_with(line->text, "╰─"))
		return TRACEBACK_INSIDE;
	c->in_traceback = false;
	return TRACEBACK_END;
}

/* Typer, tyro and others draw a box around what is wrong, and below it what help there is: its
 * first line counts. True: this is none of it. */
static bool is_rest_of_box(struct complaints *c, struct heard *line)
{
	enum box box = c->box;

	c->box = begins_with(line->text, "╭─")                     ? BOX_BEGUN
		 : box != BOX_NONE && begins_with(line->text, "│") ? BOX_TOLD
								   : BOX_NONE;
	if (box != BOX_BEGUN || c->box != BOX_TOLD)
		return c->box != BOX_NONE || (box == BOX_TOLD && begins_with(line->text, "╰─"));
	line->text += strlen("│");
	line->text += strspn(line->text, " ");
	line->len = strlen(line->text);
	return false;
}

static bool is_harmless(struct complaints *c, const struct heard *line,
			const struct complaint_row *row)
{
	bool may_be = !row || row->weight == WEIGHT_ERROR || row->weight == WEIGHT_FOLLOWS ||
		      row->weight == WEIGHT_EVERYDAY;

	return may_be && regexp_match(c->harmless, line->text, line->len);
}

/* --- the end of a rank ------------------------------------------------------------------------ */

static int signal_of_word(const char *text, size_t len)
{
	static const int signals[] = { SIGSEGV, SIGKILL, SIGABRT, SIGBUS, SIGFPE, SIGILL };
	static const char *const words[] = {
		"Segmentation fault", "Killed", "Aborted", "Bus error", "Floating point exception",
		"Illegal instruction"
	};
	static const char *const names[] = { "SIGSEGV", "SIGKILL", "SIGABRT",
					     "SIGBUS",  "SIGFPE",  "SIGILL" };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if ((strlen(words[i]) == len && strncmp(text, words[i], len) == 0) ||
		    (strlen(names[i]) == len && strncmp(text, names[i], len) == 0))
			return signals[i];
	}
	return 0;
}

static void take_group(void *arg, const char *name, const char *text, size_t len)
{
	struct rank_end *end = arg;
	double number = 0;

	if (strcmp(name, "node") == 0)
		snprintf(end->node, sizeof(end->node), "%.*s", (int)(len < 64 ? len : 64), text);
	else if (strcmp(name, "oom") == 0) {
		end->oom = true;
		end->signal = SIGKILL;
	} else if (strcmp(name, "missing") == 0)
		end->exit_code = NOT_FOUND;
	else if (strcmp(name, "word") == 0)
		end->signal = signal_of_word(text, len);
	else if (!text_number(text, len, &number) || number < -64 || number > 1e6)
		return;
	else if (strcmp(name, "rank") == 0)
		end->rank = (int64_t)number;
	else if (strcmp(name, "local") == 0) {
		end->rank = (int64_t)number;
		end->is_local = true;
	} else if (strcmp(name, "signal") == 0 || number < 0)
		end->signal = number < 0 ? (int)-number : (int)number;
	else if (strcmp(name, "code") == 0)
		end->exit_code = (int)number;
}

static void take_named(void *arg, const char *name, const char *text, size_t len)
{
	double number;

	if (strcmp(name, "named") == 0 && text_number(text, len, &number))
		*(int64_t *)arg = (int64_t)number;
}

enum { FOLLOWERS_MOST = sizeof(((struct complaints *)0)->followers) / sizeof(int64_t) };

static void note_follower(struct complaints *c, int64_t rank, int64_t now_ms)
{
	c->followed_ms = now_ms;
	c->followers[c->follower_count++ % FOLLOWERS_MOST] = rank;
}

bool complaints_follows(const struct complaints *c, int64_t rank)
{
	for (size_t i = 0; i < c->follower_count && i < FOLLOWERS_MOST; i++) {
		if (c->followers[i] == rank)
			return rank >= 0;
	}
	return false;
}

/* It follows from nothing that another rank did; SIGKILL may, from the launcher. */
static bool is_cause(const struct complaints *c, int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE ||
	       (signo == SIGKILL && !c->launcher_ends);
}

/* The launcher's word of that rank came first, which is a matter of pipes. */
static bool is_of_the_same(const struct rank_end *a, const struct rank_end *b)
{
	return a->is_first_hand && !b->is_first_hand && a->rank == b->rank && a->rank >= 0 &&
	       strcmp(a->node, b->node) == 0;
}

/* torchrun says at first which rank of its node it was, and in the end which of all. */
static bool names(const struct complaints *c, const struct rank_end *a)
{
	const struct rank_end *b = &c->end;

	return b->is_local && !a->is_local && c->named_local == b->rank && a->signal == b->signal &&
	       a->exit_code == b->exit_code;
}

/* Is it one that follows another? */
static bool has_followed(const struct complaints *c, const struct rank_end *end)
{
	return !end->is_local && complaints_follows(c, end->rank);
}

/* A signal explains more than the exit status that a launcher made of it. */
static bool explains_more(const struct complaints *c, const struct rank_end *a, int64_t now_ms)
{
	const struct rank_end *b = &c->end;

	return !b->is_known || is_of_the_same(a, b) || names(c, a) ||
	       (b->is_ordered && !a->is_ordered) ||
	       (a->signal && !b->signal && a->rank < 0 && b->rank < 0) ||
	       (is_cause(c, a->signal) && a->rank != b->rank && has_followed(c, b) &&
		now_ms - c->end_ms <= FOLLOWED_MS);
}

void complaints_rank_ended(struct complaints *c, const struct rank_end *end, int64_t now_ms)
{
	bool has_left = end->signal == SIGABRT && has_followed(c, end);

	if (end->signal < 0 || end->signal > 64 || (end->signal == 0 && end->exit_code <= 0))
		return;
	c->last_end_ms = now_ms;
	if (!explains_more(c, end, now_ms))
		return;
	c->end = *end;
	if (has_left) {
		c->end.signal = 0;
		c->end.exit_code = 1;
	}
	c->end.is_known = true;
	c->end_ms = now_ms;
}

/* Scripts end what runs beside the trainer, a monitor say, by a signal to its srun, or by scancel
 * of its step. */
static bool is_ordered(const struct complaints *c, const struct rank_end *end)
{
	bool is_killed = end->signal == SIGKILL || end->exit_code == 128 + SIGKILL;

	return is_killed && !end->oom && c->launcher_ends && !c->has_reason;
}

static void hear_launcher(struct complaints *c, const struct heard *line)
{
	for (size_t i = 0; i < rank_end_pattern_count; i++) {
		struct rank_end end = { .exit_code = -1, .rank = -1 };

		if (!regexp_match(c->ends[i], line->text, line->len))
			continue;
		regexp_each_group(c->ends[i], line->text, take_group, &end);
		regexp_each_group(c->ends[i], line->text, take_named, &c->named_local);
		if (end.rank < 0)
			end.rank = c->named_rank;
		c->named_rank = end.is_local ? -1 : end.rank;
		if (strstr(line->text, "MPI_Abort(") || strstr(line->text, "MPI_ABORT "))
			note_follower(c, end.rank, line->now_ms);
		end.is_ordered = is_ordered(c, &end);
		complaints_rank_ended(c, &end, line->now_ms);
		return;
	}
}

/* --- all together ----------------------------------------------------------------------------- */

/* Its row, NULL = it is no complaint. */
static const struct complaint_row *row_of(struct complaints *c, const struct heard *line)
{
	/* of a very long line the beginning says what it is */
	size_t len = line->len < KNOWN_LINE_BYTES ? line->len : KNOWN_LINE_BYTES;

	if (!regexp_match(c->sign, line->text, len))
		return NULL;
	hear_launcher(c, line);
	for (size_t i = 0; i < complaint_row_count; i++) {
		if (!regexp_match(c->rows[i], line->text, len))
			continue;
		if (complaint_rows[i].weight == WEIGHT_FOLLOWS &&
		    !is_harmless(c, line, &complaint_rows[i]))
			note_follower(c, line->rank, line->now_ms);
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

	return strncmp(line->text, "lbrun: ", 7) == 0 || regexp_match(c->noise, line->text, len);
}

static bool srun_ends(const char *text)
{
	return strstr(text, "Terminating StepId=") || strstr(text, "Job step aborted");
}

/* As srun and slurmstepd say it. */
static bool ends_all(const char *text)
{
	return srun_ends(text) || (strstr(text, "*** STEP ") && strstr(text, " CANCELLED AT "));
}

static void hear_end_of_all(struct complaints *c, const struct heard *line)
{
	if (!ends_all(line->text))
		return;
	c->has_reason = (c->end.is_known && !c->end.is_ordered) || c->best.weight == WEIGHT_KNOWN;
	c->launcher_ends = true;
	c->ends_ms = line->now_ms;
}

/* What a line says of the traceback behind it; what was raised meanwhile is of the same kind. */
static enum aside aside_of(const struct complaints *c, const char *text)
{
	if (strstr(text, "Exception ignored "))
		return ASIDE_IGNORED;
	if (strstr(text, "Exception in thread"))
		return ASIDE_THREAD;
	if (strstr(text, "During handling of the above exception") ||
	    strstr(text, "The above exception was the direct cause"))
		return c->aside;
	return ASIDE_NOT;
}

/* Behind it comes what was made of an exception that says why itself. */
static void hear_of_cause(struct complaints *c, const struct heard *line)
{
	if (c->best.weight == WEIGHT_EXCEPTION && c->best.advice && c->best.rank == line->rank &&
	    strstr(line->text, "was the direct cause of the following exception"))
		c->best.weight = WEIGHT_KNOWN;
}

/* What was raised ended it, whatever it says. */
static enum weight weigh(enum traceback traceback, const struct complaint_row *row)
{
	bool is_plain = !row || row->weight == WEIGHT_ERROR || row->weight == WEIGHT_EVERYDAY;

	return traceback == TRACEBACK_END && is_plain ? WEIGHT_EXCEPTION : row->weight;
}

/* Below an error, programs in Rust (uv) say what it comes from. */
static bool says_cause(const char *text)
{
	text += strspn(text, " \t");
	return begins_with(text, "cause: ") || begins_with(text, "Caused by:");
}

/* Is the line a part of `best`? */
static bool go_on(struct complaints *c, const struct heard *line)
{
	bool is_cause = c->best.weight >= WEIGHT_ERROR && says_cause(line->text);

	if (line->rank != c->best.rank || (!c->goes_on && !is_cause))
		return false;
	c->goes_on = is_cause && text_ends_with(line->text, ":");
	append(&c->best, line);
	return is_cause;
}

void complaints_hear(struct complaints *c, const struct heard *heard)
{
	struct heard line = *heard;
	const struct complaint_row *row;
	enum traceback traceback;
	bool is_ignored;

	if (line.len == 0)
		return;
	hear_end_of_all(c, &line);
	if (c->frame_lines > 0 && line.rank == c->best.rank)
		add_frame(c, &line);
	traceback = follow_traceback(c, &line);
	is_ignored = traceback == TRACEBACK_END ? c->aside == ASIDE_IGNORED
						: c->said == ASIDE_IGNORED;
	c->said = aside_of(c, line.text);
	hear_of_cause(c, &line);
	if (traceback == TRACEBACK_INSIDE || is_rest_of_box(c, &line))
		return;
	row = row_of(c, &line);
	if (((row || line.is_stderr) && is_noise(c, &line)) ||
	    (traceback == TRACEBACK_NONE && is_harmless(c, &line, row)))
		return;
	if (go_on(c, &line))
		return;
	if (traceback == TRACEBACK_END && c->aside == ASIDE_NOT)
		c->raised_ms = line.now_ms;
	if (!is_ignored && (row || traceback == TRACEBACK_END))
		offer(c, &line, weigh(traceback, row), row);
	/* what is indented quotes a program, or goes on: below a warning, say */
	if (line.is_stderr && !is_bar(line.text) && !strchr(" \t", line.text[0]))
		take(&c->last, &line, WEIGHT_LAST, NULL);
}

bool complaint_srun_ends(const struct heard *heard)
{
	return heard->rank < 0 && strncmp(heard->text, "srun: ", 6) == 0 && srun_ends(heard->text);
}

const char *complaint_unreached(const struct heard *heard)
{
	static const char failed[] = " failed on node ";
	static const char *const words[] = { ": Communication", ": Unable to contact",
					     ": Socket timed out", ": Connection", ": No route" };
	bool is_sruns = heard->rank < 0 && strncmp(heard->text, COMPLAINT_NOT_LAUNCHED,
						   strlen(COMPLAINT_NOT_LAUNCHED)) == 0;
	const char *at = is_sruns ? strstr(heard->text, failed) : NULL;
	const char *why = at ? strchr(at, ':') : NULL;

	for (size_t i = 0; why && i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(why, words[i], strlen(words[i])) == 0)
			return at + sizeof(failed) - 1;
	return NULL;
}

void complaints_step(struct complaints *c, int64_t now_ms)
{
	c->step_ms = now_ms;
	if (c->best.weight && now_ms - c->best.at_ms > COMPLAINT_SURVIVED_MS)
		c->best = (struct complaint){ .rank = -1 };
	if (c->end.is_known && now_ms - c->end_ms > COMPLAINT_SURVIVED_MS)
		c->end = (struct rank_end){ .exit_code = -1, .rank = -1 };
	if (c->follower_count > 0 && now_ms - c->followed_ms > COMPLAINT_SURVIVED_MS)
		c->follower_count = 0;
	if (now_ms - c->ends_ms > COMPLAINT_SURVIVED_MS)
		c->launcher_ends = false;
}

/* Other ranks, and another pipe, may still tell a step of before. */
static bool is_last(const struct complaints *c, int64_t at_ms, int64_t now_ms)
{
	return at_ms != INT64_MIN && now_ms - at_ms <= COMPLAINT_SURVIVED_MS &&
	       (c->step_ms == INT64_MIN || c->step_ms - at_ms <= FOLLOWED_MS);
}

bool complaints_end_is_last(const struct complaints *c, int64_t now_ms)
{
	return c->end.is_known && is_last(c, c->last_end_ms, now_ms);
}

bool complaints_raised_last(const struct complaints *c, int64_t now_ms)
{
	return is_last(c, c->raised_ms, now_ms);
}

const struct complaint *complaints_best(const struct complaints *c, int64_t now_ms)
{
	if (c->best.weight && now_ms - c->best.at_ms <= COMPLAINT_OLD_MS)
		return &c->best;
	if (c->last.weight && now_ms - c->last.at_ms <= COMPLAINT_SURVIVED_MS)
		return &c->last;
	return NULL;
}
