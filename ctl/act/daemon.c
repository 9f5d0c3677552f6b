/* SPDX-License-Identifier: MIT */
/* daemon.c - lbctl daemon: starting and stopping lbd, and where it is - from its socket, else from
 * its lease, which tells of one on another machine, and of one that is no more. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/run/lease.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"

enum {
	PATIENCE_MS = 60 * 1000,
	LOOK_MS = 100,
	SLURM_MS = 30 * 1000, /* for one command of Slurm */
	LOG_LINES = 200,
};

/* --- where it is ------------------------------------------------------------------------------ */

enum place {
	NOWHERE, /* never started here, or no trace is left */
	ENDED,   /* in peace */
	DIED,    /* on this machine, without a word */
	SILENT,  /* elsewhere, and has not renewed its lease */
	ELSEWHERE,
	HERE, /* alive, but does not answer */
	SERVES,
};

static const char *const place_names[] = { "none",      "ended", "died",  "silent",
					   "elsewhere", "alive", "serves" };

struct found {
	enum place place;
	struct lease lease; /* zeros when NOWHERE */
	json_t *version;    /* SERVES: its own words; owned */
};

/* A lock that somebody holds tells of an older lbd without a lease, too. */
static bool is_locked(const char *home)
{
	char *path = path_join("%s/lbd.lock", home);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	free(path);
	return locked;
}

static enum place place_of(const struct lease *l, const char *home)
{
	if (l->generation == 0)
		return is_locked(home) ? HERE : NOWHERE;
	if (l->ended_ms != 0)
		return ENDED;
	if (lease_is_here(l))
		return lease_is_alive_here(l) ? HERE : DIED;
	return clock_wall_ms() - l->renewed_ms > 2 * l->lease_ms ? SILENT : ELSEWHERE;
}

/* `ask`: its socket, too. */
static void find(struct ctl *ctl, bool ask, struct found *out)
{
	char *path = lease_path(ctl->client.home, 0);
	struct err why = { 0 };

	*out = (struct found){ .place = NOWHERE };
	lease_read(path, &out->lease, NULL);
	free(path);
	out->place = place_of(&out->lease, ctl->client.home);
	if (ask && (out->version = client_ask(&ctl->client, VERB_VERSION, NULL, &why)))
		out->place = SERVES;
}

static bool is_over(enum place place)
{
	return place <= DIED;
}

/* --- lbd as a job of Slurm -------------------------------------------------------------------- */

static char *job_path(const struct ctl *ctl)
{
	return path_join("%s/lbd.job", ctl->client.home);
}

/* The name of the chain of jobs, from the script; owned. NULL: there is none. */
static char *chain_name(const struct ctl *ctl)
{
	static const char key[] = "--job-name=";
	char *path = job_path(ctl), *text = file_read(path, 64 * 1024, NULL, NULL);
	const char *at = text ? strstr(text, key) : NULL;
	char *name = at ? xstrndup(at + strlen(key), strcspn(at + strlen(key), "\n")) : NULL;

	free(text);
	free(path);
	return name;
}

static int slurm(const char *const argv[], char **out, struct err *err)
{
	char *text;
	int status = program_output(argv, SLURM_MS, &text, err);

	if (status > 0)
		status = err_set(err, ERR_SCHEDULER, "%s: %s", argv[0], text);
	if (out && status == 0)
		*out = text;
	else
		free(text);
	return status;
}

/* Jobs of the chain in these states, one number a line; owned, NULL with err. */
static char *chain_jobs(const char *name, const char *states, struct err *err)
{
	char *user = xasprintf("%u", geteuid()), *out = NULL;
	const char *const argv[] = { "squeue", "-h", "-o", "%i",   "-u", user,
				     "-n",     name, "-t", states, NULL };

	slurm(argv, &out, err);
	free(user);
	return out;
}

static int cancel_waiting(const struct ctl *ctl, struct err *err)
{
	char *name = chain_name(ctl), *waiting = name ? chain_jobs(name, "PENDING", err) : NULL;
	int rc = name && !waiting ? -1 : 0;

	for (char *save = NULL, *id = waiting ? strtok_r(waiting, "\n", &save) : NULL;
	     id && rc == 0; id = strtok_r(NULL, "\n", &save)) {
		const char *const argv[] = { "scancel", id, NULL };

		rc = slurm(argv, NULL, err);
	}
	free(waiting);
	free(name);
	return rc;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int64_t patience_ms(const struct ctl *ctl)
{
	return ctl->options.timeout_ms >= 0 ? ctl->options.timeout_ms : PATIENCE_MS;
}

/* Until it is over and its lock free; -1 with err. */
static int await_end(struct ctl *ctl, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + patience_ms(ctl);
	struct found f;

	for (;;) {
		find(ctl, false, &f);
		if (is_over(f.place) && !is_locked(ctl->client.home))
			return 0;
		if (clock_mono_ms() >= end_ms)
			return err_set(err, ERR_TIMEOUT,
				       "lbd (pid %lld on %s) has been asked to end and still does; "
				       "see: lbctl daemon logs",
				       (long long)f.lease.pid, f.lease.host);
		nap(LOOK_MS);
	}
}

/* Until an lbd of this job holds the lease, and answers where it can be asked from here. */
static int await_job(struct ctl *ctl, int64_t job, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + patience_ms(ctl);
	struct found f;

	for (;;) {
		find(ctl, true, &f);
		json_decref(f.version);
		if (f.lease.job_id == job && (f.place == SERVES || f.place == ELSEWHERE))
			break;
		if (clock_mono_ms() >= end_ms)
			return err_set(err, ERR_TIMEOUT,
				       "lbd's job %lld does not run yet: see squeue -j %lld and "
				       "%s/lbd.log; it will serve once it does",
				       (long long)job, (long long)job, ctl->client.home);
		nap(LOOK_MS);
	}
	printf("lbd runs in job %lld on %s; its log is %s/lbd.log\n", (long long)job, f.lease.host,
	       ctl->client.home);
	return 0;
}

/* --- start ------------------------------------------------------------------------------------ */

/* What lbd prints with this option; owned. NULL with err, which lbd.toml may be the reason for. */
static char *lbd_says(struct ctl *ctl, const char *option, struct err *err)
{
	static const char prefix[] = "lbd: ";
	char *lbd = path_sibling("lbd", err), *text = NULL;
	int status = -1;

	if (lbd) {
		const char *const argv[] = { lbd, "--home", ctl->client.home, option, NULL };

		status = program_output(argv, SLURM_MS, &text, err);
	}
	if (status > 0)
		err_set(err, ERR_USAGE, "%s",
			text + (strncmp(text, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0));
	free(lbd);
	if (status == 0)
		return text;
	free(text);
	return NULL;
}

static char *write_job(struct ctl *ctl, struct err *err)
{
	char *path = job_path(ctl), *script = lbd_says(ctl, "--print-job", err);
	int status = script ? 0 : -1;

	if (status == 0)
		status = folder_make(ctl->client.home, 0700, err);
	if (status == 0)
		status = file_write_atomic(path, script, strlen(script), 0700, err);
	free(script);
	if (status == 0)
		return path;
	free(path);
	return NULL;
}

static int submit_job(const char *path, int64_t *job, struct err *err)
{
	const char *const argv[] = { "sbatch", "--parsable", path, NULL };
	char *out;

	if (slurm(argv, &out, err) < 0)
		return -1;
	*job = strtoll(out, NULL, 10); /* "17" or "17;cluster" */
	free(out);
	return *job > 0 ? 0 : err_set(err, ERR_SCHEDULER, "sbatch did not tell the job's number");
}

/* A chain that is there already is not doubled: its next job would only wait for ever. */
static int start_in_slurm(struct ctl *ctl, struct err *err)
{
	char *path = write_job(ctl, err), *name = path ? chain_name(ctl) : NULL, *there = NULL;
	int64_t job = 0;
	int rc = -1;

	if (name)
		there = chain_jobs(name, "PENDING,RUNNING", err);
	if (there && there[0])
		rc = await_job(ctl, strtoll(there, NULL, 10), err);
	else if (there && submit_job(path, &job, err) == 0)
		rc = await_job(ctl, job, err);
	free(there);
	free(name);
	free(path);
	return rc;
}

/* lbd with one option more (NULL: none); its exit status. */
static int run_lbd(struct ctl *ctl, const char *option, struct err *err)
{
	char *lbd = path_sibling("lbd", err);
	const char *const argv[] = { lbd, "--home", ctl->client.home, option, NULL };
	int status = lbd ? program_run(argv, -1, err) : -1;

	free(lbd);
	return status;
}

/* Returns when it serves, or has said why not. */
static int start_here(struct ctl *ctl, struct err *err)
{
	return run_lbd(ctl, NULL, err);
}

/* One that was killed a moment ago looks alive for that moment, and its lease for as long as the
 * lease lasts; one that has just begun does not answer yet. Returns when that is settled: it
 * serves, renews its lease on another machine, or is over. -1 with err: it lives and does not
 * answer. */
static int await_verdict(struct ctl *ctl, struct found *f, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + patience_ms(ctl), renewed_ms;

	ctl->client.deadline_ms = patience_ms(ctl);
	find(ctl, true, f);
	renewed_ms = f->lease.renewed_ms;
	while (f->place == HERE || (f->place == ELSEWHERE && f->lease.renewed_ms == renewed_ms)) {
		if (clock_mono_ms() >= end_ms)
			return err_set(err, ERR_TIMEOUT,
				       "lbd (pid %lld on %s) lives but does not answer; see: lbctl "
				       "daemon logs; what ends it for good: kill -9 %lld",
				       (long long)f->lease.pid, f->lease.host,
				       (long long)f->lease.pid);
		nap(LOOK_MS);
		find(ctl, true, f);
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
	if (is_over(f.place))
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
		return start_in_slurm(ctl, err);
	status = start_here(ctl, err);
	/* somebody else was faster: that one serves in a moment */
	if (status == err_exit_status(ERR_LOCKED) && find_serving(ctl, err) == 0)
		status = 0;
	return status;
}

/* --- stop ------------------------------------------------------------------------------------- */

static int signal_job(const struct lease *lease, struct err *err)
{
	char *job = xasprintf("%lld", (long long)lease->job_id);
	const char *const argv[] = { "scancel", "--batch", "--signal=TERM", job, NULL };
	int rc = slurm(argv, NULL, err);

	free(job);
	return rc;
}

static int stop(struct ctl *ctl, struct err *err)
{
	struct found f;
	int rc = 0;

	find(ctl, true, &f);
	if (f.version) /* an older one has no lease */
		f.lease.pid = js_int(f.version, "pid", f.lease.pid);
	json_decref(f.version);
	if (cancel_waiting(ctl, err) < 0)
		return -1;
	if (is_over(f.place)) {
		puts("lbd does not run");
		return 0;
	}
	if (f.lease.job_id != 0)
		rc = signal_job(&f.lease, err);
	else if (f.place < HERE)
		rc = err_set(err, ERR_DAEMON, "lbd is at work on %s (pid %lld): stop it there",
			     f.lease.host, (long long)f.lease.pid);
	else if (f.lease.pid <= 0)
		rc = err_set(err, ERR_DAEMON, "an lbd holds %s/lbd.lock and does not say who it is",
			     ctl->client.home);
	else if (kill((pid_t)f.lease.pid, SIGTERM) < 0 && errno != ESRCH)
		rc = err_errno(err, "lbd (pid %lld)", (long long)f.lease.pid);
	if (rc < 0 || await_end(ctl, err) < 0)
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
	find(ctl, false, &f);
	if (f.lease.job_id != 0)
		ctl->options.in_slurm = true;
	rc = stop(ctl, err);
	client_fini(&ctl->client);
	if (rc != 0 || client_init(&ctl->client, ctl->options.home, err) < 0)
		return -1;
	return start(ctl, err);
}

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

static void print_serving(const struct ctl *ctl, const struct found *f, const char *holder)
{
	char *since = ago(f->lease.since_ms);

	printf("lbd serves: %s, %s\n", holder, since);
	printf("version    %s\n", js_str(f->version, "version", "?"));
	printf("folder     %s\n", ctl->client.home);
	printf("live runs  %lld\n", (long long)js_int(f->version, "live_runs", 0));
	print_slurm(ctl, f->version);
	free(since);
}

/* What is wrong, why, and what to do. */
static void print_absent(const struct ctl *ctl, const struct found *f, const char *holder)
{
	char *renewed = ago(f->lease.renewed_ms), *why = clean_copy(f->lease.why, &ctl->out);

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
		printf("lbd (%s) has not been heard of for %s; its machine may be dead\n", holder,
		       renewed);
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
		puts("to do      lbctl daemon start   (jobs run on meanwhile; nothing is lost)");
	free(why);
	free(renewed);
}

static int status(struct ctl *ctl, struct err *err)
{
	struct found f;
	char *holder, *log;
	bool runs;

	(void)err;
	find(ctl, true, &f);
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

static int logs(struct ctl *ctl, struct err *err)
{
	char *lines = xasprintf("%d", LOG_LINES), *log;
	struct found f;
	int rc;

	find(ctl, false, &f);
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

/* --- the words -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(struct ctl *ctl, struct err *err);
} words[] = {
	{ "start", start },   { "stop", stop }, { "restart", restart },
	{ "status", status }, { "logs", logs },
};

int daemon_run(struct ctl *ctl, struct err *err)
{
	const char *word = ctl->operands.count > 0 ? ctl->operands.words[0] : "status";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, word) == 0)
			return words[i].run(ctl, err);
	return err_set(err, ERR_USAGE,
		       "daemon: \"%s\": start, stop, restart, status or logs is "
		       "allowed",
		       word);
}

/* The ledger is lbd's alone: it needs none that serves, and may not have one. */
int recover_run(struct ctl *ctl, struct err *err)
{
	return run_lbd(ctl, "--recover", err);
}
