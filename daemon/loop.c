/* SPDX-License-Identifier: MIT */
/* loop.c - lbd's loop: a turn of the engine when one is due, the lease, the hand-over, signals, and
 * the way down. */
#include "daemon/loop.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "daemon/control/control.h"
#include "daemon/cron/cron.h"
#include "daemon/notify/alerts.h"
#include "daemon/notify/exporter.h"
#include "daemon/notify/heartbeat.h"
#include "daemon/notify/log_keeper.h"
#include "daemon/notify/sync.h"
#include "daemon/process/background.h"
#include "daemon/process/lock.h"
#include "daemon/process/systemd.h"
#include "daemon/recover/backup.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/remover.h"
#include "daemon/runs/switchboard.h"
#include "daemon/runs/trainer_check.h"

enum {
	RENEWALS = 6,     /* of the lease, in its length */
	POOL_THREADS = 4, /* libuv's, where UV_THREADPOOL_SIZE does not say */
};

static void on_scheduler_closed(void *arg)
{
	(void)arg;
}

/* What `systemctl status` shows, with a word in front that says why it is told. */
static void notify_status(const struct daemon *d, const char *word)
{
	struct engine_health health;
	char text[1024];

	engine_health(d->lbd.engine, &health);
	snprintf(text, sizeof(text), "%s\nSTATUS=%lld live runs%s%s%s%s", word,
		 (long long)health.live_runs, health.slurm_down_since_ms ? "; Slurm is away: " : "",
		 health.slurm_down_since_ms ? health.slurm_text : "",
		 health.ledger_down_since_ms ? "; nothing is noted: " : "",
		 health.ledger_down_since_ms ? health.ledger_text : "");
	notify_systemd(text);
}

/* Closes whatever keeps the loop alive; it then ends by itself. SIGTERM comes to all processes of a
 * job, then once more from the job's script, and must not kill us on the way down; a second ^C
 * does. */
static void stop(struct daemon *d)
{
	uv_handle_t *handles[] = {
		(uv_handle_t *)&d->turn,      (uv_handle_t *)&d->watchdog, (uv_handle_t *)&d->lease,
		(uv_handle_t *)&d->hand_over, (uv_handle_t *)&d->sigint,   (uv_handle_t *)&d->again,
	};

	notify_systemd("STOPPING=1");
	d->stopping = true;
	backup_stop(d->lbd.backup);
	probes_close(&d->lbd);
	checks_close(&d->lbd);
	control_close(d->lbd.control);
	cron_close(d->lbd.cron);
	log_keeper_close(d->lbd.log_keeper);
	remover_close(d->lbd.remover);
	switchboard_close(d->lbd.switchboard);
	d->lbd.switchboard = NULL;
	exporter_close(d->lbd.exporter);
	alerts_close(d->lbd.alerts);
	heartbeat_close(d->lbd.heartbeat);
	sync_close(d->lbd.sync);
	if (d->lbd.slurm)
		d->lbd.slurm->ops->close(d->lbd.slurm, on_scheduler_closed, NULL);
	d->lbd.local->ops->close(d->lbd.local, on_scheduler_closed, NULL);
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		uv_close(handles[i], NULL);
	uv_unref((uv_handle_t *)&d->sigterm);
	uv_unref((uv_handle_t *)&d->sighup);
}

/* Whether we may go on. Another lbd in our place means that nothing of ours is to be written or
 * submitted any more; a look that failed is repeated, the ledger refuses meanwhile. */
static bool is_ours(struct daemon *d, int (*look)(struct lock *lock, struct err *err))
{
	struct err err = { 0 };

	if (look(d->lbd.lock, &err) == 0) {
		d->is_in_doubt = false;
		return true;
	}
	if (!d->is_in_doubt || err.code == ERR_LOCKED) /* once: each turn looks */
		log_error("%s", err.text);
	d->is_in_doubt = true;
	if (err.code != ERR_LOCKED)
		return true;
	d->is_superseded = d->failed = true;
	d->why = "another lbd took over";
	if (!d->stopping)
		stop(d);
	return false;
}

static int look_only(struct lock *lock, struct err *err)
{
	return lock_check(lock, err);
}

/* Of a disk that is ill for a while a new process makes a new start; in the background that is ours
 * to begin. */
static void leave_ledger(struct daemon *d)
{
	struct err err = { 0 };

	ledger_check_place(d->lbd.ledger, &err);
	d->begins_again = d->is_background && (err.code == ERR_NONE || err_is_passing(&err));
	log_error("the ledger cannot be trusted any more: lbd ends%s, jobs run on%s%s",
		  d->begins_again ? " and begins again" : "", err.text[0] ? ": " : "", err.text);
	d->failed = true;
	d->why = d->begins_again ? "its ledger was broken; it begins again"
				 : "its ledger was broken";
	stop(d);
}

static void on_turn(uv_timer_t *timer);
static void on_again(uv_idle_t *idle);

static void turn(struct daemon *d)
{
	int64_t at_ms, wait_ms;

	if (d->stopping || !is_ours(d, look_only))
		return;
	at_ms = engine_turn(d->lbd.engine);
	if (ledger_is_broken(d->lbd.ledger)) {
		if (is_ours(d, look_only))
			leave_ledger(d);
		return;
	}
	if (at_ms == INT64_MAX)
		return;
	wait_ms = at_ms - clock_mono_ms();
	if (wait_ms > 0)
		uv_timer_start(&d->turn, on_turn, (uint64_t)wait_ms, 0);
	else
		uv_idle_start(&d->again, on_again);
}

static void on_turn(uv_timer_t *timer)
{
	turn(timer->data);
}

/* A timer of no time would be due again before libuv looks at any socket: as long as one turn
 * follows the other at once nobody would be heard. */
static void on_again(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	turn(idle->data);
}

/* Whose file is gone must not wait for the next write to notice; a socket that is gone comes back.
 * And what one large answer took goes back to the system: left alone, malloc keeps most of it for
 * as long as lbd lives. */
static void on_lease(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	malloc_trim(0);
	if (!is_ours(d, lock_renew))
		return;
	if (ledger_check_place(d->lbd.ledger, NULL) < 0)
		uv_timer_start(&d->turn, on_turn, 0, 0);
	if (!d->stopping)
		control_look(d->lbd.control);
}

static void on_hand_over(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	log_info("hands over to the next lbd; jobs run on");
	d->why = "handed over to the next one";
	if (!d->stopping)
		stop(d);
}

static void on_watchdog(uv_timer_t *timer)
{
	notify_status(timer->data, "WATCHDOG=1");
}

/* One that ends of itself for good has its reason. */
static void end(struct daemon *d, int signo, const char *why)
{
	if (!d->stopping || d->begins_again || d->is_told)
		d->why = why;
	d->is_told |= !d->stopping || d->begins_again;
	d->begins_again = false;
	if (d->stopping)
		return;
	log_info("ends on signal %d; jobs run on", signo);
	stop(d);
}

static const char hung_up[] = "hung up (SIGHUP): its terminal or session has ended, at a logout?";

static void on_stop(uv_signal_t *handle, int signo)
{
	enum { TOGETHER_MS = 1000 };
	struct daemon *d = handle->data;
	bool is_logout = d->hung_up_ms > 0 && clock_mono_ms() - d->hung_up_ms < TOGETHER_MS;

	end(d, signo,
	    signo == SIGINT ? "interrupted (SIGINT)"
	    : is_logout     ? hung_up
			    : "stopped (SIGTERM)");
}

/* Who moves the log away says so by it, also to one that is about to begin again. Else a terminal
 * or a session has gone: at a logout it comes with SIGTERM, in whatever order, and must neither
 * kill us on the way down, nor be left unsaid. */
static void on_hang_up(uv_signal_t *handle, int signo)
{
	struct daemon *d = handle->data;

	d->hung_up_ms = clock_mono_ms();
	if (!background_reopen_log() || (d->stopping && !d->begins_again))
		end(d, signo, hung_up);
}

/* As nohup(1) has it. */
static bool is_ignored(int signo)
{
	struct sigaction now;

	return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void loop_turn_soon(void *arg)
{
	struct daemon *d = arg;

	if (!d->stopping)
		uv_timer_start(&d->turn, on_turn, 0, 0);
}

static void wait_for_all(void *arg)
{
	uv_sem_wait(arg);
}

static void no_work(uv_work_t *work)
{
	(void)work;
}

/* libuv starts its threads with the first work that they are given, and aborts where it cannot: so
 * that is now, and not before it is seen that they can be had. */
static int take_threads(uv_loop_t *loop, struct err *err)
{
	static uv_work_t first;
	uv_thread_t threads[POOL_THREADS];
	uv_sem_t go;
	int count = 0, rc = 0;

	uv_sem_init(&go, 0);
	while (rc == 0 && count < POOL_THREADS)
		if ((rc = uv_thread_create(&threads[count], wait_for_all, &go)) == 0)
			count++;
	for (int i = 0; i < count; i++)
		uv_sem_post(&go);
	for (int i = 0; i < count; i++)
		uv_thread_join(&threads[i]);
	uv_sem_destroy(&go);
	if (rc == 0)
		return uv_queue_work(loop, &first, no_work, NULL);
	return err_set(err, ERR_IO, "no thread can be started: %s; too few processes? (ulimit -u)",
		       uv_strerror(rc));
}

int loop_open(struct daemon *d, struct err *err)
{
	uv_loop_init(&d->loop);
	d->lbd.loop = &d->loop;
	uv_timer_init(&d->loop, &d->turn);
	uv_idle_init(&d->loop, &d->again);
	uv_timer_init(&d->loop, &d->watchdog);
	uv_timer_init(&d->loop, &d->lease);
	uv_timer_init(&d->loop, &d->hand_over);
	uv_signal_init(&d->loop, &d->sigterm);
	uv_signal_init(&d->loop, &d->sigint);
	uv_signal_init(&d->loop, &d->sighup);
	d->turn.data = d->watchdog.data = d->sigterm.data = d->sigint.data = d;
	d->lease.data = d->hand_over.data = d->sighup.data = d->again.data = d;
	return take_threads(&d->loop, err);
}

void loop_start(struct daemon *d, int64_t until_ms, int ready_fd)
{
	int64_t watchdog_ms = notify_watchdog_ms();
	uint64_t lease_ms = (uint64_t)d->lbd.config.lease_ms;
	int64_t left_ms = until_ms - clock_wall_ms();

	uv_signal_start(&d->sigterm, on_stop, SIGTERM);
	uv_signal_start(&d->sigint, on_stop, SIGINT);
	if (!is_ignored(SIGHUP))
		uv_signal_start(&d->sighup, on_hang_up, SIGHUP);
	uv_timer_start(&d->turn, on_turn, 0, 0);
	d->lbd.backup = backup_open(&d->lbd);
	uv_timer_start(&d->lease, on_lease, lease_ms / RENEWALS, lease_ms / RENEWALS);
	if (until_ms > 0)
		uv_timer_start(&d->hand_over, on_hand_over, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
	if (watchdog_ms > 0)
		uv_timer_start(&d->watchdog, on_watchdog, (uint64_t)watchdog_ms,
			       (uint64_t)watchdog_ms);
	notify_status(d, "READY=1");
	notify_ready_fd(ready_fd);
}

/* Without a handle that counts uv_run() would not look. */
void loop_hear_last(struct daemon *d)
{
	uv_ref((uv_handle_t *)&d->sigterm);
	uv_run(&d->loop, UV_RUN_NOWAIT);
}

void loop_close(struct daemon *d)
{
	uv_close((uv_handle_t *)&d->sigterm, NULL);
	uv_close((uv_handle_t *)&d->sighup, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	uv_loop_close(&d->loop);
}
