/* SPDX-License-Identifier: MIT */
#include "worker/lbrun/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/failpoint.h"
#include "common/json.h"
#include "common/mem.h"

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
	j->retry_ms = clock_mono_ms() + JOURNAL_RETRY_MS;
}

void journal_open(struct journal *j, const char *path, const char *lbd_socket, const char *run)
{
	struct err why = {0};

	*j = (struct journal){.sync_ms = INT64_MAX, .retry_ms = INT64_MAX, .path = xstrdup(path)};
	poke_init(&j->poke, lbd_socket, run);
	if (spool_writer_open(&j->spool, path, &why) < 0)
		failed(j, &why);
}

void journal_close(struct journal *j)
{
	for (int i = 0; i < j->waiting_count; i++)
		json_decref(j->waiting[i].line);
	j->waiting_count = 0;
	spool_writer_close(&j->spool);
	poke_fini(&j->poke);
	free(j->path);
	j->path = NULL;
}

static int append(struct journal *j, int64_t launch, bool from_trainer, const json_t *line,
		  struct err *err)
{
	struct err why = {0};

	/* Closed when half a line could not be taken back; opening cuts it off. */
	if ((j->spool.fd < 0 && spool_writer_open(&j->spool, j->path, &why) < 0) ||
	    failpoint(FP_SPOOL_BEFORE, &why) < 0 ||
	    spool_append(&j->spool, launch, from_trainer, line, &why) < 0) {
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

/* Waiting records first: their order is part of what they say. */
static int append_waiting(struct journal *j, struct err *err)
{
	struct err why = {0};
	int done = 0;
	int rc = 0;

	while (done < j->waiting_count && rc == 0) {
		rc = append(j, j->waiting[done].launch, false, j->waiting[done].line, &why);
		/* What can never be written must not stand in the way of the rest. */
		if (rc < 0 && why.code == ERR_USAGE) {
			err_clear(&why);
			rc = 0;
		}
		if (rc == 0)
			json_decref(j->waiting[done++].line);
	}
	if (rc < 0)
		err_set(err, why.code, "%s", why.text);
	j->waiting_count -= done;
	memmove(j->waiting, j->waiting + done, (size_t)j->waiting_count * sizeof(j->waiting[0]));
	return rc;
}

int64_t journal_trainer(struct journal *j, int64_t launch, const json_t *line, struct err *err)
{
	/* While it fails, one try a second, not one a line; once that was made without a failure,
	 * or had nothing to write, the next line is the try. */
	if (j->is_failing && j->retry_ms != INT64_MAX && clock_mono_ms() < j->retry_ms)
		return err_set(err, ERR_IO, "the spool cannot be written at the moment");
	if (append_waiting(j, err) < 0 || append(j, launch, true, line, err) < 0)
		return -1;
	return j->spool.seq;
}

void journal_own(struct journal *j, int64_t launch, json_t *line)
{
	if (j->waiting_count == JOURNAL_WAITING_MAX) {
		/* The newest ones tell how it ended: the oldest goes. */
		json_decref(j->waiting[0].line);
		j->waiting_count--;
		memmove(j->waiting, j->waiting + 1,
			(size_t)j->waiting_count * sizeof(j->waiting[0]));
	}
	j->waiting[j->waiting_count].line = line;
	j->waiting[j->waiting_count].launch = launch;
	j->waiting_count++;
	append_waiting(j, NULL);
}

void journal_note(struct journal *j, int64_t launch, const char *kind, const char *fmt, ...)
{
	json_t *line = json_object();
	char text[600];
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
	struct err why = {0};

	j->sync_ms = INT64_MAX;
	if (append_waiting(j, NULL) < 0)
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
