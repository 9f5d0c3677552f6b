/* SPDX-License-Identifier: MIT */
/* rank_ends.c - which rank's end ended the others: mostly the first, as far as that is known. */
#include "worker/lbrun/complaints/rank_ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/regexp.h"
#include "common/base/text.h"
#include "worker/lbrun/complaints/complaint_rows.h"
#include "worker/lbrun/complaints/srun_words.h"

enum { FOLLOWED_MS = 5000, NOT_FOUND = 127 };

void rank_ends_init(struct rank_ends *e)
{
	for (size_t i = 0; i < rank_end_pattern_count; i++)
		e->patterns[i] = regexp_built_in(rank_end_patterns[i]);
	e->lost_node = regexp_built_in(complaint_lost_node);
	rank_ends_reset(e);
}

void rank_ends_fini(struct rank_ends *e)
{
	for (size_t i = 0; i < rank_end_pattern_count; i++)
		regexp_destroy(e->patterns[i]);
	regexp_destroy(e->lost_node);
}

static void forget_first(struct rank_ends *e)
{
	e->first = (struct rank_end){ .exit_code = -1, .rank = -1 };
}

void rank_ends_reset(struct rank_ends *e)
{
	forget_first(e);
	e->last_ms = e->lost_node_ms = INT64_MIN;
	e->named_rank = e->named_local = -1;
	e->follower_count = 0;
	e->launcher_ends = e->has_reason = false;
}

/* --- as launchers tell of it ------------------------------------------------------------------ */

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

/* --- which one counts ------------------------------------------------------------------------- */

enum { FOLLOWERS_MOST = sizeof(((struct rank_ends *)0)->followers) / sizeof(int64_t) };

void rank_ends_note_follower(struct rank_ends *e, int64_t rank, int64_t now_ms)
{
	e->followed_ms = now_ms;
	e->followers[e->follower_count++ % FOLLOWERS_MOST] = rank;
}

bool rank_ends_follows(const struct rank_ends *e, int64_t rank)
{
	for (size_t i = 0; i < e->follower_count && i < FOLLOWERS_MOST; i++) {
		if (e->followers[i] == rank)
			return rank >= 0;
	}
	return false;
}

/* It follows from nothing that another rank did; SIGKILL may, from the launcher. */
static bool is_cause(const struct rank_ends *e, int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE ||
	       (signo == SIGKILL && !e->launcher_ends);
}

/* The launcher's word of that rank came first, which is a matter of pipes. */
static bool is_of_the_same(const struct rank_end *a, const struct rank_end *b)
{
	return a->is_first_hand && !b->is_first_hand && a->rank == b->rank && a->rank >= 0 &&
	       strcmp(a->node, b->node) == 0;
}

/* torchrun says at first which rank of its node it was, and in the end which of all. */
static bool names(const struct rank_ends *e, const struct rank_end *a)
{
	const struct rank_end *b = &e->first;

	return b->is_local && !a->is_local && e->named_local == b->rank && a->signal == b->signal &&
	       a->exit_code == b->exit_code;
}

/* Is it one that follows another? */
static bool has_followed(const struct rank_ends *e, const struct rank_end *end)
{
	return !end->is_local && rank_ends_follows(e, end->rank);
}

/* A signal explains more than the exit status that a launcher made of it. */
static bool explains_more(const struct rank_ends *e, const struct rank_end *a, int64_t now_ms)
{
	const struct rank_end *b = &e->first;

	return !b->is_known || is_of_the_same(a, b) || names(e, a) ||
	       (b->is_ordered && !a->is_ordered) ||
	       (a->signal && !b->signal && a->rank < 0 && b->rank < 0) ||
	       (is_cause(e, a->signal) && a->rank != b->rank && has_followed(e, b) &&
		now_ms - e->first_ms <= FOLLOWED_MS);
}

void rank_ends_add(struct rank_ends *e, const struct rank_end *end, int64_t now_ms)
{
	bool has_left = end->signal == SIGABRT && has_followed(e, end);

	if (end->signal < 0 || end->signal > 64 || (end->signal == 0 && end->exit_code <= 0))
		return;
	e->last_ms = now_ms;
	if (!explains_more(e, end, now_ms))
		return;
	e->first = *end;
	if (has_left) {
		e->first.signal = 0;
		e->first.exit_code = 1;
	}
	e->first.is_known = true;
	e->first_ms = now_ms;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Scripts end what runs beside the trainer, a monitor say, by a signal to its srun, or by scancel
 * of its step. */
static bool is_ordered(const struct rank_ends *e, const struct rank_end *end)
{
	bool is_killed = end->signal == SIGKILL || end->exit_code == 128 + SIGKILL;

	return is_killed && !end->oom && e->launcher_ends && !e->has_reason;
}

void rank_ends_hear(struct rank_ends *e, const struct heard *line)
{
	if (regexp_match(e->lost_node, line->text, line->len))
		e->lost_node_ms = line->now_ms;
	for (size_t i = 0; i < rank_end_pattern_count; i++) {
		struct rank_end end = { .exit_code = -1, .rank = -1 };

		if (!regexp_match(e->patterns[i], line->text, line->len))
			continue;
		regexp_each_group(e->patterns[i], line->text, take_group, &end);
		regexp_each_group(e->patterns[i], line->text, take_named, &e->named_local);
		if (end.rank < 0)
			end.rank = e->named_rank;
		e->named_rank = end.is_local ? -1 : end.rank;
		if (strstr(line->text, "MPI_Abort(") || strstr(line->text, "MPI_ABORT "))
			rank_ends_note_follower(e, end.rank, line->now_ms);
		end.is_ordered = is_ordered(e, &end);
		rank_ends_add(e, &end, line->now_ms);
		return;
	}
}

void rank_ends_hear_of_all(struct rank_ends *e, const struct heard *line, bool is_explained)
{
	if (!srun_words_end_all(line->text))
		return;
	e->has_reason = (e->first.is_known && !e->first.is_ordered) || is_explained;
	e->launcher_ends = true;
	e->ends_ms = line->now_ms;
}

void rank_ends_step(struct rank_ends *e, int64_t now_ms)
{
	if (e->first.is_known && now_ms - e->first_ms > SURVIVED_MS)
		forget_first(e);
	if (e->follower_count > 0 && now_ms - e->followed_ms > SURVIVED_MS)
		e->follower_count = 0;
	if (now_ms - e->ends_ms > SURVIVED_MS)
		e->launcher_ends = false;
}
