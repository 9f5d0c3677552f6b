/* SPDX-License-Identifier: MIT */
/* main.c - lbd: what it does when it is started, from the options to the end of the loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "common/base/strv.h"
#include "common/config/kept_env.h"
#include "daemon/control/control.h"
#include "daemon/folders.h"
#include "daemon/loop.h"
#include "daemon/options.h"
#include "daemon/parts.h"
#include "daemon/process/again.h"
#include "daemon/process/background.h"
#include "daemon/process/in_slurm.h"
#include "daemon/process/lock.h"
#include "daemon/recover/backup.h"
#include "daemon/recover/recover.h"

static int run(struct daemon *d, const struct daemon_options *o, struct err *err)
{
	if (control_check_room(err) < 0 || open_ledger(d, err) < 0 || open_parts(d, err) < 0) {
		lock_release(d->lbd.lock, err->text);
		return -1;
	}
	log_info("lbd %s serves %s", LB_VERSION, d->lbd.config.home);
	loop_start(d, o->until_ms, o->ready_fd);
	background_leave_terminal();
	uv_run(&d->loop, UV_RUN_DEFAULT);
	engine_destroy(d->lbd.engine);
	backup_close(d->lbd.backup, !d->failed);
	ledger_close(d->lbd.ledger);
	loop_hear_last(d);
	lock_release(d->lbd.lock, d->why);
	loop_close(d);
	if (d->is_superseded)
		return err_set(err, ERR_LOCKED, "another lbd took over; see the log");
	return d->failed ? err_set(err, ERR_IO, "the ledger is broken; see the log") : 0;
}

static int fail(const struct err *err)
{
	char line[sizeof(err->text) + 8];

	snprintf(line, sizeof(line), "lbd: %s", err->text);
	background_say(line);
	return err_exit_status(err->code);
}

static int enter_background(const char *home, struct err *err)
{
	char *log_path = path_join("%s/lbd.log", home);
	struct err why = { 0 };
	int fd = -1;

	if (folder_make(home, 0700, &why) < 0)
		err_set(err, why.code, "%s; for another folder: export LB_HOME=DIR", why.text);
	else
		fd = background_enter(log_path, err);
	free(log_path);
	return fd;
}

/* Job environments, with their secrets, pass through this process: no core files. (The leak checker
 * of a sanitized build could not look into it either.) */
static void forbid_core(void)
{
#ifndef __SANITIZE_ADDRESS__
	prctl(PR_SET_DUMPABLE, 0);
#endif
}

/* Our own files are for their owner and the team; jobs that cron starts have what we came with. */
static void take_umask(void)
{
	char *told = kept_umask();

	setenv("SLURM_UMASK", told, 1);
	free(told);
	umask(027);
}

static int serve(struct daemon *d, struct daemon_options *o, char **argv, struct err *err)
{
	int rc;

	background_leave_init();
	d->is_background = !o->foreground;
	if (!o->foreground && (o->ready_fd = enter_background(o->home, err)) < 0)
		return -1;
	d->lbd.started_ms = clock_wall_ms();
	rc = run(d, o, err);
	if (d->begins_again)
		begin_again(argv, d->lbd.config.ledger_path);
	return rc;
}

static int recover(struct daemon *d, const struct daemon_options *o, struct err *err)
{
	char *text = NULL;
	int rc = -1;

	log_init("lbd", o->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (open_home(&d->lbd.config, err) == 0)
		d->lbd.lock = lock_take(d->lbd.config.home, d->lbd.config.lease_ms, NULL, err);
	if (d->lbd.lock)
		rc = recover_ledger(&d->lbd, &text, err);
	lock_release(d->lbd.lock, rc == 0 ? "recovered the ledger" : err->text);
	if (text)
		puts(text);
	free(text);
	return rc;
}

/* What is in force; but nobody reads a secret over somebody's shoulder. */
static void print_config(struct config *config)
{
	char **secrets[] = { &config->notify_webhook, &config->heartbeat_url };

	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		if (*secrets[i] == NULL)
			continue;
		free(*secrets[i]);
		*secrets[i] = xstrdup("(not shown)");
	}
	keys_print(config_keys, config_key_count, config, stdout);
}

int main(int argc, char **argv)
{
	struct daemon_options o = { .ready_fd = -1 };
	static struct daemon d;
	struct err err = { 0 };
	int rc = 0;

	file_fill_stdio();
	proc_take_signals();
	daemon_options_read(argc, argv, &o);
	log_init("lbd", o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a full quota is an error of write(2), not the end */
	take_umask();
	forbid_core();
	if (o.home == NULL)
		o.home = path_lb_home(&err);
	else if (path_check_home(o.home, &err) < 0)
		rc = -1;
	if (rc < 0 || o.home == NULL || failpoint_init("lbd", &err) < 0 ||
	    check_home(o.home, &err) < 0 || config_load(&d.lbd.config, o.home, &err) < 0)
		rc = -1;
	else if (o.check_config)
		print_config(&d.lbd.config);
	else if (o.print_job)
		rc = in_slurm_print(&d.lbd.config, stdout, &err);
	else if (o.recover)
		rc = recover(&d, &o, &err);
	else
		rc = serve(&d, &o, argv, &err);
	free(d.lbd.slurm_helper);
	free(d.lbd.slurm_note);
	strv_free(d.unfit_helpers.items);
	config_clear(&d.lbd.config);
	free(o.home);
	return rc < 0 ? fail(&err) : 0;
}
