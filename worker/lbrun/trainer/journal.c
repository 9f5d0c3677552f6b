/* SPDX-License-Identifier: MIT */
/* journal.c - writes lines to the spool, or keeps them until that works again. */
#include "worker/lbrun/trainer/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "common/base/mem.h"

static void say(const struct journal *j, const char *text)
{
	if (j->say)
		j->say(j->arg, text);
}

static void failed(struct journal *j, const struct err *why)
{
	char text[600];

	snprintf(text, sizeof(text), "cannot write the spool, trying on: %s", why->text);
	if (!j->is_failing)
		say(j, text);
	j->is_failing = true;
	j->failed_ms = clock_mono_ms();
	j->retry_ms = j->failed_ms + JOURNAL_RETRY_MS;
}

void journal_open(struct journal *j, const char *path, const char *lbd_socket, const char *run)
{
	struct err why = { 0 };

	*j = (struct journal){ .sync_ms = INT64_MAX,
			       .retry_ms = INT64_MAX,
			       .failed_ms = INT64_MIN,
			       .path = xstrdup(path) };
	poke_init(&j->poke, lbd_socket, run);
	if (spool_writer_open(&j->spool, path, &why) < 0)
		failed(j, &why);
}

void journal_close(struct journal *j)
{
	if (j->waiting_count > 0) {
		char text[100];

		snprintf(text, sizeof(text), "%zu lines could not be written to the spool: lost",
			 j->waiting_count);
		say(j, text);
	}
	for (size_t i = 0; i < j->waiting_count; i++)
		json_decref(j->waiting[i].line);
	free(j->waiting);
	j->waiting = NULL;
	j->waiting_count = j->waiting_room = 0;
	spool_writer_close(&j->spool);
	poke_fini(&j->poke);
	free(j->path);
	j->path = NULL;
}

static int append(struct journal *j, const struct journal_line *l, struct err *err)
{
	struct err why = { 0 };

	/* Closed when half a line could not be taken back; opening cuts it off. */
	if ((j->spool.fd < 0 && spool_writer_open(&j->spool, j->path, &why) < 0) ||
	    failpoint(FP_SPOOL_BEFORE, &why) < 0 ||
	    spool_append_at(&j->spool, l->time_ms, l->launch, l->from_trainer, l->line, &why) < 0) {
		/* A line that is too long says nothing about the next one. */
		if (why.code != ERR_USAGE)
			failed(j, &why);
		return err_set(err, why.code, "%s", why.text);
	}
	failpoint(FP_SPOOL_APPENDED, NULL);
	if (j->is_failing)
		say(j, "the spool can be written again");
	j->is_failing = false;
	j->retry_ms = INT64_MAX;
	if (j->sync_ms == INT64_MAX)
		j->sync_ms = clock_mono_ms() + JOURNAL_SYNC_MS;
	poke_wanted(&j->poke);
	return 0;
}

/* --- lines that wait -------------------------------------------------------------------------- */

/* The line at `at` waits no longer. */
static void forget(struct journal *j, size_t at, size_t count)
{
	for (size_t i = at; i < at + count; i++) {
		const struct journal_line *l = &j->waiting[i];

		j->own_count -= !l->from_trainer;
		j->kept_bytes -= l->from_trainer ? l->bytes : 0;
		json_decref(l->line);
	}
	if (count == 0) /* there may be no room yet to move within */
		return;
	j->waiting_count -= count;
	memmove(j->waiting + at, j->waiting + at + count,
		(j->waiting_count - at) * sizeof(j->waiting[0]));
}

/* Takes the reference. */
static void keep(struct journal *j, const struct journal_line *line)
{
	if (j->waiting_count == j->waiting_room) {
		j->waiting_room = j->waiting_room ? 2 * j->waiting_room : 64;
		j->waiting = xrealloc(j->waiting, j->waiting_room * sizeof(j->waiting[0]));
	}
	j->waiting[j->waiting_count++] = *line;
	j->own_count += !line->from_trainer;
	j->kept_bytes += line->from_trainer ? line->bytes : 0;
}

static bool has_room_for(const struct journal *j, const struct journal_line *line)
{
	return j->waiting_count - j->own_count < JOURNAL_KEPT_LINES &&
	       j->kept_bytes + line->bytes <= JOURNAL_KEPT_BYTES;
}

static void tell_refused(struct journal *j)
{
	int64_t refused = j->refused;

	j->refused = 0;
	if (refused > 0)
		journal_note(j, 0, "lines_refused",
			     "%lld lines of the trainer are missing here: the "
			     "spool could not be written, and lbrun keeps %d at most",
			     (long long)refused, JOURNAL_KEPT_LINES);
}

/* Waiting lines first: their order is part of what they say. */
static int append_waiting(struct journal *j)
{
	struct err why = { 0 };
	size_t done = 0;
	int rc = 0;

	while (done < j->waiting_count && rc == 0) {
		rc = append(j, &j->waiting[done], &why);
		/* What can never be written must not stand in the way of the rest. */
		if (rc < 0 && why.code == ERR_USAGE) {
			err_clear(&why);
			rc = 0;
		}
		done += rc == 0;
	}
	forget(j, 0, done);
	if (rc == 0)
		tell_refused(j);
	return rc;
}

static int64_t keep_or_refuse(struct journal *j, const struct journal_line *line, struct err *err)
{
	if (has_room_for(j, line)) {
		keep(j, line);
		json_incref(line->line);
		err_set(err, ERR_IO,
			"the spool cannot be written at the moment: the line is kept, and "
			"written when it can be");
		return 0;
	}
	if (j->refused++ == 0)
		say(j, "too many lines wait for the spool: newer ones of the trainer are refused");
	return err_set(err, ERR_IO,
		       "the spool cannot be written at the moment, and too many lines wait "
		       "for it: this one is lost");
}

int64_t journal_trainer(struct journal *j, int64_t launch, json_t *line, struct err *err)
{
	struct journal_line l = {
		.line = line,
		.launch = launch,
		.time_ms = clock_wall_ms(),
		.from_trainer = true,
		.bytes = json_dumpb(line, NULL, 0, JSON_COMPACT),
	};
	struct err why = { 0 };

	/* While it fails, one try a second, not one a line; once that was made without a failure,
	 * or had nothing to write, the next line is the try. */
	if (j->is_failing && j->retry_ms != INT64_MAX && clock_mono_ms() < j->retry_ms)
		return keep_or_refuse(j, &l, err);
	if (append_waiting(j) < 0)
		return keep_or_refuse(j, &l, err);
	if (append(j, &l, &why) == 0)
		return j->spool.seq;
	if (why.code != ERR_USAGE)
		return keep_or_refuse(j, &l, err);
	return err_set(err, why.code, "%s", why.text);
}

void journal_own(struct journal *j, int64_t launch, json_t *line)
{
	/* The newest ones tell how it ended: the oldest goes. */
	for (size_t i = 0; j->own_count >= JOURNAL_WAITING_MAX && i < j->waiting_count; i++)
		if (!j->waiting[i].from_trainer)
			forget(j, i--, 1);
	keep(j, &(struct journal_line){
			.line = line,
			.launch = launch,
			.time_ms = clock_wall_ms(),
		});
	append_waiting(j);
}

void journal_note(struct journal *j, int64_t launch, const char *kind, const char *fmt, ...)
{
	json_t *line = json_object();
	char text[800]; /* as an event of lbd has */
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	js_set_str(line, "type", "note");
	js_set_str(line, "kind", kind);
	js_set_str(line, "text", text);
	journal_own(j, launch, line);
}

bool journal_sync(struct journal *j)
{
	struct err why = { 0 };

	j->sync_ms = INT64_MAX;
	if (append_waiting(j) < 0)
		return false;
	if (j->spool.fd >= 0 && failpoint(FP_SPOOL_SYNC, &why) == 0 &&
	    spool_sync(&j->spool, &why) == 0)
		return true;
	failed(j, &why);
	return false;
}

void journal_turn(struct journal *j, int64_t now_ms)
{
	if (now_ms >= j->retry_ms) {
		j->retry_ms = INT64_MAX;
		journal_sync(j);
	}
	if (now_ms >= j->sync_ms)
		journal_sync(j);
	poke_turn(&j->poke, now_ms);
}

int64_t journal_next_ms(const struct journal *j)
{
	int64_t next = poke_next_ms(&j->poke);

	if (j->sync_ms < next)
		next = j->sync_ms;
	return j->retry_ms < next ? j->retry_ms : next;
}
