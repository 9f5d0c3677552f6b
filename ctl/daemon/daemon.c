/* SPDX-License-Identifier: MIT */
/* daemon.c - lbctl daemon: starting and stopping lbd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/print.h"
#include "ctl/daemon/chain.h"
#include "ctl/daemon/lbd.h"
#include "ctl/daemon/place.h"
#include "ctl/daemon/status.h"

enum { LOOK_MS = 100 };

/* --- waiting ---------------------------------------------------------------------------------- */

/* Until this one is over and its lock free, or another in its place; -1 with err. */
static int await_end(struct ctl *ctl, const struct lease *asked, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + lbd_patience_ms(ctl);
	struct found f;
	char *last_resort;

	for (;;) {
		lbd_find(ctl, false, &f);
		if ((lbd_is_over(f.place) && !lbd_is_locked(ctl->client.home)) ||
		    f.lease.generation > asked->generation)
			return 0;
		if (clock_mono_ms() >= end_ms)
			break;
		nap(LOOK_MS);
	}
	last_resort = asked->job_id ? xasprintf("scancel %lld", (long long)asked->job_id)
				    : xasprintf("kill -9 %lld", (long long)asked->pid);
	err_set(err, ERR_TIMEOUT,
		"lbd (pid %lld on %s) has been asked to end and still does; see: lbctl daemon logs; "
		"what ends it for good: %s",
		(long long)asked->pid, asked->host, last_resort);
	free(last_resort);
	return -1;
}

/* --- start ------------------------------------------------------------------------------------ */

/* Returns when it serves, or has said why not. */
static int start_here(struct ctl *ctl, struct err *err)
{
	return lbd_run(ctl, NULL, err);
}

/* One that was killed a moment ago looks alive for that moment, and its lease for as long as the
 * lease lasts; one that has just begun does not answer yet. Returns when that is settled: it
 * serves, renews its lease on another machine, or is over. -1 with err: it lives and does not
 * answer. */
static int await_verdict(struct ctl *ctl, struct found *f, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + lbd_patience_ms(ctl), renewed_ms;

	ctl->client.deadline_ms = lbd_patience_ms(ctl);
	lbd_find(ctl, true, f);
	renewed_ms = f->lease.renewed_ms;
	while (f->place == HERE || (f->place == ELSEWHERE && f->lease.renewed_ms == renewed_ms)) {
		if (clock_mono_ms() >= end_ms)
			return err_set(err, ERR_TIMEOUT,
				       "lbd (pid %lld on %s) lives but does not answer; see: lbctl "
				       "daemon logs; what ends it for good: kill -9 %lld",
				       (long long)f->lease.pid, f->lease.host,
				       (long long)f->lease.pid);
		nap(LOOK_MS);
		lbd_find(ctl, true, f);
	}
	return 0;
}

/* 0: it was said who serves; 1: nobody does. */
static int find_serving(struct ctl *ctl, struct err *err)
{
	struct found f;
	char *holder;

	if (await_verdict(ctl, &f, err) < 0)
		return -1;
	json_decref(f.version);
	if (lbd_is_over(f.place) || f.place == SILENT) /* lbd itself waits for its lease */
		return 1;
	holder = lease_holder(&f.lease);
	printf("lbd runs already: %s\n", holder);
	free(holder);
	return 0;
}

static int start(struct ctl *ctl, struct err *err)
{
	int status = find_serving(ctl, err);

	if (status <= 0)
		return status;
	if (ctl->options.in_slurm)
		return chain_start(ctl, err);
	status = start_here(ctl, err);
	/* somebody else was faster: that one serves in a moment */
	if (status == err_exit_status(ERR_LOCKED) && find_serving(ctl, err) == 0)
		status = 0;
	return status;
}

/* --- stop ------------------------------------------------------------------------------------- */

static int stop(struct ctl *ctl, struct err *err)
{
	struct found f;
	int rc = 0;

	lbd_find(ctl, false, &f);
	if (f.place != HERE || f.lease.pid <= 0) /* an older one has no lease */
		lbd_find(ctl, true, &f);
	/* its own words may be those of a container, where another process here has that number */
	if (f.place == SERVES)
		f.lease.pid = f.pid;
	json_decref(f.version);
	if (chain_cancel_waiting(ctl, err) < 0)
		return -1;
	if (lbd_is_over(f.place)) {
		puts("lbd does not run");
		return 0;
	}
	if (f.lease.job_id != 0)
		rc = chain_signal(&f.lease, err);
	else if (f.place == SILENT)
		rc = err_set(err, ERR_DAEMON,
			     "lbd (pid %lld on %s) is silent, and its machine may be dead; "
			     "lbctl daemon start takes its place",
			     (long long)f.lease.pid, f.lease.host);
	else if (f.place < HERE)
		rc = err_set(err, ERR_DAEMON, "lbd is at work on %s (pid %lld): stop it there",
			     f.lease.host, (long long)f.lease.pid);
	else if (f.lease.pid <= 0 && f.place == SERVES)
		rc = err_set(err, ERR_DAEMON,
			     "lbd serves in a container into which one cannot see from here: stop "
			     "it there");
	else if (f.lease.pid <= 0)
		rc = err_set(err, ERR_DAEMON, "an lbd holds %s/lbd.lock and does not say who it is",
			     ctl->client.home);
	else if (kill((pid_t)f.lease.pid, SIGTERM) < 0 && errno != ESRCH)
		rc = err_errno(err, "lbd (pid %lld)", (long long)f.lease.pid);
	if (rc < 0 || await_end(ctl, &f.lease, err) < 0 ||
	    (f.lease.job_id != 0 && chain_end(ctl, err) < 0))
		return -1;
	printf("lbd (pid %lld) has ended; jobs run on\n", (long long)f.lease.pid);
	return 0;
}

/* A typo in lbd.toml must not leave people without lbd: it is looked at while the old one
 * serves. */
static int restart(struct ctl *ctl, struct err *err)
{
	char *config = lbd_says(ctl, "--check-config", err);
	struct found f;
	int rc;

	free(config);
	if (config == NULL)
		return err_wrap(err, "nothing was done");
	lbd_find(ctl, false, &f);
	if (f.lease.job_id != 0)
		ctl->options.in_slurm = true;
	rc = stop(ctl, err);
	client_fini(&ctl->client);
	if (rc != 0 || client_init(&ctl->client, ctl->options.home, err) < 0)
		return -1;
	return start(ctl, err);
}

/* --- the words -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(struct ctl *ctl, struct err *err);
} words[] = {
	{ "start", start },          { "stop", stop },        { "restart", restart },
	{ "status", daemon_status }, { "logs", daemon_logs },
};

/* Each option is for some of the words alone. */
static int check_options(const struct ctl *ctl, const char *word, struct err *err)
{
	const struct options *o = &ctl->options;
	const struct {
		const char *option, *words;
		bool is_given;
	} rows[] = {
		{ "json", "status", o->json },
		{ "follow", "logs", o->follow },
		{ "in-slurm", "start, restart", o->in_slurm },
		{ "timeout", "start, stop, restart", o->timeout_ms >= 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is_given && !strstr(rows[i].words, word))
			return err_set(err, ERR_USAGE, "daemon: --%s is for %s", rows[i].option,
				       rows[i].words);
	return 0;
}

int daemon_run(struct ctl *ctl, struct err *err)
{
	const char *word = ctl->operands.count > 0 ? ctl->operands.words[0] : "status";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, word) == 0)
			return check_options(ctl, word, err) < 0 ? -1 : words[i].run(ctl, err);
	return err_set(err, ERR_USAGE,
		       "daemon: \"%s\": start, stop, restart, status or logs is "
		       "allowed",
		       word);
}

/* The ledger is lbd's alone: it needs none that serves, and may not have one. */
int recover_run(struct ctl *ctl, struct err *err)
{
	return lbd_run(ctl, "--recover", err);
}
