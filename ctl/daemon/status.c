/* SPDX-License-Identifier: MIT */
/* status.c - lbctl daemon status and logs: what lbd is doing, or why it is not there. */
#include "ctl/daemon/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "ctl/daemon/place.h"

enum { LOG_LINES = 200 };

static const char *const place_names[] = { "none",      "ended", "died",  "silent",
					   "elsewhere", "alive", "serves" };

/* --- status ----------------------------------------------------------------------------------- */

static char *log_of(const struct ctl *ctl, const struct found *f)
{
	return f->lease.log[0] ? xstrdup(f->lease.log) : path_join("%s/lbd.log", ctl->client.home);
}

static json_t *to_json(const struct ctl *ctl, const struct found *f)
{
	json_t *o = json_object();
	char *log = log_of(ctl, f);
	bool is_known = f->lease.generation > 0;

	js_set_str(o, "state", place_names[f->place]);
	js_set_str(o, "home", ctl->client.home);
	js_set_str(o, "log", log);
	js_set_str(o, "host", is_known ? f->lease.host : NULL);
	js_set_int(o, "pid", is_known ? f->lease.pid : JS_NONE);
	js_set_int(o, "job_id", f->lease.job_id ? f->lease.job_id : JS_NONE);
	js_set_str(o, "version", is_known ? f->lease.version : NULL);
	js_set_int(o, "generation", is_known ? f->lease.generation : JS_NONE);
	js_set_time(o, "since", f->lease.since_ms);
	js_set_time(o, "renewed", f->lease.renewed_ms);
	js_set_time(o, "ended", f->lease.ended_ms);
	js_set_str(o, "why", f->lease.ended_ms ? f->lease.why : NULL);
	json_object_set_new(o, "lbd", f->version ? json_incref(f->version) : json_null());
	free(log);
	return o;
}

/* "3m05s ago"; never the future, however wrong another machine's clock is. */
static char *ago(int64_t wall_ms)
{
	int64_t past_ms = clock_wall_ms() - wall_ms;
	char text[CLOCK_TEXT_MAX];

	return xasprintf("%s ago", duration_text(past_ms > 0 ? past_ms : 0, text));
}

static void print_slurm(const struct ctl *ctl, const json_t *version)
{
	char *seen = ago(time_ms(version, "slurm_seen"));
	char *down = ago(time_ms(version, "slurm_down_since"));
	char *text = clean_copy(js_str(version, "slurm_text", ""), &ctl->out);
	char *note = clean_copy(js_str(version, "slurm_note", ""), &ctl->out);

	if (!js_bool(version, "slurm", false))
		puts("Slurm      none: runs use this machine");
	else if (time_ms(version, "slurm_down_since") > 0)
		printf("Slurm      has not answered since %s: %s\n", down, text);
	else if (time_ms(version, "slurm_seen") > 0)
		printf("Slurm      seen %s\n", seen);
	else
		puts("Slurm      has not been asked yet");
	if (js_str(version, "slurm_note", NULL))
		printf("           %s\n", note);
	free(note);
	free(text);
	free(down);
	free(seen);
}

/* Runs are shown as they were before. */
static void print_ledger(const struct ctl *ctl, const json_t *version)
{
	char *down = ago(time_ms(version, "ledger_down_since"));
	char *text = clean_copy(js_str(version, "ledger_text", ""), &ctl->out);

	if (time_ms(version, "ledger_down_since") > 0)
		printf("ledger     cannot be written since %s: %s\n", down, text);
	free(text);
	free(down);
}

static void print_serving(const struct ctl *ctl, const struct found *f, const char *holder)
{
	char *since = ago(f->lease.since_ms);

	printf("lbd serves: %s, %s\n", holder, since);
	printf("version    %s\n", js_str(f->version, "version", "?"));
	printf("folder     %s\n", ctl->client.home);
	printf("live runs  %lld\n", (long long)js_int(f->version, "live_runs", 0));
	print_slurm(ctl, f->version);
	print_ledger(ctl, f->version);
	free(since);
}

/* What is wrong, why, and what to do. */
static void print_absent(const struct ctl *ctl, const struct found *f, const char *holder)
{
	char *renewed = ago(f->lease.renewed_ms), *why = clean_copy(f->lease.why, &ctl->out);
	char *start = with_home(ctl, "lbctl daemon start");

	switch (f->place) {
	case NOWHERE:
		puts("lbd does not run here, and has not left a trace");
		break;
	case ENDED:
		printf("lbd does not run: it ended %s: %s\n", renewed, why);
		break;
	case DIED:
		printf("lbd does not run: it died without a word (%s), last heard of %s\n", holder,
		       renewed);
		break;
	case SILENT:
		printf("lbd (%s) was last heard of %s; its machine may be dead\n", holder, renewed);
		break;
	case ELSEWHERE:
		printf("lbd runs elsewhere: %s, last heard of %s; commands work there, orders "
		       "given here wait as files\n",
		       holder, renewed);
		break;
	default:
		printf("lbd lives (%s) but does not answer; it may be stopped or overloaded\n",
		       holder);
		break;
	}
	if (f->place <= SILENT)
		printf("to do      %s   (jobs run on meanwhile; nothing is lost)\n", start);
	free(start);
	free(why);
	free(renewed);
}

int daemon_status(struct ctl *ctl, struct err *err)
{
	struct found f;
	char *holder, *log;
	bool runs;

	lbd_find(ctl, true, &f);
	if (f.place == NOWHERE && f.unseen.code != ERR_NONE)
		return err_set(err, f.unseen.code, "cannot see whether lbd runs: %s",
			       f.unseen.text);
	runs = f.place == SERVES || f.place == ELSEWHERE;
	holder = lease_holder(&f.lease);
	log = log_of(ctl, &f);
	if (ctl->options.json) {
		print_json(to_json(ctl, &f));
	} else {
		f.place == SERVES ? print_serving(ctl, &f, holder) : print_absent(ctl, &f, holder);
		printf("log        %s\n", log);
	}
	free(log);
	free(holder);
	json_decref(f.version);
	return runs ? 0 : err_exit_status(ERR_DAEMON);
}

/* --- logs ------------------------------------------------------------------------------------- */

int daemon_logs(struct ctl *ctl, struct err *err)
{
	char *lines = xasprintf("%d", LOG_LINES), *log;
	struct found f;
	int rc;

	lbd_find(ctl, false, &f);
	log = log_of(ctl, &f);
	if (access(log, R_OK) < 0) {
		rc = err_errno(err, "%s (under systemd: journalctl --user -u lbd)", log);
	} else {
		const char *const argv[] = { "tail", "-n", lines, ctl->options.follow ? "-F" : "--",
					     log,    NULL };

		rc = program_run(argv, -1, err);
	}
	free(log);
	free(lines);
	return rc;
}
